"""Mutations of AMQP messages, as a sender may write them, through the code that reads and passes them on."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from jmsapi._core.object_codec import ObjectCodec
from jmsapi.errors import JMSException
from jmsapi.spi import Address, DestinationKind, Envelope, MessageKind, PlainEnvelope, ProviderError
from jmsapi.values import Byte, Char, Float, Long, Short
from jmsapi_amqp.codec import Described, Symbol, encode_message, encode_value, envelope_of, quick_delivery_count
from jmsapi_amqp.codec.types import FloatingDecimal, Timestamp, UInt, ULong

QUEUE: Final = Address(DestinationKind.QUEUE, "q")
PARTS: Final = tuple(name for name in vars(Envelope) if isinstance(vars(Envelope)[name], property))
CODEC: Final = ObjectCodec()


class Plain:
    """A broker that takes names as they are."""

    null_body = b""
    sends_user_id = True

    def to_wire(self, address: Address) -> str:
        return address.name

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        return Address(near.kind if kind is None else DestinationKind(kind), text)


def _section(code: int, value: object) -> bytes:
    return b"\x00\x53" + bytes([code]) + encode_value(value)


_ID: Final = UUID(int=7)
_PARTS_OF_MESSAGES: Final = (
    _section(0x70, [True, UInt(4), UInt(60_000), True, UInt(2)]),
    _section(0x71, {Symbol("x-opt-lock"): 1}),
    _section(0x72, {Symbol("x-opt-jms-msg-type"): Byte(5), Symbol("x-opt-jms-dest"): Byte(0)}),
    _section(0x72, {Symbol("x-opt-delivery-time"): Long(5), Symbol("x-opt-jms-msg-type"): Byte(2)}),
    _section(0x73, ["ID:1", b"joe", "q", "kind", "answers", "c-1", Symbol("text/plain;charset=utf-16"), Symbol("gzip")]),
    _section(0x73, [_ID, None, None, None, None, ULong(7), None, None, Timestamp(5), Timestamp(1), "g", UInt(3), "r"]),
    _section(0x74, {"b": True, "y": Byte(1), "s": Short(2), "i": 3, "l": Long(4), "f": Float(1.5), "d": 2.5, "t": "x", "u": _ID}),
    _section(0x74, {"bin": b"\xff", "list": ["a", 1], "map": {"a": None}, "of": Described(Symbol("p"), 1), "c": Char("c")}),
    _section(0x74, {"JMS_PY_type": "Map", "JMS_PY_props": "n=i", "n": "7", "JMS_PY_corr": "AAE=", "JMS_PY_reply": "0:q"}),
    _section(0x72, {Symbol("x-opt-jms-msg-type"): Byte(1)}),
    _section(0x73, [None] * 6 + [Symbol("application/vnd.jmsapi.object+json")]),
    _section(0x75, b'{"$dict":[[1,{"$uuid":"x"}]],"$set":[[]]}'),
    _section(0x75, b"some data"),
    _section(0x75, b'{"a":["i",7],"b":["x","AAE="]}'),
    _section(0x76, ["a", [1, {"b": 2}]]),
    _section(0x77, "hello"),
    _section(0x77, None),
    _section(0x77, {"a": 1, "b": [b"\xff", FloatingDecimal(b"\x32\x00\x00\x0f")], 5: _ID}),
    _section(0x77, Described(Symbol("point"), [ULong(2**64 - 1), Char("x"), Timestamp(1)])),
    b"\x00\x53\x77\xf0\x00\x00\x00\x09\x00\x00\x00\x02\xa3\x01a\x01b",
    _section(0x78, {Symbol("x-sum"): "1"}),
    b"\x00\xa3\x10amqp:data:binary\xa0\x01x",
)
_PIECES: Final = (
    *(bytes([code]) for code in bytes.fromhex("00404145535670737480839498a0a1a3b1")),
    *(b"\xc0\x01\x00", b"\xd0\xff\xff\xff\xff", b"\xd1\x00\x00\x00\x04\x00\x00\x00\x00", b"\xe0\xff\xff"),
    *(b"\x73\x00\x00\xd8\x00", b"\x72\x7f\x80\x00\x00", b"\x82\xff\xf8" + bytes(6), b"\xff\xfe", b"\xed\xa0\x80"),
    *(b"\xf0\x00\x00\x00\x05", b"\x7f\xff\xff\xff"),
)


@dataclass
class Outcomes:
    """What became of the messages."""

    messages: int = 0
    unreadable: int = 0
    passed_on: int = 0
    kinds: set[str] = field(default_factory=set[str])


def _place(section: bytes) -> int:
    return section[2] if section[1] == 0x53 else 0x75


def mutated(dice: random.Random) -> bytes:
    """Return the sections of a message, most often in their order, with some bytes changed."""
    sections = sorted(dice.sample(_PARTS_OF_MESSAGES, k=dice.randrange(1, 6)), key=_place)
    data = bytearray(b"".join(sections))
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(4):
            case 0 if at < len(data):
                data[at] = dice.randrange(256)
            case 1:
                data[at:at] = dice.choice(_PIECES)
            case 2:
                del data[at : at + dice.randrange(1, 8)]
            case _:
                start = dice.randrange(len(data) + 1)
                data[at:at] = data[start : start + dice.randrange(24)]
    return bytes(data)


def read(raw: bytes, outcomes: Outcomes) -> None:
    """Read every part of a message, its object, its bytes as they came, and send it on."""
    quick_delivery_count(raw, acquirer_tells=True)
    envelope = envelope_of(raw, Plain(), QUEUE, 0)
    parts: dict[str, Any] = {}
    for part in PARTS:
        try:
            parts[part] = getattr(envelope, part)
        except ProviderError as error:
            outcomes.unreadable += 1
            outcomes.kinds.add(error.kind.value)
    envelope.wire()
    if parts.get("kind") is MessageKind.OBJECT and isinstance(parts.get("body"), bytes):
        try:
            CODEC.decode(parts["body"], parts.get("content_type"))
        except JMSException:
            outcomes.kinds.add("object")
    if len(parts) == len(PARTS):
        try:
            again = encode_message(PlainEnvelope(received=envelope, **parts), Plain(), texts_as_data=len(raw) % 2 == 0)
        except ProviderError as error:
            outcomes.kinds.add(f"not passed on: {error.kind.value}")
            return
        outcomes.passed_on += 1
        if parts["kind"] is not MessageKind.MESSAGE and parts["body"] is not None:
            assert repr(envelope_of(again, Plain(), QUEUE, 0).body) == repr(parts["body"]), "the body has changed on its way"


def fuzz(messages: int, seed: int) -> Outcomes:
    """Read so many mutated messages.

    Raises:
        AssertionError: An exception that is no ProviderError came out; the bytes are in its text.
    """
    dice = random.Random(seed)
    outcomes = Outcomes()
    for _ in range(messages):
        raw = mutated(dice)
        outcomes.messages += 1
        try:
            read(raw, outcomes)
        except Exception as error:
            raise AssertionError(f"seed {seed}, message {outcomes.messages}: {error!r} came of {raw!r}") from error
    return outcomes
