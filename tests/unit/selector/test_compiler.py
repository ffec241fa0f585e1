"""What the compiler makes: code by nodes alone, shared by shape, within bounds for any valid text, true to the types."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, cast

import pytest

from jmsapi.values import Long, Value
from jmsapi_selector import Truth, compile_selector
from jmsapi_selector.compiler import compile_tree
from jmsapi_selector.explanation import explain
from jmsapi_selector.lexer import MAX_LENGTH
from jmsapi_selector.nodes import Node
from jmsapi_selector.parser import parse


def code_of(text: str) -> CodeType:
    return cast(FunctionType, compile_tree(parse(text)).holds).__code__


def test_selectors_that_differ_in_names_and_literals_alone_share_their_code() -> None:
    one = code_of("JMSCorrelationID = 'a' AND weight > 5 AND n IN ('x', 'y')")
    assert code_of("other = 'b' AND price > -7 AND m IN ('z')") is one
    assert code_of("other = 'b' AND price >= -7 AND m IN ('z')") is not one


def test_nothing_of_a_selector_is_part_of_its_code() -> None:
    text = "os.system IS NULL OR secret = 'secret' OR other LIKE '%secret%' OR n > 987654"
    code = code_of(text.replace("os.system", "secret_name"))
    said = repr((code.co_names, code.co_consts, code.co_varnames, code.co_cellvars))
    assert "secret" not in said
    assert "987654" not in said
    names = cast(FunctionType, compile_tree(parse("secret = 'x'")).holds).__globals__
    assert names["__builtins__"] == {}


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**200, -(2**200)])
@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("left", ["n {} 5", "5 {} n", "n {} 5.5", "n {} -9223372036854775808"])
def test_a_whole_number_of_more_than_64_bits_compares_false(value: int, sign: str, left: str) -> None:
    assert compile_selector(left.format(sign)).evaluate({"n": value}) is Truth.FALSE


class Foreign(str):
    """Looks like a string, and says that it is none."""

    __slots__ = ()
    jms_type = "object"


class Plain(str):
    __slots__ = ()


class Small(int):
    __slots__ = ()


STRINGS = ["s = 'abc'", "s LIKE 'abc'", "s LIKE 'a%'", "s LIKE '%c'", "s LIKE '%b%'", "s LIKE 'a_c'", "s IN ('abc', 'x')"]


@pytest.mark.parametrize("text", [*STRINGS, "s <> 'x'", "s NOT LIKE 'x%'", "s NOT IN ('x')"])
def test_the_class_of_a_string_decides_and_not_what_it_equals(text: str) -> None:
    selector = compile_selector(text)
    assert selector.evaluate({"s": "abc"}) is Truth.TRUE
    assert selector.evaluate({"s": Plain("abc")}) is Truth.TRUE
    assert selector.evaluate({"s": Foreign("abc")}) is Truth.FALSE
    assert selector.evaluate({"s": None}) is Truth.UNKNOWN
    assert compile_selector(f"NOT {text}").evaluate({"s": Foreign("abc")}) is Truth.TRUE


def test_what_a_comparison_learns_of_a_class_holds_for_its_later_values() -> None:
    selector = compile_selector("n > 5")
    for value in (Small(3), Small(2**70), Small(2**40), Small(6), Long(2**40), Long(-1), 5.5, True, "6"):
        expected = type(value) not in {bool, str} and 5 < float(value) < 2**63
        assert selector.matches({"n": cast(Value, value)}) is expected, value


# Valid texts that are as long, as broad or as deep as can be.
HARD: dict[str, str] = {
    "alternatives": " OR ".join(["a = 1"] * 7_000),
    "of many names": " OR ".join(f"a{n} = 1" for n in range(5_000)),
    "of many kinds": " OR ".join(f"a {sign} {n}{end}" for n in range(600) for sign in ("<", ">", "=") for end in ("", ".5", "f")),
    "ranges": " OR ".join(["a NOT BETWEEN b AND 2"] * 2_500),
    "pairs": " OR ".join(["a = b"] * 7_000),
    "a long sum": "a" + "+b" * 31_000 + " = 1",
    "many sums": " OR ".join(["a + b * 2 = -c"] * 3_500),
    "brackets": "(" * 200 + "a = 1" + " OR b = 2)" * 200,
    "AND in OR": "(a = 1 AND (b = 2 OR " * 120 + "c = 3" + "))" * 120,
    "sums in sums": "(a + " * 250 + "c" + ")" * 250 + " > 1",
    "patterns": " OR ".join(f"a LIKE '%x_{n}'" for n in range(2_400)),
}


@pytest.mark.parametrize("text", HARD.values(), ids=HARD.keys())
def test_a_hard_text_is_compiled_soon_and_means_what_it_says(text: str) -> None:
    assert len(text) <= MAX_LENGTH
    tree: Node = parse(text)
    started = time.thread_time()
    condition = compile_tree(tree)
    spent = time.thread_time() - started
    message: dict[str, Value] = {"a": 5, "b": 2, "c": 1}
    assert condition.truth(message) is explain(text, tree, message.get).result
    # Half a second on a busy machine; a square would be minutes.
    assert spent < 5


def at_depth(depth: int, work: Callable[[], Any]) -> Any:
    return work() if depth == 0 else at_depth(depth - 1, work)


@pytest.mark.parametrize("text", ["brackets", "AND in OR", "sums in sums"])
def test_a_deep_text_can_be_compiled_where_the_stack_is_deep_already(text: str) -> None:
    tree = parse(HARD[text])
    assert isinstance(at_depth(700, lambda: compile_tree(tree).truth({"a": 5, "b": 2, "c": 1})), Truth)


def test_distinct_texts_leave_nothing_behind() -> None:
    def number_of_functions() -> int:
        gc.collect()
        return sum(isinstance(one, FunctionType) for one in gc.get_objects())

    for number in range(600):
        compile_selector(f"a = '{number}' AND b > {number}")
    before = number_of_functions()
    for number in range(600, 3_000):
        compile_selector(f"a = '{number}' AND b > {number}")
    assert number_of_functions() <= before + 100
