"""What the loopback server remembers of a client's subscriptions and transactions. No I/O, no locks: the I/O thread's own."""

from __future__ import annotations

from typing import Final, Literal

from jmsapi.spi import Handle, Tag

__all__ = ["ENDLESS", "AckMode", "ClientSubscription", "ClientTransaction"]

AckMode = Literal["auto", "client", "client-individual"]
ENDLESS: Final = 2**31 - 1
"""Credit without an end."""


class ClientSubscription:
    """One subscription of a client.

    Args:
        name: Its id, escaped as it came.
        destination: As the client named it.
        handle: The broker's consumer.
        mode: How its messages are acknowledged.
        browse: It only shows.
        endless: It has no window.
    """

    __slots__ = ("browse", "closed", "destination", "endless", "handle", "held", "mode", "name")

    def __init__(self, name: bytes, destination: str, handle: Handle, mode: AckMode, *, browse: bool, endless: bool) -> None:
        self.name = name
        self.destination = destination
        self.handle = handle
        self.mode: AckMode = mode
        self.browse = browse
        self.endless = endless
        self.closed = False
        self.held: dict[int, Tag] = {}
        """Messages that were written and are not settled, by number."""

    @property
    def automatic(self) -> bool:
        """Whether a message is settled when it is written."""
        return self.browse or self.mode == "auto"

    def take(self, number: int) -> dict[int, Tag]:
        """Take out what an ACK or NACK of a number means: with ``client`` all up to it."""
        numbers = [number]
        if self.mode == "client":
            numbers = [one for one in self.held if one <= number]
        return {one: self.held.pop(one) for one in numbers}

    def put_back(self, tags: dict[int, Tag]) -> None:
        """Hold again what a transaction had taken."""
        self.held |= tags


class ClientTransaction:
    """One transaction of a client."""

    __slots__ = ("accepted", "handle", "session")

    def __init__(self, session: Handle, handle: Handle) -> None:
        self.session = session
        self.handle = handle
        self.accepted: list[tuple[ClientSubscription, dict[int, Tag]]] = []

    def accept(self, subscription: ClientSubscription, tags: dict[int, Tag]) -> None:
        """Keep what is acknowledged in it."""
        self.accepted.append((subscription, tags))

    def undo(self) -> None:
        """Let the subscriptions hold what was acknowledged in it."""
        for subscription, tags in self.accepted:
            if not subscription.closed:
                subscription.put_back(tags)
