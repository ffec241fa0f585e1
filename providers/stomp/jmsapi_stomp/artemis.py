"""Apache Artemis over STOMP. What the broker does was seen on 2.56.0 unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from jmsapi.spi import (
    NONE,
    PERSISTENT,
    Address,
    Capabilities,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    Level,
    MessageKind,
    Support,
    emulated,
    none,
)
from jmsapi_stomp.dialect import Dialect, group_of, number
from jmsapi_stomp.frames import escape
from jmsapi_stomp.plans import Headers, Plan

__all__ = ["Artemis"]

_SCHEMES: Final = {
    DestinationKind.QUEUE: "queue://",
    DestinationKind.TOPIC: "topic://",
    DestinationKind.TEMPORARY_QUEUE: "temp-queue://",
    DestinationKind.TEMPORARY_TOPIC: "temp-topic://",
}
_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_BYTES_A_MESSAGE: Final = 1100
_MANY: Final = 100
_VOLATILE: Final = "jmsapi.volatile."
_AMQP_TYPE: Final = "JMS_AMQP_MA_x-opt-jms-msg-type"
_AMQP_KINDS: Final = frozenset("012345")


class Artemis(Dialect):
    """Artemis: addresses with routing types, windows in bytes, every ERROR the last frame."""

    name: ClassVar[str] = "artemis"
    transactions: ClassVar[Literal["native", "sends-first"]] = "sends-first"
    every_error_ends: ClassVar[bool] = True
    one_at_a_time: ClassVar[bool] = True
    confirm_in_transaction: ClassVar[bool] = False
    receipts_after_commit: ClassVar[bool] = False
    negative_ack_returns: ClassVar[bool] = False
    checks_subscriptions: ClassVar[bool] = False
    checks_client_ids: ClassVar[bool] = False
    rejects_by_copy: ClassVar[bool] = True
    closing_returns: ClassVar[bool] = True
    exact_windows: ClassVar[bool] = False
    frame_limit: ClassVar[int] = 100 * 1024 * 1024

    def capabilities(self) -> Capabilities:
        """Return what Artemis can do over STOMP."""
        emulate = self.options.emulate
        sends_first = "sends are committed before the acknowledgements: a crash between repeats messages, it loses none"
        tx = emulated(sends_first) if "tx" in emulate else none("Artemis obeys a STOMP ACK at once", emulate="tx")
        volatile = (
            emulated("a queue on the topic; what is left is drained by the last consumer")
            if "shared-volatile" in emulate
            else none("STOMP can share durable subscriptions only", emulate="shared-volatile")
        )
        return Capabilities(
            provider="stomp",
            broker=self.name,
            version=self.version,
            transactions=tx,
            transactions_atomic=none("acknowledgements follow the commit one by one"),
            no_local=none("the broker's mark is missing on sends inside transactions"),
            durable_subscription=Support(emulated("").level, "a named queue of the client id"),
            shared_subscription=volatile,
            shared_durable_subscription=emulated("consumers of one durable name share it"),
            browser=none("browser:true consumes"),
            temporary_queue=emulated("a queue with a unique name"),
            temporary_topic=emulated("a topic with a unique name"),
            map_message=emulated("JSON for jmsapi clients, text for others"),
            stream_message=emulated("JSON for jmsapi clients, text for others"),
            object_message=emulated("bytes for others"),
            plain_message=emulated("an empty text for others"),
            client_id_exclusive=(
                emulated("a lock queue")
                if self.options.artemis_lock
                else none("client ids are not checked unless the broker limits jmsapi.lock.# to one consumer: set artemis.lock=1")
            ),
            delivery_count_exact=none("only a flag says that a message came before"),
            redelivered_flag=none("after DISCONNECT only the oldest message is marked"),
            receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
            temporary_owner_only=none("the name is secret, not protected"),
            dead_letter=emulated("a copy is sent, then the message acknowledged"),
            durable_exclusive=emulated("checked within this process; other processes may share the subscription"),
            subscription_change_detected=emulated("within this process; the broker keeps the old filter"),
            unknown_subscription_reported=none("the broker confirms what it does not know"),
            same_name_queue_and_topic=none("an address used both ways mixes them up"),
            duplicate_detection=Support(Level.NATIVE, f"by the property {_DUPLICATE_ID}, of its last 20,000 unless configured"),
            rollback_returns=False,
            broker_credit=False,
            release_while_open=False,
            unsettled_window=None,
            max_message=self.max_frame,
            duplicate_property=_DUPLICATE_ID,
            xa=NONE,
        )

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
        known_by = envelope.properties.get(_DUPLICATE_ID)
        if known_by is not None:
            # As over AMQP: the broker reads it, and so does the receiver, from the property's own header.
            lines += f"{_DUPLICATE_ID}:{escape(str(known_by))}\n"
        elif name is not None and self.options.artemis_dedup:
            lines += f"{_DUPLICATE_ID}:{name}\n"
        if envelope.timestamp:
            lines += f"JMS_PY_time:{envelope.timestamp}\n"
        if envelope.expiration:
            lines += f"expires:{envelope.expiration}\n"
        if envelope.delivery_time > now_ms:
            lines += f"AMQ_SCHEDULED_TIME:{envelope.delivery_time}\n"
        if envelope.properties:
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

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> Plan:
        """Return routing type, filter and durable name; consumers of one durable name share it."""
        headers: Headers = [("subscription-type", "MULTICAST" if spec.address.kind.is_topic else "ANYCAST")]
        if spec.selector is not None:
            headers.append(("selector", spec.selector))
        destination = self.destination(spec.address)
        if spec.subscription is None:
            return Plan(destination, headers, shareable=not spec.address.kind.is_topic)
        name = spec.subscription if spec.durable else f"{_VOLATILE}{spec.subscription}"
        durable = ("durable-subscription-name", name)
        return Plan(
            destination,
            [*headers, durable],
            shareable=True,
            registered=True,
            replace=[durable],
            inner=client_id is None,
            volatile=not spec.durable,
        )

    def client_id_lock(self, client_id: str) -> Headers | None:
        """Return a queue that takes one consumer, where the operator has set it up so."""
        if not self.options.artemis_lock:
            return None
        return [("id", "client-id"), ("destination", f"jmsapi.lock.{client_id}"), ("subscription-type", "ANYCAST")]

    def deletion(self, queue: str) -> Headers:
        """Return what deletes a durable subscription."""
        return [("durable-subscription-name", queue)]

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
        mark = headers.get(_AMQP_TYPE, "")
        if mark in _AMQP_KINDS:
            return MessageKind(int(mark))
        return super().foreign_kind(headers, body)

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return the group under the broker's own names."""
        return headers.get("_AMQ_GROUP_ID"), headers.get("JMS_PY_gseq") or headers.get("_AMQ_GROUP_SEQUENCE")

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times; the broker stamps a timestamp of its own, also where the sender wanted none."""
        stamped = number(headers, "JMS_PY_time" if "JMS_PY_type" in headers else "timestamp")
        return stamped, number(headers, "expires"), number(headers, "JMS_PY_due") or number(headers, "_AMQ_SCHED_DELIVERY")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return an AMQP sender's id, else the broker's number."""
        return headers.get("NATIVE_MESSAGE_ID") or headers.get("message-id")
