"""Settlement: what becomes of a message that was handed out is told to the provider here, and nowhere else.

The ledger decides; this carries its decisions out: the acknowledgement of one message in AUTO mode without a plan, everything
else as a ``SettlementPlan``. A closed consumer ends at the provider when the last of what it delivered is settled (contract of
the provider interface, rule 4).

Spec: 4.4.11, 4.4.12-2, 4.5.2, 8.8.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Final

from jmsapi._core.acknowledgement.ledger import DUPS_OK, DeliveryOwner, Entry, Inbox, SettlementPlan
from jmsapi._core.errors_map import jms_error
from jmsapi._core.session_state import SessionState
from jmsapi._core.telemetry import ConnectionTelemetry
from jmsapi._core.waiting import Steps, run
from jmsapi.errors import JMSException
from jmsapi.spi import Outcome, ProviderError
from jmsapi.spi.label import message_label

__all__ = ["Settlement", "report_returned"]

_log: Final = logging.getLogger("jmsapi")


class Settlement:
    """Tells the provider what becomes of the deliveries of one session.

    Args:
        state: The session's.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._link = state.link
        self._limited = state.link.options.max_unacknowledged is not None
        self._ack_timeout = state.link.options.request_timeout_ms / 1000
        self.last_ack: Future[None] | None = None
        """The acknowledgement of the last message that was handed out in AUTO mode."""
        self.last_release: Future[None] | None = None
        """The end of a consumer at the provider, once it was asked for. Guarded by the session's lock."""

    # ---- one message ----------------------------------------------------------------------------------------------
    def finish(self, entry: Entry) -> None:
        """The application has had the entry: acknowledge it as the session's mode asks."""
        state = self._state
        with state.lock:
            accept = state.ledger.accept(entry)
            plan = None if accept else state.ledger.done(entry)
        if accept:
            self.accepted(entry)
        elif plan is not None:
            self.carry_out(plan)

    def accepted(self, entry: Entry) -> None:
        """Accept one entry at the provider, as ``Ledger.accept`` has asked; without waiting."""
        state = self._state
        try:
            self.last_ack = self._link.provider.settle((entry.delivery.tag,), Outcome.ACCEPTED)
        except ProviderError as error:
            _log.debug("%s was not acknowledged, so it will come again: %s", message_label(entry.delivery.envelope), error)
        if self._link.telemetry is not None:
            self._link.telemetry.acknowledged((entry.delivery.envelope,))
        with state.lock:
            idle = state.ledger.left(entry)
            if not state.flowing:
                # Who stops or closes waits for this.
                state.changed.notify_all()
        if idle:
            self.release(entry.inbox)
        elif entry.lender is not None:
            entry.lender.returned((entry,))
        elif self._limited:
            consumer = state.consumers.get(entry.inbox)
            if consumer is not None:
                consumer.make_room()

    def await_last_ack(self) -> None:
        """Wait until the ack of the last message has left, before the next is handed out in AUTO mode (4.4.12-2).

        Most often it has left already, and this costs nothing. If it cannot leave, the connection is lost or about to be, which
        is reported elsewhere.
        """
        ack = self.last_ack
        if ack is not None:
            self.last_ack = None
            if not ack.done():
                with suppress(ProviderError, FutureTimeout):
                    ack.result(self._ack_timeout)

    def last_ack_steps(self) -> Steps[None]:
        """Wait as ``await_last_ack`` does, for a driver that does not block."""
        ack = self.last_ack
        if ack is not None and not ack.done():
            with suppress(JMSException):
                yield self._state.link.awaiting(ack, "acknowledge", self._ack_timeout)

    def refuse_body(self, entry: Entry) -> None:
        """The application asked for a body of another type: AUTO and DUPS_OK hand the message out again (11.2.5.1-21)."""
        with self._state.lock:
            plan = self._state.ledger.wrong_body(entry)
        if plan is not None:
            self.carry_out(plan)

    # ---- plans ----------------------------------------------------------------------------------------------------
    def carry_out(self, plan: SettlementPlan) -> None:
        """Tell the provider what the ledger has decided; waits only for consumers that end with it."""
        _, released = self._tell(plan)
        if released:
            run(self._await_releases(released))

    def carry_out_soon(self, plan: SettlementPlan) -> None:
        """Tell the provider what the ledger has decided, and wait for nothing."""
        self._tell(plan)

    def carry_out_steps(self, plan: SettlementPlan, wait: str | None = None) -> Steps[None]:
        """Tell the provider what the ledger has decided.

        Args:
            plan: From the ledger.
            wait: What is asked, when the caller must know that it was done.
        """
        futures, released = self._tell(plan)
        if released:
            yield from self._await_releases(released)
        if wait is not None:
            link = self._state.link
            if link.lost is not None:
                raise jms_error(link.lost, wait) from link.lost
            for future in futures:
                yield link.awaiting(future, wait)

    def _tell(self, plan: SettlementPlan) -> tuple[list[Future[None]], list[Future[None]]]:
        state = self._state
        futures: list[Future[None]] = []
        for entry in plan.given_up:
            _log.warning("%s has failed %d times and is given up", message_label(entry.delivery.envelope), entry.extra + 1)
        if state.link.telemetry is not None:
            self._report(state.link.telemetry, plan)
        for tags, outcome, failures in plan.outcomes():
            future = state.link.settle(tags, outcome, failures)
            if future is not None:
                futures.append(future)
        with state.lock:
            idle = state.ledger.carried_out(plan)
            for consumer in state.listening:
                state.offer(consumer)
            if not state.flowing:
                state.changed.notify_all()
        if state.ledger.borrows:
            report_returned(plan.settled)
        released = [ended for inbox in idle if (ended := self.release(inbox)) is not None]
        if self._limited:
            for consumer in list(state.consumers.values()):
                consumer.make_room()
        return futures, released

    def _report(self, telemetry: ConnectionTelemetry, plan: SettlementPlan) -> None:
        if plan.rejected:
            telemetry.rejected(len(plan.rejected))
        if plan.accepted and self._state.mode == DUPS_OK:
            telemetry.acknowledged([entry.delivery.envelope for entry in plan.settled])

    # ---- consumers that end ---------------------------------------------------------------------------------------
    def release(self, inbox: Inbox) -> Future[None] | None:
        """End a closed consumer at the provider, if nothing of it is unsettled any more."""
        state = self._state
        with state.lock:
            consumer = state.consumers.pop(inbox, None) if inbox.idle else None
            if consumer is None:
                return None
            plan = state.ledger.close_inbox(inbox)
        for tags, outcome, failures in plan.outcomes():
            state.link.settle(tags, outcome, failures)
        consumer.detach()
        released = consumer.let_go()
        if released is not None:
            with state.lock:
                self.last_release = released
                state.changed.notify_all()
        return released

    def await_release_steps(self, released: Future[None], timeout: float | None = None) -> Steps[None]:
        """Wait until a consumer has ended: whoever asks for its subscription next must find it free."""
        try:
            yield self._state.link.awaiting(released, "close a consumer", timeout)
        except JMSException as error:
            _log.debug("%s: %s", self._state.name, error)

    def _await_releases(self, released: list[Future[None]]) -> Steps[None]:
        for future in released:
            yield from self.await_release_steps(future)


def report_returned(settled: Iterable[Entry]) -> None:
    """Report borrowed entries that are settled to their lenders. Without any session's lock held."""
    borrowed: dict[DeliveryOwner, list[Entry]] = {}
    for entry in settled:
        if entry.lender is not None:
            borrowed.setdefault(entry.lender, []).append(entry)
    for lender, entries in borrowed.items():
        lender.returned(entries)
