"""ActiveMQ Classic over STOMP. What the broker does was seen on 6.3.1 unless said otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import ClassVar, Final, Literal
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
from jmsapi_brokers import classic
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_stomp.access import BrokerAccess
from jmsapi_stomp.behaviour import SendsInTransaction, StompBehaviour, annotated_kind, group_of, number
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frames import Frame, command_frame
from jmsapi_stomp.handles import StompTag
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["ClassicStomp"]

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
_FIRST_ONLY: Final[Headers] = [("activemq.exclusive", "true")]
"""Of those who subscribe so to a queue, the one that has been there longest gets its messages."""
_PROBE_MS: Final = 3_600_000
_PROBE: Final = "jmsapi_probe"
_ASKED: Final = b"\njmsapi_probe:"
_MEMBER: Final = "jmsapi_member"
_REPLY: Final = "JMS_PY_reply"
_AMQP: Final = b"\nJMS_AMQP_"
_MESSAGE_ID: Final = b"\nmessage-id:"
_OWN_ID: Final = re.compile(rb"ID\\c.*-\d+-\d+-\d+\\c\d+\\c-?\d+\\c-?\d+\\c\d+")
# Classic 6.3.1 adds to the window for each expired message: more than an int holds, and a durable subscription rests
# (test_an_expired_message_does_not_hold_up_a_durable_subscription).
_UNBOUNDED: Final = 2**30
_KNOWS_REFUSED_SENDS: Final = (5, 10)
"""Before this version a transaction was committed without a SEND that had asked for no receipt and was refused."""
_CAUSE: Final = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_OF_AN_ACK: Final = re.compile(r"\bN?ACK\b|[Aa]cknowledge")


class ClassicStomp(StompBehaviour):
    """Classic: real transactions, windows in messages, errors that name their frame."""

    name: ClassVar[str] = classic.PRODUCT
    errors: ClassVar[ErrorWords] = classic.ERRORS
    transactions: ClassVar[Literal["native", "sends-first"]] = "native"
    every_error_ends: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = False
    sends_in_transaction: SendsInTransaction = SendsInTransaction.FENCED
    refused_commit_keeps: ClassVar[bool] = True
    negative_ack_returns: ClassVar[bool] = False
    checks_subscriptions: ClassVar[bool] = True
    checks_client_ids: ClassVar[bool] = True
    rejects_by_copy: ClassVar[bool] = False
    closing_returns: ClassVar[bool] = True
    dispatch_may_rest: ClassVar[bool] = True
    frames_end_in_line_feed: ClassVar[bool] = True
    distrusted_length: ClassVar[bytes] = b"\nJMS_AMQP_ORIGINAL_ENCODING:5"
    scheduling: ClassVar[frozenset[str]] = frozenset(
        {"AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON"}
    )
    frame_limit: ClassVar[int] = classic.STOMP_FRAME_LIMIT
    line_limit: ClassVar[int | None] = classic.STOMP_LINE_LIMIT
    header_limit: ClassVar[int | None] = classic.STOMP_HEADER_LIMIT

    def __init__(self, options: StompOptions, version: str) -> None:
        super().__init__(options, version)
        self._forwards = False
        """The broker was seen to copy a virtual topic's messages."""
        self._connection_id = ""
        """The broker's id of the connection, once it is known."""
        self._temporaries = count(1)
        if _number(version) < _KNOWS_REFUSED_SENDS:
            self.sends_in_transaction = SendsInTransaction.CONFIRMED

    def capabilities(self) -> Capabilities:
        """Return what Classic can do over STOMP with these options."""
        options = self.options
        return classic.stomp_capabilities(
            self.version,
            emulate=options.emulate,
            virtual_topics=options.classic_virtual_topics or options.classic_subscription_queue is not None,
            scheduler=options.classic_scheduler,
            max_message=self.max_frame,
        )

    def reason(self, text: str, detail: str) -> str:
        """Return the message; when a transaction cannot be committed, also why: the body has the error of the refused SEND."""
        causes = _CAUSE.findall(detail) if "rollback only" in text else []
        return f"{text}; {causes[-1]}" if causes else text

    def may_refuse_send(self, text: str) -> bool:
        """Return whether it is not about an ACK: what the broker finds wrong behind its STOMP converter names no frame."""
        return _OF_AN_ACK.search(text) is None

    def check(self, address: Address) -> None:
        """Refuse names that are wildcards, composites or options to Classic."""
        classic.check_address(address)

    def destination(self, address: Address) -> str:
        """Return the name with its prefix; a temporary name with a connection's id in it is another connection's."""
        if address.kind.is_temporary and address.name.startswith("ID:"):
            return _REMOTE[address.kind] + address.name
        if address.kind is DestinationKind.TOPIC and self.options.classic_virtual_topics:
            return _PREFIXES[address.kind] + classic.virtual_topic(address.name)
        return _PREFIXES[address.kind] + address.name

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

    def plan(self, spec: ConsumerSpec, client_id: str | None) -> SubscribePlan:
        """Return filter and durable name, or the queue of a virtual topic for what is shared."""
        selector: Headers = [] if spec.selector is None else [("selector", spec.selector)]
        destination = self.destination(spec.address)
        if spec.browse:
            return SubscribePlan(destination, [("browser", "true"), *selector], browse=True)
        if spec.shared:
            queue = classic.shared_queue(
                client_id,
                spec.subscription or "",
                spec.address.name,
                durable=spec.durable,
                pattern=self.options.classic_subscription_queue,
            )
            misses: Headers | None = None if spec.selector is None else [("selector", classic.unwanted(spec.selector))]
            return SubscribePlan(
                _PREFIXES[DestinationKind.QUEUE] + queue, selector, shareable=True, registered=True, misses=misses
            )
        if spec.subscription is not None:
            name = ("activemq.subscriptionName", spec.subscription)
            # The broker replaces what has another selector. It does not know of what is filtered here, so we replace that.
            return SubscribePlan(destination, [name, *selector], registered=True, replace=[name])
        return SubscribePlan(destination, selector, shareable=not spec.address.kind.is_topic)

    # shared subscriptions

    async def claim(self, access: BrokerAccess, consumer: StompConsumer, *, first: bool, changed: bool) -> None:
        """Prepare the queue of a virtual topic; what came to it before its first consumer is thrown away."""
        spec = consumer.spec
        if not spec.shared:
            await super().claim(access, consumer, first=first, changed=changed)
            return
        if self.options.classic_subscription_queue is None:
            # An operator's own pattern cannot be tried without a message that real subscribers would see.
            await self._check_forwarding(access)
        queue = consumer.plan.destination.removeprefix(_PREFIXES[DestinationKind.QUEUE])
        members = classic.members_name(queue)
        member = consumer.member = await self._join(access, members)
        if first and (changed or not spec.durable) and await self._alone(access, member, members, queue):
            # Nothing deletes the queue of a subscription that was another one, or that has ended.
            await access.empty(SubscribePlan(consumer.plan.destination))

    async def _check_forwarding(self, access: BrokerAccess) -> None:
        """Send a message to a virtual topic of ours and see it come to the queue: else the subscription would stay empty.

        Raises:
            ProviderError: UNSUPPORTED; the broker is not set up for it.
        """
        if self._forwards:
            return
        topic, queue = classic.probe_names("stomp")
        word = str(uuid4())

        async def probe(consumer: StompConsumer) -> None:
            headers = [("destination", f"/topic/{topic}"), (_PROBE, word), self._soon(access)]
            await access.connection.confirm(command_frame("SEND", headers))
            await access.arrival(consumer)
            self._forwards = bool(consumer.unsettled)
            await access.acknowledge(list(consumer.unsettled))

        await access.with_consumer(SubscribePlan(f"/queue/{queue}", [("selector", f"{_PROBE} = '{word}'")]), probe)
        if not self._forwards:
            raise classic.not_copied("share a subscription")

    def _soon(self, access: BrokerAccess) -> tuple[str, str]:
        """Return the header by which a message of our own expires if nobody takes it."""
        return "expires", str(access.clock.now_ms() + _PROBE_MS)

    async def _join(self, access: BrokerAccess, members: str) -> StompConsumer:
        """Be one of those who consume from a queue, so that others know of it.

        All of them subscribe to a queue whose messages go to the one that has been there longest; that one answers.
        """
        member = access.auxiliary(SubscribePlan(f"/queue/{members}", _FIRST_ONLY))
        connection, name = access.connection, f"{access.identity}.{member.handle.serial}"

        def answer(frame: Frame) -> bool:
            asked = frame.find(_ASKED)
            if asked is not None:
                headers = [("destination", f"/topic/{members}"), (_PROBE, asked), (_MEMBER, name)]
                connection.write(command_frame("SEND", headers))
            return asked is not None

        member.handler = answer
        await access.subscribe(member)
        return member

    async def _alone(self, access: BrokerAccess, member: StompConsumer, members: str, queue: str) -> bool:
        """Ask who has consumed longest from a queue; False when it is another, or when that is not known.

        Clients of another kind do not answer. Classic reports them on an advisory topic, in a form that needs XStream: the image
        of 6.3.1 has none, and reports nobody.
        """
        word, oldest = str(uuid4()), list[object]()

        async def ask(answers: StompConsumer) -> None:
            headers = [("destination", f"/queue/{members}"), (_PROBE, word), self._soon(access)]
            await access.connection.confirm(command_frame("SEND", headers))
            await access.arrival(answers)
            oldest.extend(envelope.properties.get(_MEMBER) for envelope in answers.unsettled.values())

        await access.with_consumer(SubscribePlan(f"/topic/{members}", [("selector", f"{_PROBE} = '{word}'")]), ask)
        if oldest != [f"{access.identity}.{member.handle.serial}"]:
            return False
        others = list[StompTag]()

        async def look(watcher: StompConsumer) -> None:
            await access.grace()
            others.extend(watcher.unsettled)

        await access.with_consumer(SubscribePlan(f"/topic/{classic.consumer_advisories(queue)}"), look)
        return not others

    def deletion(self, name: str) -> Headers:
        """Return what deletes a durable subscription."""
        return [("activemq.subscriptionName", name)]

    async def remove_subscription(self, access: BrokerAccess, name: str, *, shared: bool) -> None:
        """Delete a durable subscription, but not the queue of a virtual topic."""
        if shared:
            raise classic.refused_unsubscribe(name, "STOMP")
        await super().remove_subscription(access, name, shared=shared)

    # temporary destinations

    async def make_temporary(self, access: BrokerAccess, kind: DestinationKind) -> Address:
        """Have the broker make the destination, which then lives as long as the connection.

        Classic 6.3.1 makes ``/temp-queue/x`` when a connection first names it, under the name that others know: the
        connection's id and a number that counts up from 1 (``test_temporary_destinations_carry_answers``).
        With that for x, the owner and the others read one name. The second SUBSCRIBE shows that it is this name.
        """
        if not self._connection_id:
            self._connection_id = await self._ask_connection_id(access)
        address = Address(kind, f"{self._connection_id}:{next(self._temporaries)}")
        connection, asked = access.connection, "cannot make a temporary destination"
        for name, destination in zip("lr", (_PREFIXES[kind] + address.name, self.destination(address)), strict=True):
            key = f"t{name}{access.next_serial()}"
            headers = [("id", key), ("destination", destination), ("ack", "client-individual")]
            late = partial(connection.request, asked, "UNSUBSCRIBE", [("id", key)], lambda _: None)
            await connection.command(asked, "SUBSCRIBE", headers, late=late)
            await connection.command(asked, "UNSUBSCRIBE", [("id", key)])
        return address

    async def _ask_connection_id(self, access: BrokerAccess) -> str:
        """Return the broker's id of the connection: CONNECTED has it if there is no client id, else our own messages do."""
        connection = access.connection
        if access.client_id is None:
            return connection.connected_headers.get("session", "")
        topic, ids = f"/topic/jmsapi.self.{uuid4()}", list[str | None]()

        async def ask(consumer: StompConsumer) -> None:
            await connection.confirm(command_frame("SEND", [("destination", topic)]))
            await access.arrival(consumer)
            ids.extend(envelope.message_id for envelope in consumer.unsettled.values())

        await access.with_consumer(SubscribePlan(topic), ask)
        if not ids or not ids[0]:
            text = "cannot make a temporary destination: the broker did not state the connection's id"
            raise ProviderError(ErrorKind.TIMEOUT, text)
        return ids[0].rsplit(":", 3)[0]

    # receiving

    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the window in messages; 0 would never deliver."""
        return [("activemq.prefetchSize", str(_UNBOUNDED if size is None else max(size, 1)))]

    def why_unsettleable(self, frame: Frame) -> str | None:
        """Return why the broker would not take an ACK: an AMQP client chose the message's id.

        Classic 6.3.1 takes the id that a STOMP ACK leads to for one of its own: the ACK closes the connection, or is
        refused, and the message stays (``test_classic_cannot_settle_what_an_amqp_client_named``).
        """
        if _AMQP not in frame.head or _OWN_ID.fullmatch(frame.raw(_MESSAGE_ID) or b"") is not None:
            return None
        return (
            f"it is an AMQP client's (id {frame.find(_MESSAGE_ID)!r}), and Classic takes no acknowledgement over STOMP of a "
            "message whose id it did not make; consume it over AMQP"
        )

    def foreign_kind(self, headers: Mapping[str, str], body: bytes) -> MessageKind:
        """Believe the transformation, the AMQP converter's annotation, then ``content-length``."""
        if headers.get("transformation", "").startswith("jms-map"):
            return MessageKind.MAP
        kind = annotated_kind(headers)
        if kind is not None:
            return kind
        return MessageKind.BYTES if "content-length" in headers else MessageKind.TEXT

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return our own copies."""
        return headers.get("JMS_PY_group"), headers.get("JMS_PY_gseq")

    def read_timestamp(self, headers: Mapping[str, str]) -> int:
        """Return what the sender stamped, unless none was wanted or the scheduler stamped it anew."""
        return number(headers, "JMS_PY_time" if "JMS_PY_time" in headers else "timestamp")

    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the times, which Classic keeps as they were sent, unless none was wanted or its scheduler held the message."""
        stamped = self.read_timestamp(headers)
        return stamped, number(headers, "JMS_PY_exp") or number(headers, "expires"), number(headers, "JMS_PY_due")

    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the broker's id."""
        return headers.get("message-id")


def _number(version: str) -> tuple[int, ...]:
    """Return a version's first two numbers; none if it has none."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return () if found is None else (int(found[1]), int(found[2]))
