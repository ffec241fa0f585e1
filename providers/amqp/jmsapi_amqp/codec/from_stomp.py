"""A message that jmsapi sent over STOMP, read over AMQP.

STOMP knows text alone, so such a message carries what AMQP would say by itself in properties of our own: ``JMS_PY_type``
its kind, ``JMS_PY_props`` the types of its properties (``n=i,price=d``), ``JMS_PY_p_<name>`` properties whose names a broker
would take for its own, ``JMS_PY_id``, ``JMS_PY_time``, ``JMS_PY_corr``, ``JMS_PY_reply`` what brokers replace or lose. Map and
Stream bodies are JSON in which each value names its type. The rest of what brokers make of STOMP headers is dropped.

Spec: 3.5.4-1 (property types), 3.11.1-1 (bodies).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Final, cast

from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import Address, Body, BodyValue, DestinationKind, MessageKind
from jmsapi.values import Byte, Char, Float, Int, Long, Short, Value
from jmsapi_amqp.codec.encode import OWN_PREFIX, AddressBook
from jmsapi_amqp.codec.envelope import ReceivedEnvelope
from jmsapi_amqp.codec.types import bad_format

__all__ = ["StompSentEnvelope", "envelope_of"]

_MARK: Final = b"JMS_PY_type"
"""In the first bytes of every such message, and of no other."""

_HEAD: Final = 8192
"""Where the mark is looked for."""
_KINDS: Final = {kind.name.capitalize(): kind for kind in MessageKind}
_MANGLED: Final = "JMS_PY_p_"
# Headers of STOMP frames that brokers pass on as properties, seen on Artemis 2.56, Classic 6.3 and RabbitMQ 4.0.
_STRAYS: Final = frozenset({
    "destination", "receipt", "transaction", "id", "ack", "subscription", "priority", "expires", "expiration", "persistent",
    "type", "timestamp", "redelivered", "selector", "session", "server", "durable",
})  # fmt: skip
_CONTENT_TYPES: Final = ("_AMQ_CONTENT_TYPE", "content-type")
_NAME: Final = re.compile(r"(?:[^\W\d]|\$)[\w$]*\Z")
_BROKERS: Final = ("AMQ_", "_AMQ_", "__AMQ_", "JMS_AMQP_", "NATIVE_", OWN_PREFIX)


class StompSentEnvelope(ReceivedEnvelope):
    """One such message; read only."""

    __slots__ = ()

    def _mark(self, name: str) -> str | None:
        value = self._properties().get(OWN_PREFIX + name)
        return value if isinstance(value, str) else None

    def _number(self, name: str) -> int:
        text = self._mark(name) or ""
        return int(text) if text.isdecimal() else 0

    @property
    def kind(self) -> MessageKind:
        """As the sender named it."""
        named = _KINDS.get(self._mark("type") or "")
        return super().kind if named is None else named

    @property
    def message_id(self) -> str | None:
        """As the sender made it; brokers put their own in its place."""
        return self._mark("id") or super().message_id

    @property
    def jms_type(self) -> str | None:
        """The subject; on RabbitMQ an annotation of its own."""
        found = super().jms_type or self._note("x-basic-type")
        return found if isinstance(found, str) else None

    @property
    def timestamp(self) -> int:
        """As the sender set it, where the broker stamps its own."""
        return self._number("time") or super().timestamp

    @property
    def delivery_time(self) -> int:
        """Milliseconds since 1970, or 0."""
        return self._number("due") or super().delivery_time

    @property
    def expiration(self) -> int:
        """Milliseconds since 1970; 0 never."""
        return self._number("exp") or super().expiration

    @property
    def correlation_id(self) -> str | bytes | None:
        """Text, or bytes when it was bytes."""
        coded = self._mark("corr")
        return super().correlation_id if coded is None else _decoded(coded)

    @property
    def reply_to(self) -> Address | None:
        """Where an answer is wanted; on RabbitMQ only our own header tells a topic or a temporary queue."""
        mark = self._mark("reply") or ""
        if mark[1:2] == ":" and mark[0] in "0123":
            return Address(DestinationKind(int(mark[0])), mark[2:])
        return super().reply_to

    @property
    def content_type(self) -> str | None:
        """How an OBJECT body's bytes are encoded; Artemis and Classic make a property of it."""
        if self.kind is not MessageKind.OBJECT:
            return None
        given = self._properties()
        found = next((given[name] for name in _CONTENT_TYPES if name in given), None)
        return found if isinstance(found, str) else super().content_type

    @property
    def properties(self) -> Mapping[str, Value]:
        """Properties of the types they were sent with."""
        types: dict[str, str] = {}
        given = self._properties()
        for name, value in given.items():
            if isinstance(name, str) and name.startswith("JMS_PY_props") and isinstance(value, str):
                for item in value.split(","):
                    key, _, code = item.rpartition("=")
                    types[key] = code
        found: dict[str, Value] = {}
        for name, value in given.items():
            if not isinstance(name, str) or not isinstance(value, str):
                continue
            if name.startswith(_MANGLED):
                plain = name[len(_MANGLED) :]
            elif name in _STRAYS or name.startswith((*_BROKERS, "JMSX")) or not _NAME.match(name):
                continue
            else:
                plain = name
            found[plain] = _typed(types.get(plain, "s"), value)
        found.update({name: None for name, code in types.items() if code == "0"})
        group = self._mark("group") or self._field(10)
        if isinstance(group, str):
            found["JMSXGroupID"] = group
            sequence = self._mark("gseq") or self._field(11)
            if sequence is not None:
                found["JMSXGroupSeq"] = int(str(sequence))
        return found

    @property
    def body(self) -> Body:
        """The content, by ``kind``."""
        kind = self.kind
        data = self._content()
        if kind is MessageKind.MESSAGE or (not data and self._mark("null") is not None):
            return None
        if kind is MessageKind.TEXT:
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                raise bad_format("the body of a text message is not UTF-8") from error
        if kind in (MessageKind.BYTES, MessageKind.OBJECT):
            return data
        try:
            value: object = json.loads(data) if data else None
        except (ValueError, RecursionError) as error:
            raise bad_format(f"the {kind.name} body received is not our JSON") from error
        if kind is MessageKind.MAP and isinstance(value, dict | None):
            return {name: _entry(pair) for name, pair in cast("dict[str, object]", value or {}).items()}
        if kind is MessageKind.STREAM and isinstance(value, list | None):
            return [_entry(pair) for pair in cast("list[object]", value or [])]
        raise bad_format(f"the {kind.name} body received is not our JSON")

    def _content(self) -> bytes:
        """Return the frame's body, whatever the broker has taken it for."""
        found = self.plain_body()
        return found.encode() if isinstance(found, str) else found if isinstance(found, bytes) else b""


