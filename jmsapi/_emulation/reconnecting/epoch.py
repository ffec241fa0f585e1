"""One link of a connection that may have several, one after the other: what its provider reports while it is the one.

The gate keeps an old link's events from the core: each event of a link is passed up inside its gate, and once the link is over
nothing passes any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._emulation.reconnecting.records import ConsumerRecord, LinkTag, UnansweredSend, is_loss
from jmsapi.spi import Clock, Delivery, ErrorKind, Handle, Provider, ProviderError, SendResult

if TYPE_CHECKING:
    from jmsapi.spi import Events

__all__ = ["SUSPECT_S", "Epoch", "Owner"]

SUSPECT_S: Final = 1.0
"""How long a link that seems to be lost may take to report it itself."""


class Owner(Protocol):
    """What an epoch knows of the connection."""

    guard: threading.Lock
    clock: Clock

    @property
    def above(self) -> Events:
        """Where events go."""
        ...

    @property
    def is_up(self) -> bool:
        """Whether there is a link."""
        ...


class Epoch:
    """One link, from its opening to its loss.

    Args:
        owner: The connection.
        provider: The link's provider, with its decorators.
        place: Which server of the list.
        broken: Called with this epoch and the cause when the link is gone.
    """

    def __init__(self, owner: Owner, provider: Provider, place: int, broken: Callable[[Epoch, ProviderError], None]) -> None:
        self.provider = provider
        self.place = place
        self.gate = threading.RLock()
        self.over = False
        self.cause: ProviderError | None = None
        """Why it is over, if it was lost."""
        self.suspected = False
        self.consumers: dict[Handle, ConsumerRecord] = {}
        self.unanswered: dict[int, UnansweredSend] = {}
        """Sends by the identity of their token, in the order of sending."""
        self._owner = owner
        self._broken = broken

    def end(self, cause: ProviderError | None) -> bool:
        """Let nothing pass any more; False when that was so already. Waits for an event that is being passed up."""
        with self.gate:
            if self.over:
                return False
            self.over = True
            self.cause = cause
            return True

    def suspect(self, cause: ProviderError) -> None:
        """Take the link for lost a moment later, if it does not report that itself before."""
        owner = self._owner
        with owner.guard:
            if self.suspected or self.over or not owner.is_up:
                return
            self.suspected = True
        owner.clock.call_later(SUSPECT_S, lambda: self._broken(self, cause))

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass up, with tags that know their link."""
        owner = self._owner
        with self.gate:
            record = None if self.over else self.consumers.get(consumer)
            if record is None:
                return
            with owner.guard:
                record.credit -= len(deliveries)
            named = [Delivery(LinkTag(self, tag), envelope, count) for tag, envelope, count in deliveries]
            owner.above.on_deliveries(record, named)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Pass up the broker's answers; those that only report the loss of the link are held until it is lost."""
        loss: ProviderError | None = None
        doubts: list[SendResult] = []
        with self.gate:
            if self.over:
                return
            answers: list[SendResult] = []
            for token, error in results:
                if isinstance(error, ProviderError) and is_loss(error):
                    loss = error
                elif isinstance(error, ProviderError) and error.kind is ErrorKind.IN_DOUBT:
                    doubts.append((token, error))
                elif self.unanswered.pop(id(token), None) is not None:
                    answers.append((token, error))
            if answers:
                self._owner.above.on_sent(answers)
        if doubts:
            # If the link is lost, it reports that in a moment: they are answered then, when the next send waits for another
            # link, or they are sent again.
            self._owner.clock.call_later(SUSPECT_S, lambda: self._in_doubt(doubts))
        if loss is not None:
            self.suspect(loss)

    def _in_doubt(self, doubts: list[SendResult]) -> None:
        """Answer sends whose outcome the broker did not report although the link lives."""
        with self.gate:
            answers = [] if self.over else [one for one in doubts if self.unanswered.pop(id(one[0]), None) is not None]
            if answers:
                self._owner.above.on_sent(answers)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Pass up that the broker ended a consumer, unless it was the link's end that ended it."""
        if cause.fatal:
            self.suspect(cause)
            return
        with self.gate:
            record = None if self.over else self.consumers.pop(handle, None)
            if record is None:
                return
            record.refused = cause
            self._owner.above.on_closed(record, cause)

    def on_lost(self, cause: ProviderError) -> None:
        """The link is gone."""
        self._broken(self, cause)

    def on_resumed(self) -> None:
        """Do nothing: no provider below reports this."""
