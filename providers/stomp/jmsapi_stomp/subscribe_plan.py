"""How a consumer is subscribed on the wire: what a broker's behaviour makes of a ``ConsumerSpec``."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Headers", "SubscribePlan"]

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SubscribePlan:
    """One way to subscribe."""

    destination: str
    headers: Headers = field(default_factory=Headers)
    """Beside id, destination, ack and window."""
    shareable: bool = False
    """A second SUBSCRIBE with the same headers takes a part of the same messages: how a full window is made larger."""
    browse: bool = False
    unbounded: bool = False
    """Without a window: what comes was asked for."""
    registered: bool = False
    """The broker does not check who else uses the subscription's name, so this process does."""
    replace: Headers | None = None
    """UNSUBSCRIBE headers that delete a changed or left-over subscription; None where the broker replaces it."""
    volatile: bool = False
    """Deleted by us with its last consumer."""
    misses: Headers | None = None
    """Headers that subscribe to the messages the selector refuses; they are acknowledged at once, or they would stay for ever."""
    bound_to: str | None = None
    """The only ``destination`` that its messages may name."""
