"""A place: what all spans and metrics of one operation on one destination have in common.

Destinations that are temporary have names that nobody else has, so neither the name of a span nor a metric tells them.
"""

from __future__ import annotations

from typing import Final

from jmsapi._core.telemetry import ServerAddress
from jmsapi.spi import Address

__all__ = ["Attributes", "Place", "Places"]

Attributes = dict[str, str | int]
_MOST: Final = 1000
"""More destinations than this are not kept, and made anew for each message."""


class Place:
    """One operation on one destination of one broker.

    Args:
        name: The operation, such as ``send``.
        kind: The type of operation that the conventions give it.
        server: The broker; None for one in this process.
        address: The destination; None where several may be meant.
        subscription: The name of the subscription, if it is one.
    """

    def __init__(
        self, name: str, kind: str, server: ServerAddress | None, address: Address | None, subscription: str | None = None
    ) -> None:
        own: Attributes = {"messaging.system": "jms", "messaging.operation.name": name, "messaging.operation.type": kind}
        if server is not None and server.host:
            own["server.address"] = server.host
            if server.port is not None:
                own["server.port"] = server.port
        self.span_name = name
        self.of_metrics = own
        """The attributes of a metric, but for an error."""
        self.of_spans: Attributes = dict(own)
        """The attributes of a span that all of this place have."""
        if address is not None and address.kind.is_temporary:
            self.of_spans["messaging.destination.temporary"] = True
            self.of_spans["messaging.destination.name"] = address.name
        elif address is not None:
            self.span_name = f"{name} {address.name}"
            own["messaging.destination.name"] = address.name
            if subscription is not None:
                own["messaging.destination.subscription.name"] = subscription
            self.of_spans = dict(own)
        self.key = tuple(own.items())
        """The attributes that a metric's series is kept under."""


class Places:
    """The places of one connection, each made once."""

    def __init__(self, server: ServerAddress | None) -> None:
        self._server = server
        self._made: dict[tuple[str, Address | None, str | None], Place] = {}

    def of(self, name: str, kind: str, address: Address | None, subscription: str | None = None) -> Place:
        """Return the place of an operation on a destination."""
        key = (name, address, subscription)
        found = self._made.get(key)
        if found is None:
            found = Place(name, kind, self._server, address, subscription)
            if len(self._made) < _MOST and not (address is not None and address.kind.is_temporary):
                self._made[key] = found
        return found

    def moved(self, server: ServerAddress | None) -> None:
        """The connection has another broker now."""
        if server != self._server:
            self._server = server
            self._made = {}
