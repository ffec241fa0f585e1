"""Java's numbers, with answers taken from the Java language and not from this library."""

from __future__ import annotations

import math
import struct

import pytest

from jmsapi_selector.java_numbers import NumberKind, calculate, negate, read_literal, to_float

INT, LONG, FLOAT, DOUBLE = NumberKind
MAX_INT, MIN_INT, MAX_LONG, MIN_LONG = 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)


@pytest.mark.requirement("3.8.1.1-8", "3.8.1.1-9", "3.8.1.1-10", "3.8.1.1-11")
@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("0", 0, "int"),
        ("2147483647", MAX_INT, "int"),
        ("2147483648", MAX_INT + 1, "long"),
        ("1L", 1, "long"),
        ("9223372036854775807", MAX_LONG, "long"),
        ("017", 15, "int"),
        ("00", 0, "int"),
        ("0777l", 511, "long"),
        ("0xff", 255, "int"),
        ("0x7FFFFFFF", MAX_INT, "int"),
        ("0xFFFFFFFF", -1, "int"),
        ("0xFFFFFFFFL", 2**32 - 1, "long"),
        ("0xFFFFFFFFFFFFFFFFL", -1, "long"),
        ("0x00000000000000000000001", 1, "int"),
        ("037777777777", -1, "int"),
        ("1.", 1.0, "double"),
        (".5", 0.5, "double"),
        ("1e3", 1000.0, "double"),
        ("1E+3d", 1000.0, "double"),
        ("08.5", 8.5, "double"),
        ("09f", 9.0, "float"),
        ("1D", 1.0, "double"),
        ("0.1f", 0.10000000149011612, "float"),
        ("0e999", 0.0, "double"),
        ("4.9E-324", 5e-324, "double"),
        # Half-way between two floats as a double, a little above that in truth: one rounding goes up, two go down.
        ("1.00000017881393432617187499f", 1.0000001192092896, "float"),
        ("1.00000017881393432617187501f", 1.000000238418579, "float"),
    ],
)
def test_a_literal_has_the_value_and_type_of_java(text: str, value: float, kind: str) -> None:
    assert read_literal(text) == (value, kind)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("2147483648", MIN_INT, "int"),
        ("2147483649", MIN_INT - 1, "long"),
        ("9223372036854775808", MIN_LONG, "long"),
        ("9223372036854775808L", MIN_LONG, "long"),
        ("0x80000000", MIN_INT, "int"),
        ("2.5", -2.5, "double"),
    ],
)
def test_a_minus_belongs_to_its_literal(text: str, value: float, kind: str) -> None:
    assert read_literal(text, negative=True) == (value, kind)


@pytest.mark.parametrize(
    "text",
    ["", "08", "0x", "0xG", "1e", "1e+", "1.5.2", "1f2", "1_000", "0b1", "0x1p3", "1LL", "1uL", "0x10000000000000000",
     "9223372036854775808", "9" * 5000, "1e309", "1e-325", "4e38f", "1e-50f", "02000000000000000000000"],
)  # fmt: skip
def test_what_java_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|octal"):
        read_literal(text)


@pytest.mark.requirement("3.8.1.1-35")
@pytest.mark.parametrize(
    ("left", "sign", "right", "result"),
    [
        ((INT, MAX_INT), "+", (INT, 1), (INT, MIN_INT)),
        ((INT, MAX_INT), "+", (LONG, 1), (LONG, MAX_INT + 1)),
        ((LONG, MAX_LONG), "+", (LONG, 1), (LONG, MIN_LONG)),
        ((INT, MIN_INT), "-", (INT, 1), (INT, MAX_INT)),
        ((INT, 65536), "*", (INT, 65536), (INT, 0)),
        ((LONG, 2**32), "*", (INT, 2**31 - 1), (LONG, 2**63 - 2**32)),
        ((INT, 7), "/", (INT, 2), (INT, 3)),
        ((INT, -7), "/", (INT, 2), (INT, -3)),
        ((INT, 7), "/", (INT, -2), (INT, -3)),
        ((INT, -7), "/", (INT, -2), (INT, 3)),
        ((INT, MIN_INT), "/", (INT, -1), (INT, MIN_INT)),
        ((LONG, MIN_LONG), "/", (INT, -1), (LONG, MIN_LONG)),
        ((INT, 7), "/", (DOUBLE, 2.0), (DOUBLE, 3.5)),
        ((INT, 16777217), "+", (FLOAT, 0.0), (FLOAT, 16777216.0)),
        ((FLOAT, 3e38), "*", (FLOAT, 10.0), (FLOAT, math.inf)),
        ((FLOAT, 3e38), "*", (DOUBLE, 10.0), (DOUBLE, 3e39)),
        ((DOUBLE, 1.0), "/", (INT, 0), (DOUBLE, math.inf)),
        ((DOUBLE, -1.0), "/", (INT, 0), (DOUBLE, -math.inf)),
        ((DOUBLE, 1.0), "/", (DOUBLE, -0.0), (DOUBLE, -math.inf)),
    ],
)
def test_arithmetic_is_that_of_java(
    left: tuple[NumberKind, float], sign: str, right: tuple[NumberKind, float], result: tuple[NumberKind, float]
) -> None:
    assert calculate(sign, left, right) == result


def test_zero_divided_by_zero_is_not_a_number_in_double() -> None:
    result = calculate("/", (DOUBLE, 0.0), (INT, 0))
    assert result is not None
    assert math.isnan(result[1])


def test_a_whole_number_divided_by_zero_has_no_value() -> None:
    assert calculate("/", (INT, 1), (LONG, 0)) is None


def test_the_least_numbers_stay_when_negated() -> None:
    assert negate((INT, MIN_INT)) == (INT, MIN_INT)
    assert negate((LONG, MIN_LONG)) == (LONG, MIN_LONG)
    assert negate((LONG, MIN_INT)) == (LONG, -MIN_INT)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (16777217, 16777216.0),
        (16777219, 16777220.0),
        # As a double this long is exactly half-way between two floats, and its last bit decides.
        (2**60 + 2**36 + 1, float(2**60 + 2**37)),
        (-(2**60) - 2**36 - 1, -float(2**60 + 2**37)),
        (2**60 + 2**36, float(2**60)),
    ],
)
def test_a_long_becomes_the_nearest_float_in_one_rounding(value: int, rounded: float) -> None:
    assert to_float(value) == rounded


def test_doubles_become_floats_as_the_machine_does_it() -> None:
    for value in (0.1, 1e-45, 1e-46, 3.4028235e38, -2.5, 1 / 3):
        assert to_float(value) == struct.unpack("f", struct.pack("f", value))[0]
    assert to_float(1e39) == math.inf
    assert to_float(-math.inf) == -math.inf
