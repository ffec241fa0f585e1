"""Messages of the loopback server: from SEND frames, and to MESSAGE frames.

What a client sent keeps its header lines and body as bytes, to be handed on as they came; what a broker looks at is read
once. All of it is read once before the broker gets it, for a message that cannot be read must not lie in a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsapi.spi import Address, Body, Delivery, Envelope, ErrorKind, MessageKind, ProviderError
from jmsapi.values import Value
from jmsapi_stomp.behaviour import StompBehaviour
from jmsapi_stomp.bodies import read_body
from jmsapi_stomp.codec import StompEnvelope, encode
from jmsapi_stomp.frames import Frame, escape

__all__ = ["SentEnvelope", "end_frame", "message_frame", "naming_frame"]

_LATEST: Final = 2**63 - 1
# What a SEND says to the server alone, and what only the server says in a MESSAGE.
_NOT_HANDED_ON: Final = (
    b"receipt:",
    b"transaction:",
    b"content-length:",
    b"subscription:",
    b"ack:",
    b"message-id:",
    b"redelivered:",
    b"delivery-count:",
    b"browser:",
)


class SentEnvelope:
    """A message as a client sent it.

    Args:
        frame: The SEND frame.
        address: Where it goes.
        behaviour: How the wire is read.
        now_ms: The time, for clients that do not stamp their messages.
        name: A message id, for clients that do not give one.
    Raises:
        ProviderError: FORMAT; a part of it cannot be read.
    """

    __slots__ = (
        "_data",
        "_null",
        "content_type",
        "correlation_id",
        "delivery_mode",
        "delivery_time",
        "destination",
        "expiration",
        "jms_type",
        "kind",
        "lines",
        "message_id",
        "origin",
        "priority",
        "properties",
        "reply_to",
        "timestamp",
    )

    def __init__(self, frame: Frame, address: Address, behaviour: StompBehaviour, now_ms: int, name: str) -> None:
        headers = frame.headers  # read once: all the rest looks there
        read = StompEnvelope(frame, behaviour, address)
        foreign = "JMS_PY_type" not in headers
        head = frame.head.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in frame.head else frame.head
        lines = [line for line in head.split(b"\n") if line and not line.startswith(_NOT_HANDED_ON)]
        if foreign and "timestamp" not in headers:
            lines.append(b"timestamp:%d" % now_ms)
        lines.append(b"content-length:%d\n" % len(frame.body))
        self.lines = b"\n".join(lines)
        """The header lines that are handed on, each with its line feed."""
        self._data = frame.body
        self._null = "JMS_PY_null" in headers
        if read.declared_kind is MessageKind.TEXT and read.kind is not MessageKind.TEXT:
            raise ProviderError(ErrorKind.FORMAT, "the text is not in the charset that it should be in")
        self.kind: MessageKind = read.kind
        self.destination = address
        self.message_id: str | None = f"ID:{name}" if foreign else read.message_id
        self.timestamp: int = read.timestamp or (now_ms if foreign else 0)
        self.correlation_id: str | bytes | None = read.correlation_id
        self.reply_to: Address | None = read.reply_to
        self.delivery_mode: int = read.delivery_mode
        self.jms_type: str | None = read.jms_type
        self.expiration: int = read.expiration
        self.delivery_time: int = read.delivery_time
        self.priority: int = read.priority
        self.properties: Mapping[str, Value] = read.properties
        self.content_type: str | None = read.content_type
        self.origin: str | None = read.origin
        for time in (self.timestamp, self.expiration, self.delivery_time):
            if not 0 <= time <= _LATEST:
                raise ProviderError(ErrorKind.FORMAT, f"a time of the message is no time: {time}")
        read_body(self.kind, self._data, null=self._null)

    @property
    def body(self) -> Body:
        """The content, by ``kind``."""
        return read_body(self.kind, self._data, null=self._null)

    @property
    def data(self) -> bytes:
        """The body as it came."""
        return self._data


def message_frame(subscription: bytes, ack: bytes | None, delivery: Delivery, behaviour: StompBehaviour, number: int) -> bytes:
    """Return the MESSAGE frame for a delivery.

    Args:
        subscription: The subscription's id, escaped as it came.
        ack: What names the delivery in ACK and NACK; None where it is settled already.
        delivery: What is handed over; a program in this process may have sent it.
        behaviour: How the wire is written.
        number: Of the delivery, for a message without an id.
    Raises:
        ProviderError: FORMAT; STOMP cannot carry the message.
    """
    envelope, count = delivery.envelope, delivery.delivery_count
    lines, data = (envelope.lines, envelope.data) if isinstance(envelope, SentEnvelope) else _parts(envelope, behaviour)
    name = str(number) if envelope.message_id is None else escape(envelope.message_id)
    said = b"" if ack is None else b"ack:%b\n" % ack
    if count > 1:
        said += b"redelivered:true\n"
    head = b"MESSAGE\nsubscription:%b\nmessage-id:%b\n%bdelivery-count:%d\n" % (subscription, name.encode(), said, count)
    return b"%b%b\n%b\0" % (head, lines, data)


def _parts(envelope: Envelope, behaviour: StompBehaviour) -> tuple[bytes, bytes]:
    start = behaviour.start_of_send(envelope.destination)
    if envelope.origin is not None:
        start += f"JMS_PY_from:{escape(envelope.origin)}\n"
    lines, _, data = encode(envelope, behaviour, envelope.timestamp, start).partition(b"\n\n")
    return lines.partition(b"\n")[2] + b"\n", data[:-1]


def end_frame(subscription: bytes, destination: str) -> bytes:
    """Return the MESSAGE frame that ends a browser."""
    lines = f"message-id:end\ndestination:{escape(destination)}\nbrowser:end\ncontent-length:0\n"
    return b"MESSAGE\nsubscription:%b\n%b\n\0" % (subscription, lines.encode())


def naming_frame(subscription: bytes, destination: str) -> bytes:
    """Return the MESSAGE frame that tells the name of a new temporary destination."""
    lines = f"message-id:name\nack:name\ndestination:{escape(destination)}\ncontent-length:0\n"
    return b"MESSAGE\nsubscription:%b\n%b\n\0" % (subscription, lines.encode())
