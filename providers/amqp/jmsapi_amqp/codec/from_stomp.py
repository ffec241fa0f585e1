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

from jmsapi.spi import Address, Body, BodyValue, DestinationKind, MessageKind, ProviderError
from jmsapi.values import Char, Value
from jmsapi_amqp.codec.encode import OWN_PREFIX, AddressBook
from jmsapi_amqp.codec.envelope import KeptEnvelope, ReceivedEnvelope
from jmsapi_amqp.codec.types import AmqpValue, bad_format
from jmsapi_brokers.dead_letters import ANNOTATIONS, has_expired, notes_of
from jmsapi_brokers.typed_texts import typed

__all__ = ["StompSentEnvelope", "envelope_of"]

_MARK: Final = b"JMS_PY_type"
"""In the properties of every such message, and of no other."""

_HEAD: Final = 8192
"""Bytes in which the mark mostly is; long properties may stand before it."""
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

    def _properties(self) -> Mapping[AmqpValue, AmqpValue]:
        """Return the headers as texts: RabbitMQ (4.0.5) makes bytes of a long one that is not ASCII."""
        found = super()._properties()
        if any(type(value) is bytes for value in found.values()):
            found = self._decoded = {name: _as_text(value) for name, value in found.items()}
        return found

    def _mark(self, name: str) -> str | None:
        value = self._properties().get(OWN_PREFIX + name)
        return value if isinstance(value, str) else None

    def _number(self, name: str) -> int:
        text = self._mark(name) or ""
        return int(text) if text.isdecimal() else 0

    @property
    def is_marked(self) -> bool:
        """Whether the mark is anywhere before the body."""
        raw = self._raw
        if raw.find(_MARK, 0, _HEAD) >= 0:
            return True
        if len(raw) <= _HEAD:
            return False
        try:
            return raw.find(_MARK, _HEAD - len(_MARK), self.body_position) >= 0
        except ProviderError:
            return False

    @property
    def is_ours(self) -> bool:
        """Whether it is such a message, and not one in which somebody has written the word."""
        try:
            return self._mark("type") in _KINDS and self.has_plain_body
        except ProviderError:
            return False

    @property
    def kind(self) -> MessageKind:
        """As the sender named it."""
        named = _KINDS.get(self._mark("type") or "")
        return super().kind if named is None else named

    @property
    def is_foreign(self) -> bool:
        """A client of this library has sent it."""
        return False

    @property
    def message_id(self) -> str | None:
        """As the sender made it; brokers put their own in its place."""
        return self._mark("id") or super().message_id

    @property
    def jms_type(self) -> str | None:
        """The subject; on RabbitMQ an annotation of its own, or our own header when it is long."""
        found = super().jms_type or self._note("x-basic-type") or self._mark("jtype")
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
        found = self._number("exp")
        return super().expiration if not found else 0 if has_expired(self._annotations) else found

    @property
    def correlation_id(self) -> str | bytes | None:
        """Text, or bytes when it was bytes."""
        coded = self._mark("corr")
        if coded is not None:
            return _decoded(coded)
        found = super().correlation_id
        return self._mark("ctext") if found is None else found

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
        found = next((given[name] for name in _CONTENT_TYPES if name in given), self._mark("otype"))
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
            found[plain] = typed(types.get(plain, "s"), value)
        found.update({name: typed(types.get(name, "s"), value) for name, value in _long_names(self._mark("long")).items()})
        found.update({name: None for name, code in types.items() if code == "0"})
        # The broker's word of where a dead letter was; what a sender writes under these names comes as ``JMS_PY_p_<name>``.
        found.update({name: origin for name in ANNOTATIONS.values() if isinstance(origin := given.get(name), str)})
        found.update(notes_of(self._annotations))
        group = self._mark("group") or self._field(10)
        if isinstance(group, str):
            found["JMSXGroupID"] = group
            sequence = self._mark("gseq") or self._field(11)
            if sequence is not None:
                found["JMSXGroupSeq"] = int(str(sequence))
        user = self._mark("user")
        if user is not None:
            found["JMSXUserID"] = user
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


def envelope_of(raw: bytes, addresses: AddressBook, near: Address, received_ms: int, *, kept: bool = False) -> ReceivedEnvelope:
    """Return the envelope of a received message, by who sent it; of one that was received before, and kept, if so said."""
    # Most messages have no mark, which is soon seen of a short one.
    if len(raw) > _HEAD or raw.find(_MARK) >= 0:
        envelope = StompSentEnvelope(raw, addresses, near, received_ms)
        if envelope.is_marked and envelope.is_ours:
            return envelope
    return (KeptEnvelope if kept else ReceivedEnvelope)(raw, addresses, near, received_ms)


def _as_text(value: AmqpValue) -> AmqpValue:
    try:
        return value.decode() if type(value) is bytes else value
    except UnicodeDecodeError:
        return value


def _long_names(text: str | None) -> dict[str, str]:
    """Return the properties whose names RabbitMQ does not take: they travel in one header."""
    try:
        found: object = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise bad_format("the properties with long names are not JSON") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in cast("dict[str, object]", found).values()):
        raise bad_format("the properties with long names are not texts by name")
    return cast("dict[str, str]", found)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise bad_format("bytes received as text are not base64") from error


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
            return typed(code, str(number))
        case ["c", int(number)] if 0 <= number <= 0xFFFF:
            return Char(chr(number))
        case [str(code), str(text)] if code in "fds":
            return typed(code, text)
        case _:
            raise bad_format("the body received has a value without a type")
