"""Any AMQP broker that follows the JMS mapping; the modules for particular brokers change what they do differently.

All coroutines run on the I/O thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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
from jmsapi_amqp.behaviour import Behaviour
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession
from jmsapi_amqp.subscriptions import LinkSubscriptions
from jmsapi_amqp.temporaries import TEMPORARIES
from jmsapi_amqp.wire import DEFAULT_PORTS
from jmsapi_brokers.names import check_destination
from jmsapi_brokers.subscriptions import BROKERS

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["CAPABILITY", "NO_MARKS", "AmqpBroker"]

_REMEMBERED = 4096
NO_MARKS: Final[Mapping[str, str]] = MappingProxyType({})
CAPABILITY = {
    DestinationKind.QUEUE: "queue",
    DestinationKind.TOPIC: "topic",
    DestinationKind.TEMPORARY_QUEUE: "temporary-queue",
    DestinationKind.TEMPORARY_TOPIC: "temporary-topic",
}
"""The capability that names a destination's kind on a source or target."""


class AmqpBroker:
    """A broker we know nothing of beyond what it offers."""

    product = ""
    topic_prefix = ""
    behaviour = Behaviour()
    null_body = b""
    texts_as_data = False
    sends_user_id = True
    says_users = False
    """Messages say who sends them; an unknown broker might end the session for it."""

    def __init__(self, options: AmqpOptions, properties: dict[str, object], offered: tuple[str, ...]) -> None:
        self.options = options
        self.version = str(properties.get("version", ""))
        self.offered = offered
        self._name = str(properties.get("product", "")) or "unknown"
        self.queue_prefix = _text(properties.get("queue-prefix"))
        self.topic_prefix = _text(properties.get("topic-prefix")) or self.topic_prefix
        product = self.product or self._name
        number = BROKERS.number(product, options.host, options.vhost or "", "amqp", options.port or DEFAULT_PORTS[options.scheme])
        self.subscriptions = LinkSubscriptions(number, options.client_id, self.subscription_name)
        self._temporary: dict[str, SenderLink] = {}
        self._addresses: dict[tuple[str, int | None, Address], Address] = {}
        self._checked: set[Address] = set()
        self._how_to_read: dict[Address, str] = {}

    # ------------------------------------------------------------------------------------------------ names

    def check_address(self, address: Address) -> None:
        """Refuse what is no name for a destination here, or another thing's.

        Raises:
            ProviderError: DESTINATION.
        """
        check_destination(address)

    def check_sent_to(self, address: Address) -> None:
        """Refuse the same of a message's own destination; the last ones that were taken are remembered."""
        if address not in self._checked:
            if not address.kind.is_temporary:
                self.check_address(address)
            if len(self._checked) >= _REMEMBERED:
                self._checked.clear()
            self._checked.add(address)

    def subscription_name(self, name: str) -> str:
        """Return the name by which the broker is to know a subscription of this connection."""
        return name

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

    def how_to_read(self, near: Address) -> str:
        """Return what another process needs to read a message that came from ``near``: ``wire_forms.wire_reader`` takes it."""
        found = self._how_to_read.get(near)
        if found is None:
            # The options that are this wire's own: those of every connection have its address and its credentials.
            own = set(type(self.options).__annotations__)
            known = {
                "options": self.options.model_dump(mode="json", include=own, exclude_defaults=True),
                "broker": {
                    "product": self._name,
                    "version": self.version,
                    "queue-prefix": self.queue_prefix,
                    "topic-prefix": self.topic_prefix,
                },
                "near": [int(near.kind), near.name],
            }
            found = self._how_to_read[near] = f"amqp:{json.dumps(known, sort_keys=True)}"
        return found

    def marks(self, envelope: Envelope) -> Mapping[str, str]:
        """Return properties of our own by which our readers know what the broker does not carry to them."""
        return NO_MARKS

    # ------------------------------------------------------------------------------------------------ the connection

    async def opened(self, context: ConnectionContext) -> Capabilities:
        """Do what must be done before the connection is used; say what the broker can do."""
        return self.capabilities()

    def capabilities(self) -> Capabilities:
        """Return what the broker can do."""
        unknown = none("this broker does not offer it")
        return Capabilities(
            provider="amqp",
            settle_answered=False,
            broker=self.product or self._name,
            version=self.version,
            no_local=none("kept by the client by a mark on each topic message"),
            shared_subscription=NATIVE if "SHARED-SUBS" in self.offered else unknown,
            shared_durable_subscription=NATIVE if "SHARED-SUBS" in self.offered else unknown,
            delivery_delay=NATIVE if "DELAYED_DELIVERY" in self.offered else unknown,
            temporary_owner_only=emulated("the client lets only its own connection consume"),
        )

    async def closing(self, context: ConnectionContext) -> None:
        """Do what must be done before the connection is closed in order."""

    def ended(self, context: ConnectionContext) -> None:
        """Forget what ended with the connection."""
        TEMPORARIES.discard_all(context.name)

    # ------------------------------------------------------------------------------------------------ links

    async def open_consumer(self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec) -> ReceiverLink:
        """Attach a consumer, subscription or browser."""
        asked = f"consume from {spec.address.name!r}"
        kind = spec.address.kind
        if not kind.is_temporary:
            self.check_address(spec.address)
        if (kind.is_temporary and spec.address.name not in self._temporary) or TEMPORARIES.is_of_another(
            spec.address.name, context.name
        ):
            text = f"{asked}: the temporary destination belongs to another connection, or is deleted"
            raise ProviderError(ErrorKind.DESTINATION, text)
        source = Source(
            address=self.to_wire(spec.address),
            capabilities=(CAPABILITY[kind],),
            selector=self.selector(spec.selector),
            browse=spec.browse,
        )
        return await self.attach_consumer(context, session, spec, source, asked)

    async def attach_consumer(
        self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec, source: Source, asked: str
    ) -> ReceiverLink:
        """Attach to a source that was found to be in order."""
        if spec.subscription is None:
            return await attach_receiver(context, session, source, spec.address, asked)
        return await self.subscriptions.attach(context, session, spec, source)

    def selector(self, text: str | None) -> str | None:
        """Return the selector's text as it is sent."""
        return text

    async def open_producer(self, context: ConnectionContext, session: WireSession, destination: Address | None) -> SenderLink:
        """Attach a producer; without a destination one whose messages say where they go."""
        if destination is None:
            link = await attach_sender(context, session, Target(None), "send")
        else:
            self.check_sent_to(destination)
            target = Target(self.to_wire(destination), (CAPABILITY[destination.kind],))
            link = await attach_sender(context, session, target, f"send to {destination.name!r}")
            link.topic = destination.kind.is_topic
        return link

    async def release(self, context: ConnectionContext, link: SenderLink | ReceiverLink) -> None:
        """End a consumer or producer."""
        await end_link(context, link)

    def check_size(self, size: int) -> None:
        """Refuse a message that the broker would not take."""

    def send(
        self, context: ConnectionContext, link: SenderLink, envelope: Envelope, raw: bytes, state: bytes | None, token: object
    ) -> None:
        """Send an encoded message on a link."""
        link.offer(raw, state, token)

    # ------------------------------------------------------------------------------------------------ more

    async def open_coordinator(self, context: ConnectionContext, session: WireSession) -> SenderLink:
        """Attach the link on which a session's transactions are declared and ended."""
        target = Target(None, ("amqp:local-transactions",), coordinator=True)
        return await attach_sender(context, session, target, "begin a transaction")

    async def create_temporary(self, context: ConnectionContext, session: WireSession, *, topic: bool) -> Address:
        """Create a destination that lives as long as a link of its own."""
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        # The link is the connection's, not the session's: a temporary destination outlives the session that made it.
        own = open_wire_session(context)
        target = Target(None, (CAPABILITY[kind],), dynamic=True)
        link = await attach_sender(context, own, target, f"create a {CAPABILITY[kind].replace('-', ' ')}")
        link.own_session = True
        name = None if link.pointer is None else engine.terminus_address(engine.link_remote_target(link.pointer))
        if not name:
            end_session(context, own)
            raise ProviderError(ErrorKind.PROTOCOL, "create a temporary destination: the broker gave no name for it")
        self._temporary[name] = link
        TEMPORARIES.add(name, context.name)
        return Address(kind, name)

    async def remove_temporary(self, context: ConnectionContext, session: WireSession, address: Address) -> None:
        """Delete a temporary destination."""
        asked = f"delete {address.name!r}"
        link = self._temporary.get(address.name)
        if link is None:
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: no temporary destination of this connection has that name")
        self.refuse_if_consumed(context, address, asked)
        del self._temporary[address.name]
        TEMPORARIES.discard(address.name)
        await end_link(context, link)

    @staticmethod
    def refuse_if_consumed(context: ConnectionContext, address: Address, asked: str) -> None:
        """Refuse to delete a destination that this connection still reads from."""
        for link in context.links.values():
            if isinstance(link, ReceiverLink) and link.near == address and not link.leaving:
                raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is open on it; close it first")

    async def unsubscribe(self, context: ConnectionContext, session: WireSession, name: str) -> None:
        """End a durable subscription."""
        asked = f"unsubscribe {name!r}"
        if self.subscriptions.active(name):
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is active on it; close it first")
        near = Address(DestinationKind.TOPIC, "")
        try:
            link = await attach_receiver(context, session, Source(None, self.subscription_name(name)), near, asked)
        except ProviderError as error:
            if error.kind is ErrorKind.DESTINATION:
                raise ProviderError(ErrorKind.SUBSCRIPTION, f"{asked}: there is no such subscription") from error
            raise
        await end_link(context, link, delete=True)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
