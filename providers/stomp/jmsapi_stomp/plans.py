"""How a consumer is subscribed on the wire: what a dialect answers to a ``ConsumerSpec``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["GLOBAL_CLIENT", "Headers", "Plan"]

Headers = list[tuple[str, str]]
GLOBAL_CLIENT: Final = "jmsapi-global"
"""The client id of the inner connection that owns shared durable subscriptions of connections without one (Artemis)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to subscribe."""

    destination: str
    headers: Headers = field(default_factory=Headers)
    """Beside id, destination, ack and window."""
    shareable: bool = False
    """A second SUBSCRIBE with the same headers takes a part of the same messages: how a full window is made larger."""
    browse: bool = False
    registered: bool = False
    """This process must watch over the name: the broker does not."""
    replace: Headers | None = None
    """UNSUBSCRIBE headers that delete what is there, for a changed or left-over subscription; None where the broker does it."""
    lock: str | None = None
    """A queue that stands for the exclusive use of the subscription."""
    inner: bool = False
    """On the inner connection with the client id ``jmsapi-global``."""
    volatile: bool = False
    """Deleted with its last consumer by us."""
    misses: Headers | None = None
    """What subscribes to the messages the selector refuses: they are acknowledged at once, for they would stay for ever."""
    watch: str | None = None
    """A topic on which the broker tells who else consumes from the destination, if it can."""
    members: str | None = None
    """The name of a queue and a topic by which the consumers of the destination know of one another."""
    bound_to: str | None = None
    """The only ``destination`` its messages may have."""
    forwarded: tuple[str, str] | None = None
    """A topic and a queue to which the broker, if it is set up for it, copies the topic's messages: to be seen to before."""
