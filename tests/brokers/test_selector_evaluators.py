"""The planner against the brokers' own evaluators: with PUSH and REWRITE they answer what the standard answers.

The evaluators of Artemis and Classic run from their jars; no broker is started. Random selectors and messages from a
seed, with the values that brokers get wrong (NaN, -0.0, bytes, strings that look like numbers) among them, and all cases of the
table.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from jmsapi.values import Byte, Float, Long, Short, Value
from jmsapi_brokers import artemis, classic
from jmsapi_selector import InvalidSelector, Selector, compile_selector
from jmsapi_selector.planner import Action, DestinationKind, Plan, covers, plan

_ROOT: Final = Path(__file__).parents[2]
DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (artemis.AMQP_SELECTORS, artemis.STOMP_SELECTORS, classic.AMQP_SELECTORS, classic.STOMP_SELECTORS)
}
_EVALUATORS: Final = {
    "amqp-artemis": "artemis-amqp",
    "amqp-classic": "classic",
    "stomp-artemis": "artemis",
    "stomp-classic": "classic",
}
_VALUES: Final[list[Value]] = [
    *(True, False, 0, 1, 2, 5, -1, 15, 31, 2**31 - 1, 2**24 + 1, Long(5), Long(2**63 - 1), Short(5)),
    *(Byte(0), Byte(1), Byte(5), Byte(-128), 0.0, -0.0, 0.5, 2.5, 1000.0, float("nan"), float("inf"), float("-inf")),
    *(Float(2.5), Float(0.1), Float(2**24), Float("nan"), Float(-0.0)),
    *("", "a", "b", "aB", "AB", "%", "_", "1", ". 1", "'", "5", "2.5", "true", "ab%1", "\n", "!"),
]


def _load(name: str, path: Path) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def evaluators() -> ModuleType:
    loaded: ModuleType = _load("java_evaluators", _ROOT / "benchmarks" / "selector" / "java_evaluators.py")
    lacking = loaded.missing()
    if lacking:
        if os.environ.get("JMSAPI_REQUIRE_BROKERS", "") not in ("", "0"):
            pytest.fail(lacking, pytrace=False)
        pytest.skip(f"LEFT OUT: {lacking}")
    return loaded


@dataclass(frozen=True)
class Question:
    """A message put to a broker's evaluator, and what is right."""

    selector: Selector
    plan: Plan
    message: dict[str, Value]
    sent: str
    seen: dict[str, Value]

    @property
    def right(self) -> str:
        return "T" if self.selector.matches(self.message) else "F"


def _question(selector: Selector, dialect: str, kind: DestinationKind, message: dict[str, Value]) -> Question | None:
    made = plan(selector, DIALECTS[dialect], kind)
    if made.text is None:
        return None
    # Classic puts the prefix before a STOMP selector itself.
    sent = f"convert_string_expressions:{made.text}" if dialect == "stomp-classic" else made.text
    return Question(selector, made, message, sent, _as_seen(dialect, message))


def _as_seen(dialect: str, message: dict[str, Value]) -> dict[str, Value]:
    """Give a message as the broker holds it: its own names, and over STOMP strings."""
    spoken = DIALECTS[dialect]
    seen: dict[str, Value] = {}
    for name, value in message.items():
        theirs = spoken.names.get(name, name)
        if name == "JMSDeliveryMode":
            seen[theirs] = spoken.persistent if value == "PERSISTENT" else spoken.non_persistent
        elif value is not None:
            seen[theirs] = value if spoken.typed or name.startswith("JMS") else _rendered(value)
    return seen


def _rendered(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value)).replace("inf", "Infinity").replace("nan", "NaN")
    return str(int(value)) if isinstance(value, int) else str(value)


def _random_questions(dialect: str, kind: DestinationKind, seed: int) -> Iterator[Question]:
    texts = _load("selector_texts", _ROOT / "tests" / "unit" / "selector" / "texts.py").Texts(seed)
    pick = random.Random(seed)
    for _ in range(1500):
        text = texts.valid()
        if pick.random() < 0.1:
            text = text.replace(" a ", " JMSDeliveryMode ")
        try:
            selector = compile_selector(text)
        except InvalidSelector:
            continue
        for _ in range(4):
            message: dict[str, Value] = {
                name: pick.choice(_VALUES) for name in ("a", "b", "flag", "s", "n", "_x$1") if pick.random() < 0.8
            }
            message["JMSPriority"] = pick.randrange(10)
            message["JMSDeliveryMode"] = pick.choice(["PERSISTENT", "NON_PERSISTENT"])
            if pick.random() < 0.6:
                message["JMSType"] = pick.choice(["a", "", "aB", "5", "PERSISTENT"])
            question = _question(selector, dialect, kind, message)
            if question is not None:
                yield question


