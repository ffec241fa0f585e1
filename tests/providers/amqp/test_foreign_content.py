"""What clients of AMQP that know nothing of JMS send: each part can be read, and goes on as it came."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from jmsapi._core.object_codec import ObjectCodec
from jmsapi.spi import Address, DestinationKind, MessageKind, PlainEnvelope, ProviderError
from jmsapi.values import Byte, Char, Long
from jmsapi_amqp.codec import Described, ReceivedEnvelope, Symbol, decode_value, encode_message, encode_value, envelope_of
from jmsapi_amqp.codec.types import FloatingDecimal, Timestamp, UInt, ULong

QUEUE = Address(DestinationKind.QUEUE, "q")
NOTED = Symbol("x-opt-jms-msg-type")
ID = UUID(int=5)
ONE_AND_A_HALF = FloatingDecimal.fromhex("3200000f")


class Plain:
    """A broker that takes names as they are."""

    null_body = b""
    sends_user_id = False

    def to_wire(self, address: Address) -> str:
        return address.name

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        return Address(near.kind if kind is None else DestinationKind(kind), text)


def section(code: int, value: object) -> bytes:
    return b"\x00\x53" + bytes([code]) + encode_value(value)


def received(*sections: bytes) -> ReceivedEnvelope:
    return ReceivedEnvelope(b"".join(sections), Plain(), QUEUE, 0)


def passed_on(envelope: ReceivedEnvelope, **changes: Any) -> ReceivedEnvelope:
    parts = ("kind", "body", "properties", "correlation_id", "jms_type", "content_type")
    values: dict[str, Any] = {part: getattr(envelope, part) for part in parts} | changes
    return received(encode_message(PlainEnvelope(destination=QUEUE, received=envelope, **values), Plain()))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (5, 5),
        (True, True),
        (1.5, 1.5),
        (math.inf, math.inf),
        (Long(5), 5),
        (ULong(2**64 - 1), 2**64 - 1),
        (ID, ID),
        (Timestamp(5), datetime.datetime(1970, 1, 1, 0, 0, 0, 5000, datetime.UTC)),
        (Timestamp(2**62), 2**62),
        (ONE_AND_A_HALF, Decimal("1.5")),
        (Described(Symbol("point"), [1, b"\xff", {5: "five"}]), [1, b"\xff", {5: "five"}]),
    ],
)
def test_a_body_of_one_value_is_that_object_and_goes_on_as_that_value(value: object, read: object) -> None:
    envelope = received(section(0x77, value))
    assert envelope.kind is MessageKind.OBJECT
    body = envelope.body
    assert isinstance(body, bytes)
    assert ObjectCodec().decode(body, envelope.content_type) == read
    again = passed_on(envelope)
    assert again.plain_body() == value
    assert type(again.plain_body()) is type(value)


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        ("32800000", "0"),
        ("3200000f", "1.5"),
        ("b280000f", "-15"),
        ("78000000", "Infinity"),
        ("f8000000", "-Infinity"),
        ("7c000000", "NaN"),
        ("6cb8967f", "9999999"),
        ("31c000000000000f", "15"),
        ("3040000000000000000000000000000f", "15"),
    ],
)
def test_decimals_of_each_width_read_as_digits(encoded: str, text: str) -> None:
    assert str(FloatingDecimal.fromhex(encoded)) == text


def test_a_map_of_nested_values_is_read_entry_by_entry() -> None:
    value = {
        "ok": "yes",
        "list": ["x", 5, None],
        "map": {"a": b"\xff"},
        "at": ONE_AND_A_HALF,
        5: "five",
        "d": Described(Symbol("p"), 1),
    }
    envelope = received(section(0x77, value))
    assert envelope.kind is MessageKind.MAP
    assert envelope.body == {"ok": "yes", "list": '["x",5,null]', "map": '{"a":"FF"}', "at": "1.5", "5": "five", "d": "1"}
    assert passed_on(envelope).plain_body() == value


def test_an_object_of_no_bytes_is_none_in_either_section_and_after_it_went_on() -> None:
    kind = b"\x00\x53\x72" + map_of(encode_value(NOTED), encode_value(Byte(1)))
    for body in (section(0x77, b""), section(0x75, b"")):
        envelope = received(kind, body)
        assert (envelope.kind, envelope.body) == (MessageKind.OBJECT, None)
        assert passed_on(envelope).body is None


def map_of(*entries: bytes) -> bytes:
    """Encode a map entry by entry, with keys that no dict of Python could hold."""
    inside = struct.pack(">I", len(entries)) + b"".join(entries)
    return b"\xd1" + struct.pack(">I", len(inside)) + inside


ODD_KEYS = map_of(
    *(encode_value(one) for one in (True, "true", Long(1), "one", 1.0, "double", "1", "text", Symbol("1"), "symbol")),
    *(encode_value(one) for one in ([1, "x"], "list", {"k": 1}, "map", Described(Symbol("d"), [1]), "described", None, "null")),
    *(encode_value(one) for one in (math.nan, "nan", -math.nan, "nan again")),
)


def test_keys_that_python_cannot_tell_apart_or_cannot_have_are_entries_all_the_same() -> None:
    envelope = received(b"\x00\x53\x77", ODD_KEYS)
    assert envelope.kind is MessageKind.MAP
    assert envelope.body == {
        "True": "true",
        "1": "text",
        "1 (Long)": "one",
        "1.0": "double",
        "1 (Symbol)": "symbol",
        '[1,"x"]': "list",
        '{"k":1}': "map",
        "[1]": "described",
        "None": "null",
        "nan": "nan",
        "nan (float)": "nan again",
    }
    again = passed_on(envelope)
    assert again.body == envelope.body
    assert ODD_KEYS in again.wire()[0]


def test_properties_whose_names_python_would_take_for_one_are_all_shown() -> None:
    names = map_of(*(encode_value(one) for one in (True, "a", Long(1), "b", "1", "c")))
    assert received(b"\x00\x53\x74" + names, section(0x77, "x")).properties == {"True": "a", "1 (Long)": "b", "1": "c"}


def test_of_two_entries_with_one_key_the_last_counts_and_an_annotation_is_found_by_it() -> None:
    twice = map_of(*(encode_value(one) for one in (NOTED, Byte(5), NOTED, Byte(3))))
    assert received(b"\x00\x53\x72" + twice, section(0x75, b"x")).kind is MessageKind.BYTES


def test_a_large_map_with_a_key_that_is_a_list_is_refused_whatever_its_other_keys_cost() -> None:
    body = map_of(*(encode_value(one) for number in range(100) for one in (number, "x")), encode_value([1]), encode_value("x"))
    with pytest.raises(ProviderError, match="many entries"):
        _ = received(b"\x00\x53\x77", body).body


@pytest.mark.parametrize("code", [0x76, 0x77])
def test_a_list_of_nested_values_is_read_entry_by_entry(code: int) -> None:
    envelope = received(section(code, [["in"], "x"]))
    assert (envelope.kind, envelope.body) == (MessageKind.STREAM, ['["in"]', "x"])
    assert passed_on(envelope).body == envelope.body


def test_properties_of_any_type_are_shown_and_go_on_in_their_types() -> None:
    sent = {
        "bin": b"\xff\x01",
        "decimal": ONE_AND_A_HALF,
        "list": ["a"],
        "described": Described(Symbol("p"), "inner"),
        "uuid": ID,
        "symbol": Symbol("s"),
        "uint": UInt(7),
        "char": Char("c"),
        "none": None,
        Symbol("named by a symbol"): 1,
        5: "named by a number",
        "JMSXfoo": "v",
    }
    envelope = received(section(0x74, sent), section(0x77, "x"))
    shown = {
        "bin": "FF01",
        "decimal": "1.5",
        "list": '["a"]',
        "described": '"inner"',
        "uuid": str(ID),
        "symbol": "s",
        "uint": Long(7),
        "char": "c",
        "none": None,
        "named by a symbol": 1,
        "5": "named by a number",
        "JMSXfoo": "v",
    }
    assert envelope.properties == shown
    again = passed_on(envelope)
    assert again.properties == shown
    on_the_wire = again.foreign_parts()
    assert on_the_wire is not None
    raw = {name: value for name, (value, _) in on_the_wire.properties.items()}
    assert raw == {str(name): value for name, value in sent.items()}
    assert all(type(raw[str(name)]) is type(value) for name, value in sent.items())


def test_a_property_that_was_changed_goes_on_as_changed() -> None:
    envelope = received(section(0x74, {"bin": b"\xff", "uuid": ID}), section(0x77, "x"))
    again = passed_on(envelope, properties={"bin": "other", "uuid": str(ID)})
    parts = again.foreign_parts()
    assert parts is not None
    assert {name: value for name, (value, _) in parts.properties.items()} == {"bin": "other", "uuid": ID}


def test_content_type_encoding_reply_group_and_footer_go_on_from_hand_to_hand() -> None:
    fields = [None] * 6 + [Symbol("application/json"), Symbol("gzip")] + [None] * 4 + ["answers"]
    envelope = received(section(0x73, fields), section(0x75, b"\xff\x00"), section(0x78, {Symbol("x-sum"): "1"}))
    for _ in range(3):
        assert envelope.kind is MessageKind.BYTES
        assert envelope.properties == {"content-type": "application/json", "content-encoding": "gzip"}
        parts = envelope.foreign_parts()
        assert parts is not None
        assert parts.reply_to_group == "answers"
        assert parts.body.endswith(section(0x78, {Symbol("x-sum"): "1"}))
        envelope = passed_on(envelope)


def test_a_new_body_does_not_inherit_what_was_said_of_the_old_one() -> None:
    fields = [None] * 6 + [Symbol("application/json")]
    envelope = received(section(0x73, fields), section(0x75, b"{}"))
    again = received(encode_message(PlainEnvelope(MessageKind.TEXT, QUEUE, body="new"), Plain()))
    assert (envelope.properties["content-type"], again.properties, again.body) == ("application/json", {}, "new")


@pytest.mark.parametrize(
    ("named", "value", "kind"),
    [
        (2, "text", MessageKind.TEXT),
        (5, {"a": "b"}, MessageKind.MAP),
        (4, b"\xff", MessageKind.BYTES),
        (3, [1], MessageKind.STREAM),
        (1, "text", MessageKind.TEXT),
        (True, "text", MessageKind.TEXT),
    ],
)
def test_a_kind_that_the_body_contradicts_is_not_believed(named: object, value: object, kind: MessageKind) -> None:
    envelope = received(section(0x72, {NOTED: named}), section(0x77, value))
    assert envelope.kind is kind
    assert envelope.body == ([1] if value == [1] else value)


@pytest.mark.parametrize("noted", [True, False])
def test_a_text_that_is_not_utf_8_can_be_had_as_bytes(noted: bool) -> None:
    note = section(0x72, {NOTED: 5}) if noted else b""
    for data in (b"gr\xfc\xdfe", b"gr\xfc" + b"x" * 300):
        text = (b"\xa1" + bytes([len(data)]) if len(data) < 256 else b"\xb1" + len(data).to_bytes(4)) + data
        envelope = received(note, b"\x00\x53\x77", text)
        assert (envelope.kind, envelope.body) == (MessageKind.BYTES, data)
    data_section = received(note, section(0x73, [None] * 6 + [Symbol("text/plain")]), section(0x75, b"gr\xfc"))
    assert (data_section.kind, data_section.body) == (MessageKind.BYTES, b"gr\xfc")


@pytest.mark.parametrize("value", [True, [], {}, 1.5])
def test_an_id_of_no_known_type_is_shown_and_does_not_keep_the_message_from_going_on(value: object) -> None:
    envelope = received(section(0x73, [value, None, None, None, None, value]), section(0x77, "x"))
    assert envelope.message_id is not None
    assert passed_on(envelope).body == "x"


@pytest.mark.parametrize(
    "sections",
    [
        [section(0x77, {"JMS_PY_type": "Map", "a": 1})],
        [section(0x74, {"JMS_PY_type": "Map"}), section(0x77, {"JMS_PY_type": "Map", "a": 1})],
        [section(0x74, {"JMS_PY_type": "nonsense"}), section(0x77, {"JMS_PY_type": "Map", "a": 1})],
        [section(0x74, {"JMS_PY_type": 5}), section(0x77, {"JMS_PY_type": "Map", "a": 1})],
    ],
)
def test_the_word_by_which_messages_from_stomp_are_known_does_not_make_one_of_another_message(sections: list[bytes]) -> None:
    envelope = envelope_of(b"".join(sections), Plain(), QUEUE, 0)
    assert (envelope.kind, envelope.body) == (MessageKind.MAP, {"JMS_PY_type": "Map", "a": 1})


def test_a_group_sequence_without_a_group_goes_on() -> None:
    envelope = received(section(0x73, [None] * 11 + [UInt(5)]), section(0x77, "x"))
    assert passed_on(envelope).properties == envelope.properties == {"JMSXGroupSeq": 5}


def test_sections_of_no_known_kind_are_left_behind() -> None:
    envelope = received(section(0x77, "x"), b"\x00\x53\x7f" + encode_value({}))
    parts = envelope.foreign_parts()
    assert parts is not None
    assert parts.body == section(0x77, "x")
    assert decode_value(parts.body, 3)[0] == "x"
