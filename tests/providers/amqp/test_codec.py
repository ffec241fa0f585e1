"""The codec: recorded messages of other clients, round trips, and whatever bytes there are."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsapi.spi import Address, Body, DestinationKind, ErrorKind, MessageKind, PlainEnvelope, ProviderError
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short, Value
from jmsapi_amqp.codec import (
    Described,
    ReceivedEnvelope,
    Symbol,
    decode_value,
    encode_message,
    encode_value,
    quick_delivery_count,
)
from jmsapi_amqp.codec.types import Timestamp, UInt, ULong

QUEUE = Address(DestinationKind.QUEUE, "q")
TOPIC = Address(DestinationKind.TOPIC, "t")


class Plain:
    """A broker that takes names as they are."""

    null_body = b""
    sends_user_id = True

    def to_wire(self, address: Address) -> str:
        return address.name

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        return Address(near.kind if kind is None else DestinationKind(kind), text)


BOOK = Plain()


def received(raw: bytes, near: Address = QUEUE, now: int = 0) -> ReceivedEnvelope:
    return ReceivedEnvelope(raw, BOOK, near, now)


def there_and_back(now: int = 0, **fields: Any) -> ReceivedEnvelope:
    envelope = PlainEnvelope(**({"kind": MessageKind.TEXT, "destination": QUEUE} | fields))
    return received(encode_message(envelope, BOOK, now))


# ---------------------------------------------------------------- recorded


def section(code: int, value: object) -> bytes:
    return b"\x00\x53" + bytes([code]) + encode_value(value)


def test_a_message_of_the_java_client_reads_in_full() -> None:
    raw = b"".join(
        [
            section(0x70, [True, UInt(7), UInt(60_000), None, UInt(2)]),
            section(0x71, {Symbol("x-opt-lock"): 1}),
            section(
                0x72,
                {Symbol("x-opt-jms-msg-type"): Byte(5), Symbol("x-opt-jms-dest"): Byte(1), Symbol("x-opt-jms-reply-to"): Byte(2)},
            ),
            section(
                0x73,
                [
                    "ID:abc",
                    b"joe",
                    "news",
                    "kind",
                    "tq",
                    "c-1",
                    Symbol("text/plain"),
                    None,
                    Timestamp(5000),
                    Timestamp(1000),
                    "g",
                    UInt(3),
                ],
            ),
            section(0x74, {"b": True, "y": Byte(1), "s": Short(2), "i": 3, "l": Long(4), "f": Float(1.5), "d": 2.5, "t": "x"}),
            section(0x77, "hello"),
            section(0x78, {Symbol("sum"): 1}),
        ]
    )
    envelope = received(raw)
    assert envelope.kind is MessageKind.TEXT
    assert envelope.body == "hello"
    assert envelope.destination == Address(DestinationKind.TOPIC, "news")
    assert envelope.reply_to == Address(DestinationKind.TEMPORARY_QUEUE, "tq")
    assert (envelope.message_id, envelope.correlation_id, envelope.jms_type) == ("ID:abc", "c-1", "kind")
    assert (envelope.timestamp, envelope.expiration, envelope.priority, envelope.delivery_mode) == (1000, 5000, 7, 2)
    assert dict(envelope.properties) == {
        "b": True, "y": 1, "s": 2, "i": 3, "l": 4, "f": 1.5, "d": 2.5, "t": "x",
        "JMSXGroupID": "g", "JMSXGroupSeq": 3, "JMSXUserID": "joe",
    }  # fmt: skip
    assert [type(envelope.properties[name]) for name in "ysilfd"] == [Byte, Short, int, Long, Float, float]
    assert quick_delivery_count(raw, False) == 3


def test_lists_and_maps_of_the_long_form_read_like_short_ones() -> None:
    raw = b"\x00\x53\x70\xd0\x00\x00\x00\x06\x00\x00\x00\x02\x41\x40"
    raw += b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x77\xb1\x00\x00\x00\x02hi"
    assert received(raw).body == "hi"
    assert received(raw).delivery_mode == 2


def test_sections_named_by_symbol_read_like_numbered_ones() -> None:
    raw = b"\x00" + encode_value(Symbol("amqp:amqp-value:*")) + encode_value("hi")
    assert received(raw).body == "hi"


def test_data_in_several_sections_is_one_body() -> None:
    raw = section(0x75, b"ab") + section(0x75, b"cd")
    assert received(raw).kind is MessageKind.BYTES
    assert received(raw).body == b"abcd"


def test_the_priority_is_always_written_since_rabbitmq_takes_an_absent_one_for_0() -> None:
    raw = encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, priority=4), BOOK)
    header, _ = decode_value(raw, 3)
    assert header == [True, 4]


def test_the_message_type_is_an_amqp_byte_since_the_java_client_casts_it() -> None:
    raw = encode_message(PlainEnvelope(MessageKind.MAP, QUEUE, {}), BOOK)
    assert b"x-opt-jms-msg-type\x51\x02" in raw
    assert b"x-opt-jms-dest\x51\x00" in raw


@pytest.mark.parametrize(
    ("sections", "kind"),
    [
        ([], MessageKind.BYTES),
        ([(0x73, [None] * 6 + [Symbol("text/plain;charset=utf-8")])], MessageKind.TEXT),
        ([(0x73, [None] * 6 + [Symbol("application/x-java-serialized-object")])], MessageKind.OBJECT),
        ([(0x75, b"x")], MessageKind.BYTES),
        ([(0x73, [None] * 6 + [Symbol("application/octet-stream")]), (0x75, b"x")], MessageKind.BYTES),
        ([(0x73, [None] * 6 + [Symbol("application/vnd.x+json")]), (0x75, b"x")], MessageKind.TEXT),
        ([(0x73, [None] * 6 + [Symbol("application/x-java-serialized-object")]), (0x75, b"x")], MessageKind.OBJECT),
        ([(0x76, [1, 2])], MessageKind.STREAM),
        ([(0x77, None)], MessageKind.TEXT),
        ([(0x77, "x")], MessageKind.TEXT),
        ([(0x77, b"x")], MessageKind.BYTES),
        ([(0x77, {"a": 1})], MessageKind.MAP),
        ([(0x77, [1])], MessageKind.STREAM),
        ([(0x77, 1)], MessageKind.OBJECT),
    ],
)
def test_without_an_annotation_the_body_and_content_type_decide_the_kind(
    sections: list[tuple[int, object]], kind: MessageKind
) -> None:
    assert received(b"".join(section(code, value) for code, value in sections)).kind is kind


# ---------------------------------------------------------------- fields


def test_every_field_of_an_envelope_comes_back() -> None:
    fields: dict[str, Any] = {
        "kind": MessageKind.BYTES,
        "destination": TOPIC,
        "body": b"\x00\xff",
        "properties": {"a": 1, "JMSXGroupID": "g", "JMSXGroupSeq": -1, "JMSXUserID": "joe", "n": None},
        "message_id": "ID:1",
        "timestamp": 1_700_000_000_000,
        "correlation_id": b"\x01\x02",
        "reply_to": Address(DestinationKind.TEMPORARY_TOPIC, "back"),
        "delivery_mode": 1,
        "jms_type": "order",
        "expiration": 1_700_000_060_000,
        "delivery_time": 1_700_000_001_000,
        "priority": 9,
        "origin": "me",
    }
    envelope = there_and_back(now=1_700_000_000_000, **fields)
    for name, value in fields.items():
        assert getattr(envelope, name) == value, name


def test_a_message_that_is_not_to_be_late_names_no_delivery_time() -> None:
    raw = encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, timestamp=5, delivery_time=5), BOOK)
    assert b"x-opt-delivery-time" not in raw


@pytest.mark.parametrize(("timestamp", "expiration"), [(1_700_000_000_000, 1_700_000_060_000), (1_700_000_000_000, 0)])
def test_a_delayed_message_keeps_its_times_where_the_broker_sets_them_anew_at_its_release(
    timestamp: int, expiration: int
) -> None:
    sent = PlainEnvelope(MessageKind.TEXT, QUEUE, timestamp=timestamp, expiration=expiration, delivery_time=timestamp + 1000)
    raw = encode_message(sent, BOOK)
    later = raw
    for time in (timestamp, expiration or timestamp):
        later = later.replace(struct.pack(">Bq", 0x83, time), struct.pack(">Bq", 0x83, time + 1300))
    assert later != raw
    got = received(later)
    assert (got.timestamp, got.expiration, got.delivery_time) == (timestamp, expiration, timestamp + 1000)


def test_an_origin_is_written_for_topics_only_and_is_no_property() -> None:
    assert there_and_back(origin="me").origin is None
    envelope = there_and_back(destination=TOPIC, origin="me")
    assert envelope.origin == "me"
    assert dict(envelope.properties) == {}


def test_a_life_of_more_than_32_bits_of_milliseconds_is_told_as_a_time_only() -> None:
    envelope = there_and_back(expiration=10**13, now=0)
    assert envelope.expiration == 10**13
    raw = encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, expiration=10**13), BOOK, 0)
    assert decode_value(raw, 3)[0] == [True, 4]


def test_a_message_that_only_says_how_long_it_lives_expires_from_when_it_came() -> None:
    raw = section(0x70, [True, None, UInt(500)]) + section(0x77, "x")
    assert received(raw, now=1000).expiration == 1500


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("ID:a", "ID:a"),
        ("a", "ID:AMQP_NO_PREFIX:a"),
        (UUID("00112233-4455-6677-8899-aabbccddeeff"), "ID:AMQP_UUID:00112233-4455-6677-8899-aabbccddeeff"),
        (ULong(7), "ID:AMQP_ULONG:7"),
        (b"\x01\xab", "ID:AMQP_BINARY:01AB"),
        ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
    ],
)
def test_a_message_id_of_any_kind_has_a_text_and_goes_back_as_what_it_was(wire: object, text: str) -> None:
    assert received(section(0x73, [wire])).message_id == text
    raw = encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, message_id=text), BOOK)
    assert received(raw).message_id == text
    assert encode_value(wire) in raw


def test_an_id_that_claims_a_kind_and_is_none_of_it_is_refused() -> None:
    for text in ("ID:AMQP_UUID:x", "ID:AMQP_ULONG:-1", "ID:AMQP_BINARY:0"):
        with pytest.raises(ProviderError) as refused:
            there_and_back(message_id=text)
        assert refused.value.kind is ErrorKind.FORMAT


@pytest.mark.parametrize(
    ("sections", "tells", "count"),
    [
        (b"", False, 1),
        (b"\x00\x53\x70\x45", False, 1),
        (section(0x70, [True, UInt(4)]), True, 1),
        (section(0x70, [True, UInt(4), None, False]), False, 1),
        (section(0x70, [True, UInt(4), None, False]), True, 2),
        (section(0x70, [True, UInt(4), None, False, UInt(0)]), True, 2),
        (section(0x70, [True, UInt(4), None, True, UInt(0)]), True, 1),
        (section(0x70, [True, UInt(4), None, False, UInt(5)]), True, 6),
        (section(0x70, [True, UInt(4), None, False]) + section(0x72, {Symbol("x-first-death-reason"): "expired"}), True, 1),
        (b"\x00\x53\x70\xc0\xff\x05", False, 1),
    ],
)
def test_the_delivery_count_is_read_from_the_first_bytes(sections: bytes, tells: bool, count: int) -> None:
    assert quick_delivery_count(sections, tells) == count


# ---------------------------------------------------------------- round trips

_numbers = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(width=32).map(Float),
    st.floats().map(Double),
    st.floats(),
)
_texts = st.text(st.characters(codec="utf-8"), max_size=300)
_values: st.SearchStrategy[Value] = st.one_of(st.none(), _numbers, _texts)
_entries = st.one_of(_values, st.binary(max_size=300), st.characters(max_codepoint=0xFFFF, codec="utf-8").map(Char))


def _alike(one: object, two: object) -> bool:
    return repr(one) == repr(two)


def _wire_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and not isinstance(value, Byte | Short | Int | Long):
        return "int" if -(2**31) <= value < 2**31 else "long"
    return str(getattr(value, "jms_type", "double" if isinstance(value, float) else type(value).__name__))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text("abcdef_", min_size=1, max_size=10), _values, max_size=8))
def test_properties_keep_value_and_type(properties: Mapping[str, Value]) -> None:
    found = there_and_back(properties=properties).properties
    assert {name: _wire_type(value) for name, value in found.items()} == {n: _wire_type(v) for n, v in properties.items()}
    assert all(_alike(float(v) if isinstance(v, float) else v, float(properties[n]) if isinstance(v, float) else v)  # type: ignore[arg-type]
               for n, v in found.items())  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(_texts, _entries, max_size=8))
def test_map_bodies_keep_value_and_type(body: dict[str, Any]) -> None:
    found = cast("dict[str, Any]", there_and_back(kind=MessageKind.MAP, body=body).body)
    assert {name: _wire_type(value) for name, value in found.items()} == {n: _wire_type(v) for n, v in body.items()}
    assert all(v == body[n] or v != v for n, v in found.items())


@settings(max_examples=200, deadline=None)
@given(st.lists(_entries, max_size=8))
def test_stream_bodies_keep_value_type_and_order(body: list[Any]) -> None:
    found = cast("list[Any]", there_and_back(kind=MessageKind.STREAM, body=body).body)
    assert [_wire_type(value) for value in found] == [_wire_type(value) for value in body]
    assert all(mine == theirs or mine != mine for mine, theirs in zip(found, body, strict=True))


@settings(max_examples=100, deadline=None)
@given(_texts)
def test_text_bodies_come_back(body: str) -> None:
    assert there_and_back(body=body).body == body


@pytest.mark.parametrize(("size", "reads"), [(0, [1, 1, 2]), (10_000, [1, 1, 2]), (100_000, [0, 1, 2])])
def test_a_text_is_read_once_for_its_kind_and_its_body_and_kept_between_them_if_it_is_short(
    size: int, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = there_and_back(body="x" * size)
    at = envelope.body_position + 3
    read: list[int] = []

    def noting(raw: bytes, position: int = 0) -> Any:
        if position == at:
            read.append(position)
        return decode_value(raw, position)

    monkeypatch.setattr("jmsapi_amqp.codec.envelope.decode_value", noting)
    found: list[int] = []
    for part in ("kind", "body", "body"):
        assert getattr(envelope, part) == (MessageKind.TEXT if part == "kind" else "x" * size)
        found.append(len(read))
    assert found == reads


@pytest.mark.parametrize("size", [0, 255, 256, 100_000])
def test_bytes_bodies_of_every_length_form_come_back(size: int) -> None:
    assert there_and_back(kind=MessageKind.BYTES, body=b"x" * size).body == b"x" * size


@pytest.mark.parametrize(
    ("kind", "body", "comes_back"),
    [
        (MessageKind.MESSAGE, None, None),
        (MessageKind.TEXT, None, None),
        (MessageKind.TEXT, "", ""),
        (MessageKind.OBJECT, None, None),
        (MessageKind.OBJECT, b"\xac\xed", b"\xac\xed"),
        (MessageKind.BYTES, None, b""),
        (MessageKind.MAP, None, {}),
        (MessageKind.STREAM, None, []),
    ],
)
def test_empty_and_opaque_bodies_keep_their_kind(kind: MessageKind, body: Body, comes_back: Body) -> None:
    envelope = there_and_back(kind=kind, body=body)
    assert envelope.kind is kind
    assert envelope.body == comes_back


def test_an_object_says_how_its_bytes_are_encoded() -> None:
    envelope = there_and_back(kind=MessageKind.OBJECT, body=b"x", content_type="application/x-python-pickle")
    assert envelope.content_type == "application/x-python-pickle"
    assert there_and_back(kind=MessageKind.OBJECT, body=b"x").content_type == "application/x-java-serialized-object"
    assert there_and_back(body="x").content_type is None


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "\ud800"},
        {"body": b"x"},
        {"properties": {"n": 2**63}},
        {"properties": {"n": object()}},
        {"priority": 10},
        {"jms_type": "\udfff"},
        {"kind": MessageKind.MAP, "body": "x"},
        {"kind": MessageKind.STREAM, "body": {"a": 1}},
    ],
)
def test_what_amqp_cannot_carry_is_refused_with_the_codecs_own_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ProviderError) as refused:
        there_and_back(**fields)
    assert refused.value.kind is ErrorKind.FORMAT


PARTS = (
    "kind", "destination", "message_id", "timestamp", "correlation_id", "reply_to", "delivery_mode", "jms_type", "expiration",
    "delivery_time", "priority", "properties", "body", "content_type", "origin",
)  # fmt: skip


def _read_all(raw: bytes) -> None:
    """Read every part; only the codec's own error may come of it."""
    envelope = received(raw)
    assert quick_delivery_count(raw, True) >= 1
    for part in PARTS:
        try:
            getattr(envelope, part)
        except ProviderError as error:
            assert error.kind is ErrorKind.FORMAT