def _case_questions(dialect: str, kind: DestinationKind) -> Iterator[Question]:
    for case in _load("selector_cases", _ROOT / "tests" / "unit" / "selector" / "cases.py").all_cases():
        if case.expected != "invalid":
            question = _question(compile_selector(case.selector), dialect, kind, {"JMSPriority": 4, **case.values})
            if question is not None and question.plan.text is not None:
                yield question


def _wrong(questions: list[Question], answers: list[str]) -> list[tuple[str, str, dict[str, Value]]]:
    return [
        (answer, question.sent, question.message)
        for question, answer in zip(questions, answers, strict=True)
        if answer != question.right
        and not (question.plan.recheck and answer == "T")
        and not (question.plan.caveats and answer in "TF")
    ]


@pytest.mark.broker
@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize("dialect", _EVALUATORS)
def test_a_broker_answers_what_was_pushed_or_rewritten_as_the_standard_does(
    evaluators: ModuleType, dialect: str, kind: DestinationKind
) -> None:
    questions = [*_random_questions(dialect, kind, seed=20), *_case_questions(dialect, kind)]
    answers = evaluators.evaluate(_EVALUATORS[dialect], [(one.sent, one.seen) for one in questions])
    assert len(questions) > 4000
    assert _wrong(questions, answers)[:5] == []
    if DIALECTS[dialect].typed:
        assert not any(one.plan.caveats or one.plan.recheck for one in questions if one.plan.action is Action.PUSH)


@pytest.mark.broker
@pytest.mark.parametrize("dialect", ["amqp-artemis", "amqp-classic"])
def test_without_the_planner_the_same_brokers_answer_otherwise(evaluators: ModuleType, dialect: str) -> None:
    """Show that the test above can fail: the same questions with the texts as they were."""
    questions = list(_random_questions(dialect, "queue", seed=20))
    answers = evaluators.evaluate(_EVALUATORS[dialect], [(one.selector.text, one.message) for one in questions])
    assert len(_wrong(questions, answers)) > 100


@pytest.mark.broker
@pytest.mark.parametrize("dialect", ["amqp-artemis", "amqp-classic"])
def test_where_a_text_is_said_to_cover_the_standard_the_broker_keeps_nothing_back(evaluators: ModuleType, dialect: str) -> None:
    """A durable subscription carries the text as it stands then."""
    questions = [
        one
        for seed in range(20, 26)
        for one in [*_random_questions(dialect, "topic", seed), *_case_questions(dialect, "topic")]
        if covers(one.selector, DIALECTS[dialect])
    ]
    answers = evaluators.evaluate(_EVALUATORS[dialect], [(one.selector.text, one.seen) for one in questions])
    asked = list(zip(questions, answers, strict=True))
    assert len(questions) > 1000
    assert sum(one.plan.action is Action.REWRITE for one in questions) > 100
    assert [(one.selector.text, one.message) for one, answer in asked if one.right == "T" and answer != "T"][:5] == []
    assert any(one.right == "F" and answer == "T" for one, answer in asked), "nothing to check again"


@pytest.mark.broker
@pytest.mark.parametrize("dialect", ["amqp-artemis", "amqp-classic"])
def test_brokers_read_the_deepest_and_longest_selectors(evaluators: ModuleType, dialect: str) -> None:
    deep = "NOT (" * 128 + "a = 1" + ")" * 128
    mixed = "a = 1 OR (b > 2 AND NOT (" * 60 + "c LIKE 'x'" + "))" * 60
    broad = " OR ".join(f"a = {number}" for number in range(3000))
    message: dict[str, Value] = {"a": 2999, "b": 1}
    found = [_question(compile_selector(text), dialect, "queue", message) for text in (deep, mixed, broad)]
    questions = [one for one in found if one is not None]
    assert len(questions) == 3
    answers = evaluators.evaluate(_EVALUATORS[dialect], [(one.sent, one.seen) for one in questions])
    assert answers == [one.right for one in questions]
