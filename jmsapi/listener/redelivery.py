"""What becomes of a message on which a callback has failed, and how waits grow: pure rules, without clocks and messages.

| set | after a failure |
|---|---|
| nothing | again at once, ``max_redeliveries`` times; then the broker's dead letter queue, or growing waits if it may have none |
| ``redeliveryDelayMs`` and its like | again after a wait; others are handled meanwhile |
| ``redeliveryLimit`` | so many times again, then deleted or forwarded |

Spec: MDB-62 to MDB-71; field reports B16, B21.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from jmsapi.listener.activation_spec import RedeliveryAction

if TYPE_CHECKING:
    from collections.abc import Callable

    from jmsapi.listener.activation_spec import ActivationSpec

__all__ = ["Fate", "GrowingWait", "Redelivery"]


class Fate(Enum):
    """What becomes of a message."""

    AGAIN = "again"
    REJECT = "reject"
    DELETE = "delete"
    FORWARD = "forward"


@dataclass(frozen=True, slots=True)
class GrowingWait:
    """A wait that grows from one time to the next.

    Args:
        first_ms: The first, in milliseconds.
        factor: What each is multiplied with for the next, at least 1.
        longest_ms: The longest.
        jitter: The share that is left to chance, 0 to 1: so much less, at most.
        chance: Gives a number from 0 to 1.
    """

    first_ms: float
    factor: float = 1.0
    longest_ms: float = 60_000
    jitter: float = 0.0
    chance: Callable[[], float] = field(default=random.random, repr=False)

    def seconds(self, number: int) -> float:
        """Return the wait of this number, 0 being the first, in seconds."""
        # No power of a factor is needed beyond the longest wait, and a large one would be an error.
        wait = min(self.longest_ms, self.first_ms * self.factor ** min(number, 64)) if self.first_ms else 0.0
        return wait * (1 - self.jitter * self.chance()) / 1000


_AT_ONCE: Final = GrowingWait(0)
_UNASKED: Final = GrowingWait(1_000, 2.0, 60_000, 0.1)
"""For messages that nobody has said what to do with."""


@dataclass(frozen=True, slots=True)
class Redelivery:
    """The rules of one endpoint.

    Args:
        limit: The most redeliveries; None: no end.
        at_limit: What becomes of a message then.
        wait: Before each redelivery.
        after_limit: With no ``at_limit``: the waits beyond the limit.
    """

    limit: int | None
    at_limit: Fate
    wait: GrowingWait = _AT_ONCE
    after_limit: GrowingWait = _UNASKED

    @classmethod
    def of(cls, spec: ActivationSpec, *, max_redeliveries: int, keeps_rejected: bool) -> Redelivery:
        """Return the rules that an activation asks for.

        Args:
            spec: The activation.
            max_redeliveries: The limit of the connection's options, where the activation has none; -1 for none.
            keeps_rejected: Whether the broker is sure to keep what is rejected.
        """
        wait = GrowingWait(
            spec.redelivery_delay_ms, spec.redelivery_backoff, spec.redelivery_max_delay_ms, spec.redelivery_jitter
        )
        if spec.redelivery_limit is not None:
            fate = Fate.FORWARD if spec.action_at_limit is RedeliveryAction.FORWARD else Fate.DELETE
            return cls(spec.redelivery_limit, fate, wait)
        limit = None if max_redeliveries < 0 else max_redeliveries
        return cls(limit, Fate.REJECT if keeps_rejected else Fate.AGAIN, wait)

    def decide(self, deliveries: int) -> tuple[Fate, float]:
        """Say what becomes of a message on which a callback has just failed.

        Args:
            deliveries: How often it was delivered, this time included; at least 1.
        Returns:
            Its fate; and if it comes again, the wait before that, in seconds.
        """
        if self.limit is None or deliveries <= self.limit:
            return Fate.AGAIN, self.wait.seconds(deliveries - 1)
        beyond = deliveries - self.limit - 1
        longer = max(self.after_limit.seconds(beyond), self.wait.seconds(deliveries - 1))
        return self.at_limit, longer if self.at_limit is Fate.AGAIN else 0.0

    def is_over(self, failures: int) -> bool:
        """Whether a message must not be tried once more, after so many failures here."""
        return self.limit is not None and self.at_limit is not Fate.AGAIN and failures > self.limit
