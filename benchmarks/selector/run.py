"""What a selector costs, as ratios taken in one run.

    python benchmarks/selector/run.py [--distinct N] [--no-java]

| row | what is measured |
|---|---|
| compiled | evaluations of ``JMSType = 'car' AND color = 'blue' AND weight > 2500`` on six messages |
| by hand | the same with ``AND region IN ('EU', 'US')``, beside a function written by hand that tells classes apart, too |
| walked | the same by a walk over the same nodes that asks each what it is (isinstance_walk.py) |
| typed, protocol | the same with a Long as weight, and with messages that are no mapping |
| compile | a new selector of 100 characters, from text to test: of a shape that is known, and of a new one |
| hostile | the slowest of some texts of 65,536 characters that end in an error |
| memory | growth over N distinct selectors after the first tenth of them |
| cases | evaluations over all valid cases of the table, here and by Artemis's own evaluator (needs JDK and Maven) |

Times are processor time of the thread that evaluates, in Java too, and the best of several rounds: that bears a busy
machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import time
from collections.abc import Callable, Mapping
from importlib.resources import files

import java_evaluators
from isinstance_walk import walk

from jmsapi.values import Byte, Double, Float, Int, Long, Short
from jmsapi_brokers.artemis import AMQP_SELECTORS
from jmsapi_selector import InvalidSelector, Value, compile_selector, compiler
from jmsapi_selector.check import check
from jmsapi_selector.compiler import compile_tree
from jmsapi_selector.parser import parse

EXAMPLE = "JMSType = 'car' AND color = 'blue' AND weight > 2500"
HUNDRED = "JMSType = 'car' AND color = 'blue' AND weight > 2500 AND (region IN ('EU','US') OR name LIKE 'a%b')"
HOSTILE = ["(" * 65_536, "a = 1 OR " * 7_281, "a+" * 32_768, "(a)" * 21_845, "a IN (" + "'x'," * 16_000, "'" + "''" * 32_000]
MESSAGES: list[dict[str, Value]] = [
    {"JMSType": "car", "color": "blue", "weight": 3000},
    {"JMSType": "car", "color": "blue", "weight": 2000},
    {"JMSType": "car", "color": "red", "weight": 3000},
    {"JMSType": "van", "color": "blue", "weight": 3000},
    {"JMSType": "car", "color": "blue", "weight": 2500.5},
    {"JMSType": "car", "color": "blue"},
]
TYPES = {"byte": Byte, "short": Short, "int": Int, "long": Long, "float": Float, "double": Double}


FOUR = EXAMPLE + " AND region IN ('EU', 'US')"
REGIONS = frozenset({"EU", "US"})


def by_hand(values: Mapping[str, Value]) -> bool:
    """Do what the selector FOUR says, as one would write it who knows that values have types."""
    get = values.get
    return (
        get("JMSType") == "car"
        and get("color") == "blue"
        and isinstance(weight := get("weight"), int | float)
        and not isinstance(weight, bool)
        and weight > 2500
        and isinstance(region := get("region"), str)
        and region in REGIONS
    )


class PlainMessage:
    """What the core hands over: an object with the one method."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def selector_value(self, name: str) -> Value:
        return self._values.get(name)


