"""RabbitMQ over STOMP. What the broker does was seen on 4.0.5 unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal
from urllib.parse import unquote

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
    emulated,
    none,
)
from jmsapi_stomp.dialect import Dialect, group_of, number
from jmsapi_stomp.frames import Frame, header_lines
from jmsapi_stomp.plans import Headers, Plan

__all__ = ["TEMPORARY", "RabbitMQ"]

_REPLY: Final = "JMS_PY_reply"
_LONGEST_LIFE: Final = 2**32 - 1
"""In milliseconds."""
_COUNT: Final = b"\nx-delivery-count:"
_REPLY_QUEUE: Final = "/reply-queue/"
_TEMPORARY: Final = "jmsapi.temp."
_AMQP_QUEUE: Final = "/queues/"
_AMQP_TOPIC: Final = "/exchanges/amq.topic/"
TEMPORARY: Final[Headers] = [("exclusive", "true"), ("durable", "false"), ("auto-delete", "false")]
"""How a temporary queue is declared: it goes with its connection, not with its last consumer."""


class RabbitMQ(Dialect):
    """RabbitMQ: NACK gives back, UNSUBSCRIBE does not, errors name no frame, transactions are a replay."""

    name: ClassVar[str] = "rabbitmq"
    transactions: ClassVar[Literal["native", "sends-first"]] = "sends-first"
    every_error_ends: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = True
    confirm_in_transaction: ClassVar[bool] = False
    receipts_after_commit: ClassVar[bool] = True
    negative_ack_returns: ClassVar[bool] = True
    checks_subscriptions: ClassVar[bool] = False
    checks_client_ids: ClassVar[bool] = True
    rejects_by_copy: ClassVar[bool] = False
    closing_returns: ClassVar[bool] = False
    delivery_patience: ClassVar[float | None] = 20 * 60.0
    frame_limit: ClassVar[int] = 4 * 1024 * 1024
    name_limit: ClassVar[int | None] = 255

    def capabilities(self) -> Capabilities:
        """Return what RabbitMQ can do over STOMP."""
        replay = "sends are replayed, then acknowledgements follow: a crash between repeats messages, it loses none"
        tx = (
            emulated(replay)
            if "tx" in self.options.emulate
            else none("the broker replays transactions one message after the other", emulate="tx")
        )
        return Capabilities(
            provider="stomp",
            broker=self.name,
            version=self.version,
            transactions=tx,
            transactions_atomic=none("acknowledgements follow the commit one by one"),
            queue_selector=none("the broker has no selectors", emulate="queue-selector"),
            topic_selector=none("the broker has no selectors"),
            no_local=none("the broker has no noLocal"),
            durable_subscription=emulated("a named queue and a lock"),
            shared_subscription=emulated("a named queue that goes with its last consumer"),
            shared_durable_subscription=emulated("a named queue"),
            unsubscribe=emulated("the subscription's queue is deleted"),
            browser=none("browser:true consumes"),
            temporary_queue=emulated("an exclusive queue"),
            temporary_topic=emulated("a topic with a unique name"),
            delivery_delay=emulated("queues with a time to live that dead-letter into the destination"),
            map_message=emulated("JSON for jmsapi clients"),
            stream_message=emulated("JSON for jmsapi clients"),
            object_message=emulated("bytes for others"),
            plain_message=emulated("an empty body for others"),
            client_id_exclusive=emulated("an exclusive lock queue"),
            delivery_count_exact=none("only a flag says that a message came before; quorum queues count"),
            delay_keeps_subscribers=none("a delayed topic message is published when it falls due"),
            priority_order=none("needs x-max-priority when the queue is declared: rabbit.queue_args"),
            message_groups=none("the broker has none"),
            receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
            missing_queue_reported=none("the broker confirms what it cannot route"),
            dead_letter=emulated("the queue's dead-letter exchange, if it has one"),
            durable_exclusive=emulated("a lock queue"),
            subscription_change_detected=emulated("within this process"),
            unknown_subscription_reported=emulated("the queue is looked for on a connection of its own"),
            expiry_in_broker=emulated("at the head of a queue only; the client checks too"),
            rollback_returns=False,
            broker_credit=False,
            release_while_open=True,
            unsettled_window=None,
            max_message=self.max_frame,
        )

    def check(self, address: Address) -> None:
        """Refuse what RabbitMQ's frames cannot name without loss."""
        super().check(address)
        if "%" in address.name or len(address.name.encode("utf-8", "replace")) > 255:
            text = f"{address.name!r}: RabbitMQ's names have no '%' and at most 255 bytes"
            raise ProviderError(ErrorKind.DESTINATION, text)

    def destination(self, address: Address) -> str:
        """Return the name with its prefix; a temporary queue is another connection's and must not be declared."""
        name = address.name.replace("/", "%2F")
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
            temporary = name.startswith(_TEMPORARY)
            return Address(DestinationKind.TEMPORARY_QUEUE if temporary else DestinationKind.QUEUE, name)
        if text.startswith(_AMQP_TOPIC):
            name = unquote(text[len(_AMQP_TOPIC) :])
            return Address(DestinationKind.TEMPORARY_TOPIC if name.startswith(_TEMPORARY) else DestinationKind.TOPIC, name)
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
        if name is not None:
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
        pairs = [item.partition(":") for item in self.options.rabbit_queue_args.split(";") if item.strip()]
        return [(name.strip(), value.strip()) for name, _, value in pairs] if self.options.rabbit_declare else []

    def body_lines(self, kind: MessageKind, body: bytes) -> str:
        """Return the length always, and a content type by which AMQP 1.0 readers know texts."""
        if kind is MessageKind.TEXT:
            return f"content-type:text/plain\ncontent-length:{len(body)}\n"
        return f"content-length:{len(body)}\n"

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> Plan:
        """Return what declares the queue; a named subscription is a named queue bound to the topic."""
        if spec.address.kind is DestinationKind.TEMPORARY_QUEUE:
            return Plan("/queue/" + spec.address.name, TEMPORARY, shareable=True)
        destination = self.destination(spec.address)
        if not spec.address.kind.is_topic:
            return Plan(destination, self.queue_arguments(), shareable=True)
        if spec.subscription is None:
            return Plan(destination)
        if any(char < " " for char in spec.subscription):
            # The broker takes line ends out of a queue's name: another subscription may have what is left.
            raise ProviderError(ErrorKind.DESTINATION, f"{spec.subscription!r} is no name for a subscription on RabbitMQ")
        queue = self.subscription_queue(spec.subscription, client_id, durable=spec.durable, shared=spec.shared)
        lasting = [("durable", "true"), ("auto-delete", "false")]
        passing = [("durable", "false"), ("auto-delete", "true")]
        plain = spec.address.name.isascii() and spec.address.name.replace(".", "").isalnum()
        return Plan(
            destination,
            [("x-queue-name", queue), *(lasting if spec.durable else passing)],
            shareable=True,
            registered=True,
            replace=self.deletion(queue) if spec.durable else None,
            lock=None if spec.shared else f"jmsapi.lock.sub.{client_id}.{spec.subscription}",
            bound_to=destination if plain else None,
        )

    def subscription_queue(self, name: str, client_id: str | None, *, durable: bool, shared: bool) -> str:
        """Return the name of a subscription's queue."""
        kind = ("s" if shared else "d") if durable else "v"
        return f"jms.{kind}.{client_id or ''}.{name}"

    def deletion(self, queue: str) -> Headers:
        """Return what deletes a queue: any subscription ended with another's queue name does."""
        return [("durable", "true"), ("x-queue-name", queue)]

    def lock_headers(self) -> Headers:
        """Return what makes a queue that only one connection may use, and that goes with it."""
        return [("exclusive", "true"), ("durable", "false"), ("auto-delete", "true"), ("prefetch-count", "1")]

    def client_id_lock(self, client_id: str) -> Headers | None:
        """Return an exclusive queue of the client id."""
        name = f"jmsapi.lock.{client_id}".replace("/", "%2F")
        return [("id", "client-id"), ("destination", f"/queue/{name}"), *self.lock_headers()]

    def reroute(self, envelope: Envelope, now_ms: int) -> str | None:
        """Return the start of a SEND to a queue that holds messages for the delay, then dead-letters them to their destination.

        Delays are rounded up to three digits, so that queues stay few; each goes a minute after its last use.
        """
        delay = envelope.delivery_time - now_ms
        if envelope.delivery_time == 0 or delay <= 0:
            return None
        step = 10 ** max(len(str(delay)) - 3, 0)
        delay = -(-delay // step) * step
        name, kind = envelope.destination.name, envelope.destination.kind
        where = "t" if kind.is_topic else "q"
        headers: Headers = [
            ("destination", f"/queue/jmsapi.delay.{delay}.{where}.{name.replace('/', '%2F')}"),
            ("x-message-ttl", str(delay)),
            ("x-expires", str(delay + 60_000)),
            ("x-dead-letter-exchange", "amq.topic" if kind.is_topic else ""),
            ("x-dead-letter-routing-key", name),
            ("JMS_PY_dest", f"{kind.value}:{name}"),
        ]
        return header_lines(headers)

    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the window in messages; 0 is without end."""
        return [("prefetch-count", "0" if size is None else str(max(size, 1)))]

    def delivery_count(self, frame: Frame) -> int:
        """Return a quorum queue's count, else what the flag tells."""
        count = frame.find(_COUNT)
        return int(count) + 1 if count is not None and count.isdecimal() else super().delivery_count(frame)

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return our own copies."""
        return headers.get("JMS_PY_group"), headers.get("JMS_PY_gseq")

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times: the broker's timestamp is in seconds, its expiration relative, so both have headers of ours."""
        stamped = number(headers, "JMS_PY_time") or number(headers, "timestamp") * 1000
        return stamped, number(headers, "JMS_PY_exp"), number(headers, "JMS_PY_due")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the sender's id, else the broker's."""
        return headers.get("amqp-message-id") or headers.get("message-id")
