"""RabbitMQ over STOMP. What the broker does was seen on 4.0.5 unless said otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final, Literal
from urllib.parse import unquote
from uuid import uuid4

from jmsapi.spi import (
    PERSISTENT,
    Address,
    Capabilities,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    MessageKind,
    ProviderError,
)
from jmsapi.wire import answer_of
from jmsapi_brokers import rabbitmq
from jmsapi_brokers.dead_letters import has_expired
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_brokers.names import TEMPORARY_PREFIX, temporary_name
from jmsapi_stomp.access import BrokerAccess, SubscriptionEnd
from jmsapi_stomp.answers import perform
from jmsapi_stomp.behaviour import SendsInTransaction, StompBehaviour, StrayError, group_of, number
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frames import Frame, command_frame, header_lines
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["RabbitStomp"]

_REPLY: Final = "JMS_PY_reply"
_SHORT: Final = 63
"""Characters that surely fit into a short text of AMQP 0-9-1, which has 255 bytes."""
_LONGEST_LIFE: Final = 2**32 - 1
"""In milliseconds."""
_BASIC: Final = (
    *(b"content-type", b"content-encoding", b"persistent", b"priority", b"correlation-id", b"reply-to", b"expiration"),
    *(b"amqp-message-id", b"timestamp", b"type", b"user-id", b"app-id", b"cluster-id", b"content-length"),
)
"""The headers that stand for properties of AMQP 0-9-1: the broker writes them behind a sender's other headers."""
_COUNT: Final = b"\nx-delivery-count:"
_REPLY_QUEUE: Final = "/reply-queue/"
_AMQP_QUEUE: Final = "/queues/"
_AMQP_TOPIC: Final = f"/exchanges/{rabbitmq.TOPIC_EXCHANGE}/"
_INEQUIVALENT: Final = re.compile(r"inequivalent arg '[^']*' for queue '([^']*)'")
_SIDE_TOPIC: Final = "/topic/jmsapi.unsub"
_TEMPORARY: Final[Headers] = [("exclusive", "true"), ("durable", "false"), ("auto-delete", "false")]
"""How a temporary queue is declared: it goes with its connection, not with its last consumer."""
_LOCK: Final[Headers] = [("exclusive", "true"), ("durable", "false"), ("auto-delete", "true"), ("prefetch-count", "1")]
"""How a queue is declared that only one connection may use, and that goes with it."""


