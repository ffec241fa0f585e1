"""The ways of any AMQP broker that follows the JMS mapping; the particular ones change what they do differently.

All coroutines run on the I/O thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi.spi import (
    NATIVE,
    Address,
    Capabilities,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    ProviderError,
    emulated,
    none,
)
from jmsapi_amqp import engine
from jmsapi_amqp.attach import Source, Target, attach_receiver, attach_sender, end_link, end_session, open_wire_session
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession
from jmsapi_amqp.process import TEMPORARIES
from jmsapi_amqp.subscriptions import Subscriptions

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["CAPABILITY", "Broker"]

_REMEMBERED = 4096
CAPABILITY = {
    DestinationKind.QUEUE: "queue",
    DestinationKind.TOPIC: "topic",
    DestinationKind.TEMPORARY_QUEUE: "temporary-queue",
    DestinationKind.TEMPORARY_TOPIC: "temporary-topic",
}
"""The capability that names a destination's kind on a source or target."""


class Broker:
    """A broker we know nothing of beyond what it offers."""

    product = ""
    null_body = b""
    sends_user_id = True
    acquirer_tells = False
    max_sessions: int | None = None
    """AMQP sessions that a connection may have; beyond, the application's sessions share them."""
    keeps_sessions = False
    """AMQP sessions are used again rather than ended."""
    fails_with_session = False
    """A FAILED outcome counts only when the session ends with the delivery unsettled."""
    returns_at_once = False
    """What a consumer gives back comes back to it at once while it has credit, and the broker counts how often."""
    credit_window: int | None = None
    """The most credit a consumer's link is given at one time."""

    def __init__(self, options: AmqpOptions, properties: dict[str, object], offered: tuple[str, ...]) -> None:
        self.options = options
        self.version = str(properties.get("version", ""))
        self.offered = offered
        self._name = str(properties.get("product", "")) or "unknown"
        self.queue_prefix = _text(properties.get("queue-prefix"))
        self.topic_prefix = _text(properties.get("topic-prefix"))
        self.subscriptions = Subscriptions((options.host, options.port, options.vhost, options.client_id))
        self._temporary: dict[str, SenderLink] = {}
        self._addresses: dict[tuple[str, int | None, Address], Address] = {}

    # ------------------------------------------------------------------------------------------------ addresses

    def to_wire(self, address: Address) -> str:
        """Return the address with the broker's prefix."""
        kind, name = address
        if kind is DestinationKind.QUEUE:
            return self.queue_prefix + name
        return self.topic_prefix + name if kind is DestinationKind.TOPIC else name

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination that an address names."""
        key = (text, kind, near)
        found = self._addresses.get(key)
        if found is None:
            if len(self._addresses) >= _REMEMBERED:
                self._addresses.clear()
            found = self._addresses[key] = self.parse(text, int(kind) if kind is not None else None, near)
        return found

    def parse(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination that an address names, not looking at those seen before."""
        for prefix, found in ((self.queue_prefix, DestinationKind.QUEUE), (self.topic_prefix, DestinationKind.TOPIC)):
            if prefix and text.startswith(prefix):
                return Address(found, text[len(prefix) :])
        if kind is not None and 0 <= kind <= 3:
            return Address(DestinationKind(kind), text)
        return Address(near.kind, text)

    # ------------------------------------------------------------------------------------------------ the connection

    async def opened(self, connection: Connection) -> Capabilities:
        """Do what must be done before the connection is used; say what the broker can do."""
        return self.capabilities()

    def capabilities(self) -> Capabilities:
        """Return what the broker can do."""
        unknown = none("this broker does not offer it")
        return Capabilities(
            provider="amqp",
            broker=self.product or self._name,
            version=self.version,
            no_local=none("kept by the client by a mark on each topic message"),
            shared_subscription=NATIVE if "SHARED-SUBS" in self.offered else unknown,
            shared_durable_subscription=NATIVE if "SHARED-SUBS" in self.offered else unknown,
            delivery_delay=NATIVE if "DELAYED_DELIVERY" in self.offered else unknown,
            temporary_owner_only=emulated("the client lets only its own connection consume"),
        )

    async def closing(self, connection: Connection) -> None:
        """Do what must be done before the connection is closed in order."""

    def ended(self, connection: Connection) -> None:
        """Forget what ended with the connection."""
        TEMPORARIES.discard_all(connection.name)

    # ------------------------------------------------------------------------------------------------ links

    async def open_consumer(self, connection: Connection, session: WireSession, spec: ConsumerSpec) -> ReceiverLink:
        """Attach a consumer, subscription or browser."""
        asked = f"consume from {spec.address.name!r}"
        kind = spec.address.kind
        if (kind.is_temporary and spec.address.name not in self._temporary) or TEMPORARIES.is_of_another(
            spec.address.name, connection.name
        ):
            text = f"{asked}: the temporary destination belongs to another connection, or is deleted"
            raise ProviderError(ErrorKind.DESTINATION, text)
        source = Source(
            address=self.to_wire(spec.address),
            capabilities=(CAPABILITY[kind],),
            selector=self.selector(spec.selector),
            browse=spec.browse,
        )
        return await self.attach_consumer(connection, session, spec, source, asked)

    async def attach_consumer(
        self, connection: Connection, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        """Attach to a source that was found to be in order."""
        if spec.subscription is None:
            return await attach_receiver(connection, session, source, spec.address, asked)
        return await self.subscriptions.attach(self, connection, session, spec, source)

    def selector(self, text: str | None) -> str | None:
        """Return the selector's text as it is sent."""
        return text

    async def open_producer(self, connection: Connection, session: WireSession, destination: Address | None) -> SenderLink:
        """Attach a producer; without a destination one whose messages say where they go."""
        if destination is None:
            link = await attach_sender(connection, session, Target(None), "send")
        else:
            target = Target(self.to_wire(destination), (CAPABILITY[destination.kind],))
            link = await attach_sender(connection, session, target, f"send to {destination.name!r}")
            link.topic = destination.kind.is_topic
        return link

    async def release(self, connection: Connection, link: SenderLink | ReceiverLink) -> None:
        """End a consumer or producer."""
        await end_link(connection, link)

    def check_size(self, size: int) -> None:
        """Refuse a message that the broker would not take."""

    def send(
        self, connection: Connection, link: SenderLink, envelope: Envelope, raw: bytes, state: bytes | None, token: object
    ) -> None:
        """Send an encoded message on a link."""
        link.offer(raw, state, token)

    # ------------------------------------------------------------------------------------------------ more

    async def open_coordinator(self, connection: Connection, session: WireSession) -> SenderLink:
        """Attach the link on which a session's transactions are declared and ended."""
        target = Target(None, ("amqp:local-transactions",), coordinator=True)
        return await attach_sender(connection, session, target, "begin a transaction")

    async def create_temporary(self, connection: Connection, session: WireSession, *, topic: bool) -> Address:
        """Create a destination that lives as long as a link of its own."""
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        # The link is the connection's, not the session's: a temporary destination outlives the session that made it.
        own = open_wire_session(connection)
        target = Target(None, (CAPABILITY[kind],), dynamic=True)
        link = await attach_sender(connection, own, target, f"create a {CAPABILITY[kind].replace('-', ' ')}")
        link.own_session = True
        name = None if link.pointer is None else engine.terminus_address(engine.link_remote_target(link.pointer))
        if not name:
            end_session(connection, own)
            raise ProviderError(ErrorKind.PROTOCOL, "create a temporary destination: the broker gave no name for it")
        self._temporary[name] = link
        TEMPORARIES.add(name, connection.name)
        return Address(kind, name)

    async def remove_temporary(self, connection: Connection, session: WireSession, address: Address) -> None:
        """Delete a temporary destination."""
        asked = f"delete {address.name!r}"
        link = self._temporary.get(address.name)
        if link is None:
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: no temporary destination of this connection has that name")
        self.refuse_if_consumed(connection, address, asked)
        del self._temporary[address.name]
        TEMPORARIES.discard(address.name)
        await end_link(connection, link)

    @staticmethod
    def refuse_if_consumed(connection: Connection, address: Address, asked: str) -> None:
        """Refuse to delete a destination that this connection still reads from."""
        for link in connection.links.values():
            if isinstance(link, ReceiverLink) and link.near == address and not link.leaving:
                raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is open on it; close it first")

    async def unsubscribe(self, connection: Connection, session: WireSession, name: str) -> None:
        """End a durable subscription."""
        asked = f"unsubscribe {name!r}"
        if self.subscriptions.active(name):
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is active on it; close it first")
        near = Address(DestinationKind.TOPIC, "")
        try:
            link = await attach_receiver(connection, session, Source(None, name), near, asked)
        except ProviderError as error:
            if error.kind is ErrorKind.DESTINATION:
                raise ProviderError(ErrorKind.SUBSCRIPTION, f"{asked}: there is no such subscription") from error
            raise
        await end_link(connection, link, delete=True)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
