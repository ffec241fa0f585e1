"""StreamMessage: order, positions that a failed read leaves alone, byte arrays in parts."""

from __future__ import annotations

from typing import Any

import pytest

from jmsapi.errors import (
    IllegalArgumentException,
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
    MessageNotWriteableException,
    NullPointerException,
    NumberFormatException,
)
from jmsapi.spi import MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short

VALUES: dict[str, Any] = {
    "boolean": True,
    "byte": -128,
    "short": 32767,
    "char": "ä",
    "int": -(2**31),
    "long": 2**63 - 1,
    "float": 1.5,
    "double": 0.1,
    "string": "grüß €😀\0",
    "bytes": b"\x00\xff",
    "object": "any",
}
READS = [name for name in VALUES if name != "bytes"]


@pytest.fixture
def message(bench: Any) -> Any:
    return bench.new(MessageKind.STREAM)


def stream(bench: Any, *values: Any) -> Any:
    message = bench.new(MessageKind.STREAM)
    for value in values:
        message.write_object(value)
    return bench.pass_on(message)


def parts(message: Any, size: int, calls: int) -> list[int]:
    return [message.read_bytes(bytearray(size)) for _ in range(calls)]


def test_values_come_in_the_order_written(bench: Any, message: Any) -> None:
    for name, value in VALUES.items():
        getattr(message, f"write_{name}")(value)
    for it in (bench.pass_on(message), message):
        it.reset()
        for name in READS[:-1]:
            assert getattr(it, f"read_{name}")() == VALUES[name]
        buffer = bytearray(9)
        assert it.read_bytes(buffer) == 2
        assert buffer[:2] == b"\x00\xff"
        assert it.read_object() == "any"
        with pytest.raises(MessageEOFException):
            it.read_object()


@pytest.mark.parametrize(
    "value", [True, Byte(1), Short(1), Char("a"), 1, Long(1), Float(1.5), 1.5, "a", b"a", None], ids=lambda it: type(it).__name__
)
def test_an_object_comes_back_as_the_same_type(bench: Any, value: Any) -> None:
    got = stream(bench, value).read_object()
    assert (type(got), got) == (type(value), value)


@pytest.mark.parametrize("what", READS)
def test_a_new_body_is_write_only(message: Any, what: str) -> None:
    message.write_string("1")
    with pytest.raises(MessageNotReadableException):
        getattr(message, f"read_{what}")()
    with pytest.raises(MessageNotReadableException):
        message.read_bytes(bytearray(1))


@pytest.mark.parametrize("what", VALUES)
def test_a_received_or_reset_body_is_read_only(bench: Any, message: Any, what: str) -> None:
    message.write_string("kept")
    incoming = bench.pass_on(message)
    message.reset()
    for it in (incoming, message):
        with pytest.raises(MessageNotWriteableException):
            getattr(it, f"write_{what}")(VALUES[what])
        assert it.read_string() == "kept"
        with pytest.raises(MessageEOFException):
            it.read_string()


@pytest.mark.parametrize("what", READS)
def test_reading_past_the_end_is_reported_each_time(bench: Any, what: str) -> None:
    message = stream(bench)
    for _ in range(2):
        with pytest.raises(MessageEOFException):
            getattr(message, f"read_{what}")()
        with pytest.raises(MessageEOFException):
            message.read_bytes(bytearray(1))
    message.reset()
    with pytest.raises(MessageEOFException):
        getattr(message, f"read_{what}")()


def test_a_failed_read_leaves_the_value_for_the_next(bench: Any) -> None:
    message = stream(bench, "abc", None, 5, b"xy")
    with pytest.raises(NumberFormatException):
        message.read_int()
    with pytest.raises(MessageFormatException):
        message.read_bytes(bytearray(3))
    with pytest.raises(MessageFormatException):
        message.read_char()
    assert message.read_string() == "abc"
    with pytest.raises(NumberFormatException):
        message.read_long()
    with pytest.raises(NullPointerException):
        message.read_double()
    assert message.read_object() is None
    for wrong in (message.read_short, message.read_float, message.read_boolean, message.read_char):
        with pytest.raises(MessageFormatException):
            wrong()
    assert message.read_long() == 5
    with pytest.raises(MessageFormatException):
        message.read_string()
    assert message.read_object() == b"xy"


def test_a_byte_array_larger_than_the_buffer_takes_several_calls(bench: Any) -> None:
    assert parts(stream(bench, b"12345"), 2, 4) == [2, 2, 1, -1]


def test_the_parts_hold_the_bytes_in_order(bench: Any) -> None:
    message, buffer, got = stream(bench, b"12345"), bytearray(2), b""
    while (count := message.read_bytes(buffer)) > 0:
        got += buffer[:count]
    assert got == b"12345"