def envelope_of(raw: bytes, book: AddressBook, near: Address, received_ms: int) -> ReceivedEnvelope:
    """Return the envelope of a received message, by who sent it."""
    kind = StompSentEnvelope if raw.find(_MARK, 0, _HEAD) >= 0 else ReceivedEnvelope
    return kind(raw, book, near, received_ms)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise bad_format("bytes received as text are not base64") from error


def _typed(code: str, text: str) -> Value:
    """Return the value that ``text`` is of the type ``code``."""
    try:
        match code:
            case "s":
                return text
            case "z":
                return {"true": True, "false": False}[text]
            case "b":
                return Byte(int(text))
            case "h":
                return Short(int(text))
            case "i":
                return int(Int(int(text)))
            case "l":
                return Long(int(text))
            case "f":
                return Float(float(text))
            case "d":
                return float(text)
            case "c":
                return Char(text)
            case "e":
                return _decoded(text).decode()
            case _:
                raise bad_format(f"a received value has the unknown type {code!r}")
    except (ValueError, KeyError, IllegalArgumentException) as error:
        raise bad_format(f"a received value is not of the type {code!r} it claims") from error


def _entry(pair: object) -> BodyValue:
    """Return an entry of a Map or Stream body."""
    match pair:
        case ["0"]:
            return None
        case ["x", str(text)]:
            return _decoded(text)
        case ["z", bool(flag)]:
            return flag
        case [str(code), int(number)] if code in "bhil" and not isinstance(number, bool):
            return _typed(code, str(number))
        case ["c", int(number)] if 0 <= number <= 0xFFFF:
            return Char(chr(number))
        case [str(code), str(text)] if code in "fds":
            return _typed(code, text)
        case _:
            raise bad_format("the body received has a value without a type")