class RabbitStomp(StompBehaviour):
    """RabbitMQ: NACK returns a message, UNSUBSCRIBE does not; errors name no frame; transactions are a replay."""

    name: ClassVar[str] = rabbitmq.PRODUCT
    errors: ClassVar[ErrorWords] = rabbitmq.ERRORS
    transactions: ClassVar[Literal["native", "sends-first"]] = "sends-first"
    every_error_ends: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = True
    sends_in_transaction: SendsInTransaction = SendsInTransaction.STORED
    negative_ack_returns: ClassVar[bool] = True
    checks_subscriptions: ClassVar[bool] = False
    checks_client_ids: ClassVar[bool] = True
    rejects_by_copy: ClassVar[bool] = False
    # The end of a connection overtakes what its channel has not done yet: on a busy broker a client that died had its last
    # five acknowledgements undone.
    confirms_acknowledgements: ClassVar[bool] = True
    closing_returns: ClassVar[bool] = False
    delivery_patience: ClassVar[float | None] = 20 * 60.0
    last_counts: ClassVar[frozenset[bytes]] = frozenset(b"\n%b:" % name for name in _BASIC)
    hidden: ClassVar[frozenset[str]] = StompBehaviour.hidden - {"expires"} | {"amqp-message-id", "x-correlation-id"}
    # The broker writes the last when an AMQP client's is longer than 255 bytes.
    correlation_names: ClassVar[tuple[str, ...]] = (*StompBehaviour.correlation_names, "x-correlation-id")
    short_text_limit: ClassVar[int | None] = 255
    frame_limit: ClassVar[int] = rabbitmq.STOMP_FRAME_LIMIT
    name_limit: ClassVar[int | None] = 255

    def capabilities(self) -> Capabilities:
        """Return what RabbitMQ can do over STOMP."""
        return rabbitmq.stomp_capabilities(self.version, emulate=self.options.emulate, max_message=self.max_frame)

    def refused_declaration(self, text: str) -> tuple[str, str] | None:
        """Know a queue that somebody declared otherwise: a SEND or SUBSCRIBE would declare it anew, with other arguments."""
        found = _INEQUIVALENT.search(text)
        if found is None:
            return None
        address = Address(DestinationKind.QUEUE, found[1])
        try:
            rabbitmq.check_address(address)
        except ProviderError:
            text = "the subscription's queue was declared over the other wire: consume from it there, or unsubscribe it first"
        else:
            text = f"the queue {address.name!r} was declared otherwise: set rabbit.declare=false to use queues as they are"
        return super().start_of_send(address), text

    def stray_error(self, text: str) -> StrayError | None:
        """Know the ERRORs that concern one consumer, or none any more."""
        if "Server cancelled subscription" in text:
            return StrayError.CANCELLED
        return StrayError.STALE if "Subscription not found" in text else None

    def check(self, address: Address) -> None:
        """Refuse names that RabbitMQ or its frames cannot carry without loss."""
        rabbitmq.check_address(address)
        if "%" in address.name:
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r}: over STOMP, RabbitMQ's names have no '%'")

    def destination(self, address: Address) -> str:
        """Return the name with its prefix; a temporary queue is another connection's and must not be declared."""
        name = _path(address.name)
        if address.kind is DestinationKind.QUEUE:
            return f"/queue/{name}" if self.options.rabbit_declare else f"/amq/queue/{name}"
        if address.kind is DestinationKind.TEMPORARY_QUEUE:
            return f"/amq/queue/{name}"
        return f"/topic/{name}"

    def reply_to(self, address: Address) -> Headers:
        """Return JMSReplyTo as a bare queue name, and its kind for our own readers."""
        mark = (_REPLY, f"{address.kind.value}:{address.name}")
        return [mark] if address.kind.is_topic else [("reply-to", address.name), mark]

    def read_reply_to(self, headers: Mapping[str, str]) -> Address | None:
        """Return JMSReplyTo, with its kind if a client of ours sent it."""
        mark = headers.get(_REPLY, "")
        if mark[1:2] == ":" and mark[0] in "0123":
            return Address(DestinationKind(int(mark[0])), mark[2:])
        return super().read_reply_to(headers)

    def read_address(self, text: str) -> Address | None:
        """Read the forms the broker writes."""
        if text.startswith(_AMQP_QUEUE):
            name = unquote(text[len(_AMQP_QUEUE) :])
            # An exclusive queue of our AMQP client: a SEND that would declare it ends the connection.
            temporary = name.startswith(TEMPORARY_PREFIX)
            return Address(DestinationKind.TEMPORARY_QUEUE if temporary else DestinationKind.QUEUE, name)
        if text.startswith(_AMQP_TOPIC):
            name = unquote(text[len(_AMQP_TOPIC) :])
            return Address(DestinationKind.TEMPORARY_TOPIC if name.startswith(TEMPORARY_PREFIX) else DestinationKind.TOPIC, name)
        for prefix, kind in (
            (_REPLY_QUEUE, DestinationKind.QUEUE),
            ("/queue/", DestinationKind.QUEUE),
            ("/amq/queue/", DestinationKind.QUEUE),
            ("/topic/", DestinationKind.TOPIC),
        ):
            if text.startswith(prefix):
                return Address(kind, text[len(prefix) :].replace("%2F", "/"))
        return Address(DestinationKind.QUEUE, text) if text else None

    def read_destination(self, headers: Mapping[str, str], subscribed: Address) -> Address:
        """Return JMSDestination; a wildcard subscription learns the name from the frame."""
        if subscribed.kind is DestinationKind.TOPIC and ("*" in subscribed.name or "#" in subscribed.name):
            return self.read_address(headers.get("destination", "")) or subscribed
        return super().read_destination(headers, subscribed)

    def start_of_send(self, address: Address) -> str:
        """Return the destination, with the arguments that declare a queue."""
        arguments = header_lines(self.queue_arguments()) if address.kind is DestinationKind.QUEUE else ""
        return super().start_of_send(address) + arguments

    def send_lines(self, envelope: Envelope, name: str | None, now_ms: int) -> str:
        """Return mode, times and group. ``persistent:false`` would declare another queue: never sent."""
        lines = "persistent:true\n" if envelope.delivery_mode == PERSISTENT else ""
        if name is not None and len(name) <= _SHORT:
            lines += f"amqp-message-id:{name}\n"
        if envelope.timestamp:
            lines += f"timestamp:{envelope.timestamp // 1000}\nJMS_PY_time:{envelope.timestamp}\n"
        if envelope.expiration:
            left = max(envelope.expiration - now_ms, 1)
            # More makes the broker end the connection; the client's own check knows the true time.
            if left <= _LONGEST_LIFE:
                lines += f"expiration:{left}\n"
            lines += f"JMS_PY_exp:{envelope.expiration}\n"
        if envelope.properties:
            group, position = group_of(envelope)
            if group is not None:
                lines += f"JMS_PY_group:{group}\n"
            if position is not None:
                lines += f"JMS_PY_gseq:{position}\n"
        return lines

    def queue_arguments(self) -> Headers:
        """Return the arguments of a declared queue; they must be the same on SEND and SUBSCRIBE."""
        return rabbitmq.argument_pairs(self.options.rabbit_queue_args) if self.options.rabbit_declare else []

    def body_lines(self, kind: MessageKind, body: bytes) -> str:
        """Return the length always, and a content type by which AMQP 1.0 readers know texts."""
        if kind is MessageKind.TEXT:
            return f"content-type:text/plain\ncontent-length:{len(body)}\n"
        return f"content-length:{len(body)}\n"

    def reroute(self, envelope: Envelope, now_ms: int) -> str | None:
        """Return the start of a SEND to a queue that holds the message for its delay, then dead-letters it to its destination."""
        delay = envelope.delivery_time - now_ms
        if envelope.delivery_time == 0 or delay <= 0:
            return None
        address = envelope.destination
        queue = rabbitmq.delay_queue(address, delay)
        arguments = [(name, str(value)) for name, value in queue.arguments.items()]
        original = ("JMS_PY_dest", f"{address.kind.value}:{address.name}")
        return header_lines([("destination", f"/queue/{_path(queue.name)}"), *arguments, original])

    # consuming

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> SubscribePlan:
        """Return what declares the queue; a named subscription is a named queue bound to the topic."""
        if spec.address.kind is DestinationKind.TEMPORARY_QUEUE:
            return SubscribePlan("/queue/" + spec.address.name, _TEMPORARY, shareable=True)
        destination = self.destination(spec.address)
        if not spec.address.kind.is_topic:
            return SubscribePlan(destination, self.queue_arguments(), shareable=True)
        if spec.subscription is None:
            return SubscribePlan(destination)
        queue = rabbitmq.subscription_queue(client_id, spec.subscription, durable=spec.durable, shared=spec.shared)
        lasting = [("durable", "true"), ("auto-delete", "false")]
        passing = [("durable", "false"), ("auto-delete", "true")]
        plain = spec.address.name.isascii() and spec.address.name.replace(".", "").isalnum()
        return SubscribePlan(
            destination,
            [("x-queue-name", queue), *(lasting if spec.durable else passing)],
            shareable=True,
            registered=True,
            replace=self.deletion(queue) if spec.durable else None,
            bound_to=destination if plain else None,
        )

    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the window in messages; 0 is without end."""
        return [("prefetch-count", "0" if size is None else str(max(size, 1)))]

    # client ids and subscriptions

    def client_id_lock(self, client_id: str) -> Headers | None:
        """Return an exclusive queue of the client id."""
        return [("id", "client-id"), ("destination", f"/queue/{_path(rabbitmq.client_id_lock(client_id))}"), *_LOCK]

    async def claim(self, access: BrokerAccess, consumer: StompConsumer, *, first: bool, changed: bool) -> None:
        """Lock an unshared subscription, and delete the queue of a changed one."""
        spec, plan = consumer.spec, consumer.plan
        if not spec.shared:
            consumer.lock = await self._lock(access, spec.subscription or "")
        again = self.options.resubscribe and spec.durable
        if plan.replace is not None and first and (changed or again):
            await access.replace(plan.replace)

    async def _lock(self, access: BrokerAccess, name: str) -> StompConnection:
        """Hold the queue that stands for the use of a subscription, on a connection of its own: a refusal ends it.

        Raises:
            ProviderError: IN_USE; another connection holds it.
        """
        queue = rabbitmq.subscription_lock(access.client_id, name)
        connection = await access.connections.connect(None)
        try:
            headers = [("id", "lock"), ("destination", f"/queue/{_path(queue)}"), *_LOCK]
            await connection.command("cannot take the lock", "SUBSCRIBE", headers)
        except ProviderError as cause:
            access.connections.drop(connection)
            if cause.kind is ErrorKind.IN_USE:
                raise ProviderError(ErrorKind.IN_USE, f"the subscription {name!r} is in use by another connection") from cause
            raise
        return connection

    def deletion(self, name: str) -> Headers:
        """Return what deletes a queue: any subscription ended with another queue's name does."""
        return [("durable", "true"), ("x-queue-name", name)]

    async def delete(self, access: BrokerAccess, deletion: Headers) -> None:
        """Send the UNSUBSCRIBE; RabbitMQ wants the id of a subscription to end, and any will do."""
        asked, name = "cannot unsubscribe", f"u{access.next_serial()}"
        late = partial(access.connection.request, asked, "UNSUBSCRIBE", [("id", name)], lambda _: None)
        await access.connection.command(asked, "SUBSCRIBE", [("id", name), ("destination", _SIDE_TOPIC)], late=late)
        await access.connection.command(asked, "UNSUBSCRIBE", [("id", name), *deletion])

    async def remove_subscription(self, access: BrokerAccess, name: str, *, shared: bool) -> None:
        """Delete the queue of a subscription, of whichever kind it is."""
        found = False
        for kind in (False, True):
            if not kind and access.client_id is None:
                continue
            queue = rabbitmq.subscription_queue(access.client_id, name, durable=True, shared=kind)
            if not await self._exists(access, queue):
                continue
            found = True
            lock = None if kind else await self._lock(access, name)
            try:
                await access.delete(self.deletion(queue))
            finally:
                if lock is not None:
                    await access.connections.leave(lock)
        if not found:
            raise ProviderError(ErrorKind.SUBSCRIPTION, f"there is no durable subscription {name!r}")

    async def _exists(self, access: BrokerAccess, queue: str) -> bool:
        """Look for a queue on a connection of its own: RabbitMQ closes it when there is none.

        RabbitMQ 4.0 fails to write the ERROR that names a queue with letters beyond ASCII, and closes without it; so for such a
        name a connection that is closed twice is the answer (``test_a_subscription_with_any_letters_in_its_name_is_ended``).
        """
        for _ in range(2):
            try:
                await self._look_for(access, queue)
            except ProviderError as cause:
                if cause.kind is ErrorKind.DESTINATION:
                    break
                if queue.isascii() or cause.kind is not ErrorKind.CONNECTION:
                    raise
            else:
                return True
        return False

    async def _look_for(self, access: BrokerAccess, queue: str) -> None:
        connection = await access.connections.connect(None)
        headers = [("id", "look"), ("destination", f"/amq/queue/{_path(queue)}"), ("ack", "client-individual")]
        try:
            await connection.command("cannot look", "SUBSCRIBE", [*headers, *self.window(1, deferred=False)])
        finally:
            access.connections.drop(connection)

    async def return_and_unsubscribe(self, end: SubscriptionEnd, consumer: StompConsumer, name: str) -> None:
        """Move a subscription's id to an empty private queue, return its unsettled messages, then leave.

        RabbitMQ 4.0 takes ACK and NACK only while the id is subscribed to something. UNSUBSCRIBE and SUBSCRIBE go in one
        write: it then handles both before the deliveries that are still in its hands, and sends us those as well, instead
        of an ERROR "Subscription not found" that would leave them locked until the connection closes. They come before
        the answer to whatever we send next, so one more exchange lets us see them all
        (``test_releasing_a_consumer_gives_everything_back``).
        """
        word = f"void-{uuid4()}"
        headers = [("id", name), ("destination", f"/queue/jmsapi.{word}"), ("ack", "client-individual"), *_LOCK]
        first = command_frame("UNSUBSCRIBE", [("id", name)])

        def late() -> None:
            perform(self._return(end, consumer, name, word), lambda _: end.forget(consumer, name))

        await consumer.connection.command("cannot end a consumer", "SUBSCRIBE", headers, first=first, late=late)
        await self._return(end, consumer, name, word)

    async def _return(self, end: SubscriptionEnd, consumer: StompConsumer, name: str, word: str) -> None:
        connection = consumer.connection
        end.requeue(consumer)
        await connection.confirm(command_frame("BEGIN", [("transaction", word)]))
        connection.write(command_frame("ABORT", [("transaction", word)]))
        end.requeue(consumer)
        await answer_of(partial(end.unsubscribe, consumer, name))

    # temporary destinations

    async def make_temporary(self, access: BrokerAccess, kind: DestinationKind) -> Address:
        """Declare a queue by a SEND; its message, which is to live for 0 ms, is dropped at once."""
        address = Address(kind, temporary_name())
        if not kind.is_topic:
            headers = [("destination", f"/queue/{address.name}"), ("expiration", "0"), *_TEMPORARY]
            await access.connection.confirm(command_frame("SEND", headers))
        return address

    async def remove_temporary(self, access: BrokerAccess, address: Address) -> None:
        """Delete the queue."""
        if not address.kind.is_topic:
            await access.delete(self.deletion(address.name))

    # receiving

    def delivery_count(self, frame: Frame) -> int:
        """Return a quorum queue's count, else what the flag allows. On a first delivery a count is the sender's own header."""
        flagged = super().delivery_count(frame)
        count = frame.raw(_COUNT) if flagged > 1 else None
        return max(flagged, int(count) + 1) if count is not None and count.isdigit() and len(count) < 10 else flagged

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return our own copies, else what another client calls so."""
        group, position = headers.get("JMS_PY_group"), headers.get("JMS_PY_gseq")
        return (
            headers.get("JMSXGroupID") if group is None else group,
            headers.get("JMSXGroupSeq") if position is None else position,
        )

    def read_timestamp(self, headers: Mapping[str, str]) -> int:
        """Return the sender's stamp, else the broker's, which is in seconds."""
        return number(headers, "JMS_PY_time") or number(headers, "timestamp") * 1000

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times: the broker's timestamp is in seconds, its expiration relative, so both have headers of ours."""
        stamped = self.read_timestamp(headers)
        expires = 0 if has_expired(headers) else number(headers, "JMS_PY_exp")
        return stamped, expires, number(headers, "JMS_PY_due")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the sender's id, else the broker's."""
        return headers.get("amqp-message-id") or headers.get("message-id")


def _path(name: str) -> str:
    """Return a name as a part of a destination."""
    return name.replace("/", "%2F")
