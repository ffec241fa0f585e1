"""How one broker behaves over STOMP: how it names and writes things, what it promises, and what must be done about the rest."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
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
from jmsapi_brokers.error_words import ANY_BROKER, ErrorWords, kind_of
from jmsapi_brokers.names import temporary_name
from jmsapi_stomp.access import BrokerAccess, SubscriptionEnd
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frames import Frame, escape
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["SendsInTransaction", "StompBehaviour", "StrayError", "annotated_kind", "group_of", "number"]

_REDELIVERED: Final = b"\nredelivered:"
_TRUE: Final = b"\nredelivered:true"
_TRANSPORT: Final = frozenset(
    {
        *("destination", "subscription", "message-id", "ack", "redelivered", "receipt", "transaction", "content-length"),
        *("priority", "expires", "persistent", "type", "timestamp", "correlation-id", "reply-to"),
    }
)
_OBJECT: Final = "application/vnd.jmsapi.object+"
"""The content type of an object that a client of ours sent over AMQP."""
_AMQP_TYPE: Final = "JMS_AMQP_MA_x-opt-jms-msg-type"
_AMQP_KINDS: Final = frozenset("012345")
_ORIGINAL: Final = "JMS_PY_dest"


class StrayError(Enum):
    """An ERROR that answers no frame of ours and does not end the connection."""

    CANCELLED = "the broker ended the subscription that the ERROR names"
    STALE = "a frame named a subscription that has just ended"


class SendsInTransaction(Enum):
    """How it is known which SENDs inside a transaction the broker has taken."""

    CONFIRMED = "each asks for a receipt, given at once, so that an ERROR has a name"
    FENCED = "the first to a destination asks for a receipt; the broker refuses COMMIT when it has refused one of the others"
    STORED = "their receipts come after COMMIT, when the messages are stored"


class StompBehaviour(ABC):
    """One broker's behaviour over STOMP; one object a connection.

    Methods that are coroutines run on the I/O thread and use the connection that they are given; the others are pure.

    Args:
        options: The connection's options.
        version: The version that the broker states.
    """

    name: ClassVar[str]
    errors: ClassVar[ErrorWords] = ()
    """The words of its errors."""
    transactions: ClassVar[Literal["native", "sends-first"]]
    every_error_ends: ClassVar[bool]
    """The broker closes the connection after each ERROR."""
    one_at_a_time: ClassVar[bool]
    """An ERROR may name no frame."""
    sends_in_transaction: SendsInTransaction
    """How it is known which SENDs inside a transaction the broker has taken."""
    refused_commit_keeps: ClassVar[bool] = False
    """What was acknowledged in a transaction whose COMMIT is refused cannot be acknowledged again by the same consumer."""
    negative_ack_returns: ClassVar[bool]
    """NACK returns a message to its queue."""
    names_outcomes: ClassVar[bool] = False
    """NACK names the outcome of a message, and how often the application was handed it."""
    widens: ClassVar[bool] = False
    """SUBSCRIBE can make the window of an existing subscription larger; else a further subscription does."""
    checks_subscriptions: ClassVar[bool]
    """The broker reports that an unshared durable subscription is in use or unknown, and replaces a changed one."""
    checks_client_ids: ClassVar[bool]
    """The broker, or a lock queue, refuses a client id that is in use."""
    rejects_by_copy: ClassVar[bool]
    """There is no frame that rejects: a copy is sent to the dead letter queue, then the message is acknowledged."""
    confirms_acknowledgements: ClassVar[bool] = False
    """The broker may forget an ACK that it has taken off the wire when the connection then breaks, so each asks for a receipt."""
    closing_returns: ClassVar[bool]
    """UNSUBSCRIBE returns unsettled messages to their queue."""
    frames_end_in_line_feed: ClassVar[bool] = False
    """Each frame ends with a NUL and a line feed, and a text that another client sent may have NULs and no length."""
    nul_in_headers: ClassVar[bool] = True
    """A NUL in a property of another client stands in a header as it is."""
    distrusted_length: ClassVar[bytes] = b""
    """A header line of messages whose ``content-length`` is a property of their sender."""
    last_counts: ClassVar[frozenset[bytes]] = frozenset()
    """Headers that the broker writes behind those of the sender, so that the last of the name is its word; else the first is."""
    hidden: ClassVar[frozenset[str]] = _TRANSPORT
    """Headers of a MESSAGE that are no properties: the broker's own, and those that JMS shows as header fields."""
    scheduling: ClassVar[frozenset[str]] = frozenset()
    """Properties by which an application asks the broker's scheduler: they travel under their own names."""
    short_text_limit: ClassVar[int | None] = None
    """Bytes of the longest correlation id, type and content type; longer ones travel in headers of this library's own."""
    correlation_names: ClassVar[tuple[str, ...]] = ("correlation-id", "JMS_PY_ctext")
    """Headers of a MESSAGE that have the correlation id; the first that is there counts."""
    says_users: ClassVar[bool] = True
    """Messages say who sends them."""
    user_names: ClassVar[tuple[str, ...]] = ("JMS_PY_user", "JMSXUserID")
    """Headers that have the sender's user name; the first that is there counts."""
    exact_windows: ClassVar[bool] = True
    """A window holds a number of messages."""
    dispatch_may_rest: ClassVar[bool] = False
    """The broker may leave messages in a queue although there is room in a window, until something happens to the queue."""
    delivery_patience: ClassVar[float | None] = None
    """Seconds after which waiting unsettled messages are returned, before the broker ends the connection for them."""
    frame_limit: ClassVar[int]
    line_limit: ClassVar[int | None] = None
    header_limit: ClassVar[int | None] = None
    name_limit: ClassVar[int | None] = None
    """The longest name of a header in bytes."""
    refused_commit_hint: str = ""
    """What a refused COMMIT may mean with these options, as the end of a sentence."""

    def __init__(self, options: StompOptions, version: str) -> None:
        self.options = options
        self.version = version
        self.max_frame = options.max_frame or self.frame_limit
        self._how_to_read: dict[Address, str] = {}

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Return what this broker can do over STOMP with these options."""

    # errors

    def kind_of_error(self, text: str, detail: str, default: ErrorKind) -> ErrorKind:
        """Return the kind of an ERROR.

        Args:
            text: Its message.
            detail: Its body, often a stack trace.
            default: The kind when the words tell none.
        """
        tables = (self.errors, ANY_BROKER)
        return kind_of(text, tables, kind_of(detail, tables, default))

    def reason(self, text: str, detail: str) -> str:
        """Return what an ERROR says, given its message with the first line of its body, and all of the body."""
        return text

    def may_refuse_send(self, text: str) -> bool:
        """Return whether an ERROR that names no frame may be about a SEND that asked for no receipt."""
        return False

    def refused_declaration(self, text: str) -> tuple[str, str] | None:
        """Return what an ERROR means that says a queue cannot be declared as a SEND or SUBSCRIBE asks.

        Returns:
            The beginning of the header lines of the SENDs that the broker has refused with it, and what is wrong and can be
            done; None when the ERROR is about something else.
        """
        return None

    def stray_error(self, text: str) -> StrayError | None:
        """Return the meaning of an ERROR that names no frame; None when it may be the answer to one."""
        return None

    # names

    @abstractmethod
    def check(self, address: Address) -> None:
        """Refuse a name the broker would take for something else.

        Raises:
            ProviderError: DESTINATION.
        """

    @abstractmethod
    def destination(self, address: Address) -> str:
        """Return the ``destination`` header of a SEND."""

    @abstractmethod
    def reply_to(self, address: Address) -> Headers:
        """Return the headers that carry JMSReplyTo."""

    @abstractmethod
    def read_address(self, text: str) -> Address | None:
        """Return the address a ``reply-to`` or ``destination`` header names."""

    def read_reply_to(self, headers: Mapping[str, str]) -> Address | None:
        """Return JMSReplyTo."""
        text = headers.get("reply-to")
        return None if text is None else self.read_address(text)

    def read_destination(self, headers: Mapping[str, str], subscribed: Address) -> Address:
        """Return JMSDestination of a message that came by a subscription to ``subscribed``."""
        original = headers.get(_ORIGINAL)
        if original is not None and original[1:2] == ":" and original[0] in "0123":
            return Address(DestinationKind(int(original[0])), original[2:])
        return subscribed

    # sending

    def start_of_send(self, address: Address) -> str:
        """Return the header lines that name the destination of a SEND."""
        return f"destination:{escape(self.destination(address))}\n"

    @abstractmethod
    def send_lines(self, envelope: Envelope, name: str | None, now_ms: int) -> str:
        """Return the header lines this broker wants beside those common to all.

        Args:
            envelope: What to send.
            name: Its message id, escaped.
            now_ms: The time.
        """

    @abstractmethod
    def body_lines(self, kind: MessageKind, body: bytes) -> str:
        """Return the header lines that describe the body."""

    def reroute(self, envelope: Envelope, now_ms: int) -> str | None:
        """Return another start of SEND, when this broker needs one for the message's delay."""
        return None

    def wants_receipt(self, envelope: Envelope) -> bool:
        """Return whether a send outside a transaction is to be confirmed."""
        return envelope.delivery_mode == PERSISTENT or self.options.sync == "all"

    # receiving

    @abstractmethod
    def plan(self, spec: ConsumerSpec, client_id: str | None) -> SubscribePlan:
        """Return how to subscribe.

        Raises:
            ProviderError: UNSUPPORTED, not at all on this broker; DESTINATION, not under that name.
        """

    @abstractmethod
    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the header that limits the unsettled messages.

        Args:
            size: Messages; None for no limit.
            deferred: Acknowledgements come late, many at once.
        """

    def window_cost(self, size: int) -> int:
        """Return what a message of ``size`` bytes takes of the window."""
        return 1

    def window_room(self, size: int, *, deferred: bool) -> int:
        """Return how much a window for ``size`` messages holds, in the unit of ``window_cost``."""
        return size

    def delivery_count(self, frame: Frame) -> int:
        """Return how often the broker has handed the message out; 2 for "more than once"."""
        return 2 if _TRUE in frame.head and frame.raw(_REDELIVERED) == b"true" else 1

    def why_unsettleable(self, frame: Frame) -> str | None:
        """Return why the broker would not take an ACK of this message; None when it would."""
        return None

    def foreign_kind(self, headers: Mapping[str, str], body: bytes) -> MessageKind:
        """Return the type of a message that does not name it: by content type, else by the option ``foreign``."""
        content = (headers.get("content-type") or "").lower()
        choice = self.options.foreign
        if content.startswith(_OBJECT):
            return MessageKind.OBJECT
        if content.startswith("text/") or "json" in content or "xml" in content:
            return MessageKind.TEXT
        if content == "application/octet-stream" or choice == "bytes":
            return MessageKind.BYTES
        if choice == "text":
            return MessageKind.TEXT
        try:
            body.decode()
        except UnicodeDecodeError:
            return MessageKind.BYTES
        return MessageKind.TEXT

    def read_group(self, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return JMSXGroupID and JMSXGroupSeq as text."""
        return headers.get("JMSXGroupID"), headers.get("JMSXGroupSeq")

    def read_user(self, headers: Mapping[str, str]) -> str | None:
        """Return JMSXUserID."""
        return next((headers[name] for name in self.user_names if name in headers), None)

    @abstractmethod
    def read_timestamp(self, headers: Mapping[str, str]) -> int:
        """Return the time of sending in milliseconds since 1970; 0 for none."""

    @abstractmethod
    def read_times(self, headers: Mapping[str, str]) -> tuple[int, int, int]:
        """Return timestamp, expiration and delivery time in milliseconds; 0 for none."""

    def read_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return JMSMessageID, ours or one made of the broker's."""
        found = headers.get("JMS_PY_id") or self.native_message_id(headers)
        return found if not found or found.startswith("ID:") else f"ID:{found}"

    @abstractmethod
    def native_message_id(self, headers: Mapping[str, str]) -> str | None:
        """Return the id of a message that another client sent."""

    def how_to_read(self, subscribed: Address) -> str:
        """Return what another process needs to read a message of a subscription; no address of the broker, and no secret."""
        found = self._how_to_read.get(subscribed)
        if found is None:
            # The options that are this wire's own: those of every connection have its address and its credentials.
            own = set(StompOptions.__annotations__)
            options = self.options.model_dump(mode="json", by_alias=True, include=own, exclude_defaults=True)
            known = {
                "broker": self.name,
                "version": self.version,
                "options": options,
                "near": [int(subscribed.kind), subscribed.name],
            }
            found = self._how_to_read[subscribed] = f"stomp:{json.dumps(known, sort_keys=True)}"
        return found

    # client ids and subscriptions

    def client_id_lock(self, client_id: str) -> Headers | None:
        """Return the SUBSCRIBE that only one connection of the client id may hold; None when there is none.

        Raises:
            ProviderError: CLIENT_ID; the client id is none for this broker.
        """
        return None

    async def claim(self, access: BrokerAccess, consumer: StompConsumer, *, first: bool, changed: bool) -> None:
        """Make ready for a named subscription before it is subscribed to.

        Args:
            access: The connection.
            consumer: Whose plan is ``registered``; it may be given another connection, a lock or a member.
            first: No other consumer of this process uses the subscription.
            changed: This process knows it with another topic or selector.
        """
        if consumer.plan.replace is not None and first and changed:
            await access.replace(consumer.plan.replace)

    async def browse(self, access: BrokerAccess, consumer: StompConsumer) -> None:
        """Begin to browse a queue, with a consumer whose plan is ``browse``."""
        await access.subscribe(consumer)

    def deletion(self, name: str) -> Headers:
        """Return the UNSUBSCRIBE headers that delete a durable subscription, but ``id``."""
        return []

    async def delete(self, access: BrokerAccess, deletion: Headers) -> None:
        """Send the UNSUBSCRIBE that deletes a subscription."""
        headers = [("id", f"u{access.next_serial()}"), *deletion]
        await access.connection.command("cannot unsubscribe", "UNSUBSCRIBE", headers)

    async def remove_subscription(self, access: BrokerAccess, name: str, *, shared: bool) -> None:
        """Delete a durable subscription that no consumer of this process uses.

        Args:
            access: The connection.
            name: The subscription's.
            shared: This process knows it as a shared one.
        Raises:
            ProviderError: IN_USE; SUBSCRIPTION, there is none, where the broker can tell; UNSUPPORTED.
        """
        await access.delete(self.deletion(name))

    async def return_and_unsubscribe(self, end: SubscriptionEnd, consumer: StompConsumer, name: str) -> None:
        """End a subscription where UNSUBSCRIBE does not return unsettled messages (``closing_returns``)."""
        raise NotImplementedError(f"UNSUBSCRIBE returns messages on {self.name}, so {name} needs no more")

    # temporary destinations

    async def make_temporary(self, access: BrokerAccess, kind: DestinationKind) -> Address:
        """Make a temporary destination."""
        return Address(kind, temporary_name())

    async def remove_temporary(self, access: BrokerAccess, address: Address) -> None:
        """Delete a temporary destination: what is left in a queue is consumed, for STOMP has no frame that deletes one."""
        if not address.kind.is_topic:
            await access.empty(self.plan(ConsumerSpec(address), None))

    async def leave_temporaries(self, access: BrokerAccess, addresses: Sequence[Address]) -> None:
        """Do what must be done about temporary destinations before the connection closes."""
        return


def annotated_kind(headers: Mapping[str, str]) -> MessageKind | None:
    """Return the type that an AMQP sender noted on a message, as ActiveMQ's converters hand it on; None without one."""
    mark = headers.get(_AMQP_TYPE, "")
    return MessageKind(int(mark)) if mark in _AMQP_KINDS else None


def group_of(envelope: Envelope) -> tuple[str | None, str | None]:
    """Return JMSXGroupID, escaped, and JMSXGroupSeq of a message to be sent."""
    properties = envelope.properties
    group, position = properties.get("JMSXGroupID"), properties.get("JMSXGroupSeq")
    return None if group is None else escape(str(group)), None if position is None else str(position)


def number(headers: Mapping[str, str], name: str) -> int:
    """Return a header as a number, 0 when it is missing.

    Raises:
        ProviderError: FORMAT; it is none that JMS could hold.
    """
    text = headers.get(name)
    if text is None or text == "0":
        return 0
    try:
        value = int(text)
    except ValueError:
        value = 2**63
    if not -(2**63) <= value < 2**63:
        raise ProviderError(ErrorKind.FORMAT, f"the header {name} received is no number")
    return value
