"""Tables 3.2 and 3.7, cell by cell, on properties, map entries and stream values, before and after transport."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from jmsapi.api import Message
from jmsapi.errors import MessageFormatException, NullPointerException, NumberFormatException
from jmsapi.spi import MessageKind
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short

COLUMNS = ("boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes")
# Row: stored as, the values to store, and what each readable column gives; every other column must refuse.
ROWS: list[tuple[str, Any, dict[str, Any]]] = [
    ("boolean", True, {"boolean": True, "string": "true"}),
    ("boolean", False, {"boolean": False, "string": "false"}),
    ("byte", Byte(-128), {"byte": -128, "short": -128, "int": -128, "long": -128, "string": "-128"}),
    ("short", Short(32767), {"short": 32767, "int": 32767, "long": 32767, "string": "32767"}),
    ("short", Short(5), {"short": 5, "int": 5, "long": 5, "string": "5"}),
    ("char", Char("ä"), {"char": "ä", "string": "ä"}),
    ("int", -(2**31), {"int": -(2**31), "long": -(2**31), "string": "-2147483648"}),
    ("int", Int(1), {"int": 1, "long": 1, "string": "1"}),
    ("long", 2**63 - 1, {"long": 2**63 - 1, "string": "9223372036854775807"}),
    ("long", Long(7), {"long": 7, "string": "7"}),
    ("float", Float(0.1), {"float": float(Float(0.1)), "double": float(Float(0.1)), "string": "0.1"}),
    ("float", Float(math.inf), {"float": math.inf, "double": math.inf, "string": "Infinity"}),
    ("double", 1e10, {"double": 1e10, "string": "1.0E10"}),
    ("double", Double(0.1), {"double": 0.1, "string": "0.1"}),
    (
        "string",
        "12",
        {"boolean": False, "byte": 12, "short": 12, "int": 12, "long": 12, "float": 12.0, "double": 12.0, "string": "12"},
    ),
    ("string", "TrUe", {"boolean": True, "string": "TrUe"}),
    ("bytes", b"\x00\xff", {"bytes": b"\x00\xff"}),
]
NULLS: dict[str, Any] = {
    "boolean": False,
    "byte": NumberFormatException,
    "short": NumberFormatException,
    "char": NullPointerException,
    "int": NumberFormatException,
    "long": NumberFormatException,
    "float": NullPointerException,
    "double": NullPointerException,
    "string": None,
    "bytes": None,
}
NUMBERS = ("byte", "short", "int", "long", "float", "double")


class PropertyPlace:
    """A property; there are no char and byte array ones."""

    columns = tuple(column for column in COLUMNS if column not in ("char", "bytes"))

    def __init__(self, bench: Any, transported: bool) -> None:
        self.bench, self.transported = bench, transported

    def holding(self, stored: str, value: Any, *, typed: bool) -> Callable[[str], Any]:
        message = self.bench.new(MessageKind.MESSAGE)
        if typed:
            getattr(message, f"set_{stored}_property")("it", value)
        else:
            message.set_object_property("it", value)
        if self.transported:
            message = self.bench.pass_on(message)
        return lambda column: getattr(message, f"get_{column}_property")("it")


class MapPlace:
    columns = COLUMNS

    def __init__(self, bench: Any, transported: bool) -> None:
        self.bench, self.transported = bench, transported

    def holding(self, stored: str, value: Any, *, typed: bool) -> Callable[[str], Any]:
        message = self.bench.new(MessageKind.MAP)
        getattr(message, f"set_{stored if typed else 'object'}")("it", value)
        if self.transported:
            message = self.bench.pass_on(message)
        return lambda column: getattr(message, f"get_{column}")("it")


class StreamPlace:
    columns = COLUMNS

    def __init__(self, bench: Any, transported: bool) -> None:
        self.bench, self.transported = bench, transported

    def holding(self, stored: str, value: Any, *, typed: bool) -> Callable[[str], Any]:
        message = self.bench.new(MessageKind.STREAM)
        getattr(message, f"write_{stored if typed else 'object'}")(value)
        if self.transported:
            message = self.bench.pass_on(message)

        def read(column: str) -> Any:
            message.reset()
            if column != "bytes":
                return getattr(message, f"read_{column}")()
            buffer = bytearray(8)
            count = message.read_bytes(buffer)
            return None if count < 0 else bytes(buffer[:count])

        return read


def no_such_property_type(stored: str) -> None:
    assert not hasattr(Message, f"set_{stored}_property")
    assert not hasattr(Message, f"get_{stored}_property")


@pytest.fixture(params=["new", "transported"])
def transported(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "transported")


@pytest.fixture(params=[PropertyPlace, MapPlace, StreamPlace])
def place(request: pytest.FixtureRequest, bench: Any, transported: bool) -> Any:
    return request.param(bench, transported)


@pytest.mark.parametrize("typed", [True, False], ids=["typed setter", "object setter"])
@pytest.mark.parametrize(("stored", "value", "readable"), ROWS, ids=lambda it: repr(it)[:20])
def test_a_value_reads_as_the_columns_of_its_row_and_no_other(
    place: Any, stored: str, value: Any, readable: dict[str, Any], typed: bool
) -> None:
    if stored not in place.columns:
        no_such_property_type(stored)
        return
    read = place.holding(stored, value, typed=typed)
    for column in place.columns:
        if column in readable:
            got = read(column)
            assert got == readable[column]
            assert type(got) is type(readable[column]), "getters give plain Python values"
        elif stored == "string" and column in NUMBERS:
            with pytest.raises(NumberFormatException):
                read(column)
        else:
            with pytest.raises(MessageFormatException):
                read(column)


@pytest.mark.parametrize("typed", [True, False], ids=["typed setter", "object setter"])
def test_null_reads_like_value_of_null(place: Any, typed: bool) -> None:
    read = place.holding("string", None, typed=typed)
    assert read("object") is None
    for column in place.columns:
        if isinstance(NULLS[column], type):
            with pytest.raises(NULLS[column]):
                read(column)
        else:
            assert read(column) is NULLS[column]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("abc", NUMBERS),
        ("", NUMBERS),
        ("1.5", ("byte", "short", "int", "long")),
        ("128", ("byte",)),
        ("-32769", ("byte", "short")),
        ("99999999999", ("byte", "short", "int")),
        ("9223372036854775808", ("byte", "short", "int", "long")),
        (" 1", ("byte", "short", "int", "long")),
        ("1_0", NUMBERS),
        ("0x10", NUMBERS),
        ("nan", NUMBERS),
    ],
)
def test_text_that_is_no_number_of_the_type_is_a_number_format_exception(place: Any, text: str, refused: tuple[str, ...]) -> None:
    read = place.holding("string", text, typed=True)
    for column in NUMBERS:
        if column in refused:
            with pytest.raises(NumberFormatException) as caught:
                read(column)
            assert not isinstance(caught.value, MessageFormatException)
        else:
            read(column)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("false", False), ("1", False), ("", False), ("yes", False), ("ｔｒｕｅ", False)],
)
def test_text_as_boolean_is_true_only_for_the_word(place: Any, text: str, value: bool) -> None:
    assert place.holding("string", text, typed=True)("boolean") is value


@pytest.mark.parametrize(
    ("stored", "value", "kept"),
    [
        ("boolean", True, bool),
        ("byte", 1, Byte),
        ("short", 1, Short),
        ("int", 1, int),
        ("long", 1, Long),
        ("long", 2**40, Long),
        ("float", 1.5, Float),
        ("double", 1.5, float),
        ("string", "1", str),
        ("char", "1", Char),
        ("bytes", b"1", bytes),
    ],
)
def test_the_object_getter_tells_the_type(place: Any, stored: str, value: Any, kept: type) -> None:
    if stored not in place.columns:
        no_such_property_type(stored)
        return
    got = place.holding(stored, value, typed=True)("object")
    assert type(got) is kept
    assert got == value


@pytest.mark.parametrize(
    ("given", "kept"), [(Int(5), int), (Double(1.5), float), (2**31, Long), (-(2**31) - 1, Long), (2**31 - 1, int)]
)
def test_the_object_setter_takes_the_type_from_the_class_and_the_size(place: Any, given: Any, kept: type) -> None:
    got = place.holding("object", given, typed=False)("object")
    assert type(got) is kept
    assert got == given


@pytest.mark.parametrize("value", [[], {}, object(), 1j, 2**63, -(2**63) - 1, {1}, int], ids=lambda it: repr(it)[:20])
def test_the_object_setter_refuses_what_java_has_no_type_for(place: Any, value: Any) -> None:
    with pytest.raises(MessageFormatException):
        place.holding("object", value, typed=False)


@pytest.mark.parametrize(
    ("stored", "low", "high"),
    [("byte", -(2**7), 2**7 - 1), ("short", -(2**15), 2**15 - 1), ("int", -(2**31), 2**31 - 1), ("long", -(2**63), 2**63 - 1)],
)
def test_a_typed_setter_takes_exactly_its_range(place: Any, stored: str, low: int, high: int) -> None:
    for value in (low, high):
        assert place.holding(stored, value, typed=True)(stored) == value
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match="range") as caught:
            place.holding(stored, value, typed=True)
        assert type(caught.value).__name__ == "IllegalArgumentException"


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ("boolean", 1),
        ("boolean", "true"),
        ("byte", True),
        ("byte", 1.0),
        ("int", "1"),
        ("int", True),
        ("long", 1.5),
        ("float", "1"),
        ("float", True),
        ("double", b"1"),
        ("double", "1"),
        ("string", 1),
        ("string", b"1"),
        ("char", 65),
        ("bytes", "1"),
        ("bytes", [1]),
    ],
)
def test_a_typed_setter_refuses_another_type(place: Any, stored: str, value: Any) -> None:
    if stored not in place.columns:
        no_such_property_type(stored)
        return
    with pytest.raises(MessageFormatException):
        place.holding(stored, value, typed=True)


@pytest.mark.parametrize("stored", ["boolean", "byte", "short", "int", "long", "float", "double", "char"])
def test_a_typed_setter_of_a_primitive_refuses_none(place: Any, stored: str) -> None:
    if stored not in place.columns:
        no_such_property_type(stored)
        return
    with pytest.raises(NullPointerException):
        place.holding(stored, None, typed=True)


def test_numbers_of_other_libraries_are_taken_by_what_they_are(place: Any) -> None:
    class Index:
        def __index__(self) -> int:
            return 7

    class Real:
        def __float__(self) -> float:
            return 1.5

    assert place.holding("short", Index(), typed=True)("short") == 7
    assert place.holding("double", Real(), typed=True)("double") == 1.5
    assert place.holding("double", 3, typed=True)("double") == 3.0


def test_a_float_is_rounded_to_32_bits(place: Any) -> None:
    assert place.holding("float", 0.1, typed=True)("double") == 0.10000000149011612
    assert place.holding("float", 1e300, typed=True)("float") == math.inf
    assert math.isnan(place.holding("float", math.nan, typed=True)("float"))


def test_a_whole_number_beyond_double_is_refused(place: Any) -> None:
    with pytest.raises(ValueError, match="range of double"):
        place.holding("double", 10**400, typed=True)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "😀\ud83d"])
def test_half_of_a_surrogate_pair_is_no_text(place: Any, text: str) -> None:
    with pytest.raises(MessageFormatException, match="surrogate"):
        place.holding("string", text, typed=True)
    with pytest.raises(MessageFormatException, match="surrogate"):
        place.holding("object", text, typed=False)


def test_a_char_may_be_half_of_a_surrogate_pair(bench: Any) -> None:
    message = bench.new(MessageKind.MAP)
    message.set_char("c", "\ud83d")
    assert message.get_char("c") == "\ud83d"


@pytest.mark.parametrize("value", ["", "ab", "😀"])
def test_a_char_is_one_utf16_unit(bench: Any, value: str) -> None:
    for call in (
        lambda: bench.new(MessageKind.MAP).set_char("c", value),
        lambda: bench.new(MessageKind.STREAM).write_char(value),
    ):
        with pytest.raises(ValueError, match="code unit"):
            call()


def test_enumerations_travel_as_their_values(place: Any) -> None:
    class Number(IntEnum):
        ONE = 1

    class Word(StrEnum):
        HELLO = "hello"

    assert type(place.holding("object", Number.ONE, typed=False)("object")) is int
    assert type(place.holding("object", Word.HELLO, typed=False)("object")) is str
    assert type(place.holding("string", Word.HELLO, typed=True)("string")) is str
