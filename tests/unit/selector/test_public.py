"""``jmsapi.selector``: the engine under the library's own exception."""

from __future__ import annotations

import doctest
import pickle

import pytest

import jmsapi.selector
import jmsapi_selector
from jmsapi.errors import InvalidSelectorException


def test_a_wrong_selector_raises_the_exception_of_jms() -> None:
    with pytest.raises(InvalidSelectorException, match="expected a value or a condition") as caught:
        jmsapi.selector.compile_selector("a = ")
    error = caught.value
    assert isinstance(error.__cause__, jmsapi_selector.InvalidSelector)
    assert error.__cause__.span == (4, 4)
    assert str(error).endswith("a = \n      ^")
    assert "expected a value" in str(pickle.loads(pickle.dumps(error)))


def test_it_gives_the_very_selectors_of_the_engine() -> None:
    assert jmsapi.selector.compile_selector("a = 1") is jmsapi_selector.compile_selector("a = 1")


@pytest.mark.parametrize("module", [jmsapi.selector, jmsapi_selector], ids=lambda module: module.__name__)
def test_the_examples_of_the_docstrings_run(module: object) -> None:
    results = doctest.testmod(module)  # type: ignore[arg-type]
    assert results.attempted > 0
    assert results.failed == 0
