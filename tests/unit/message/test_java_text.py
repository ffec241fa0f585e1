"""Numbers as text and back, against answers of java.lang (parsing: JDK 17; writing: JDK 19, where the digits are fewest)."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsapi._core.message.java_text import double_text, float_text, parse_boolean, parse_double, parse_float, parse_integer
from jmsapi.errors import NumberFormatException

DOUBLES = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (-1.5, "-1.5"),
    (100.0, "100.0"),
    (0.001, "0.001"),
    (0.002, "0.002"),
    (0.00123, "0.00123"),
    (0.000999, "9.99E-4"),
    (1e-3, "0.001"),
    (1e-4, "1.0E-4"),
    (9999999.0, "9999999.0"),
    (9999999.999999998, "9999999.999999998"),
    (1e7, "1.0E7"),
    (12345678.9, "1.23456789E7"),
    (1e23, "1.0E23"),
    (2.0**63, "9.223372036854776E18"),
    (5e-324, "4.9E-324"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (2.2250738585072014e-308, "2.2250738585072014E-308"),
    (math.pi, "3.141592653589793"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
    (math.nan, "NaN"),
]
FLOATS = [
    (0.1, "0.1"),
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (3.4028234663852886e38, "3.4028235E38"),
    (1.401298464324817e-45, "1.4E-45"),
    (16777216.0, "1.6777216E7"),
    (1234567.0, "1234567.0"),
    (0.3, "0.3"),
    (3.1415927410125732, "3.1415927"),
    (math.inf, "Infinity"),
    (math.nan, "NaN"),
]
REALS = [
    ("1", 1.0),
    ("+1.5", 1.5),
    ("-.5", -0.5),
    ("5.", 5.0),
    ("1e5", 1e5),
    ("1E-5", 1e-5),
    ("1f", 1.0),
    ("1.5D", 1.5),
    (" \t\n1.5\x00\x1f", 1.5),
    ("NaN", math.nan),
    ("-NaN", math.nan),
    ("Infinity", math.inf),
    ("-Infinity", -math.inf),
    ("1e400", math.inf),
    ("-1e400", -math.inf),
    ("1e-400", 0.0),
    ("0x1p3", 8.0),
    ("-0X1.8P1f", -3.0),
    ("0x.8p0", 0.5),
    ("0x1p99999", math.inf),
    ("-0x1p99999", -math.inf),
]
NO_REALS = [
    "",
    " ",
    "+",
    ".",
    "e5",
    "1e",
    "nan",
    "inf",
    "infinity",
    "1_0",
    "0x1",
    "0xp1",
    "1.5 d",
    "\u00a01",
    "1dd",
    "٣",
    "0x1p",
    "1,5",
    "1L",
]
INTEGERS = [
    ("0", 0),
    ("+5", 5),
    ("-5", -5),
    ("007", 7),
    ("0" * 5000 + "5", 5),
    ("٣", 3),
    ("-٣", -3),
    ("127", 127),
    ("-128", -128),
    ("-0", 0),
]
NO_INTEGERS = ["", "+", "-", "+-1", " 1", "1 ", "1.0", "1_0", "0x1", "1L", "𝟙", "1e1", "--1", "²"]
# The double nearest to the text lies half-way between two floats, the text does not: rounding twice would be wrong.
HALF_WAY = [
    ("1.00000017881393421514957253748434595763683319091796875", 1.0000001192092896),
    ("1.00000017881393432617187499", 1.0000001192092896),
    ("1.000000178813934326171875", 1.000000238418579),
    ("1.00000017881393432617187501", 1.000000238418579),
    ("3.40282356779733661637539395458142568447e38", 3.4028234663852886e38),
    ("3.40282356779733661637539395458142568448e38", math.inf),
    ("-3.40282356779733661637539395458142568447e38", -3.4028234663852886e38),
    ("7.0064923216240853546186479164495806564013097093825788587853e-46", 0.0),
    ("7.0064923216240853546186479164495806564013097093825788587854e-46", 1.401298464324817e-45),
]


def same(a: float, b: float) -> bool:
    return struct.pack(">d", a) == struct.pack(">d", b) or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize(("value", "text"), DOUBLES)
def test_a_double_is_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize(("value", "text"), FLOATS)
def test_a_float_is_written_as_in_java(value: float, text: str) -> None:
    assert float_text(value) == text


@pytest.mark.parametrize(("text", "value"), REALS, ids=lambda it: ascii(it))
def test_a_real_number_is_read_as_in_java(text: str, value: float) -> None:
    assert same(parse_double(text), value)
    assert same(parse_float(text), struct.unpack(">f", struct.pack(">f", value))[0])


@pytest.mark.parametrize("text", NO_REALS, ids=ascii)
def test_what_java_does_not_read_as_real_is_refused(text: str) -> None:
    for parse in (parse_double, parse_float):
        with pytest.raises(NumberFormatException):
            parse(text)


@pytest.mark.parametrize(("text", "value"), HALF_WAY)
def test_a_float_is_rounded_once(text: str, value: float) -> None:
    assert same(parse_float(text), value)


@pytest.mark.parametrize(("text", "value"), INTEGERS, ids=lambda it: ascii(it)[:20])
def test_a_whole_number_is_read_as_in_java(text: str, value: int) -> None:
    for kind in ("byte", "short", "int", "long"):
        assert parse_integer(text, kind) == value


@pytest.mark.parametrize("text", NO_INTEGERS, ids=ascii)
def test_what_java_does_not_read_as_whole_is_refused(text: str) -> None:
    with pytest.raises(NumberFormatException, match="cannot be read"):
        parse_integer(text, "long")


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9" * 20, "9" * 10_000])
def test_a_whole_number_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(NumberFormatException, match="range") as caught:
        parse_integer(text, "long")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("tRuE", True), ("", False), ("true ", False), ("ﬁ", False)]
)
def test_a_boolean_is_read_as_in_java(text: str, value: bool) -> None:
    assert parse_boolean(text) is value


@given(st.floats())
def test_a_double_reads_back_from_its_text(value: float) -> None:
    assert same(parse_double(double_text(value)), value)


@given(st.floats(width=32))
def test_a_float_reads_back_from_its_text(value: float) -> None:
    assert same(parse_float(float_text(value)), value)


@given(st.text(alphabet="0123456789+-.eEfFdDxXpPaANInfity \t٣_", max_size=12))
def test_no_text_gives_any_other_error(text: str) -> None:
    for parse in (parse_double, parse_float, lambda it: parse_integer(it, "int")):
        try:
            parse(text)
        except NumberFormatException:
            continue
