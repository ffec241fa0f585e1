"""The public object: values, texts, explanations, cache."""

from __future__ import annotations

import gc
import pickle
import threading
from collections import UserDict
from enum import IntEnum

import pytest

from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short
from jmsapi_selector import Selector, Truth, Value, compile_selector
from jmsapi_selector._cache import TextCache


class Message:
    """What the core hands over: no mapping, only the one method."""

    def __init__(self, **values: Value) -> None:
        self._values = values

    def selector_value(self, name: str) -> Value:
        return self._values.get(name)


def test_values_come_from_a_dict_another_mapping_or_a_message() -> None:
    selector = compile_selector("color = 'blue' AND weight > 2500")
    for values in ({"color": "blue", "weight": 3000}, UserDict(color="blue", weight=3000), Message(color="blue", weight=3000)):
        assert selector.matches(values)
        assert selector.evaluate(values) is Truth.TRUE
    assert not selector.matches(Message(color="blue"))
    assert selector.evaluate(Message(color="blue")) is Truth.UNKNOWN


@pytest.mark.requirement("3.8.1.1-15")
@pytest.mark.parametrize("value", [Byte(5), Short(5), Int(5), Long(5), Float(5), Double(5), 5, 5.0])
def test_every_numeric_type_compares_by_value(value: Value) -> None:
    assert compile_selector("n = 5 AND n >= 5.0 AND n < 6L AND n <> 4f AND n BETWEEN 5 AND 5").matches({"n": value})
    assert not compile_selector("n = '5' OR n IN ('5') OR n LIKE '5' OR n = TRUE OR n").matches({"n": value})


def test_the_type_decides_how_a_number_is_promoted() -> None:
    assert compile_selector("n = 16777216").matches({"n": Float(16777217)})
    assert compile_selector("n = 16777217").matches({"n": Float(16777216)})
    assert not compile_selector("n = 16777217").matches({"n": 16777216.0})
    assert compile_selector("n = 16777216f").matches({"n": 16777217})
    assert not compile_selector("n = 6.2").matches({"n": Float(6.2)})
    assert compile_selector("n = 6.2f").matches({"n": Float(6.2)})


@pytest.mark.parametrize("value", [b"x", Char("x"), ["x"], object(), 2**63, -(2**63) - 1])
def test_a_value_of_no_selector_type_compares_with_nothing_and_is_not_null(value: object) -> None:
    values: dict[str, Value] = {"v": value, "w": value}  # type: ignore[dict-item]  # what must not come, and may
    for text in ("v = 'x'", "v <> 'x'", "v = w", "v <> w", "v IN ('x')", "v NOT LIKE 'x'", "v = 1.5", "v + 1 <> 5", "v"):
        assert compile_selector(text).evaluate(values) is Truth.FALSE, text
    assert compile_selector("v IS NOT NULL").matches(values)


def test_plain_subclasses_count_as_what_they_are() -> None:
    class Level(IntEnum):
        HIGH = 9

    class Name(str):
        pass

    assert compile_selector("level > 8 AND name = 'x' AND name LIKE '_' AND name IN ('x')").matches(
        {"level": Level.HIGH, "name": Name("x")}
    )


def test_not_a_number_is_unequal_to_everything() -> None:
    values: dict[str, Value] = {"n": float("nan")}
    assert compile_selector("n <> 1 AND n <> n").matches(values)
    assert compile_selector("n = n").evaluate(values) is Truth.FALSE
    assert compile_selector("n > 0 OR n <= 0").evaluate(values) is Truth.FALSE


def test_zero_has_one_value_whatever_its_sign() -> None:
    assert compile_selector("n = 0 AND n >= 0 AND NOT n < 0").matches({"n": -0.0})


@pytest.mark.requirement("3.8.1.1-2")
@pytest.mark.parametrize("text", [None, "", "  \t\r\n"])
def test_an_empty_selector_selects_everything(text: str | None) -> None:
    selector = compile_selector(text)
    assert selector.matches({})
    assert selector.evaluate({}) is Truth.TRUE
    assert selector.is_empty
    assert selector.identifiers == frozenset()
    assert selector.text == (text or "")


