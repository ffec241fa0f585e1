"""Laws that hold for every selector and every message."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsapi.values import Value
from jmsapi_selector import InvalidSelector, Truth, compile_selector
from jmsapi_selector.check import check
from jmsapi_selector.compiler import compile_tree
from jmsapi_selector.nodes import Identifier, Node
from jmsapi_selector.parser import parse
from jmsapi_selector.text import to_text

from .texts import Texts, messages, trees

_WALK: Final = Path(__file__).parents[3] / "benchmarks" / "selector" / "isinstance_walk.py"


def _load_walk() -> Callable[[Node, Mapping[str, object]], Truth]:
    spec = importlib.util.spec_from_file_location("isinstance_walk", _WALK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return cast("Callable[[Node, Mapping[str, object]], Truth]", module.walk)


walk = _load_walk()


@given(trees)
def test_the_text_of_a_tree_parses_to_that_tree(tree: Node) -> None:
    text = to_text(tree)
    again = parse(text)
    check(text, again)
    assert again == tree
    assert to_text(again) == text


@given(trees, messages)
def test_compiled_and_walked_a_tree_gives_the_same(tree: Node, message: dict[str, object]) -> None:
    assert compile_tree(tree).truth(message) is walk(tree, message)


@given(trees, messages)
def test_a_message_is_matched_exactly_when_the_result_is_true(tree: Node, message: dict[str, Value]) -> None:
    selector = compile_selector(to_text(tree))
    assert selector.matches(message) is (selector.evaluate(message) is Truth.TRUE)


@given(trees, messages)
def test_an_explanation_comes_to_the_same_result(tree: Node, message: dict[str, Value]) -> None:
    selector = compile_selector(to_text(tree))
    explanation = selector.explain(message)
    assert explanation.result is selector.evaluate(message)
    assert explanation.text == selector.text
    assert str(explanation)


@given(st.text())
@example("a = 'x")
@example("\ud800")
@example("a = 1\x00")
def test_no_text_raises_anything_but_invalid_selector(text: str) -> None:
    _try(text)


@given(st.lists(st.sampled_from(["(", ")", "NOT ", "a", "1", "'x'", " AND ", "=", "-", ",", " IN ", " LIKE "])).map("".join))
def test_no_jumble_of_words_raises_anything_but_invalid_selector(text: str) -> None:
    _try(text)


@given(trees)
def test_identifiers_are_the_names_in_the_tree(tree: Node) -> None:
    names: set[str] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Identifier):
            names.add(node.name)
        pending.extend(node.parts)
    assert compile_selector(to_text(tree)).identifiers == names


@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_seeded_texts_give_a_selector_or_invalid_selector(seed: int) -> None:
    texts = Texts(seed)
    message = {"a": 5, "b": 2.5, "s": "aB", "flag": True, "JMSPriority": 4}
    good = 0
    for _ in range(10_000):
        text = texts.next()
        if _try(text, message):
            good += 1
    # A generator of nothing but one kind would prove little.
    assert 2_000 < good < 8_000


def _try(text: str, message: dict[str, Value] | None = None) -> bool:
    try:
        tree = parse(text)
        check(text, tree)
    except InvalidSelector as error:
        start, end = error.span
        assert 0 <= start <= end <= len(text)
        assert error.text == text
        assert str(error).startswith(error.reason)
        return False
    if message is not None:
        assert compile_tree(tree).truth(message) is walk(tree, message), text
    return True
