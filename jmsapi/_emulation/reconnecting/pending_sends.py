"""The sends of a connection that may be made again: each is answered exactly once, whatever becomes of its link.

A send that was under way when its link was lost has an unknown outcome. It fails and says so; or, if the application asked for
it, it is sent again: where the broker detects duplicates by an id that is exact, elsewhere the copy bears a mark.
A send that no link has seen waits for the next one, for as long as a send may take.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from jmsapi._emulation.guarded_calls import notify
from jmsapi._emulation.reconnecting.records import (
    NotYet,
    ProducerRecord,
    Refused,
    TransactionRecord,
    UnansweredSend,
    altered,
    is_loss,
)
from jmsapi.spi import Envelope, ErrorKind, ProviderError, SendResult, TakesBack

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting.epoch import Epoch
    from jmsapi._emulation.reconnecting.state import ConnectionState

__all__ = ["RESENT", "UnansweredSends"]

RESENT: Final = "jmsapi_resent"
"""The property of a message that was sent again: true, and the first one may have arrived too."""


class UnansweredSends:
    """What was sent and is not answered.

    Args:
        state: The connection's.
        renamed: Returns a message with the names that its destinations have on the link of the moment.
    """

    def __init__(self, state: ConnectionState, renamed: Callable[[Envelope], Envelope]) -> None:
        self._state = state
        self._renamed = renamed
        self._resend = state.failover.resend_unconfirmed
        self._timeout = state.options.send_timeout_ms / 1000
        """How long a send may wait for a link, in seconds."""
        self._waiting: deque[UnansweredSend] = deque()
        """What no link has seen, and what is to be sent again; guarded by the connection's guard."""
        self._flushing = False
        self.duplicate_property: str | None = None
        """The property by whose value the broker of the moment knows duplicates; None where it does not."""

    def send(self, producer: ProducerRecord, envelope: Envelope, tx: TransactionRecord | None, token: object) -> None:
        """Send on the link of the moment, or wait for one."""
        state = self._state
        if self._resend and self.duplicate_property is not None and tx is None:
            envelope = _detectable(envelope, self.duplicate_property)
        sending = UnansweredSend(producer, envelope, tx, token, state.clock.monotonic())
        epoch = state.epoch
        if tx is not None or epoch is None or self._waiting or self._flushing:
            with state.guard:
                state.check_usable()
                epoch = state.epoch
                spans = tx is not None and _spans_a_break(tx, epoch)
                waits = not spans and (epoch is None or bool(self._waiting) or self._flushing)
                if waits:
                    self._waiting.append(sending)
                elif tx is not None:
                    tx.used = True
            if spans:
                self._answer([(token, _rolled_back())])
            if spans or waits:
                return
        if epoch is not None and not self._started(epoch, sending):
            self._wait(sending)

    def _wait(self, sending: UnansweredSend) -> None:
        """Let a send that no link has seen wait for the next link."""
        with self._state.guard:
            usable = self._state.usable
            if usable:
                self._waiting.append(sending)
        if not usable:
            self._answer([(sending.token, self._state.why_not())])
        elif self._state.epoch is not None:
            self.flush()

    def _started(self, epoch: Epoch, sending: UnansweredSend) -> bool:
        """Give a send to a link; False when that has not seen it because it is gone.

        Raises:
            ProviderError: It cannot be sent at all, and will not be answered.
        """
        key = id(sending.token)
        epoch.unanswered[key] = sending
        if epoch.over:
            # Whoever ended the link has answered it, or it is still ours.
            return epoch.unanswered.pop(key, None) is None
        tx = sending.tx
        try:
            producer = sending.producer.on(epoch)
            inner_tx = None
            if tx is not None:
                with self._state.guard:
                    inner_tx = tx.on(epoch)
                    tx.used = True
            epoch.provider.send(producer, self._renamed(self._marked(sending, epoch.place)), inner_tx, sending.token)
        except (NotYet, Refused, ProviderError) as error:
            if epoch.unanswered.pop(key, None) is None:
                return True
            if isinstance(error, ProviderError) and not is_loss(error):
                raise
            if isinstance(error, Refused):
                raise error.cause from None
            if tx is not None:
                self._answer([(sending.token, _rolled_back())])
                return True
            if isinstance(error, ProviderError):
                epoch.suspect(error)
            return False
        return True

    def lost(self, epoch: Epoch, cause: ProviderError) -> None:
        """Answer what was under way on a link that is over now, or send it again."""
        left = list(epoch.unanswered.items())
        answers: list[SendResult] = []
        again: list[UnansweredSend] = []
        for key, sending in left:
            if epoch.unanswered.pop(key, None) is None:
                continue
            if sending.tx is not None:
                answers.append((sending.token, _rolled_back()))
            elif self._resend and self._state.usable:
                sending.sent_to = epoch.place
                again.append(sending)
            else:
                text = f"the link was lost before the broker confirmed it ({cause.message}); it may or may not have arrived"
                answers.append((sending.token, ProviderError(ErrorKind.IN_DOUBT, text)))
        if again:
            with self._state.guard:
                self._waiting.extendleft(reversed(again))
        self._answer(answers)

    def _marked(self, sending: UnansweredSend, place: int) -> Envelope:
        """Return a message with the mark of a copy, if it may be one of which the server does not know."""
        if sending.sent_to is None or (self.duplicate_property is not None and sending.sent_to == place):
            return sending.envelope
        return altered(sending.envelope, properties={**sending.envelope.properties, RESENT: True})

    def flush(self) -> None:
        """Send what waits, in its order; what has waited too long fails instead."""
        state = self._state
        with state.guard:
            if self._flushing:
                return
            self._flushing = True
        while True:
            with state.guard:
                epoch = state.epoch
                if epoch is None or not self._waiting:
                    self._flushing = False
                    return
                sending = self._waiting.popleft()
            try:
                if self._is_late(sending):
                    raise _late()
                started = self._started(epoch, sending)
            except Exception as error:  # also a provider's fault: what waits behind it must not stay for ever
                epoch.unanswered.pop(id(sending.token), None)
                cause = error if isinstance(error, ProviderError) else ProviderError(ErrorKind.PROTOCOL, repr(error))
                self._answer([(sending.token, cause)])
                continue
            if not started:
                with state.guard:
                    usable = state.usable
                    if usable:
                        self._waiting.appendleft(sending)
                    if usable and state.epoch is epoch:
                        # The link is about to be lost; the next one begins here.
                        self._flushing = False
                        return
                if not usable:
                    self._answer([(sending.token, state.why_not())])

    def take_back(self, token: object) -> None:
        """Answer a send that waits for a link; one that a link has is taken back there, if it was not written."""
        with self._state.guard:
            mine = [sending for sending in self._waiting if sending.token is token]
            for sending in mine:
                self._waiting.remove(sending)
            epoch = self._state.epoch
        self._answer([(sending.token, _late()) for sending in mine])
        if not mine and epoch is not None and isinstance(epoch.provider, TakesBack):
            epoch.provider.take_back(token)

    def expire(self) -> None:
        """Fail what has waited too long."""
        with self._state.guard:
            late = [sending for sending in self._waiting if self._is_late(sending)]
            for sending in late:
                self._waiting.remove(sending)
        self._answer([(sending.token, _late()) for sending in late])

    def fail(self, cause: ProviderError) -> None:
        """Fail everything that waits: there will be no link."""
        with self._state.guard:
            waiting = list(self._waiting)
            self._waiting.clear()
        self._answer([(sending.token, cause) for sending in waiting])

    def _is_late(self, sending: UnansweredSend) -> bool:
        return self._state.clock.monotonic() - sending.since > self._timeout

    def _answer(self, answers: list[SendResult]) -> None:
        if answers:
            notify(self._state.above.on_sent, answers)


def _detectable(envelope: Envelope, name: str) -> Envelope:
    """Return a message by whose property the broker knows a copy; an id that the application gave stays."""
    if name in envelope.properties:
        return envelope
    return altered(envelope, properties={**envelope.properties, name: envelope.message_id or f"ID:{uuid.uuid4()}"})


def _spans_a_break(tx: TransactionRecord, epoch: Epoch | None) -> bool:
    """Return whether a transaction can only be rolled back. One without anything in it waits for the next link."""
    return tx.used if epoch is None else not tx.is_on(epoch)


def _rolled_back() -> ProviderError:
    return ProviderError(ErrorKind.ROLLED_BACK, "the link was lost during the transaction, so the broker rolled it back")


def _late() -> ProviderError:
    return ProviderError(ErrorKind.TIMEOUT, "the link was not back in time; it was not sent")
