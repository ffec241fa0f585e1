"""What the parts of one open connection share."""

from __future__ import annotations

from dataclasses import dataclass, field

from jmsapi.spi import Address, Clock, Events
from jmsapi.wire import IoLoop
from jmsapi_stomp.behaviour import StompBehaviour
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.options import StompOptions

__all__ = ["StompContext"]


@dataclass(slots=True)
class StompContext:
    """What the parts of one open connection share."""

    loop: IoLoop
    clock: Clock
    options: StompOptions
    events: Events
    connection: StompConnection
    behaviour: StompBehaviour
    client_id: str | None
    identity: str
    """A word of the connection's own, by which its messages are known."""
    broker: int
    """Which broker, by the number of ``jmsapi_brokers.subscriptions.BROKERS``."""
    temporary: set[Address] = field(default_factory=set[Address])
    """Temporary destinations of this connection."""