def seconds(work: Callable[[], object], rounds: int = 7) -> float:
    """Time the best of some rounds, in processor seconds."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def rate(test: Callable[[object], object], messages: list[object], times: int) -> float:
    """Give evaluations a second."""

    def work() -> None:
        for _ in range(times):
            for message in messages:
                test(message)

    return times * len(messages) / seconds(work)


def refuse(text: str) -> None:
    try:
        compile_selector(text)
    except InvalidSelector:
        return
    raise AssertionError("a hostile text was taken for a selector")


def build(text: str) -> None:
    """Compile without the cache."""
    tree = parse(text)
    check(text, tree)
    compile_tree(tree)


def growth(distinct: int) -> tuple[float, float]:
    """Compile distinct selectors; give the growth in MiB after the first tenth, and the seconds it took."""
    started = time.process_time()
    for number in range(distinct // 10):
        compile_selector(f"a = {number} AND b <> 'x'")
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(distinct // 10, distinct):
        compile_selector(f"a = {number} AND b <> 'x'")
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, time.process_time() - started


def cases() -> list[tuple[str, dict[str, Value]]]:
    """Read the valid cases of the table, header fields under Artemis's names as well."""
    found: list[tuple[str, dict[str, Value]]] = []
    names = AMQP_SELECTORS.names
    for line in files("jmsapi_conformance").joinpath("data", "selector-cases.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if case.get("strict_expect", case["expect"]) == "invalid" or not case["selector"].strip():
            continue
        values: dict[str, Value] = dict(case["headers"])
        for name, typed in case["props"].items():
            make = TYPES.get(typed["t"])
            values[name] = typed["v"] if make is None or typed["v"] is None else make(typed["v"])
        found.append((case["selector"], values | {names.get(name, name): value for name, value in values.items()}))
    return found


def java() -> None:
    """Print the rows that need Artemis's evaluator."""
    accepted = [row for row, answer in zip(cases(), java_evaluators.evaluate("artemis", cases()), strict=True) if answer in "TF"]
    tests = [(compile_selector(text).matches, values) for text, values in accepted]

    def work() -> None:
        for _ in range(100):
            for test, values in tests:
                test(values)

    ours = 100 * len(tests) / seconds(work)
    theirs = max(java_evaluators.rates("artemis", accepted))
    print(f"{len(accepted)} cases      {ours / 1e6:8.2f} M/s   Artemis (Java) {theirs / 1e6:.2f} M/s, ratio {ours / theirs:.3f}")
    rows = [(EXAMPLE, message) for message in MESSAGES]
    ours = rate(compile_selector(EXAMPLE).matches, list[object](MESSAGES), 30_000)
    theirs = max(java_evaluators.rates("artemis", rows))
    print(f"example        {ours / 1e6:8.2f} M/s   Artemis (Java) {theirs / 1e6:.2f} M/s, ratio {ours / theirs:.3f}")


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--distinct", type=int, default=100_000)
    parser.add_argument("--no-java", action="store_true")
    options = parser.parse_args()
    selector = compile_selector(EXAMPLE)
    compiled = rate(selector.matches, list[object](MESSAGES), 30_000)
    walked = rate(lambda message: walk(selector.tree, message), list[object](MESSAGES), 3_000)
    weights = {3000: Long(3000), 2000: Long(2000), 2500.5: Double(2500.5)}
    typed = [{name: weights.get(value, value) for name, value in message.items()} for message in MESSAGES]
    print(f"compiled       {compiled / 1e6:8.2f} M/s")
    four = [{**MESSAGES[0], "region": "EU"}, *MESSAGES[1:]]
    ours, hand = (1e9 / rate(test, list[object](four[:1]), 100_000) for test in (compile_selector(FOUR).matches, by_hand))
    print(f"by hand        {hand:8.0f} ns    compiled {ours:.0f} ns: {ours / hand:.2f} of it (wanted: 1.2)")
    print(f"walked         {walked / 1e6:8.2f} M/s   compiled is {compiled / walked:.1f} times as fast (wanted: 3)")
    print(f"typed          {rate(selector.matches, list[object](typed), 30_000) / 1e6:8.2f} M/s")
    print(f"protocol       {rate(selector.matches, [PlainMessage(message) for message in MESSAGES], 30_000) / 1e6:8.2f} M/s")
    text = HUNDRED.ljust(100)
    built = seconds(lambda: [build(text) for _ in range(200)]) / 200

    def build_new() -> None:
        compiler._shapes.clear()
        build(text)

    new = seconds(lambda: [build_new() for _ in range(200)]) / 200
    print(f"compile        {built * 1e6:8.0f} us for 100 characters (wanted: 200); of a new shape {new * 1e6:.0f} us")
    slowest = max(seconds(lambda text=text: refuse(text), 3) for text in HOSTILE)
    print(f"hostile        {slowest * 1e3:8.0f} ms at most for 65,536 characters (wanted: 500)")
    grown, took = growth(options.distinct)
    print(f"memory         {grown:8.1f} MiB more after {options.distinct:,} distinct selectors, {took:.1f} s")
    lacking = None if options.no_java else java_evaluators.missing()
    if lacking:
        print(f"cases          left out: {lacking}")
    elif not options.no_java:
        java()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