def test_a_part_that_fills_the_buffer_must_be_followed_by_another_call(bench: Any) -> None:
    message = stream(bench, b"1234", 7)
    assert message.read_bytes(bytearray(4)) == 4
    with pytest.raises(MessageFormatException, match="half read"):
        message.read_int()
    with pytest.raises(MessageFormatException, match="half read"):
        message.read_object()
    assert message.read_bytes(bytearray(4)) == -1
    assert message.read_int() == 7


def test_a_part_that_leaves_room_ends_the_array(bench: Any) -> None:
    message = stream(bench, b"123", 7)
    assert message.read_bytes(bytearray(4)) == 3
    assert message.read_int() == 7


def test_asking_again_after_the_end_gives_minus_one_once(bench: Any) -> None:
    message = stream(bench, b"123", 7)
    assert parts(message, 4, 2) == [3, -1]
    with pytest.raises(MessageFormatException):
        message.read_bytes(bytearray(4))
    assert message.read_int() == 7


def test_asking_again_at_the_end_of_the_body_gives_minus_one_once(bench: Any) -> None:
    message = stream(bench, b"123")
    assert parts(message, 4, 2) == [3, -1]
    with pytest.raises(MessageEOFException):
        message.read_bytes(bytearray(4))


def test_after_the_end_the_next_byte_array_begins(bench: Any) -> None:
    assert parts(stream(bench, b"123", b"45", None, b"6"), 4, 5) == [3, 2, -1, 1, -1]


def test_a_null_array_is_minus_one_and_done(bench: Any) -> None:
    message = stream(bench, None, 7)
    assert message.read_bytes(bytearray(4)) == -1
    assert message.read_int() == 7


def test_an_empty_array_is_zero_bytes(bench: Any) -> None:
    message = stream(bench, b"", b"1", 7)
    assert parts(message, 4, 2) == [0, 1]
    assert message.read_int() == 7


def test_a_buffer_of_nothing_reads_nothing_of_it(bench: Any) -> None:
    message = stream(bench, b"12", b"", 7)
    assert parts(message, 0, 2) == [0, 0]
    assert parts(message, 2, 2) == [2, -1]
    assert parts(message, 0, 2) == [0, -1]
    assert message.read_int() == 7


def test_a_failed_read_inside_an_array_goes_on_where_it_was(bench: Any) -> None:
    message, buffer = stream(bench, b"12345"), bytearray(2)
    assert message.read_bytes(buffer) == 2
    for wrong in (None, b"xx", "xx"):
        with pytest.raises((NullPointerException, IllegalArgumentException)):
            message.read_bytes(wrong)
    with pytest.raises(MessageFormatException):
        message.read_string()
    assert message.read_bytes(buffer) == 2
    assert buffer == b"34"


def test_reset_begins_again_even_inside_an_array(bench: Any) -> None:
    message = stream(bench, b"12345", 7)
    assert message.read_bytes(bytearray(2)) == 2
    message.reset()
    assert parts(message, 9, 1) == [5]
    assert message.read_int() == 7


def test_the_body_cannot_be_had_as_a_whole(bench: Any, message: Any) -> None:
    message.write_int(1)
    for it in (message, bench.pass_on(message), bench.new(MessageKind.STREAM)):
        for wanted in (object, list, str, int):
            with pytest.raises(MessageFormatException):
                it.get_body(wanted)
            assert it.is_body_assignable_to(wanted) is False


@pytest.mark.parametrize("value", [[], {}, object(), 2**63, 1j])
def test_other_types_are_refused_and_nothing_is_written(bench: Any, message: Any, value: Any) -> None:
    with pytest.raises(MessageFormatException):
        message.write_object(value)
    assert list(bench.freeze(message).body) == []


def test_bytes_are_copied_in_and_may_be_a_part(message: Any) -> None:
    given = bytearray(b"12345")
    message.write_bytes(given)
    message.write_bytes(given, 1, 2)
    message.write_object(given)
    given[:] = b"....."
    message.reset()
    assert [message.read_object() for _ in range(3)] == [b"12345", b"23", b"12345"]


def test_a_sent_body_does_not_grow_with_the_message(bench: Any, message: Any) -> None:
    message.write_int(1)
    first = bench.freeze(message)
    message.write_int(2)
    second = bench.freeze(message)
    message.clear_body()
    message.write_int(3)
    assert (list(first.body), list(second.body), list(bench.freeze(message).body)) == ([1], [1, 2], [3])


def test_a_body_that_was_sent_is_copied_once_and_not_by_each_write(bench: Any, message: Any) -> None:
    message.write_int(1)
    bench.freeze(message)
    message.write_int(2)
    body = message._items
    for value in (3, 4):
        message.write_int(value)
        assert message._items is body
    assert body == [1, 2, 3, 4]


def test_clearing_makes_it_write_only_and_empty(bench: Any, message: Any) -> None:
    message.write_int(1)
    incoming = bench.pass_on(message)
    incoming.clear_body()
    with pytest.raises(MessageNotReadableException):
        incoming.read_int()
    incoming.write_int(2)
    incoming.reset()
    assert incoming.read_int() == 2
    assert bench.pass_on(message).read_int() == 1
