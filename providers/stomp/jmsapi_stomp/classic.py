"""ActiveMQ Classic over STOMP. What the broker does was seen on 6.3.1 unless said otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from jmsapi.spi import (
    NATIVE,
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
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.plans import Headers, Plan

__all__ = ["FIRST_ONLY", "Classic"]

_PREFIXES: Final = {
    DestinationKind.QUEUE: "/queue/",
    DestinationKind.TOPIC: "/topic/",
    DestinationKind.TEMPORARY_QUEUE: "/temp-queue/",
    DestinationKind.TEMPORARY_TOPIC: "/temp-topic/",
}
_REMOTE: Final = {
    DestinationKind.TEMPORARY_QUEUE: "/remote-temp-queue/",
    DestinationKind.TEMPORARY_TOPIC: "/remote-temp-topic/",
}
_PROBE: Final = ("/topic/VirtualTopic.jmsapi.probe", "/queue/Consumer.jmsapi.VirtualTopic.jmsapi.probe")
FIRST_ONLY: Final[Headers] = [("activemq.exclusive", "true")]
"""Of those who subscribe so to a queue the one that has been there longest gets its messages."""
_REPLY: Final = "JMS_PY_reply"
_AMQP_TYPE: Final = "JMS_AMQP_MA_x-opt-jms-msg-type"
_AMQP_KINDS: Final = frozenset("012345")
_AMQP: Final = b"\nJMS_AMQP_"
_MESSAGE_ID: Final = b"\nmessage-id:"
_OWN_ID: Final = re.compile(rb"ID\\c.*-\d+-\d+-\d+\\c\d+\\c-?\d+\\c-?\d+\\c\d+")
# Classic 6.3.1 adds to the window for each expired message: more than an int holds, and a durable subscription rests
# (test_an_expired_message_does_not_hold_up_a_durable_subscription).
_UNBOUNDED: Final = 2**30


class Classic(Dialect):
    """Classic: real transactions, windows in messages, errors that name their frame."""

    name: ClassVar[str] = "classic"
    transactions: ClassVar[Literal["native", "sends-first"]] = "native"
    every_error_ends: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = False
    confirm_in_transaction: ClassVar[bool] = True
    receipts_after_commit: ClassVar[bool] = False
    negative_ack_returns: ClassVar[bool] = False
    checks_subscriptions: ClassVar[bool] = True
    checks_client_ids: ClassVar[bool] = True
    rejects_by_copy: ClassVar[bool] = False
    closing_returns: ClassVar[bool] = True
    dispatch_may_rest: ClassVar[bool] = True
    frames_end_in_line_feed: ClassVar[bool] = True
    frame_limit: ClassVar[int] = 100 * 1024 * 1024 - 1
    line_limit: ClassVar[int | None] = 10_240
    header_limit: ClassVar[int | None] = 1000

    def capabilities(self) -> Capabilities:
        """Return what Classic can do over STOMP with these options."""
        options = self.options
        virtual = options.classic_virtual_topics or options.classic_subscription_queue is not None
        shared = "the broker has none; set classic.virtual_topics=1 where VirtualTopic.> is configured (the broker's default)"
        volatile = (
            emulated("a virtual topic's queue; what is left from before the first consumer is thrown away")
            if virtual and "shared-volatile" in options.emulate
            else none("the broker has none; needs classic.virtual_topics=1 as well", emulate="shared-volatile")
        )
        return Capabilities(
            provider="stomp",
            broker=self.name,
            version=self.version,
            no_local=none("checked locally, so that it outlives a reconnect"),
            shared_subscription=volatile,
            shared_durable_subscription=emulated("consumers of a virtual topic's queue") if virtual else none(shared),
            shared_unsubscribe=none("STOMP cannot delete a virtual topic's queue") if virtual else none(shared),
            delivery_delay=(
                emulated("the broker's scheduler")
                if options.classic_scheduler
                else none("delivered at once unless the broker has schedulerSupport=true; then set classic.scheduler=1")
            ),
            map_message=emulated("JSON for jmsapi clients, text for others"),
            stream_message=emulated("JSON for jmsapi clients, text for others"),
            object_message=emulated("bytes for others"),
            plain_message=emulated("an empty text for others"),
            delivery_count_exact=none("only a flag says that a message came before"),
            redelivered_flag=none("right on queues; what a durable subscription left unacknowledged comes again without a mark"),
            temporary_owner_only=emulated("checked by this library; an ordinary queue of the same name is another queue"),
            delay_keeps_subscribers=(
                none("a delayed topic message is published when it falls due") if options.classic_scheduler else NATIVE
            ),
            priority_order=none("needs prioritizedMessages in the broker's policy for the queue"),
            receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
            missing_queue_reported=NATIVE,
            rollback_returns=False,
            broker_credit=False,
            release_while_open=False,
            unsettled_window=None,
            max_message=self.max_frame,
        )

    def check(self, address: Address) -> None:
        """Refuse names that are wildcards, composites or options to Classic."""
        super().check(address)
        bad = next((char for char in ",*>?" if char in address.name), None)
        if bad is not None:
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r}: {bad!r} has a meaning of its own in Classic's names")

    def destination(self, address: Address) -> str:
        """Return the name with its prefix; a temporary name with a connection's id in it is another connection's."""
        if address.kind.is_temporary and address.name.startswith("ID:"):
            return _REMOTE[address.kind] + address.name
        if address.kind is DestinationKind.TOPIC and self.options.classic_virtual_topics:
            return _PREFIXES[address.kind] + self.virtual_name(address.name)
        return _PREFIXES[address.kind] + address.name

    def local_name(self, address: Address) -> str:
        """Return what the owner of a temporary destination calls it; naming it makes it."""
        return _PREFIXES[address.kind] + address.name

    def virtual_name(self, topic: str) -> str:
        """Return the name of the virtual topic for a topic."""
        return topic if topic.startswith("VirtualTopic.") else f"VirtualTopic.{topic}"

    def reply_to(self, address: Address) -> Headers:
        """Return JMSReplyTo; the broker turns a temporary name into one that others can use."""
        headers = [("reply-to", self.destination(address))]
        if address.kind is DestinationKind.TOPIC and self.options.classic_virtual_topics:
            headers.append((_REPLY, address.name))
        return headers

    def read_reply_to(self, headers: Mapping[str, str]) -> Address | None:
        """Return JMSReplyTo, a virtual topic by the name its sender gave it."""
        topic = headers.get(_REPLY)
        return super().read_reply_to(headers) if topic is None else Address(DestinationKind.TOPIC, topic)

    def read_address(self, text: str) -> Address | None:
        """Read a prefixed name; one without a prefix is a queue's."""
        for table in (_PREFIXES, _REMOTE):
            for kind, prefix in table.items():
                if text.startswith(prefix):
                    return Address(kind, text[len(prefix) :])
        return Address(DestinationKind.QUEUE, text) if text else None

    def read_destination(self, headers: Mapping[str, str], subscribed: Address) -> Address:
        """Return JMSDestination; a wildcard subscription learns the name from the frame."""
        if "*" in subscribed.name or ">" in subscribed.name:
            return self.read_address(headers.get("destination", "")) or subscribed
        return super().read_destination(headers, subscribed)

    def send_lines(self, envelope: Envelope, name: str | None, now_ms: int) -> str:
        """Return mode, times and group; the group once more for readers, who are not shown it."""
        lines = "persistent:true\n" if envelope.delivery_mode == PERSISTENT else ""
        # Without a timestamp the broker sets one of its own: the second header tells readers that there is none.
        lines += f"timestamp:{envelope.timestamp}\n" if envelope.timestamp else "JMS_PY_time:0\n"
        if envelope.expiration:
            lines += f"expires:{envelope.expiration}\n"
        if envelope.delivery_time > now_ms:
            lines += f"AMQ_SCHEDULED_DELAY:{envelope.delivery_time - now_ms}\n"
            # The scheduler sets time and expiry anew when it lets a message go.
            if envelope.timestamp:
                lines += f"JMS_PY_time:{envelope.timestamp}\n"
            if envelope.expiration:
                lines += f"JMS_PY_exp:{envelope.expiration}\n"
        if envelope.properties:
            group, position = group_of(envelope)
            if group is not None:
                lines += f"JMSXGroupID:{group}\nJMS_PY_group:{group}\n"
            if position is not None:
                lines += f"JMSXGroupSeq:{position}\nJMS_PY_gseq:{position}\n"
        return lines

    def body_lines(self, kind: MessageKind, body: bytes) -> str:
        """Return the length always, and for texts the mark that keeps them texts."""
        if kind is MessageKind.BYTES or kind is MessageKind.OBJECT:
            return f"content-length:{len(body)}\n"
        return f"amq-msg-type:text\ncontent-length:{len(body)}\n"

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> Plan:
        """Return filter and durable name, or the queue of a virtual topic for what is shared."""
        selector: Headers = [] if spec.selector is None else [("selector", spec.selector)]
        destination = self.destination(spec.address)
        if spec.browse:
            return Plan(destination, [("browser", "true"), *selector], browse=True)
        if spec.shared:
            queue = self.shared_queue(spec, client_id)
            misses = None
            if spec.selector is not None:
                # Classic takes a condition for a value: IS NULL finds those that are neither TRUE nor FALSE.
                misses = [("selector", f"(NOT ({spec.selector})) OR (({spec.selector}) IS NULL)")]
            bare = queue.removeprefix("/queue/")
            # An operator's own pattern cannot be tried without a message that real subscribers would see.
            forwarded = _PROBE if self.options.classic_subscription_queue is None else None
            return Plan(
                queue,
                selector,
                shareable=True,
                registered=True,
                misses=misses,
                watch=f"/topic/ActiveMQ.Advisory.Consumer.Queue.{bare}",
                members=f"jmsapi.members.{bare}",
                forwarded=forwarded,
            )
        if spec.subscription is not None:
            name = ("activemq.subscriptionName", spec.subscription)
            # The broker replaces what has another selector. It does not know of what is filtered here, so we replace that.
            return Plan(destination, [name, *selector], registered=True, replace=[name])
        return Plan(destination, selector, shareable=not spec.address.kind.is_topic)

    def shared_queue(self, spec: ConsumerSpec, client_id: str | None) -> str:
        """Return the queue behind a shared subscription: the broker copies the topic's messages to it."""
        kind = "" if spec.durable else "v-"
        name = kind + _word(client_id or "") + "-" + _word(spec.subscription or "")
        pattern = self.options.classic_subscription_queue
        if pattern is not None:
            return "/queue/" + pattern.replace("{name}", name).replace("{topic}", spec.address.name)
        return f"/queue/Consumer.{name}.{self.virtual_name(spec.address.name)}"

    def deletion(self, queue: str) -> Headers:
        """Return what deletes a durable subscription."""
        return [("activemq.subscriptionName", queue)]

    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the window in messages; 0 would never deliver."""
        return [("activemq.prefetchSize", str(_UNBOUNDED if size is None else max(size, 1)))]

    def cannot_acknowledge(self, frame: Frame) -> bool:
        """Return whether an AMQP client chose the message's id.

        Classic 6.3.1 takes the id that a STOMP ACK leads to for one of its own: the ACK closes the connection, or is
        refused, and the message stays (``test_classic_cannot_settle_what_an_amqp_client_named``).
        """
        return _AMQP in frame.head and _OWN_ID.fullmatch(frame.raw(_MESSAGE_ID) or b"") is None

    def foreign_kind(self, headers: Mapping[str, str], body: bytes) -> MessageKind:
        """Believe the transformation, the AMQP converter's annotation, then ``content-length``."""
        if headers.get("transformation", "").startswith("jms-map"):
            return MessageKind.MAP
        mark = headers.get(_AMQP_TYPE, "")
        if mark in _AMQP_KINDS:
            return MessageKind(int(mark))
        return MessageKind.BYTES if "content-length" in headers else MessageKind.TEXT

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return our own copies."""
        return headers.get("JMS_PY_group"), headers.get("JMS_PY_gseq")

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times, which Classic keeps as they were sent, unless none was wanted or its scheduler held the message."""
        stamped = number(headers, "JMS_PY_time" if "JMS_PY_time" in headers else "timestamp")
        return stamped, number(headers, "JMS_PY_exp") or number(headers, "expires"), number(headers, "JMS_PY_due")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the broker's id."""
        return headers.get("message-id")


def _word(text: str) -> str:
    """Return text as one part of a queue's name: a dot would begin another, and no two texts may become one."""
    return "".join([char if char.isalnum() else f"_{ord(char):x}_" for char in text])
