"""MapMessage: entries by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jmsapi.errors import IllegalArgumentException, MessageFormatException, MessageNotWriteableException
from jmsapi.spi import MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short

VALUES: dict[str, Any] = {
    "boolean": True,
    "byte": 1,
    "short": 2,
    "char": "c",
    "int": 3,
    "long": 4,
    "float": 1.5,
    "double": 2.5,
    "string": "s",
    "bytes": b"b",
    "object": "o",
}


@pytest.fixture
def message(bench: Any) -> Any:
    return bench.new(MessageKind.MAP)


@pytest.fixture
def full(message: Any) -> Any:
    for name, value in VALUES.items():
        getattr(message, f"set_{name}")(name, value)
    return message


def test_each_type_comes_back_by_name(bench: Any, full: Any) -> None:
    for it in (full, bench.pass_on(full)):
        assert {name: getattr(it, f"get_{name}")(name) for name in VALUES} == VALUES
        assert set(it.map_names) == set(VALUES)


def test_the_body_as_a_mapping_keeps_the_types(bench: Any, full: Any) -> None:
    expected = [True, Byte(1), Short(2), Char("c"), 3, Long(4), Float(1.5), 2.5, "s", b"b", "o"]
    for it in (full, bench.pass_on(full)):
        body = it.get_body(dict)
        assert list(body) == list(VALUES)
        assert list(body.values()) == expected
        assert [type(value) for value in body.values()] == [type(value) for value in expected]


def test_the_body_is_a_copy(bench: Any, full: Any) -> None:
    for it in (full, bench.pass_on(full)):
        it.get_body(dict).clear()
        assert set(it.map_names) == set(VALUES)


@pytest.mark.parametrize("wanted", [dict, Mapping, object, dict[str, Any]])
def test_the_body_can_be_had_as_a_mapping(full: Any, wanted: Any) -> None:
    assert full.is_body_assignable_to(wanted)
    assert full.get_body(wanted)["int"] == 3


@pytest.mark.parametrize("wanted", [list, str, int, "dict", None])
def test_the_body_cannot_be_had_as_something_else(full: Any, wanted: Any) -> None:
    with pytest.raises(MessageFormatException):
        full.get_body(wanted)
    if isinstance(wanted, type):
        assert not full.is_body_assignable_to(wanted)


def test_an_empty_map_is_a_body(bench: Any, message: Any) -> None:
    assert message.get_body(dict) == bench.pass_on(message).get_body(dict) == {}
    assert not message.is_body_assignable_to(str)


def test_setting_again_replaces_value_and_type(message: Any) -> None:
    message.set_int("a", 1)
    message.set_string("a", "x")
    assert message.get_object("a") == "x"
    assert list(message.map_names) == ["a"]


def test_an_unset_name_reads_as_null(message: Any) -> None:
    assert message.get_object("nothing") is message.get_string("nothing") is message.get_bytes("nothing") is None
    assert message.get_boolean("nothing") is False
    assert not message.item_exists("nothing")
    message.set_string("null", None)
    assert message.item_exists("null")


@pytest.mark.parametrize("name", [None, "", 5, b"a"])
@pytest.mark.parametrize("setter", VALUES)
def test_every_setter_refuses_what_is_no_name(message: Any, setter: str, name: Any) -> None:
    with pytest.raises(IllegalArgumentException):
        getattr(message, f"set_{setter}")(name, VALUES[setter])
    assert list(message.map_names) == []


@pytest.mark.parametrize("name", ["a b", "1", "null", "JMSX", "😀", "\0", "a.b", "$bytes"])
def test_any_other_text_is_a_name(bench: Any, message: Any, name: str) -> None:
    message.set_int(name, 1)
    assert bench.pass_on(message).get_int(name) == 1


def test_a_name_with_half_of_a_surrogate_pair_is_refused(message: Any) -> None:
    with pytest.raises(MessageFormatException, match="surrogate"):
        message.set_int("a\ud800", 1)


@pytest.mark.parametrize("setter", VALUES)
def test_a_received_body_is_read_only(bench: Any, full: Any, setter: str) -> None:
    incoming = bench.pass_on(full)
    with pytest.raises(MessageNotWriteableException):
        getattr(incoming, f"set_{setter}")("new", VALUES[setter])
    assert not incoming.item_exists("new")


def test_after_clearing_it_can_be_written(bench: Any, full: Any) -> None:
    incoming = bench.pass_on(full)
    incoming.clear_body()
    assert list(incoming.map_names) == []
    incoming.set_int("a", 1)
    assert incoming.get_body(dict) == {"a": 1}
    assert full.get_int("int") == 3


def test_bytes_are_copied_in_and_may_be_a_part(message: Any) -> None:
    given = bytearray(b"12345")
    message.set_bytes("all", given)
    message.set_bytes("part", given, 1, 2)
    message.set_object("object", given)
    given[:] = b"....."
    assert message.get_body(dict) == {"all": b"12345", "part": b"23", "object": b"12345"}
    with pytest.raises(IllegalArgumentException):
        message.set_bytes("a", b"123", 2, 2)


def test_a_sent_body_does_not_change_with_the_message(bench: Any, message: Any) -> None:
    message.set_int("a", 1)
    first = bench.freeze(message)
    message.set_int("a", 2)
    second = bench.freeze(message)
    message.clear_body()
    assert (first.body, second.body, bench.freeze(message).body) == ({"a": 1}, {"a": 2}, {})


def test_a_body_that_was_sent_is_copied_once_and_not_by_each_write(bench: Any, message: Any) -> None:
    message.set_int("a", 1)
    bench.freeze(message)
    message.set_int("b", 2)
    body = message._entries
    for name in ("c", "d"):
        message.set_int(name, 3)
        assert message._entries is body
    assert body == {"a": 1, "b": 2, "c": 3, "d": 3}
