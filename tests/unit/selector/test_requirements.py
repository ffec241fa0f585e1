"""Each requirement of chapter 3.8, by its id, as far as it is about the language.

What needs a broker or a consumer (the creators that raise, the header fields of messages that travelled) is proved again
through the API, by the conformance suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import pytest

from jmsapi.values import Byte, Double, Float, Long, Value
from jmsapi_conformance.inventory import load
from jmsapi_selector import InvalidSelector, Truth, compile_selector

Expected = Truth | Literal["invalid"]
T: Final = Truth.TRUE
F: Final = Truth.FALSE
U: Final = Truth.UNKNOWN
INVALID: Final = "invalid"
NOTHING: Final[Mapping[str, Value]] = {}


class Row(NamedTuple):
    """One selector, one message, one result."""

    id: str
    selector: str
    values: Mapping[str, Value]
    expected: Expected


def rows(id: str, values: Mapping[str, Value], *pairs: tuple[str, Expected]) -> list[Row]:
    return [Row(id, selector, values, expected) for selector, expected in pairs]


def with_values(id: str, selector: str, *pairs: tuple[Mapping[str, Value], Expected]) -> list[Row]:
    return [Row(id, selector, values, expected) for values, expected in pairs]


def invalid(id: str, *selectors: str) -> list[Row]:
    return [Row(id, selector, NOTHING, INVALID) for selector in selectors]


WORDS: Final = ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"]
TRUTHS: Final = {T: "1 = 1", F: "1 = 2", U: "missing = 1"}
NEGATED: Final = {T: F, F: T, U: U}
AND_TABLE: Final = [(T, T, T), (T, F, F), (T, U, U), (F, T, F), (F, F, F), (F, U, F), (U, T, U), (U, F, F), (U, U, U)]
OR_TABLE: Final = [(T, T, T), (T, F, T), (T, U, T), (F, T, T), (F, F, F), (F, U, U), (U, T, T), (U, F, U), (U, U, U)]


def truth_tables() -> list[Row]:
    found: list[Row] = []
    for word, table, first in (("AND", AND_TABLE, 3), ("OR", OR_TABLE, 12)):
        for number, (left, right, result) in enumerate(table, first):
            text = f"{TRUTHS[left]} {word} {TRUTHS[right]}"
            found += rows(f"3.8.1.2-{number}", NOTHING, (text, result), (f"NOT ({text})", NEGATED[result]))
    for number, (given, result) in enumerate(NEGATED.items(), 21):
        found += rows(
            f"3.8.1.2-{number}",
            NOTHING,
            (f"NOT ({TRUTHS[given]})", result),
            (f"NOT (NOT ({TRUTHS[given]}))", given),
        )
    return found


TABLE: Final[list[Row]] = [
    *with_values("3.8.1-1", "n >= 7", ({"n": 6}, F), ({"n": 7}, T), ({"n": 9}, T)),
    *rows("3.8.1-2", {"n": 5}, ("n = 5", T), ("n = 6", F), ("m = 5", U)),
    *rows("3.8.1-3", {}, ("color = 'red'", U)),
    *invalid("3.8.1.1-1", "SELECT 1", "a = ALL (1)", "UPPER(a) = 'X'", "a == 1", "a != 1", "a || b = 'x'", "EXISTS a"),
    *rows("3.8.1.1-2", {}, ("", T)),
    *rows("3.8.1.1-3", {}, ("10 - 4 - 3 = 3", T), ("24 / 4 / 2 = 3", T), ("24 / 4 * 2 = 12", T)),
    *rows(
        "3.8.1.1-4",
        {"a": 1, "b": 0, "c": 0},
        ("10 - (4 - 3) = 9", T),
        ("(2 + 3) * 4 = 20", T),
        ("(a = 1 OR b = 1) AND c = 1", F),
        ("a = 1 OR b = 1 AND c = 1", T),
    ),
    *with_values(
        "3.8.1.1-5",
        "a Is noT NuLL aNd b BeTween 1 AND 2 oR c = True",
        ({"a": 1, "b": 2}, T),
        ({"b": 2, "c": True}, T),
        ({"a": 1, "b": 3, "c": False}, F),
    ),
    *rows("3.8.1.1-6", {"s": "literal's", "q": "'"}, ("s = 'literal''s'", T), ("q = ''''", T), ("s = 'literal", INVALID)),
    *rows("3.8.1.1-7", {"s": "äß日本😀"}, ("s = 'äß日本😀'", T), ("s = 'äß日本'", F)),
    *rows(
        "3.8.1.1-8",
        {"a": 57, "b": -957, "c": Long(2**63 - 1), "d": Long(-(2**63))},
        ("a = 57 AND b = -957 AND a = +57", T),
        ("c = 9223372036854775807", T),
        ("d = -9223372036854775808", T),
        ("c = 9223372036854775808", INVALID),
        ("c = -9223372036854775809", INVALID),
    ),
    *rows("3.8.1.1-9", {}, ("0x1F = 31", T), ("010 = 8", T), ("57L = 57", T), ("57l = 57", T), ("09 = 9", INVALID)),
    *rows(
        "3.8.1.1-10",
        {"a": 7000.0, "b": -5790.0, "c": 7.0, "d": -95.7, "e": 6.2, "f": 0.5, "g": 1.7976931348623157e308},
        ("a = 7E3 AND b = -57.9E2 AND c = 7. AND d = -95.7 AND e = +6.2 AND f = .5", T),
        ("g = 1.7976931348623157E308", T),
        ("g = 1.8E308", INVALID),
        ("g = 1E-400", INVALID),
    ),
    *rows("3.8.1.1-11", {}, ("1.5f = 1.5", T), ("1.5F = 1.5D", T), ("2D = 2", T), ("1e-2 = 0.01", T), ("0.1f = 0.1", F)),
    *rows("3.8.1.1-12", {"flag": True}, ("flag = TRUE", T), ("flag <> false", T), ("TRUE", T), ("FALSE", F)),
    *rows(
        "3.8.1.1-13",
        {"_a": 1, "$b1": 1, "été": 1, "n" * 5000: 1, "a": 2, "b": 1},
        ("_a = 1", T),
        ("$b1 = 1", T),
        ("été = 1", T),
        (f"{'n' * 5000} = 1", T),
        ("a-b = 1", T),
        ("1a = 1", INVALID),
        ("a.b = 1", INVALID),
        ("a#b = 1", INVALID),
    ),
    *[row for word in WORDS for row in invalid("3.8.1.1-14", f"{word} = 'x'", f"{word.lower()} IS NULL")],
    *rows("3.8.1.1-15", {"n": 5, "s": "5"}, ("n = 5", T), ("s = '5'", T), ("s = 5", F), ("n = '5'", F)),
    *rows("3.8.1.1-16", {}, ("missing = 1", U), ("missing <> 1", U), ("missing IS NULL", T)),
    *rows("3.8.1.1-17", {"NumberOfOrders": "2"}, ("NumberOfOrders > 1", F), ("NOT (NumberOfOrders > 1)", T)),
    *rows(
        "3.8.1.1-18",
        {"Color": "red", "JMSType": "x"},
        ("color = 'red'", U),
        ("Color = 'red'", T),
        ("jmstype = 'x'", U),
    ),
    *rows(
        "3.8.1.1-19",
        {
            "JMSDeliveryMode": "PERSISTENT",
            "JMSPriority": 7,
            "JMSMessageID": "ID:1",
            "JMSTimestamp": Long(1_700_000_000_000),
            "JMSCorrelationID": "c1",
            "JMSType": "car",
        },
        ("JMSPriority = 7 AND JMSMessageID = 'ID:1' AND JMSTimestamp >= 1700000000000", T),
        ("JMSCorrelationID = 'c1' AND JMSType = 'car' AND JMSDeliveryMode = 'PERSISTENT'", T),
        ("JMSPriority = 8", F),
    ),
    *invalid(
        "3.8.1.1-20",
        "JMSDestination = 'q'",
        "JMSReplyTo IS NULL",
        "JMSExpiration = 0",
        "JMSRedelivered = FALSE",
        "JMSDeliveryTime > 0",
    ),
    *rows("3.8.1.1-21", {}, ("JMSType IS NULL AND JMSMessageID IS NULL", T), ("JMSType <> 'x'", U)),
    *rows(
        "3.8.1.1-22",
        {"JMSXGroupID": "g", "JMS_Vendor_x": 1},
        ("JMSXGroupID = 'g' AND JMS_Vendor_x = 1", T),
        ("JMSfoo = 1", INVALID),
    ),
    *rows("3.8.1.1-23", {"a": 1, "b": 2}, ("a\t=\f1\r\nAND\nb = 2", T), ("a\u00a0= 1", INVALID), ("a\v= 1", INVALID)),
    *rows("3.8.1.1-24", {}, ("1 = 1", T), ("1 = 2", F), ("missing > 1", U), ("1 + 1", INVALID), ("'a'", INVALID)),
    *rows("3.8.1.1-25", {"a": 3, "b": 1, "c": 10}, ("a * 2 + b > (c - 1) / 2", T), ("a * 2 + b > c", F)),
    *rows(
        "3.8.1.1-26",
        {"flag": True, "n": 1},
        ("flag", T),
        ("NOT flag", F),
        ("flag AND n = 1", T),
        ("TRUE OR flag", T),
        ("n", F),
    ),
    *rows("3.8.1.1-27", {"a": 1, "b": 0, "c": 0}, ("a = 1 OR b = 1 AND c = 1", T)),
    *rows("3.8.1.1-27", {"a": 2, "b": 1}, ("NOT a = 1 AND b = 2", F)),
    *rows("3.8.1.1-27", {"a": 1, "b": 1}, ("NOT a = 1 OR b = 1", T)),
    *[
        Row("3.8.1.1-28", f"n {sign} 5", {"n": n}, T if hit else F)
        for sign, hits in {"=": "010", "<>": "101", "<": "100", "<=": "110", ">": "001", ">=": "011"}.items()
        for n, hit in zip((4, 5, 6), map(int, hits), strict=True)
    ],
    *rows(
        "3.8.1.1-29",
        {"i": 5, "f": Float(2.5), "l": Long(3), "big": Long(2**53 + 1)},
        ("i = 5.0", T),
        ("f > 2", T),
        ("l < 3.5", T),
        ("big = 9007199254740992.0", T),
        ("big = 9007199254740992", F),
    ),
    *rows("3.8.1.1-30", {"s": "a", "f": True}, ("s = 1", F), ("s <> 1", F), ("NOT (s <> 1)", T), ("f = 1", F), ("f <> 'x'", F)),
    *rows("3.8.1.1-31", {}, ("missing = missing", U), ("missing <> 1", U), ("NOT (missing = 1)", U)),
    *rows(
        "3.8.1.1-32",
        {"s": "b", "t": "a", "f": True, "g": False},
        ("s > t", F),
        ("f >= g", F),
        ("NOT (s > t)", T),
        ("s > 'a'", INVALID),
        ("f >= TRUE", INVALID),
    ),
    *rows("3.8.1.1-33", {"s": "ab", "e": "e\u0301"}, ("s = 'ab '", F), ("s = 'AB'", F), ("e = 'é'", F), ("s = 'ab'", T)),
    *rows("3.8.1.1-34", {"a": 5}, ("2 + 3 * 4 = 14", T), ("-2 * 3 = -6", T), ("- a = -5", T), ("10 - -3 = 13", T)),
    *rows(
        "3.8.1.1-35",
        {"b": Byte(100), "i": 2**31 - 1, "f": Float(0.1), "z": 0},
        ("7 / 2 = 3", T),
        ("-7 / 2 = -3", T),
        ("7 / 2.0 = 3.5", T),
        ("b + 100 = 200", T),
        ("i + 1 < 0", T),
        ("i + 1L > 0", T),
        ("f + 0.1f = 0.2f", T),
        ("f + 0.1 = 0.2", F),
        ("1 / z = 1", U),
        ("NOT (1 / z = 1)", U),
        ("1 / (z * 1.0) > 1e308", T),
    ),
    *[Row("3.8.1.1-36", "age BETWEEN 15 AND 19", {"age": age}, T if 15 <= age <= 19 else F) for age in (14, 15, 17, 19, 20)],
    *rows("3.8.1.1-36", {"age": 17, "d": 2}, ("age + d BETWEEN 20 - d AND 21 + d", T)),
    *[Row("3.8.1.1-37", "age NOT BETWEEN 15 AND 19", {"age": n}, F if 15 <= n <= 19 else T) for n in (14, 15, 19, 20)],
    *rows(
        "3.8.1.1-38",
        {},
        ("missing BETWEEN 1 AND 2", U),
        ("NOT (missing BETWEEN 1 AND 2)", U),
        ("5 BETWEEN 6 AND missing", F),
        ("NOT (5 BETWEEN 6 AND missing)", T),
        ("'a' BETWEEN 'a' AND 'b'", INVALID),
    ),
    *with_values("3.8.1.1-39", "c IN ('UK', 'US', 'France')", ({"c": "UK"}, T), ({"c": "Peru"}, F)),
    *with_values("3.8.1.1-39", "c IN ('UK')", ({"c": "UK"}, T), ({"c": "US"}, F)),
    *with_values("3.8.1.1-40", "c NOT IN ('UK', 'US')", ({"c": "UK"}, F), ({"c": "Peru"}, T)),
    *rows("3.8.1.1-41", {}, ("c IN ('a')", U), ("c NOT IN ('a')", U), ("NOT (c IN ('a'))", U)),
    *invalid("3.8.1.1-42", "c IN ()", "c IN (1,2)", "c IN (d)", "'a' IN ('a')", "c IN 'a'", "(c) IN ('a')"),
    *with_values(
        "3.8.1.1-43",
        "word LIKE 'l_se'",
        ({"word": "lose"}, T),
        ({"word": "loose"}, F),
        ({"word": "l\nse"}, T),
        ({"word": "l😀se"}, T),
    ),
    *with_values("3.8.1.1-44", "p LIKE '12%3'", ({"p": "123"}, T), ({"p": "12993"}, T), ({"p": "1234"}, F)),
    *with_values("3.8.1.1-45", "s LIKE 'a.c*'", ({"s": "a.c*"}, T), ({"s": "abcc"}, F)),
    *rows("3.8.1.1-45", {"s": "abc"}, ("s LIKE 'ABC'", F), ("s LIKE 'b'", F), ("s LIKE '%b%'", T)),
    *with_values("3.8.1.1-46", r"s LIKE '\_%' ESCAPE '\'", ({"s": "_foo"}, T), ({"s": "bar"}, F)),
    *invalid("3.8.1.1-46", "s LIKE 'x' ESCAPE ''", "s LIKE 'x' ESCAPE 'ab'"),
    *with_values("3.8.1.1-47", "p NOT LIKE '12%3'", ({"p": "123"}, F), ({"p": "12993"}, F), ({"p": "1234"}, T)),
    *rows("3.8.1.1-48", {}, ("missing LIKE '%'", U), ("missing NOT LIKE 'x'", U)),
    *invalid("3.8.1.1-49", "s LIKE 5", "s LIKE t", "'abc' LIKE 'a%'", "(s) LIKE 'a'"),
    *rows("3.8.1.1-49", {"n": 123}, ("n LIKE '1%'", F), ("n NOT LIKE '1%'", F)),
    *with_values("3.8.1.1-50", "p IS NULL", ({}, T), ({"p": None}, T), ({"p": ""}, F), ({"p": 0}, F)),
    *with_values("3.8.1.1-51", "p IS NOT NULL", ({}, F), ({"p": None}, F), ({"p": ""}, T)),
    *invalid("3.8.1.1-52", "a = ", "a AND", "((a=1)"),
    *invalid("3.8.1.1-53", "a = "),
    *invalid("3.8.1.1-54", "'a' > 1", "TRUE > FALSE"),
    *with_values(
        "3.8.1.1-55",
        "JMSType = 'order' AND region = 'EU' AND total >= 100.5",
        ({"JMSType": "order", "region": "EU", "total": Double(100.5)}, T),
        ({"JMSType": "offer", "region": "EU", "total": 100.5}, F),
        ({"JMSType": "order", "region": "US", "total": 100.5}, F),
        ({"JMSType": "order", "region": "EU", "total": 100}, F),
    ),
    *rows(
        "3.8.1.2-1",
        {"s": "x"},
        *[
            (text.format(value), U)
            for value in ("missing + 1 = 1", "-missing = 0", "missing * 0 = 0", "s + missing = 1")
            for text in ("{}", "NOT ({})")
        ],
    ),
    *rows("3.8.1.2-2", {}, ("NOT (missing IS NULL)", F), ("missing IS NULL AND 1 = 1", T), ("missing IS NOT NULL", F)),
    *truth_tables(),
    *rows(
        "3.8.1.3-1",
        {"JMSDeliveryMode": "NON_PERSISTENT"},
        ("JMSDeliveryMode = 'NON_PERSISTENT'", T),
        ("JMSDeliveryMode = 'PERSISTENT'", F),
        ("JMSDeliveryMode = 2", F),
    ),
    *rows(
        "3.8.1.3-2",
        {"JMSTimestamp": Long(1_700_000_000_000)},
        ("JMSTimestamp < 4102444800000", T),
        ("DATE '2013-01-01' < JMSTimestamp", INVALID),
    ),
    *rows("3.8.1.3-3", {}, ("0.1 + 0.2 = 0.3", F), ("0.5 + 0.25 = 0.75", T)),
    *rows("3.8.1.3-4", {"a": 1}, ("a = 1 -- two words", INVALID), ("a = 1 /* x */", INVALID), ("a = 1 -- x", U)),
]


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row.id}: {row.selector[:40]}", marks=pytest.mark.requirement(row.id)) for row in TABLE]
)
def test_requirement(row: Row) -> None:
    if row.expected == INVALID:
        with pytest.raises(InvalidSelector):
            compile_selector(row.selector)
    else:
        selector = compile_selector(row.selector)
        assert selector.evaluate(row.values) is row.expected
        assert selector.matches(row.values) is (row.expected is T)


def test_every_requirement_of_chapter_3_8_has_a_row() -> None:
    wanted = {one.id for one in load() if one.id.startswith("3.8.")}
    assert len(wanted) == 85
    assert wanted == {row.id for row in TABLE}