def test_a_selector_knows_its_text_and_names() -> None:
    selector = compile_selector(" a = 1 AND (JMSType LIKE 'x' OR a > b) ")
    assert selector.text == " a = 1 AND (JMSType LIKE 'x' OR a > b) "
    assert selector.identifiers == {"a", "b", "JMSType"}
    assert not selector.is_empty
    assert repr(selector) == "compile_selector(\" a = 1 AND (JMSType LIKE 'x' OR a > b) \")"


def test_selectors_are_equal_by_text_and_survive_pickling() -> None:
    selector = compile_selector("a = 1")
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert selector != compile_selector("a=1")
    assert len({selector, compile_selector("a = 1")}) == 1


def test_a_truth_is_no_bool() -> None:
    with pytest.raises(TypeError, match=r"compare it with Truth\.TRUE"):
        bool(Truth.TRUE)


def test_an_explanation_shows_each_part_with_its_value() -> None:
    selector = compile_selector("JMSType = 'car' AND (weight + 1) * 2 > 2500 AND NOT flag OR x IS NULL AND s - 1 = 2")
    values: dict[str, Value] = {"JMSType": "car", "weight": Float(7.5), "flag": False, "x": Long(1), "s": "text"}
    assert str(selector.explain(values)) == (
        "FALSE    JMSType = 'car' AND (weight + 1) * 2 > 2500 AND NOT flag OR x IS NULL AND s - 1 = 2\n"
        "  FALSE    JMSType = 'car' AND (weight + 1) * 2 > 2500 AND NOT flag\n"
        "    TRUE     JMSType = 'car'\n"
        "      'car' (string) JMSType\n"
        "    FALSE    (weight + 1) * 2 > 2500\n"
        "      17.0 (float) (weight + 1) * 2\n"
        "        8.5 (float) weight + 1\n"
        "          7.5 (float) weight\n"
        "    TRUE     NOT flag\n"
        "      FALSE    flag\n"
        "        FALSE (boolean) flag\n"
        "  FALSE    x IS NULL AND s - 1 = 2\n"
        "    FALSE    x IS NULL\n"
        "      1 (long) x\n"
        "    FALSE    s - 1 = 2\n"
        "      no value s - 1\n"
        "        'text' (string) s"
    )


def test_an_explanation_shows_missing_values_as_null() -> None:
    explanation = compile_selector("a = 1").explain({})
    assert str(explanation) == "UNKNOWN  a = 1\n  NULL     a"
    assert explanation.result is Truth.UNKNOWN
    assert explanation.parts[0].span == (0, 1)


# ---- cache ----


def test_the_same_text_gives_the_same_selector() -> None:
    assert compile_selector("cached = 1") is compile_selector("cached = 1")


def test_the_cache_drops_what_was_unused_longest() -> None:
    cache: TextCache[str] = TextCache(entries=2, characters=100)
    cache.put("a", "A")
    cache.put("b", "B")
    assert cache.get("a") == "A"
    cache.put("c", "C")
    assert [cache.get(text) for text in "abc"] == ["A", None, "C"]


def test_the_cache_is_bounded_by_characters_too() -> None:
    cache: TextCache[str] = TextCache(entries=100, characters=10)
    cache.put("12345678", "long")
    cache.put("abc", "short")
    assert cache.get("12345678") is None
    assert cache.get("abc") == "short"
    cache.put("x" * 11, "too long for any place")
    assert len(cache) == 0


def test_of_two_makers_the_first_is_kept() -> None:
    cache: TextCache[object] = TextCache(entries=2, characters=10)
    first, second = object(), object()
    assert cache.put("a", first) is first
    assert cache.put("a", second) is first


def test_many_distinct_selectors_leave_little_behind() -> None:
    for number in range(1500):
        compile_selector(f"distinct = {number}")
    gc.collect()
    assert sum(isinstance(thing, Selector) for thing in gc.get_objects()) < 600


def test_threads_share_selectors_and_the_cache() -> None:
    wrong: list[str] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        start.wait(timeout=10)
        for number in range(400):
            wanted = (number * 7 + seed) % 900
            selector = compile_selector(f"n = {wanted}")
            if not selector.matches({"n": wanted}) or selector.matches({"n": Long(wanted + 1)}):
                wrong.append(selector.text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
