"""What differs between the brokers: names, headers, windows, promises. One subclass each; no state, no I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
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
from jmsapi_stomp.frames import Frame, escape
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.plans import Headers, Plan

__all__ = ["Dialect", "Headers", "group_of", "number"]

_REDELIVERED: Final = b"\nredelivered:true"
_ORIGINAL: Final = "JMS_PY_dest"


class Dialect(ABC):
    """One broker's manners.

    Args:
        options: The connection's options.
        version: What the broker says of its version.
    """

    name: ClassVar[str]
    transactions: ClassVar[Literal["native", "sends-first"]]
    every_error_ends: ClassVar[bool]
    """The broker closes the connection after each ERROR."""
    one_at_a_time: ClassVar[bool]
    """An ERROR may name no frame."""
    confirm_in_transaction: ClassVar[bool]
    """A SEND inside a transaction asks for a receipt, given at once, so that an ERROR has a name."""
    receipts_after_commit: ClassVar[bool]
    """Receipts of SENDs inside a transaction come after COMMIT, when the messages are stored."""
    negative_ack_returns: ClassVar[bool]
    """NACK gives a message back."""
    names_outcomes: ClassVar[bool] = False
    """NACK says what became of a message, and how often the application was handed it."""
    widens: ClassVar[bool] = False
    """SUBSCRIBE can make the window of a subscription larger that is there; else a further subscription does."""
    checks_subscriptions: ClassVar[bool]
    """The broker itself says that an unshared durable subscription is in use or unknown, and replaces a changed one."""
    checks_client_ids: ClassVar[bool]
    """A client id is the broker's, or a lock queue's, to refuse."""
    rejects_by_copy: ClassVar[bool]
    """There is no frame that rejects: a copy is sent to the dead letter queue, then the message acknowledged."""
    closing_returns: ClassVar[bool]
    """UNSUBSCRIBE gives unsettled messages back."""
    frames_end_in_line_feed: ClassVar[bool] = False
    """Each frame ends with a NUL and a line feed, and a text that another client sent may have NULs and no length."""
    exact_windows: ClassVar[bool] = True
    """A window holds a number of messages."""
    dispatch_may_rest: ClassVar[bool] = False
    """The broker may leave messages in a queue although there is room in a window, until something happens to the queue."""
    delivery_patience: ClassVar[float | None] = None
    """Seconds after which what waits unsettled is given back, before the broker takes offence."""
    frame_limit: ClassVar[int]
    line_limit: ClassVar[int | None] = None
    header_limit: ClassVar[int | None] = None
    name_limit: ClassVar[int | None] = None
    """The longest name of a header in bytes."""

    def __init__(self, options: StompOptions, version: str) -> None:
        self.options = options
        self.version = version
        self.max_frame = options.max_frame or self.frame_limit

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Return what this broker can do over STOMP with these options."""

    # names

    def check(self, address: Address) -> None:
        """Refuse a name the broker would take for something else.

        Raises:
            ProviderError: DESTINATION.
        """
        bad = next((char for char in address.name if char < " "), None)
        if bad is not None or not address.name:
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r} is no name for a destination")

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
        """Return the header lines that say where a SEND goes."""
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
        """Return the header lines that say what the body is."""

    # receiving

    @abstractmethod
    def plan(self, spec: ConsumerSpec, client_id: str | None) -> Plan:
        """Return how to subscribe.

        Raises:
            ProviderError: UNSUPPORTED; not at all on this broker.
        """

    @abstractmethod
    def window(self, size: int | None, *, deferred: bool) -> Headers:
        """Return the header that limits what is unsettled.

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

    def lock_headers(self) -> Headers:
        """Return the headers of a SUBSCRIBE that only one may hold."""
        return []

    def client_id_lock(self, client_id: str) -> Headers | None:
        """Return the SUBSCRIBE that only one connection of the client id may hold; None when there is none."""
        return None

    def deletion(self, queue: str) -> Headers:
        """Return the UNSUBSCRIBE headers that delete a subscription's queue, but ``id``."""
        return []

    def delivery_count(self, frame: Frame) -> int:
        """Return how often the broker has handed the message out; 2 for "more than once"."""
        return 2 if _REDELIVERED in frame.head else 1

    def cannot_acknowledge(self, frame: Frame) -> bool:
        """Return whether the broker would not take an ACK of this message."""
        return False

    def foreign_kind(self, headers: Mapping[str, str], body: bytes) -> MessageKind:
        """Return the type of a message that does not say it: by content type, else by the option ``foreign``."""
        content = headers.get("content-type", "").lower()
        choice = self.options.foreign
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

    def reroute(self, envelope: Envelope, now_ms: int) -> str | None:
        """Return another start of SEND, when this broker needs one for the message's delay."""
        return None

    def wants_receipt(self, envelope: Envelope) -> bool:
        """Return whether a send outside a transaction is to be confirmed."""
        return envelope.delivery_mode == PERSISTENT or self.options.sync == "all"


def group_of(envelope: Envelope) -> tuple[str | None, str | None]:
    """Return JMSXGroupID, escaped, and JMSXGroupSeq of a message to be sent."""
    properties = envelope.properties
    group, position = properties.get("JMSXGroupID"), properties.get("JMSXGroupSeq")
    return None if group is None else escape(str(group)), None if position is None else str(position)


def number(headers: Mapping[str, str], name: str) -> int:
    """Return a header as a number, 0 when it is missing.

    Raises:
        ProviderError: FORMAT; it is none.
    """
    text = headers.get(name)
    if text is None:
        return 0
    try:
        return int(text)
    except ValueError:
        raise ProviderError(ErrorKind.FORMAT, f"the header {name} received is no number") from None
