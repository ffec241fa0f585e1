"""Handing out again by the broker, where it counts attempts and has a policy for messages that fail.

Such a broker is told of each rollback, each recover and each failure of a listener: it delays what failed, and puts it away
after its limit. What waits here is behind what comes again, so it goes back too, and nothing may arrive meanwhile.
"""

from __future__ import annotations

import logging
from typing import Final

from jmsapi._core.acknowledgement.ledger import Entry, Inbox, SettlementPlan
from jmsapi._core.acknowledgement.settlement import Settlement
from jmsapi._core.session_state import SessionConsumer, SessionState
from jmsapi._core.waiting import Steps
from jmsapi.errors import JMSException

__all__ = ["BrokerRedelivery"]

_log: Final = logging.getLogger("jmsapi")


class BrokerRedelivery:
    """What a session does around giving deliveries back to such a broker.

    Args:
        state: The session's.
        settlement: The session's.
    """

    def __init__(self, state: SessionState, settlement: Settlement) -> None:
        self._state = state
        self._settlement = settlement

    def sources(self) -> list[Inbox]:
        """Return whose deliveries the broker is to hand out again; none where the session does that itself.

        The session does where the broker has no policy, where the connection is lost (the broker knows then), for a consumer that
        is closed, and for what another session has lent: there the policy is that of the listener container.
        """
        state = self._state
        with state.lock:
            if not state.link.capabilities.redelivery_policy or state.link.lost is not None or state.link.interrupted:
                return []
            sources = state.ledger.sources() or []
            return sources if all(inbox in state.consumers for inbox in sources) else []

    def stop_steps(self, sources: list[Inbox]) -> Steps[None]:
        """Let nothing come from now on: it would overtake what is handed out again."""
        for consumer in self._open(sources):
            yield from consumer.take_credit_back_steps()

    def release_behind_steps(self, sources: list[Inbox]) -> Steps[None]:
        """Give back what waits here, since it comes behind what is handed out again; then let messages come."""
        with self._state.lock:
            plan = self._state.ledger.release_waiting(sources)
        yield from self._settlement.carry_out_steps(plan)
        for consumer in self._open(sources):
            consumer.make_room()

    def recover_steps(self, sources: list[Inbox]) -> Steps[None]:
        """Give back to the broker all that is delivered and not acknowledged, as failed."""
        yield from self.stop_steps(sources)
        with self._state.lock:
            plan = self._state.ledger.failed()
        yield from self._given_back_steps(plan)
        yield from self.release_behind_steps(sources)

    def listener_failed_steps(self, entry: Entry, sources: list[Inbox]) -> Steps[None]:
        """Give back to the broker what a listener has failed on, or have it put away at the session's limit."""
        yield from self.stop_steps(sources)
        with self._state.lock:
            plan = self._state.ledger.listener_failed_at_broker(entry)
        yield from self._given_back_steps(plan)
        yield from self.release_behind_steps(sources)

    def _given_back_steps(self, plan: SettlementPlan) -> Steps[None]:
        """Wait until the broker has it: what is asked for after that comes in its order."""
        try:
            yield from self._settlement.carry_out_steps(plan, "give back what failed")
        except JMSException as error:
            # Without a connection the broker hands out again whatever was not settled.
            _log.debug("%s: %s", self._state.name, error)

    def _open(self, sources: list[Inbox]) -> list[SessionConsumer]:
        with self._state.lock:
            return [self._state.consumers[inbox] for inbox in sources if inbox in self._state.consumers]
