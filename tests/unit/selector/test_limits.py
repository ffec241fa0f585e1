"""Limits: length, depth, and the time a hostile text may take."""

from __future__ import annotations

import time
import timeit

import pytest

from jmsapi_selector import InvalidSelector, compile_selector
from jmsapi_selector.lexer import MAX_LENGTH
from jmsapi_selector.parser import MAX_DEPTH


def refused(text: str) -> InvalidSelector:
    with pytest.raises(InvalidSelector) as caught:
        compile_selector(text)
    return caught.value


def test_a_selector_of_the_greatest_length_is_accepted_and_one_more_is_not() -> None:
    text = "s = '" + "x" * (MAX_LENGTH - 6) + "'"
    assert len(text) == MAX_LENGTH
    assert compile_selector(text).matches({"s": text[5:-1]})
    error = refused(text + " ")
    assert error.reason == "a selector has at most 65,536 characters, this one 65,537"
    assert error.span == (MAX_LENGTH, MAX_LENGTH + 1)


@pytest.mark.parametrize(
    ("opening", "core", "closing"),
    [
        ("(", "a = 1", ")"),
        ("NOT ", "a", ""),
        ("NOT (", "a = 1", ")"),
        ("a = 1 OR (b = 2 AND ", "c = 3", ")"),
        ("(a + b * ", "c", ") > 1"),
        ("-", "a", " = 1"),
        ("-(", "a", ") = 1"),
    ],
)
def test_nesting_ends_in_an_error_and_not_in_pythons_recursion_limit(opening: str, core: str, closing: str) -> None:
    bracket, rest = closing[: opening.count("(")], closing[opening.count("(") :]
    for depth in (MAX_DEPTH // 4, MAX_DEPTH // 2 - 1):
        selector = compile_selector(opening * depth + core + bracket * depth + rest)
        assert selector.matches({"a": 1, "b": 2, "c": 3}) in {True, False}
        assert selector.explain({"a": 1}).result is selector.evaluate({"a": 1})
    depth = MAX_DEPTH + 1
    assert "nested deeper than 256" in refused(opening * depth + core + bracket * depth + rest).reason


def test_brackets_and_not_are_accepted_down_to_the_limit() -> None:
    assert compile_selector("(" * MAX_DEPTH + "a = 1" + ")" * MAX_DEPTH).matches({"a": 1})
    assert compile_selector("NOT " * MAX_DEPTH + "a").matches({"a": True})
    refused("(" * (MAX_DEPTH + 1) + "a = 1" + ")" * (MAX_DEPTH + 1))
    refused("NOT " * (MAX_DEPTH + 1) + "a")


def test_a_long_flat_selector_is_no_deep_one() -> None:
    assert compile_selector(" OR ".join(f"a = {n}" for n in range(5000))).matches({"a": 4999})
    assert compile_selector("a" + " + 1" * 10_000 + " = 10001").matches({"a": 1})


HOSTILE = {
    "open brackets": "(" * MAX_LENGTH,
    "NOTs": "NOT " * (MAX_LENGTH // 4),
    "signs": "-" * MAX_LENGTH,
    "quotes": "a = " + "'" * 65_001,
    "one open string": "'" + "''" * 32_000,
    "conditions that lack the last": "a = 1 OR " * (MAX_LENGTH // 9),
    "a sum that lacks the last": "a+" * (MAX_LENGTH // 2),
    "a list that is never closed": "a IN (" + "'x'," * (MAX_LENGTH // 4 - 2),
    "bounds that lack AND": "a BETWEEN " * (MAX_LENGTH // 10),
    "brackets side by side": "(a)" * (MAX_LENGTH // 3),
    "digits": "a = " + "9" * 65_000,
    "hexadecimal digits": "a = 0x" + "f" * 65_000,
    "a long fraction": "a = ." + "0" * 65_000 + "1",
    "a long exponent": "a = 1e" + "9" * 65_000,
    "a number with an end that fits nothing": "a = 1" + ".e" * 32_000,
    "letters of no alphabet": "\u0300" * MAX_LENGTH,
    "blanks": " " * (MAX_LENGTH - 1) + "?",
    "too long by far": "a" * 10_000_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_of_the_greatest_length_is_refused_soon(text: str) -> None:
    times: list[float] = []
    while len(times) < 3 and min(times, default=2) >= 2:
        started = time.thread_time()
        error = refused(text)
        times.append(time.thread_time() - started)
        assert len(str(error)) < 1000
    # A sixth of a second on an idle machine; processor time, too, is several times longer on a busy one. Its square is minutes.
    assert min(times) < 2


@pytest.mark.parametrize("piece", ["a = 1 OR ", "a+", "(a) = 1 OR ", "NOT a OR ", "a IN ('x') OR "])
def test_the_time_to_refuse_grows_with_the_length_and_not_with_its_square(piece: str) -> None:
    def cost(length: int) -> float:
        text = piece * (length // len(piece))
        # Without the collection of garbage, which would go through all that a worker has of earlier tests.
        return min(timeit.repeat(lambda: refused(text), timer=time.process_time, number=1, repeat=3))

    # Eight times the length: a square would be sixty-four times as slow, each time that it is measured.
    assert any(cost(MAX_LENGTH) < 24 * cost(MAX_LENGTH // 8) for _ in range(3))
