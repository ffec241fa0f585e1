"""What an invalid selector says: reason, span, and a mark under the culprit."""

from __future__ import annotations

import pickle

import pytest

from jmsapi_selector import InvalidSelector, compile_selector


def refused(text: str) -> InvalidSelector:
    with pytest.raises(InvalidSelector) as caught:
        compile_selector(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "culprit", "reason"),
    [
        ("(a = 1", "", "expected an operator or a closing bracket, found end of the selector"),
        ("a = 1)", ")", "expected an operator, found )"),
        ("a = 'x", "'x", "this string is never closed; a quote inside a string is written twice"),
        ('a = "x"', '"', "strings stand in single quotes, names in none"),
        ("a.b = 1", ".", "a dot is no part of a name"),
        ("a != 1", "!=", "inequality is written <>"),
        ("a = 1 && b", "&&", "conditions are joined by AND"),
        ("a = 'x' || 'y'", "||", "strings cannot be joined in a selector"),
        ("a = ?", "?", "? means nothing in a selector"),
        ("a\u00a0= 1", "\u00a0", "U+00A0 means nothing in a selector"),
        ("a = 019", "019", "a leading 0 means octal, and octal digits end at 7"),
        ("a=1AND b", "1AND", "this is no number"),
        ("a = 1.e.5", "1.e.5", "this is no number"),
        ("a = .3e+", ".3e+", "this is no number"),
        ("a = 9223372036854775808", "9223372036854775808", "this number is outside the range of a Java long"),
        ("a = 1e999", "1e999", "this number is outside the range of a Java double"),
        ("a = 1e39f", "1e39f", "this number is outside the range of a Java float"),
        ("a = 1e-999", "1e-999", "this number is outside the range of a Java double"),
        ("order BY x", "BY", "expected an operator, found BY"),
        ("and = 1", "and", "expected a value or a condition, found and (and is a reserved word)"),
        ("(a = 'y' AND ( OR ))", "OR", "expected a value or a condition, found OR (OR is a reserved word)"),
        ("a NOT = 1", "=", "expected BETWEEN, IN or LIKE after NOT, found ="),
        ("a IS TRUE", "TRUE", "expected NULL or NOT NULL, found TRUE (TRUE is a reserved word)"),
        ("a IN ('x' 'y')", "'y'", "expected a comma or a closing bracket, found 'y'"),
        ("a IN 'x'", "'x'", "expected the list of IN in brackets, found 'x'"),
        ("a LIKE b", "b", "expected a string as the pattern of LIKE, found b"),
        ("a LIKE 'x' ESCAPE 'ab'", "'ab'", "ESCAPE takes a string of exactly one character"),
        ("a + 1 IS NULL", "a + 1", "IS NULL takes an identifier on its left, nothing else"),
        ("(a) LIKE 'x'", "a", "LIKE takes an identifier on its left, nothing else"),
        ("'a' NOT IN ('a')", "'a'", "IN takes an identifier on its left, nothing else"),
        ("1 + 1", "1 + 1", "a selector must be a condition, and this is a number"),
        ("a = 1 AND 'x'", "'x'", "an operand of AND must be a condition, and this is a string"),
        ("NOT (a + 1)", "a + 1", "an operand of NOT must be a condition, and this is a number"),
        ("(a = 1) = TRUE", "a = 1", "= compares values, and this is a condition"),
        ("a + 'x' = 1", "'x'", "arithmetic takes numbers, and this is a string"),
        ("-TRUE = 1", "TRUE", "arithmetic takes numbers, and this is a boolean"),
        ("a BETWEEN 'x' AND 'y'", "'x'", "BETWEEN takes numbers, and this is a string"),
        ("a > 'x'", "'x'", "> orders numbers only, and this is a string"),
        ("TRUE = a + 0", "TRUE = a + 0", "a boolean never equals a number"),
        (
            "b = 1 AND JMSRedelivered",
            "JMSRedelivered",
            "JMSRedelivered cannot be used in a selector; the header fields are "
            "JMSCorrelationID, JMSDeliveryMode, JMSMessageID, JMSPriority, JMSTimestamp, JMSType",
        ),
    ],
)
def test_an_error_names_its_reason_and_the_exact_span(text: str, culprit: str, reason: str) -> None:
    error = refused(text)
    start, end = error.span
    assert error.reason == reason
    assert text[start:end] == culprit
    assert error.text == text


def test_the_mark_stands_under_the_culprit() -> None:
    assert str(refused("color = 'red' AND weight >> 5")) == (
        "expected a value or a condition, found >\n  color = 'red' AND weight >> 5\n                            ^"
    )


def test_of_many_lines_the_one_at_fault_is_shown() -> None:
    assert refused("a = 1\nAND\tb LIKE 5\nAND c = 2").marked() == "  AND b LIKE 5\n             ^"


def test_a_long_selector_is_cut_to_the_surroundings() -> None:
    shown, mark = refused("a = 1 AND " * 500 + "b == 2" + " AND c = 3" * 500).marked().splitlines()
    assert shown.startswith("  ...")
    assert shown.endswith("...")
    assert shown[mark.index("^") - 3 :].startswith("b == 2")


def test_something_missing_at_the_end_is_marked_behind_it() -> None:
    assert refused("a =").marked() == "  a =\n     ^"


def test_an_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(refused("a = ")))
    assert (error.text, error.span, error.reason) == ("a = ", (4, 4), refused("a = ").reason)


def test_an_error_is_a_value_error() -> None:
    assert isinstance(refused("a ="), ValueError)


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)])
def test_of_the_control_characters_a_name_may_hold_those_that_java_ignores_in_one(code: int) -> None:
    name = f"a{chr(code)}b"
    if code <= 0x08 or 0x0E <= code <= 0x1B or code >= 0x7F:
        assert compile_selector(f"{name} = 1").identifiers == {name}
    else:
        refused(f"{name} = 1")
