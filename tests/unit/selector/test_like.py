"""LIKE: wildcards, escapes, and time that stays linear."""

from __future__ import annotations

import time

import pytest

from jmsapi_selector.like import like


@pytest.mark.requirement("3.8.1.1-43", "3.8.1.1-44", "3.8.1.1-45")
@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        ("", [""], ["a"]),
        ("abc", ["abc"], ["ab", "abcd", "ABC"]),
        ("%", ["", "a", "a\nb"], []),
        ("a%", ["a", "abc"], ["", "ba"]),
        ("%a", ["a", "bca"], ["ab"]),
        ("%b%", ["b", "abc"], ["", "ac"]),
        ("a%a", ["aa", "aba"], ["a"]),
        ("ab%ba", ["abba", "abxba"], ["aba"]),
        ("_", ["a", "\n", "😀"], ["", "ab"]),
        ("_%", ["a", "ab"], [""]),
        ("%_", ["a", "ab"], [""]),
        ("_%_", ["ab", "abc"], ["a"]),
        ("a_c", ["abc", "a\nc"], ["ac", "abbc"]),
        ("%a_c%e", ["xabcde", "aacbce", "abce"], ["ace", "abc", "acacbce"]),
        ("%ab%ab%", ["abab", "xabxabx"], ["ab", "abb"]),
        ("%ab%b", ["abb", "abxb"], ["ab"]),
        ("_b%_b", ["abcb", "abbb"], ["ab", "abb"]),
        ("%%%", ["", "a"], []),
        (".*[a-z]$^\\(", [".*[a-z]$^\\("], ["a"]),
    ],
)
def test_a_pattern_covers_the_whole_value(pattern: str, hits: list[str], misses: list[str]) -> None:
    matches = like(pattern, None)
    assert [value for value in hits if not matches(value)] == []
    assert [value for value in misses if matches(value)] == []


@pytest.mark.requirement("3.8.1.1-46")
@pytest.mark.parametrize(
    ("pattern", "escape", "hits", "misses"),
    [
        ("!_%", "!", ["_foo"], ["foo"]),
        ("50!%", "!", ["50%"], ["505"]),
        ("a!!b", "!", ["a!b"], ["a!!b"]),
        ("a!b", "!", ["a!b"], ["ab"]),
        ("ab!", "!", ["ab!"], ["ab"]),
        ("a''_", "'", ["a'_", "a'x"], []),
        ("_a__", "_", ["xa_"], ["_a__"]),
        ("%a%%", "%", ["xa%", "a%"], ["xab"]),
        ("\\%\\_", "\\", ["%_"], ["ab"]),
    ],
)
def test_an_escape_takes_the_special_meaning_away(pattern: str, escape: str, hits: list[str], misses: list[str]) -> None:
    matches = like(pattern, escape)
    assert [value for value in hits if not matches(value)] == []
    assert [value for value in misses if matches(value)] == []


@pytest.mark.parametrize("pattern", ["%a" * 30 + "%b", "%a_" * 20 + "%b", "%" + "_%" * 200 + "b", "%a%a%a%aab_b"])
def test_a_hostile_value_takes_time_in_proportion_to_its_length(pattern: str) -> None:
    matches = like(pattern, None)
    started = time.perf_counter()
    assert not matches("a" * 200_000)
    # A backtracking matcher needs years for some of these.
    assert time.perf_counter() - started < 2
