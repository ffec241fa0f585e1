"""RabbitMQ 4: its native AMQP 1.0, addresses of version 2, queues and bindings made through its management node.

What it refuses at a link it punishes at the session, so each link has a session of its own as long as there are enough.
Run against 4.0.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import uuid4

from jmsapi.spi import (
    EMULATED,
    Address,
    Capabilities,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    Outcome,
    ProviderError,
    emulated,
    none,
)
from jmsapi_amqp.attach import Source, Target, attach_receiver, attach_sender, open_wire_session
from jmsapi_amqp.brokers.base import Broker
from jmsapi_amqp.brokers.rabbit_delay import DelayQueues
from jmsapi_amqp.brokers.rabbit_subscriptions import RabbitSubscriptions
from jmsapi_amqp.draining import drained
from jmsapi_amqp.links import ReceiverLink, Routed, SenderLink, WireSession
from jmsapi_amqp.management import Management, part, unpart
from jmsapi_amqp.settling import return_now
from jmsapi_amqp.tasks import spawn

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["Rabbit"]

_QUEUES: Final = "/queues/"
_EXCHANGES: Final = "/exchanges/"
_OWN_SESSIONS: Final = 48
"""Sessions of a connection up to which each link has its own; the broker allows 64."""


class Rabbit(Broker):
    """Queues are asked for before they are attached to, topics are bindings of an exchange."""

    product = "rabbitmq"
    null_body = b"\x00\x53\x77\x40"  # a message without a body section ends the session (4.0.5)
    sends_user_id = False  # one that is not the login ends the session (4.0.5)
    acquirer_tells = True
    # A quorum queue drops or dead-letters a message after so many returns, 20 by default (4.0.5).
    returns_at_once = True
    max_sessions = 60
    # 4.0.5 now and then leaves a begin unanswered that comes right behind the end of the channel's last session, also when
    # it has answered that end.
    keeps_sessions = True

    def __init__(self, options: AmqpOptions, properties: dict[str, object], offered: tuple[str, ...]) -> None:
        super().__init__(options, properties, offered)
        self.exchange = options.rabbit_exchange
        self._manage: Management | None = None
        self._declared: set[str] = set()
        self._own_queues: dict[int, str] = {}
        self._temporary_names: set[str] = set()
        self._delays = DelayQueues(options, self.exchange)
        self._named = RabbitSubscriptions(self.exchange)
        self.queue_arguments = _arguments(options.rabbit_queue_args)

    # ------------------------------------------------------------------------------------------------ addresses

    def to_wire(self, address: Address) -> str:
        """Return the address in version 2's form."""
        if address.kind.is_topic:
            return f"{_EXCHANGES}{part(self.exchange)}/{part(address.name)}"
        return _QUEUES + part(address.name)

    def parse(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination that an address of either version names."""
        found = DestinationKind(kind) if kind is not None and 0 <= kind <= 3 else None
        if text.startswith(_QUEUES):
            return Address(found or DestinationKind.QUEUE, unpart(text[len(_QUEUES) :]))
        if text.startswith(_EXCHANGES):
            return Address(found or DestinationKind.TOPIC, unpart(text.rpartition("/")[2]))
        return Address(found if found is not None else near.kind, text)

    # ------------------------------------------------------------------------------------------------ the connection

    @property
    def manage(self) -> Management:
        """The management node's links."""
        if self._manage is None:
            raise ProviderError(ErrorKind.CLOSED, "the connection is not open")
        return self._manage

    async def opened(self, connection: Connection) -> Capabilities:
        """Refuse brokers that are too old; take the client id's lock."""
        major = self.version.split(".")[0]
        if major.isdigit() and int(major) < 4:
            text = f"RabbitMQ {self.version} speaks AMQP 1.0 by a plug-in without what JMS needs; use its STOMP, or RabbitMQ 4"
            raise ProviderError(ErrorKind.UNSUPPORTED, text, fatal=True)
        self._manage = Management(connection)
        client_id = self.options.client_id
        if client_id is None:
            await self._manage.get_queue("jmsapi.hello")
        else:
            answer = await self._manage.put_queue(_lock(client_id), durable=False, exclusive=True, auto_delete=True)
            if answer.status not in (200, 201):
                text = f"open a connection as {client_id!r}: another connection has this client id, {answer.reason}"
                raise ProviderError(ErrorKind.CLIENT_ID, text, fatal=True)
        return self.capabilities()

    async def closing(self, connection: Connection) -> None:
        """Give up the client id's lock: left to itself it outlives the connection by a moment."""
        if self.options.client_id is not None and self._manage is not None:
            await self._manage.delete_queue(_lock(self.options.client_id))

    def capabilities(self) -> Capabilities:
        """Return what RabbitMQ 4 can do."""
        queues = emulated("by queues and bindings that the client declares")
        return Capabilities(
            provider="amqp",
            broker=self.product,
            version=self.version,
            transactions=none("RabbitMQ 4 has no AMQP 1.0 transactions", emulate="tx"),
            transactions_atomic=none("RabbitMQ 4 has no AMQP 1.0 transactions"),
            queue_selector=none("RabbitMQ 4 ignores selectors", emulate="queue-selector"),
            topic_selector=none("RabbitMQ 4 ignores selectors; the client selects"),
            no_local=none("RabbitMQ 4 ignores it; the client selects by a mark on each topic message"),
            durable_subscription=queues,
            shared_subscription=queues,
            shared_durable_subscription=queues,
            unsubscribe=queues,
            browser=none("RabbitMQ 4 has no browsing: a browser would eat the queue"),
            temporary_queue=queues,
            temporary_topic=queues,
            delivery_delay=emulated("by a queue a delay, whose messages expire into their destination"),
            xa=none("AMQP 1.0 has no XA"),
            client_id_exclusive=emulated("by an exclusive queue"),
            delivery_count_exact=none("classic queues only tell that a message was delivered before"),
            delay_keeps_subscribers=none("a delayed topic message is published when it falls due"),
            priority_order=none("needs x-max-priority when the queue is declared"),
            message_groups=none("RabbitMQ keeps the group id and does not honour it"),
            dead_letter=emulated("needs a dead-letter exchange of the queue, else the message is dropped"),
            durable_exclusive=emulated("by an exclusive queue"),
            subscription_change_detected=emulated("by arguments of the subscription's queue"),
            unknown_subscription_reported=EMULATED,
            expiry_in_broker=emulated("at the head of a queue only; the client checks too"),
            max_message=self.manage.max_message or None,
        )

    def check_size(self, size: int) -> None:
        """Refuse what would end the session."""
        limit = self.manage.max_message
        if limit and size > limit:
            raise ProviderError(ErrorKind.FORMAT, f"a message of {size} bytes is larger than the {limit} that the broker takes")

    # ------------------------------------------------------------------------------------------------ links

    def _session(self, connection: Connection, session: WireSession) -> tuple[WireSession, bool]:
        if connection.idle_sessions or len(connection.sessions) < _OWN_SESSIONS:
            return open_wire_session(connection), True
        return session, False

    async def _need_queue(self, name: str, asked: str) -> None:
        """See that a queue exists, making it if we may: a refused attach would cost the session."""
        if self.options.rabbit_declare:
            answer = await self.manage.put_queue(name, arguments=self.queue_arguments)
            if answer.status in (200, 201):
                self._declared.add(name)
                return
        answer = await self.manage.get_queue(name)
        if answer.status == 404:
            text = f"{asked}: there is no such queue, and rabbit_declare is off"
            raise ProviderError(ErrorKind.DESTINATION, text)
        if answer.status == 400:
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: the queue belongs to another connection, {answer.reason}")
        if answer.status != 200:
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: the broker answered {answer.reason}")
        self._declared.add(name)

    async def open_consumer(self, connection: Connection, session: WireSession, spec: ConsumerSpec) -> ReceiverLink:
        """Find or make the queue behind a consumer, and attach to it."""
        kind, name = spec.address
        asked = f"consume from {name!r}"
        if spec.browse:
            raise ProviderError(ErrorKind.UNSUPPORTED, f"{asked}: RabbitMQ 4 has no browsing")
        if kind.is_temporary and name not in self._temporary_names:
            text = f"{asked}: the temporary destination belongs to another connection, or is deleted"
            raise ProviderError(ErrorKind.DESTINATION, text)
        entered = self.subscriptions.take_place(spec, asked) if spec.subscription is not None else None
        try:
            own: str | None = None
            if entered is not None:
                queue = await self._named.prepare(self.manage, self.options.client_id, spec, asked)
            elif kind.is_topic:
                queue = own = f"jms.n.{uuid4()}"
                await self._named.make(self.manage, queue, spec.address, asked, exclusive=True, durable=False)
            else:
                queue = name
                if kind is DestinationKind.QUEUE:
                    await self._need_queue(queue, asked)
            wire, is_own = self._session(connection, session)
            # 4.0.5 takes the flow that opens a session's window for credit when a receiver is attached in the same breath:
            # it names the link, without the delivery count that the broker's attach is only about to tell.
            await wire.opened
            link = await attach_receiver(connection, wire, Source(_QUEUES + part(queue)), spec.address, asked)
        except ProviderError:
            if entered is not None:
                self.subscriptions.drop(entered)
            raise
        link.own_session = is_own
        if own is not None:
            self._own_queues[link.number] = own
        if entered is not None:
            self.subscriptions.joined(link, entered)
            self._named.joined(link, self.options.client_id, spec)
        return link

    async def open_producer(self, connection: Connection, session: WireSession, destination: Address | None) -> SenderLink:
        """Attach a producer to a queue, an exchange, or nothing in particular."""
        wire, is_own = self._session(connection, session)
        if destination is None:
            link = await attach_sender(connection, wire, Target(None), "send")
        else:
            asked = f"send to {destination.name!r}"
            if destination.kind is DestinationKind.QUEUE:
                await self._need_queue(destination.name, asked)
            link = await attach_sender(connection, wire, Target(self.to_wire(destination)), asked)
            link.topic = destination.kind.is_topic
        link.own_session = is_own
        return link

    async def release(self, connection: Connection, link: SenderLink | ReceiverLink) -> None:
        """End a link, and the queue or lock that was made for it alone.

        What failed is said to have when nothing can come any more; what nobody had goes back with the link.
        """
        if isinstance(link, ReceiverLink):
            failed = [one for one in link.take_returning() if one[1] is Outcome.FAILED]
            if failed or link.giving_back:  # a consumer and its session may be released at the same time
                link.giving_back = True
                await drained(connection, link)
                return_now(connection, failed)
        await super().release(connection, link)
        queue = self._own_queues.pop(link.number, None)
        if queue is not None:
            await self.manage.delete_queue(queue)
        await self._named.left(self.manage, link)

    def send(
        self, connection: Connection, link: SenderLink, envelope: Envelope, raw: bytes, state: bytes | None, token: object
    ) -> None:
        """Send now, after making the queue, or through a delay queue."""
        destination = envelope.destination
        if envelope.delivery_time:
            delay = envelope.delivery_time - connection.clock.now_ms()
            if delay > 0:
                spawn(self._delays.send(connection, self.manage, destination, delay, raw, token))
                return
        if link.anonymous:
            token = Routed(token, destination.kind.is_topic)
            known = not self.options.rabbit_declare or destination.name in self._declared
            if destination.kind is DestinationKind.QUEUE and not known:
                link.paused += 1
                link.offer(raw, state, token)
                spawn(self._declare_then_resume(link, destination.name))
                return
        link.offer(raw, state, token)

    async def _declare_then_resume(self, link: SenderLink, name: str) -> None:
        try:
            await self._need_queue(name, f"send to {name!r}")
        finally:
            # When it failed the message goes all the same, and the broker's answer to it tells.
            link.paused -= 1
            link.pump()

    # ------------------------------------------------------------------------------------------------ more

    async def open_coordinator(self, connection: Connection, session: WireSession) -> SenderLink:
        """Refuse: asking the broker would cost the session."""
        raise ProviderError(ErrorKind.UNSUPPORTED, "begin: RabbitMQ 4 has no AMQP 1.0 transactions")

    async def create_temporary(self, connection: Connection, session: WireSession, *, topic: bool) -> Address:
        """Make an exclusive queue, or only a name for a topic."""
        name = f"jmsapi.temp.{uuid4()}"
        if not topic:
            answer = await self.manage.put_queue(name, durable=False, exclusive=True, auto_delete=False)
            if answer.status != 201:
                raise ProviderError(ErrorKind.RESOURCE, f"create a temporary queue: the broker answered {answer.reason}")
        self._temporary_names.add(name)
        return Address(DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE, name)

    async def remove_temporary(self, connection: Connection, session: WireSession, address: Address) -> None:
        """Delete a temporary destination."""
        asked = f"delete {address.name!r}"
        if address.name not in self._temporary_names:
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: no temporary destination of this connection has that name")
        self.refuse_if_consumed(connection, address, asked)
        self._temporary_names.discard(address.name)
        if address.kind is DestinationKind.TEMPORARY_QUEUE:
            await self.manage.delete_queue(address.name)

    async def unsubscribe(self, connection: Connection, session: WireSession, name: str) -> None:
        """Delete the queue of a durable subscription."""
        asked = f"unsubscribe {name!r}"
        if self.subscriptions.active(name):
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is active on it; close it first")
        await self._named.unsubscribe(self.manage, self.options.client_id, name, asked)


def _lock(client_id: str) -> str:
    return f"jmsapi.lock.{client_id}"


def _arguments(text: str) -> dict[str, object]:
    """Read ``name:value;name:value``; whole numbers and booleans are taken as such."""
    found: dict[str, object] = {}
    for pair in filter(None, (item.strip() for item in text.split(";"))):
        name, _, value = pair.partition(":")
        plain = value.strip()
        number = plain.removeprefix("-").isdigit()
        found[name.strip()] = int(plain) if number else plain == "true" if plain in ("true", "false") else plain
    return found
