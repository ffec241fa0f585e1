"""The values that cross the provider interface. All are frozen; nothing here has behaviour beyond its own shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

from jmsapi.values import Value

__all__ = [
    "EMPTY_PROPERTIES",
    "NON_PERSISTENT",
    "PERSISTENT",
    "Address",
    "Body",
    "BodyValue",
    "ConsumerSpec",
    "Delivery",
    "DestinationKind",
    "Envelope",
    "Handle",
    "MessageKind",
    "Outcome",
    "PlainEnvelope",
    "Tag",
    "WireForm",
]

NON_PERSISTENT: Final = 1
PERSISTENT: Final = 2

BodyValue = Value | bytes
"""An entry of a Map or Stream body: a property value (also ``Char``) or bytes."""
Body = None | str | bytes | Mapping[str, BodyValue] | Sequence[BodyValue]
"""By message kind: MESSAGE None; TEXT str or None; BYTES bytes; MAP mapping; STREAM sequence; OBJECT bytes or None."""
EMPTY_PROPERTIES: Final[Mapping[str, Value]] = {}


class DestinationKind(IntEnum):
    """The kind of a destination. The numbers are those of the AMQP JMS mapping."""

    QUEUE = 0
    TOPIC = 1
    TEMPORARY_QUEUE = 2
    TEMPORARY_TOPIC = 3

    @property
    def is_topic(self) -> bool:
        """Whether each subscriber gets a copy."""
        return self in (DestinationKind.TOPIC, DestinationKind.TEMPORARY_TOPIC)

    @property
    def is_temporary(self) -> bool:
        """Whether it lives with its connection."""
        return self in (DestinationKind.TEMPORARY_QUEUE, DestinationKind.TEMPORARY_TOPIC)


class Address(NamedTuple):
    """A destination: its kind and its name as the application wrote it (a provider adds prefixes of its own)."""

    kind: DestinationKind
    name: str


class MessageKind(IntEnum):
    """The six JMS message types. The numbers are those of the AMQP JMS mapping."""

    MESSAGE = 0
    OBJECT = 1
    MAP = 2
    BYTES = 3
    STREAM = 4
    TEXT = 5


class Outcome(Enum):
    """How a delivery is settled."""

    ACCEPTED = "accepted"
    """Done; the broker forgets it."""
    RELEASED = "released"
    """Never seen by the application; back to its place, no count spent."""
    FAILED = "failed"
    """Seen, not done; back, and its delivery count goes up."""
    REJECTED = "rejected"
    """Never again: to the dead letter destination."""


class Handle:
    """A session, consumer, producer or transaction of a provider. The core never looks inside."""

    __slots__ = ("__weakref__",)


class Tag:
    """Names one delivery. Holds numbers only: objects of a wire library never leave the provider's I/O thread."""

    __slots__ = ()


class Envelope(Protocol):
    """One message at the provider interface, read only. A received one may decode its parts when they are first read.

    A part that cannot be decoded raises ``ProviderError(FORMAT)`` from its property, each time.
    """

    @property
    def kind(self) -> MessageKind:
        """One of the six message types."""
        ...

    @property
    def destination(self) -> Address:
        """Where it was sent."""
        ...

    @property
    def message_id(self) -> str | None:
        """Text that begins with ``ID:``, or None."""
        ...

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or 0."""
        ...

    @property
    def correlation_id(self) -> str | bytes | None:
        """Text, or the provider-native bytes form."""
        ...

    @property
    def reply_to(self) -> Address | None:
        """Where an answer is wanted."""
        ...

    @property
    def delivery_mode(self) -> int:
        """1 NON_PERSISTENT, 2 PERSISTENT."""
        ...

    @property
    def jms_type(self) -> str | None:
        """The application's word for the kind of content."""
        ...

    @property
    def expiration(self) -> int:
        """Milliseconds since 1970 after which it is dead; 0 never."""
        ...

    @property
    def delivery_time(self) -> int:
        """Milliseconds since 1970 before which nobody may get it; 0 when the wire does not tell (then: the timestamp)."""
        ...

    @property
    def priority(self) -> int:
        """0 to 9."""
        ...

    @property
    def properties(self) -> Mapping[str, Value]:
        """Typed properties (``jmsapi.values``), JMSXGroupID, JMSXGroupSeq and JMSXUserID among them; not JMSXDeliveryCount."""
        ...

    @property
    def body(self) -> Body:
        """The content, by ``kind``."""
        ...

    @property
    def content_type(self) -> str | None:
        """How an OBJECT body's bytes are encoded; None for other kinds."""
        ...

    @property
    def origin(self) -> str | None:
        """Who sent it: client id, or the sending connection's own word; for no-local. None when the wire does not tell."""
        ...


@dataclass(slots=True)
class PlainEnvelope:
    """An envelope with everything in place: what the core sends. Written by nobody once it is built."""

    kind: MessageKind
    destination: Address
    body: Body = None
    properties: Mapping[str, Value] = field(default_factory=dict[str, Value])
    message_id: str | None = None
    timestamp: int = 0
    correlation_id: str | bytes | None = None
    reply_to: Address | None = None
    delivery_mode: int = PERSISTENT
    jms_type: str | None = None
    expiration: int = 0
    delivery_time: int = 0
    priority: int = 4
    content_type: str | None = None
    origin: str | None = None
    received: Envelope | None = field(default=None, repr=False, compare=False)
    """What the message was received as, when its body goes on as it came. The provider that made it may send with it what JMS
    does not show."""


class WireForm(NamedTuple):
    """A received message as its wire brought it, with what another process needs to read it; see ``ReadsWire``.

    An envelope that came by a wire may have ``wire_form()``, which returns it and decodes nothing.
    """

    how: str
    """The provider's name, a colon, and what it needs to know, which is the same for all messages of a consumer.

    No address of a broker, no secret."""
    data: bytes


class Delivery(NamedTuple):
    """One hand-over of one message to one consumer."""

    tag: Tag
    envelope: Envelope
    delivery_count: int
    """How often the broker has handed it out, this one included: 1 is the first time; at least 2 when only a flag is known."""


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """What a consumer, subscription or browser asks of the provider."""

    address: Address
    selector: str | None = None
    """Valid text, or None for everything; never empty."""
    no_local: bool = False
    subscription: str | None = None
    """The name of a durable or shared subscription."""
    durable: bool = False
    shared: bool = False
    browse: bool = False
    prefetch: int = 1
    """The most deliveries the core will ask for at one time."""
    deferred_acks: bool = False
    """Acks come late, many at once (CLIENT, TRANSACTED): a wire with a window must not stall on it."""
    origin: str | None = None
    """The consumer's own connection, as its sends say in ``Envelope.origin``; for no-local."""
    terms: str | None = None
    """The selector as the application gave it, when ``selector`` is no longer that: not to be evaluated, only to be compared
    by a provider that keeps a subscription's terms in the broker. None: ``selector`` is what was given."""
