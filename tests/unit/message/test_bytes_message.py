"""BytesMessage: modes, positions, and Java's data formats."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import pytest

from jmsapi.errors import (
    IllegalArgumentException,
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
    MessageNotWriteableException,
    NullPointerException,
)
from jmsapi.spi import MessageKind, PlainEnvelope
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short

READS = ["boolean", "byte", "unsigned_byte", "short", "unsigned_short", "char", "int", "long", "float", "double", "utf"]
SIZES = dict(zip(READS, [1, 1, 1, 2, 2, 2, 4, 8, 4, 8, 2], strict=True))
WRITES: list[tuple[str, Any, bytes]] = [
    ("boolean", True, b"\x01"),
    ("boolean", False, b"\x00"),
    ("byte", -1, b"\xff"),
    ("short", -2, b"\xff\xfe"),
    ("char", "ä", b"\x00\xe4"),
    ("char", "\ud83d", b"\xd8\x3d"),
    ("int", 1, b"\x00\x00\x00\x01"),
    ("long", -1, b"\xff" * 8),
    ("float", 1.5, struct.pack(">f", 1.5)),
    ("double", 0.1, struct.pack(">d", 0.1)),
    ("utf", "a\0é", b"\x00\x05a\xc0\x80\xc3\xa9"),
    ("bytes", b"abc", b"abc"),
]
OBJECTS: list[tuple[Any, bytes]] = [
    (True, b"\x01"),
    (Byte(5), b"\x05"),
    (Short(5), b"\x00\x05"),
    (Char("a"), b"\x00a"),
    (5, b"\x00\x00\x00\x05"),
    (Int(5), b"\x00\x00\x00\x05"),
    (Long(5), b"\x00\x00\x00\x00\x00\x00\x00\x05"),
    (2**40, struct.pack(">q", 2**40)),
    (Float(1.5), struct.pack(">f", 1.5)),
    (1.5, struct.pack(">d", 1.5)),
    (Double(1.5), struct.pack(">d", 1.5)),
    ("a", b"\x00\x01a"),
    (b"ab", b"ab"),
    (bytearray(b"ab"), b"ab"),
    (memoryview(b"ab"), b"ab"),
]


@pytest.fixture
def message(bench: Any) -> Any:
    return bench.new(MessageKind.BYTES)


def readable(bench: Any, data: bytes) -> Any:
    return bench.deliver(PlainEnvelope(MessageKind.BYTES, ("q", "q"), data))  # type: ignore[arg-type]


@pytest.mark.parametrize(("what", "value", "data"), WRITES)
def test_each_write_has_the_format_of_java(bench: Any, message: Any, what: str, value: Any, data: bytes) -> None:
    getattr(message, f"write_{what}")(value)
    assert bench.freeze(message).body == data
    if what != "bytes":
        message.reset()
        assert getattr(message, f"read_{what}")() == value


@pytest.mark.parametrize(("value", "data"), OBJECTS, ids=lambda it: "memoryview" if isinstance(it, memoryview) else repr(it)[:20])
def test_an_object_is_written_as_its_type(bench: Any, message: Any, value: Any, data: bytes) -> None:
    message.write_object(value)
    assert bench.freeze(message).body == data


@pytest.mark.parametrize("value", [[], object(), 2**63, 1j])
def test_an_object_of_another_type_is_refused(bench: Any, message: Any, value: Any) -> None:
    with pytest.raises(MessageFormatException):
        message.write_object(value)
    assert bench.freeze(message).body == b""


@pytest.mark.parametrize("what", ["object", "utf", "bytes", "boolean", "int", "double", "char"])
def test_none_cannot_be_written(bench: Any, message: Any, what: str) -> None:
    message.write_byte(1)
    with pytest.raises(NullPointerException):
        getattr(message, f"write_{what}")(None)
    assert bench.freeze(message).body == b"\x01"


def test_unsigned_reads_give_what_signed_ones_give_negative(bench: Any) -> None:
    message = readable(bench, b"\xff\xff\xff\xff\xff\xff")
    assert (message.read_byte(), message.read_unsigned_byte()) == (-1, 255)
    assert (message.read_short(), message.read_unsigned_short()) == (-1, 65535)


def test_any_byte_but_zero_is_true(bench: Any) -> None:
    message = readable(bench, b"\x02\x00\xff")
    assert [message.read_boolean() for _ in range(3)] == [True, False, True]


def test_numbers_read_with_their_precision(bench: Any, message: Any) -> None:
    message.write_float(0.1)
    message.write_double(math.nan)
    message.reset()
    assert message.read_float() == float(Float(0.1))
    assert math.isnan(message.read_double())


@pytest.mark.parametrize("what", READS)
def test_a_new_body_is_write_only(message: Any, what: str) -> None:
    message.write_long(1)
    with pytest.raises(MessageNotReadableException):
        getattr(message, f"read_{what}")()
    with pytest.raises(MessageNotReadableException):
        message.read_bytes(bytearray(1))
    with pytest.raises(MessageNotReadableException):
        _ = message.body_length


@pytest.mark.parametrize(("what", "value"), [*((what, value) for what, value, _ in WRITES), ("object", 1)])
def test_a_received_or_reset_body_is_read_only(bench: Any, message: Any, what: str, value: Any) -> None:
    message.write_bytes(b"kept")
    incoming = bench.pass_on(message)
    message.reset()
    for it in (incoming, message):
        with pytest.raises(MessageNotWriteableException):
            getattr(it, f"write_{what}")(value)
        assert it.get_body(bytes) == b"kept"


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("missing", [1, 99])
def test_a_read_past_the_end_moves_nothing(bench: Any, what: str, missing: int) -> None:
    left = max(0, SIZES[what] - missing)
    message = readable(bench, b"\x01" + b"\x02" * left)
    message.read_byte()
    for _ in range(2):
        with pytest.raises(MessageEOFException):
            getattr(message, f"read_{what}")()
    buffer = bytearray(9)
    assert message.read_bytes(buffer) == (left or -1)
    assert buffer[:left] == b"\x02" * left


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x80",
        b"\x00\x02\xc3A",
        b"\x00\x01\xc3",
        b"\x00\x02\xe2\x82",
        b"\x00\x04\xf0\x9f\x98\x80",
        b"\x00\x01\xff",
        b"\x00\x02\xc1\x81",
    ],
)
def test_text_that_is_no_modified_utf8_moves_nothing(bench: Any, data: bytes) -> None:
    message = readable(bench, data)
    for _ in range(2):
        with pytest.raises(MessageFormatException):
            message.read_utf()
    assert message.read_unsigned_short() == len(data) - 2
    assert message.read_unsigned_byte() == data[2]


def test_text_that_ends_early_moves_nothing(bench: Any) -> None:
    message = readable(bench, b"\x00\x03ab")
    with pytest.raises(MessageEOFException):
        message.read_utf()
    assert message.read_short() == 3


def test_text_may_take_65535_bytes(bench: Any, message: Any) -> None:
    message.write_utf("a" * 65_535)
    with pytest.raises(MessageFormatException, match="65536"):
        message.write_utf("a" * 65_536)
    with pytest.raises(MessageFormatException, match="65536"):
        message.write_utf("\0" * 32_768)
    message.reset()
    assert message.body_length == 65_537
    assert message.read_utf() == "a" * 65_535


def test_reading_in_parts_goes_on_where_it_stopped(bench: Any) -> None:
    message = readable(bench, b"12345")
    buffer = bytearray(2)
    assert [message.read_bytes(buffer) for _ in range(4)] == [2, 2, 1, -1]
    assert buffer == b"54"
    assert message.body_length == 5


def test_a_length_limits_the_read(bench: Any) -> None:
    message = readable(bench, b"12345")
    buffer = bytearray(4)
    assert message.read_bytes(buffer, 3) == 3
    assert message.read_bytes(memoryview(buffer)[1:], 1) == 1
    assert message.read_bytes(buffer, 0) == 0
    assert buffer == b"143\x00"


@pytest.mark.parametrize(
    ("buffer", "length"), [(bytearray(2), 3), (bytearray(2), -1), (b"ab", None), ("ab", None), (memoryview(b"ab"), None)]
)
def test_a_buffer_that_does_not_fit_is_refused(bench: Any, buffer: Any, length: int | None) -> None:
    message = readable(bench, b"12345")
    with pytest.raises(IllegalArgumentException):
        message.read_bytes(buffer, length)
    assert message.read_byte() == ord("1")


def test_no_buffer_is_a_null_pointer(bench: Any) -> None:
    with pytest.raises(NullPointerException):
        readable(bench, b"1").read_bytes(None)


def test_the_buffer_is_free_after_the_read(bench: Any) -> None:
    buffer = bytearray(2)
    readable(bench, b"12345").read_bytes(buffer)
    buffer.append(0)
    assert buffer == b"12\x00"


def test_a_part_of_the_bytes_can_be_written(bench: Any, message: Any) -> None:
    message.write_bytes(b"12345", 1, 3)
    message.write_bytes(memoryview(bytearray(b"abc")), 1)
    assert bench.freeze(message).body == b"234bc"
    for offset, length in [(-1, 1), (0, 6), (6, 0), (2, -1)]:
        with pytest.raises(IllegalArgumentException):
            message.write_bytes(b"12345", offset, length)
    assert bench.freeze(message).body == b"234bc"


def test_what_was_written_is_a_copy(bench: Any, message: Any) -> None:
    given = bytearray(b"abc")
    message.write_bytes(given)
    given[0] = 0
    assert bench.freeze(message).body == b"abc"


def test_a_sent_body_does_not_grow_with_the_message(bench: Any, message: Any) -> None:
    message.write_byte(1)
    first = bench.freeze(message)
    message.write_byte(2)
    assert (first.body, bench.freeze(message).body) == (b"\x01", b"\x01\x02")


def test_all_bytes_and_a_megabyte_pass(bench: Any, message: Any) -> None:
    data = bytes(range(256)) + random.Random(1).randbytes(2**20)
    message.write_bytes(data)
    incoming = bench.pass_on(message)
    assert incoming.body_length == len(data)
    assert incoming.get_body(bytes) == data


def test_get_body_resets_before_and_after(bench: Any, message: Any) -> None:
    message.write_int(7)
    assert message.get_body(bytes) == b"\x00\x00\x00\x07"
    assert message.read_int() == 7
    assert message.get_body(bytes) == b"\x00\x00\x00\x07"
    assert message.read_int() == 7


def test_clearing_makes_it_write_only_and_empty(bench: Any, message: Any) -> None:
    message.write_int(7)
    incoming = bench.pass_on(message)
    incoming.read_byte()
    incoming.clear_body()
    with pytest.raises(MessageNotReadableException):
        incoming.read_byte()
    incoming.write_byte(9)
    incoming.reset()
    assert (incoming.body_length, incoming.read_byte()) == (1, 9)


def test_reset_without_a_write_leaves_an_empty_body(message: Any) -> None:
    message.reset()
    assert message.body_length == 0
    assert message.read_bytes(bytearray(1)) == -1


def test_a_wire_without_a_body_gives_an_empty_one(bench: Any) -> None:
    assert readable(bench, None).body_length == 0  # type: ignore[arg-type]
