"""Every line of the table of selector cases, under its own id."""

from __future__ import annotations

import pytest

from jmsapi_selector import InvalidSelector, Truth, compile_selector

from .cases import Case, all_cases


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_case(case: Case) -> None:
    if case.expected == "invalid":
        with pytest.raises(InvalidSelector):
            compile_selector(case.selector)
        return
    selector = compile_selector(case.selector)
    assert selector.matches(case.values) is case.expected
    if case.truth is not None:
        assert selector.evaluate(case.values) is Truth[case.truth.upper()]


def test_the_table_is_whole() -> None:
    cases = all_cases()
    assert len({case.id for case in cases}) == 573
    assert sum(case.truth is not None for case in cases) == 459


def test_each_case_that_the_standard_leaves_open_has_a_reasoned_choice() -> None:
    chosen = [case.id for case in all_cases() if case.choice]
    assert chosen == ["SEL-0122", "SEL-0123", "SEL-0125", "SEL-0663", "SEL-0721", "SEL-0724", "SEL-1129"]
    assert all(not case.strict for case in all_cases() if case.choice)
