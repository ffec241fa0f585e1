"""Apache Artemis over STOMP. What the broker does was seen on 2.56.0 unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Literal

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
from jmsapi_brokers import artemis, artemis_management
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_brokers.names import temporary_name
from jmsapi_stomp.access import BrokerAccess
from jmsapi_stomp.artemis_browsing import ArtemisBrowsing
from jmsapi_stomp.behaviour import SendsInTransaction, StompBehaviour, annotated_kind, group_of, number
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frames import command_frame, escape
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["ArtemisStomp"]

_SCHEMES: Final = {
    DestinationKind.QUEUE: "queue://",
    DestinationKind.TOPIC: "topic://",
    DestinationKind.TEMPORARY_QUEUE: "temp-queue://",
    DestinationKind.TEMPORARY_TOPIC: "temp-topic://",
}
_BYTES_A_MESSAGE: Final = 1100
_MANY: Final = 100
_DUPLICATE: Final = "; with artemis.dedup that is its answer when one of the messages has an id that it has seen before"


class ArtemisStomp(StompBehaviour):
    """Artemis: addresses with routing types, windows in bytes, every ERROR the last frame."""

    name: ClassVar[str] = artemis.PRODUCT
    errors: ClassVar[ErrorWords] = artemis.ERRORS
    transactions: ClassVar[Literal["native", "sends-first"]] = "sends-first"
    every_error_ends: ClassVar[bool] = True
    one_at_a_time: ClassVar[bool] = True
    # Its ERROR may come behind the answers to later frames, COMMIT's among them, which stores what was not refused.
    sends_in_transaction: SendsInTransaction = SendsInTransaction.CONFIRMED
    negative_ack_returns: ClassVar[bool] = False
    checks_subscriptions: ClassVar[bool] = False
    checks_client_ids: ClassVar[bool] = False
    rejects_by_copy: ClassVar[bool] = True
    # What it has read and not yet carried out is forgotten when the connection breaks.
    confirms_acknowledgements: ClassVar[bool] = True
    closing_returns: ClassVar[bool] = True
    exact_windows: ClassVar[bool] = False
    last_counts: ClassVar[frozenset[bytes]] = frozenset({b"\nack:"})
    hidden: ClassVar[frozenset[str]] = StompBehaviour.hidden | {"destination-type"}
    scheduling: ClassVar[frozenset[str]] = frozenset({"AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME"})
    frame_limit: ClassVar[int] = artemis.STOMP_FRAME_LIMIT

    def __init__(self, options: StompOptions, version: str) -> None:
        super().__init__(options, version)
        # Artemis 2.56 gives no reason in its ERROR.
        self.refused_commit_hint = _DUPLICATE if options.artemis_dedup else ""
        self._global_connection: StompConnection | None = None
        """Owns shared durable subscriptions when the connection has no client id."""

    def capabilities(self) -> Capabilities:
        """Return what Artemis can do over STOMP."""
        options = self.options
        return artemis.stomp_capabilities(
            self.version, emulate=options.emulate, lock=options.artemis_lock, max_message=self.max_frame
        )

    def check(self, address: Address) -> None:
        """Refuse names that Artemis interprets."""
        artemis.check_address(address)

    def destination(self, address: Address) -> str:
        """Return the address; its kind is a header of its own."""
        return self.options.artemis_prefix + address.name

    def reply_to(self, address: Address) -> Headers:
        """Return JMSReplyTo as a URI, which other clients read as well."""
        return [("reply-to", _SCHEMES[address.kind] + address.name)]

    def read_address(self, text: str) -> Address | None:
        """Read a URI or a plain name, which is a queue's."""
        for kind, scheme in _SCHEMES.items():
            if text.startswith(scheme):
                return Address(kind, text[len(scheme) :])
        return Address(DestinationKind.QUEUE, text) if text else None

    def start_of_send(self, address: Address) -> str:
        """Return the address and its routing type."""
        routing = "MULTICAST" if address.kind.is_topic else "ANYCAST"
        return f"{super().start_of_send(address)}destination-type:{routing}\n"

    def send_lines(self, envelope: Envelope, name: str | None, now_ms: int) -> str:
        """Return mode, times and ids."""
        lines = "persistent:true\n" if envelope.delivery_mode == PERSISTENT else "persistent:false\n"
        if name is not None:
            lines += f"NATIVE_MESSAGE_ID:{name}\n"
        known_by = envelope.properties.get(artemis.DUPLICATE_ID)
        if known_by is not None:
            # As over AMQP: the broker reads it, and so does the receiver, from the property's own header.
            lines += f"{artemis.DUPLICATE_ID}:{escape(str(known_by))}\n"
        elif name is not None and self.options.artemis_dedup:
            lines += f"{artemis.DUPLICATE_ID}:{name}\n"
        if envelope.timestamp:
            lines += f"JMS_PY_time:{envelope.timestamp}\n"
        if envelope.expiration:
            lines += f"expires:{envelope.expiration}\n"
        if envelope.delivery_time > now_ms:
            lines += f"AMQ_SCHEDULED_TIME:{envelope.delivery_time}\n"
        if envelope.properties:
            if artemis_management.RESOURCE in envelope.properties:
                # A request to the broker itself, which the broker reads under these names only.
                lines += "".join(
                    f"{key}:{escape(str(envelope.properties[key]))}\n"
                    for key in (artemis_management.RESOURCE, artemis_management.OPERATION)
                    if key in envelope.properties
                )
            group, position = group_of(envelope)
            if group is not None:
                lines += f"JMSXGroupID:{group}\n"
            if position is not None:
                lines += f"JMS_PY_gseq:{position}\n"
        return lines

    def body_lines(self, kind: MessageKind, body: bytes) -> str:
        """Return ``content-length`` only for bytes: with it Java sees a BytesMessage."""
        if kind is MessageKind.BYTES or kind is MessageKind.OBJECT or b"\0" in body:
            return f"content-length:{len(body)}\n"
        return ""

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> SubscribePlan:
        """Return routing type, filter and durable name; consumers of one durable name share it."""
        if spec.browse:
            return SubscribePlan(temporary_name(), [("subscription-type", "ANYCAST")], browse=True, unbounded=True)
        headers: Headers = [("subscription-type", "MULTICAST" if spec.address.kind.is_topic else "ANYCAST")]
        if spec.selector is not None:
            headers.append(("selector", spec.selector))
        destination = self.destination(spec.address)
        if spec.subscription is None:
            return SubscribePlan(destination, headers, shareable=not spec.address.kind.is_topic)
        name = artemis.subscription_name(client_id, spec.subscription)
        durable = ("durable-subscription-name", name if spec.durable else artemis.VOLATILE_PREFIX + name)
        return SubscribePlan(
            destination,
            [*headers, durable],
            shareable=True,
            registered=True,
            replace=[durable],
            volatile=not spec.durable,
        )

    async def browse(self, access: BrokerAccess, consumer: StompConsumer) -> None:
        """List and copy by the broker's management, since ``browser:true`` would consume."""
        try:
            await ArtemisBrowsing(access, consumer, self.destination(consumer.spec.address)).begin()
        except ProviderError as cause:
            if cause.kind is not ErrorKind.SECURITY:
                raise
            text = f"over STOMP that takes the right to manage Artemis, which the user has not ({cause.message})"
            raise ProviderError(ErrorKind.UNSUPPORTED, text) from cause

    async def claim(self, access: BrokerAccess, consumer: StompConsumer, *, first: bool, changed: bool) -> None:
        """Delete what is left of a changed or non-durable subscription; the broker would keep its filter."""
        plan, spec = consumer.plan, consumer.spec
        if access.client_id is None:
            if self._global_connection is None or self._global_connection.dead is not None:
                self._global_connection = await access.connections.connect(artemis.GLOBAL_CLIENT_ID)
            consumer.connection = self._global_connection
        again = self.options.resubscribe and spec.durable
        if plan.replace is not None and first and (changed or plan.volatile or again):
            await access.replace(plan.replace, volatile=plan.volatile)

    def client_id_lock(self, client_id: str) -> Headers | None:
        """Return a queue that takes one consumer, where the operator has set it up so."""
        artemis.check_client_id(client_id)
        if not self.options.artemis_lock:
            return None
        return [("id", "client-id"), ("destination", artemis.client_id_lock(client_id)), ("subscription-type", "ANYCAST")]

    def deletion(self, name: str) -> Headers:
        """Return what deletes a durable subscription."""
        return [("durable-subscription-name", name)]

    async def remove_subscription(self, access: BrokerAccess, name: str, *, shared: bool) -> None:
        """Delete a durable subscription. The broker confirms what it does not know, so it is asked first, if the user may ask."""
        queue = f"{access.client_id or artemis.GLOBAL_CLIENT_ID}.{artemis.subscription_name(access.client_id, name)}"
        if await self._is_missing(access, queue):
            raise ProviderError(ErrorKind.SUBSCRIPTION, f"cannot unsubscribe {name!r}: there is no such subscription")
        await access.delete(self.deletion(artemis.subscription_name(access.client_id, name)))

    async def _is_missing(self, access: BrokerAccess, queue: str) -> bool:
        """Ask the broker's management for a queue; False also when the user may not ask, or there is no answer in time."""
        replies = temporary_name()
        answers = list[str]()
        # On a connection of its own, for a refusal ends it.
        connection = await access.connections.connect(None)

        async def ask(consumer: StompConsumer) -> None:
            with suppress(ProviderError):
                await connection.confirm(command_frame("SEND", artemis_management.stomp_question(queue, f"queue://{replies}")))
                await access.arrival(consumer)
            answers.extend(str(envelope.body) for envelope in consumer.unsettled.values())
            await access.acknowledge(list(consumer.unsettled))

        try:
            await access.with_consumer(SubscribePlan(replies, [("subscription-type", "ANYCAST")]), ask)
        finally:
            access.connections.drop(connection)
        return any(artemis_management.NO_SUCH_RESOURCE in answer for answer in answers)

    async def delete(self, access: BrokerAccess, deletion: Headers) -> None:
        """Send the UNSUBSCRIBE on a connection of its own, for a refusal ends it."""
        connection = await access.connections.connect(access.client_id or artemis.GLOBAL_CLIENT_ID)
        try:
            await connection.command("cannot unsubscribe", "UNSUBSCRIBE", [("id", f"u{access.next_serial()}"), *deletion])
        finally:
            access.connections.drop(connection)

    async def leave_temporaries(self, access: BrokerAccess, addresses: Sequence[Address]) -> None:
        """Empty temporary queues: the broker deletes those that are empty and idle."""
        await access.empty(*(self.plan(ConsumerSpec(one), None) for one in addresses if not one.kind.is_topic))

    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the window in bytes: 0 is one message at a time, -1 is without end."""
        room = -1 if size is None else 0 if size == 1 else self.window_room(size, deferred=deferred)
        return [("consumer-window-size", str(room))]

    def window_cost(self, size: int) -> int:
        """Return bytes: Artemis counts encoded frames."""
        return size

    def window_room(self, size: int, *, deferred: bool) -> int:
        """Return bytes; one message at a time is a window that any message fills.

        Late acknowledgements get a window that holds many messages of usual size.
        """
        if size == 1:
            return 1
        room = size * _BYTES_A_MESSAGE
        return max(room, self.options.artemis_tx_window) if deferred and size >= _MANY else room

    def foreign_kind(self, headers: Mapping[str, str], body: bytes) -> MessageKind:
        """Believe the AMQP converter's annotation first; ``content-length`` is on every frame."""
        kind = annotated_kind(headers)
        return super().foreign_kind(headers, body) if kind is None else kind

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return the group under the broker's own names."""
        position = headers.get("JMS_PY_gseq") or headers.get("_AMQ_GROUP_SEQUENCE") or headers.get("JMSXGroupSeq")
        return headers.get("_AMQ_GROUP_ID"), position

    def read_timestamp(self, headers: Mapping[str, str]) -> int:
        """Return the sender's stamp; the broker stamps one of its own, also where the sender wanted none."""
        return number(headers, "JMS_PY_time" if "JMS_PY_type" in headers else "timestamp")

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times; the broker stamps a timestamp of its own, also where the sender wanted none."""
        stamped = self.read_timestamp(headers)
        return stamped, number(headers, "expires"), number(headers, "JMS_PY_due") or number(headers, "_AMQ_SCHED_DELIVERY")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return an AMQP sender's id, else the broker's number, without that of the consumer which it writes before it."""
        return headers.get("NATIVE_MESSAGE_ID") or headers.get("message-id", "").rpartition(",")[2] or None
