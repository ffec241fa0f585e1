"""RabbitMQ 4: its native AMQP 1.0, addresses of version 2, queues and bindings made through its management node.

What it refuses at a link it punishes at the session, so each link has a session of its own as long as there are enough.
Run against 4.0.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from jmsapi.spi import (
    Address,
    Capabilities,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    Outcome,
    ProviderError,
)
from jmsapi.wire import Promise
from jmsapi_amqp.attach import Source, Target, attach_receiver, attach_sender, leave_session, open_wire_session, session_with_room
from jmsapi_amqp.behaviour import Behaviour
from jmsapi_amqp.brokers.base import AmqpBroker
from jmsapi_amqp.brokers.rabbit_delay import DelayQueues
from jmsapi_amqp.brokers.rabbit_marks import marks_of
from jmsapi_amqp.brokers.rabbit_subscriptions import RabbitSubscriptions
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import stopped
from jmsapi_amqp.links import ReceiverLink, Routed, SenderLink, WireSession
from jmsapi_amqp.management import Management, part, unpart
from jmsapi_amqp.settling import return_now
from jmsapi_brokers import rabbitmq
from jmsapi_brokers.names import temporary_name

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["Rabbit"]

_QUEUES: Final = "/queues/"
_EXCHANGES: Final = "/exchanges/"
_LOOK_S: Final = 0.5
"""How long opening waits for the management node."""
_SHARED_SESSIONS: Final = 12
"""Sessions that are left to the application when each link so far has one of its own."""


class Rabbit(AmqpBroker):
    """Queues are asked for before they are attached to, topics are bindings of an exchange."""

    product = rabbitmq.PRODUCT
    says_users = True
    null_body = b"\x00\x53\x77\x40"  # a message without a body section ends the session (4.0.5)
    texts_as_data = True  # readers of AMQP 0-9-1 get the bytes of a data section as they are, those of a value encoded (4.0.5)
    sends_user_id = False  # one that is not the login ends the session (4.0.5): a mark of ours instead
    behaviour = Behaviour(
        acquirer_tells=True,
        # A quorum queue drops or dead-letters a message after so many returns, 20 by default (4.0.5).
        returns_at_once=True,
        max_sessions=60,  # of 64
        max_links=250,  # of 256; 4.0.5
        # 4.0.5 now and then leaves a begin unanswered that comes right behind the end of the channel's last session, also when
        # it has answered that end.
        keeps_sessions=True,
    )

    def __init__(self, options: AmqpOptions, properties: dict[str, object], offered: tuple[str, ...]) -> None:
        super().__init__(options, properties, offered)
        self.exchange = options.rabbit_exchange
        self._manage: Management | None = None
        self._declared: set[str] = set()
        self._own_queues: dict[int, str] = {}
        self._temporary_names: set[str] = set()
        self._delays = DelayQueues(options, self.exchange)
        self._named = RabbitSubscriptions(self.exchange, options.rabbit_max_shared_consumers)
        self.queue_arguments = rabbitmq.queue_arguments(options.rabbit_queue_args)

    # ------------------------------------------------------------------------------------------------ addresses

    def check_address(self, address: Address) -> None:
        """Refuse what is no name for a destination at RabbitMQ."""
        rabbitmq.check_address(address)
        if address.name in (".", ".."):
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r} is a step of a path to RabbitMQ's management")

    def to_wire(self, address: Address) -> str:
        """Return the address in version 2's form."""
        if address.kind.is_topic:
            return f"{_EXCHANGES}{part(self.exchange)}/{part(address.name)}"
        return _QUEUES + part(address.name)

    def marks(self, envelope: Envelope) -> Mapping[str, str]:
        """Return what the broker does not carry to readers over STOMP."""
        return marks_of(envelope, self.to_wire)

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

    async def opened(self, context: ConnectionContext) -> Capabilities:
        """Refuse brokers that are too old; take the client id's lock."""
        major = self.version.split(".")[0]
        if len(major) == 1 and "0" <= major < "4":
            text = f"RabbitMQ {self.version} speaks AMQP 1.0 by a plug-in without what JMS needs; use its STOMP, or RabbitMQ 4"
            raise ProviderError(ErrorKind.UNSUPPORTED, text, fatal=True)
        self._manage = Management(context)
        client_id = self.options.client_id
        if client_id is None:
            # What the broker says of itself then is of use, and no more: during its memory alarm it does not answer, and
            # whoever wants to receive must be able to connect.
            promise: Promise[None] = context.add_promise(Promise())
            context.spawn(self._look(self._manage, promise))
            timer = context.timers.later(_LOOK_S, partial(promise.resolve, None))
            await promise
            timer.cancel()
        else:
            answer = await self._manage.put_queue(
                rabbitmq.client_id_lock(client_id), durable=False, exclusive=True, auto_delete=True
            )
            if answer.status not in (200, 201):
                text = f"open a connection as {client_id!r}: another connection has this client id, {answer.reason}"
                raise ProviderError(ErrorKind.CLIENT_ID, text, fatal=True)
        return self.capabilities()

    @staticmethod
    async def _look(manage: Management, promise: Promise[None]) -> None:
        with suppress(ProviderError):  # the connection has ended, or the node's session: who needs it meets the same
            await manage.ready()
        promise.resolve(None)

    async def closing(self, context: ConnectionContext) -> None:
        """Give up the client id's lock: left to itself it outlives the connection by a moment."""
        if self.options.client_id is not None and self._manage is not None:
            await self._manage.delete_queue(rabbitmq.client_id_lock(self.options.client_id))

    def capabilities(self) -> Capabilities:
        """Return what RabbitMQ 4 can do."""
        return rabbitmq.amqp_capabilities(self.version, max_message=self.manage.max_message or None)

    def check_size(self, size: int) -> None:
        """Refuse what would end the session."""
        limit = self.manage.max_message
        if limit and size > limit:
            raise ProviderError(ErrorKind.FORMAT, f"a message of {size} bytes is larger than the {limit} that the broker takes")

    # ------------------------------------------------------------------------------------------------ links

    @staticmethod
    def _is_alone(context: ConnectionContext) -> bool:
        """Return whether the next link has a session for itself."""
        return bool(context.idle_sessions) or context.free_sessions > _SHARED_SESSIONS

    def _session(self, context: ConnectionContext, session: WireSession) -> tuple[WireSession, bool]:
        """Return a session for a link, and whether the link holds a use of it."""
        return (open_wire_session(context), True) if self._is_alone(context) else session_with_room(context, session)

    async def _attach(
        self, context: ConnectionContext, session: WireSession, source: Source, spec: ConsumerSpec, asked: str
    ) -> ReceiverLink:
        """Attach to a queue, which is made when there is none: the node that makes queues does not answer in a memory alarm."""
        known = spec.address.kind is not DestinationKind.QUEUE
        while True:
            if not known and not self._is_alone(context):
                # A refused attach would cost the session of others.
                await self._need_queue(spec.address.name, asked)
                known = True
            wire, holds = self._session(context, session)
            # 4.0.5 takes the flow that opens a session's window for credit when a receiver is attached in the same breath:
            # it names the link, without the delivery count that the broker's attach is only about to tell.
            await wire.opened
            try:
                link = await attach_receiver(context, wire, source, spec.address, asked)
            except ProviderError as error:
                if holds:
                    leave_session(context, wire)
                if known or error.kind is not ErrorKind.DESTINATION:
                    raise
                await self._need_queue(spec.address.name, asked)
                known = True
            else:
                link.own_session = holds
                return link

    async def _need_queue(self, name: str, asked: str) -> None:
        """See that a queue exists, making it if we may: a refused attach would cost the session."""
        why = "rabbit_declare is off"
        if self.options.rabbit_declare:
            answer = await self.manage.put_queue(name, arguments=self.queue_arguments)
            if answer.status in (200, 201):
                self._declared.add(name)
                return
            why = f"the broker does not make it, {answer.reason}"
        answer = await self.manage.get_queue(name)
        if answer.status == 404:
            text = f"{asked}: there is no such queue, and {why}"
            raise ProviderError(ErrorKind.DESTINATION, text)
        if answer.status == 400:
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: the queue belongs to another connection, {answer.reason}")
        if answer.status != 200:
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: the broker answered {answer.reason}")
        self._declared.add(name)

    async def open_consumer(self, context: ConnectionContext, session: WireSession, spec: ConsumerSpec) -> ReceiverLink:
        """Find or make the queue behind a consumer, and attach to it."""
        kind, name = spec.address
        asked = f"consume from {name!r}"
        if not kind.is_temporary:
            self.check_address(spec.address)
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
                queue = own = rabbitmq.subscriber_queue()
                await self._named.make(self.manage, queue, spec.address, asked, exclusive=True, durable=False)
            else:
                queue = name
            link = await self._attach(context, session, Source(_QUEUES + part(queue)), spec, asked)
            if entered is not None:
                await self._keep_to_limit(context, link, queue, spec, asked)
        except ProviderError:
            if entered is not None:
                self.subscriptions.drop(entered)
            raise
        if own is not None:
            self._own_queues[link.number] = own
        if entered is not None:
            self.subscriptions.joined(link, entered)
            self._named.joined(link, self.options.client_id, spec)
        return link

    async def _keep_to_limit(
        self, context: ConnectionContext, link: ReceiverLink, queue: str, spec: ConsumerSpec, asked: str
    ) -> None:
        try:
            await self._named.check_room(self.manage, queue, spec, asked)
        except ProviderError:
            await super().release(context, link)
            raise

    async def open_producer(self, context: ConnectionContext, session: WireSession, destination: Address | None) -> SenderLink:
        """Attach a producer to a queue, an exchange, or nothing in particular."""
        target, asked = Target(None), "send"
        if destination is not None:
            self.check_sent_to(destination)
            target, asked = Target(self.to_wire(destination)), f"send to {destination.name!r}"
            if destination.kind is DestinationKind.QUEUE:
                await self._need_queue(destination.name, asked)
        wire, holds = self._session(context, session)
        try:
            link = await attach_sender(context, wire, target, asked)
        except ProviderError:
            if holds:
                leave_session(context, wire)
            raise
        link.topic = destination is not None and destination.kind.is_topic
        link.own_session = holds
        return link

    async def release(self, context: ConnectionContext, link: SenderLink | ReceiverLink) -> None:
        """End a link, and the queue or lock that was made for it alone.

        Failed deliveries go back once nothing can come any more; those that nobody had go back with the link.
        """
        if isinstance(link, ReceiverLink):
            failed = [one for one in link.take_returning() if one[1] is Outcome.FAILED]
            if failed or link.giving_back:  # a consumer and its session may be released at the same time
                link.giving_back = True
                await stopped(context, link)
                return_now(context, failed)
        await super().release(context, link)
        queue = self._own_queues.pop(link.number, None)
        if queue is not None:
            await self.manage.delete_queue(queue)
        await self._named.left(self.manage, link)

    def send(
        self, context: ConnectionContext, link: SenderLink, envelope: Envelope, raw: bytes, state: bytes | None, token: object
    ) -> None:
        """Send now, after making the queue, or through a delay queue."""
        destination = envelope.destination
        if envelope.delivery_time:
            delay = envelope.delivery_time - context.clock.now_ms()
            if delay > 0:
                context.spawn(self._delays.send(context, self.manage, destination, delay, raw, token))
                return
        if link.anonymous:
            token = Routed(token, destination.kind.is_topic)
            known = not self.options.rabbit_declare or destination.name in self._declared
            if destination.kind is DestinationKind.QUEUE and not known:
                link.paused += 1
                link.offer(raw, state, token)
                context.spawn(self._declare_then_resume(link, destination.name))
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

    async def open_coordinator(self, context: ConnectionContext, session: WireSession) -> SenderLink:
        """Refuse: asking the broker would cost the session."""
        raise ProviderError(ErrorKind.UNSUPPORTED, "begin: RabbitMQ 4 has no AMQP 1.0 transactions")

    async def create_temporary(self, context: ConnectionContext, session: WireSession, *, topic: bool) -> Address:
        """Make an exclusive queue, or only a name for a topic."""
        name = temporary_name()
        if not topic:
            answer = await self.manage.put_queue(name, durable=False, exclusive=True, auto_delete=False)
            if answer.status != 201:
                raise ProviderError(ErrorKind.RESOURCE, f"create a temporary queue: the broker answered {answer.reason}")
        self._temporary_names.add(name)
        return Address(DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE, name)

    async def remove_temporary(self, context: ConnectionContext, session: WireSession, address: Address) -> None:
        """Delete a temporary destination."""
        asked = f"delete {address.name!r}"
        if address.name not in self._temporary_names:
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: no temporary destination of this connection has that name")
        self.refuse_if_consumed(context, address, asked)
        self._temporary_names.discard(address.name)
        if address.kind is DestinationKind.TEMPORARY_QUEUE:
            await self.manage.delete_queue(address.name)

    async def unsubscribe(self, context: ConnectionContext, session: WireSession, name: str) -> None:
        """Delete the queue of a durable subscription."""
        asked = f"unsubscribe {name!r}"
        if self.subscriptions.active(name):
            raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is active on it; close it first")
        await self._named.unsubscribe(self.manage, self.options.client_id, name, asked)
