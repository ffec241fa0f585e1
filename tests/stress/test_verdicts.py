"""What differs between runs is found, and what does not is not."""

from __future__ import annotations

from collections import Counter

from .verdicts import differences


def test_a_verdict_that_differs_or_is_missing_is_counted() -> None:
    alike = ("pass", "")
    runs = [{"a": alike, "b": alike}, {"a": alike, "b": ("fail", "why")}, {"a": alike, "b": alike, "c": alike}]
    assert differences(runs) == {"b": Counter({"pass": 2, "fail": 1}), "c": Counter({"missing": 2, "pass": 1})}
    assert differences(runs[:1] * 3) == {}