def test_a_hundred_thousand_random_byte_strings_raise_nothing_but_the_codecs_own_error() -> None:
    chance = random.Random(20260101)
    for number in range(100_000):
        raw = chance.randbytes(chance.randrange(1, 40))
        try:
            decode_value(raw)
        except ProviderError as error:
            assert error.kind is ErrorKind.FORMAT
        if number % 10 == 0:
            _read_all(b"\x00\x53" + bytes([chance.choice((0x70, 0x72, 0x73, 0x74, 0x75, 0x77))]) + raw)


def test_a_good_message_with_any_byte_changed_or_cut_off_raises_nothing_but_the_codecs_own_error() -> None:
    good = encode_message(
        PlainEnvelope(MessageKind.MAP, QUEUE, {"a": [1][0], "b": "x"}, properties={"n": 1.5}, message_id="ID:1", timestamp=1),
        BOOK,
    )
    chance = random.Random(7)
    for place in range(len(good)):
        _read_all(good[:place])
        for _ in range(20):
            _read_all(good[:place] + bytes([chance.randrange(256)]) + good[place + 1 :])


@pytest.mark.parametrize(
    "raw",
    [
        b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",  # an array of four thousand million nulls
        b"\x00\x40" * 5000,
        b"\xc0\xff\xff",
        b"\xd0\xff\xff\xff\xff\x00\x00\x00\x01\x40",
        b"\xa1\x05ab",
        b"\xa1\x01\xff",
        b"\x73\xff\xff\xff\xff",
        b"\xc1\x04\x02\xc0\x01\x00\x40",
    ],
)
def test_hostile_bytes_are_refused_quickly(raw: bytes) -> None:
    with pytest.raises(ProviderError):
        decode_value(raw)


def test_the_modified_utf_8_of_java_is_read_too() -> None:
    assert decode_value(b"\xa1\x09a\xed\xa0\xbd\xed\xb8\x80\xc0\x80")[0] == "a😀\u0000"
    assert decode_value(b"\xc0\x0a\x01\xa1\x07a\xed\xa0\xbd\xed\xb8\x80")[0] == ["a😀"]
    with pytest.raises(ProviderError):
        decode_value(b"\xa1\x03\xed\xa0\xbd")  # half a pair is no character


def test_described_values_and_arrays_come_back() -> None:
    value = Described(ULong(0x24), [Symbol("x"), UInt(300), Timestamp(5), UUID(int=1), ULong(2**63), b"\x00"])
    assert decode_value(encode_value(value))[0] == value
    array = b"\xe0\x06\x02\xa3\x01a\x01b"
    assert decode_value(array)[0] == ["a", "b"]


def test_a_part_that_cannot_be_read_raises_each_time_and_leaves_the_others() -> None:
    raw = section(0x73, ["ID:1"]) + b"\x00\x53\x77\xa1\x05ab"
    envelope = received(raw)
    for _ in range(2):
        with pytest.raises(ProviderError):
            _ = envelope.body
    assert envelope.message_id == "ID:1"


@pytest.mark.parametrize("text", ["hello", "Grüße", ""])
def test_a_text_for_readers_of_another_protocol_is_data_with_a_content_type(text: str) -> None:
    raw = encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, text), BOOK, texts_as_data=True)
    data = text.encode()
    assert raw.endswith(b"\x00\x53\x75\xa0" + bytes([len(data)]) + data)
    assert b"\xa3\x0atext/plain" in raw
    found = received(raw)
    assert (found.kind, found.body) == (MessageKind.TEXT, text)


def test_a_text_without_a_body_stays_null_for_them() -> None:
    found = received(encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, None), BOOK, texts_as_data=True))
    assert (found.kind, found.body) == (MessageKind.TEXT, None)
