"""What is known about tests that a Java client fails: ``reasons.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from jmsapi_conformance.document import JudgedTest
from jmsapi_conformance.inventory import by_id
from jmsapi_conformance.verdicts import Verdict

__all__ = ["Reason", "explained", "fits", "left_out", "load", "patterns"]

_FILE: Final = Path(__file__).with_name("reasons.toml")
_DAY: Final = re.compile(r"Run on \d{4}-\d\d-\d\d\.$")
"""The end of a remark on a test that was run later than the rest of its certificate."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One deviation of one or more clients."""

    clients: tuple[str, ...]
    """Schemes of their URLs."""
    tests: tuple[str, ...]
    """Names of tests; ``*`` stands for any text."""
    says: str
    """What the client does."""
    requirement: str = ""
    """The id that shows the test right; all ids of the test when empty."""
    failure: str = ""
    """A part of what the failed test said; without it every failure of such a test is this one."""
    sometimes: bool = False
    """Whether the test passes in some runs."""

    def covers(self, client: str, outcome: JudgedTest) -> bool:
        """Return whether a failure of a client is this one."""
        return client in self.clients and self.failure in outcome.reason and _one_of(self.tests, outcome.test)


def _one_of(patterns: Iterable[str], test: str) -> bool:
    return any(fits(one, test) for one in patterns)


def fits(pattern: str, test: str) -> bool:
    """Return whether a pattern is for a test."""
    return re.fullmatch(_expression(pattern), test) is not None


def _expression(pattern: str) -> str:
    return ".*".join(map(re.escape, pattern.split("*")))


@cache
def _tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def load(path: Path = _FILE) -> list[Reason]:
    """Read the reasons; an id that is no requirement is refused."""
    found: list[Reason] = []
    for one in _tables(path)["deviation"]:
        said = {name: one[name] for name in ("requirement", "failure", "sometimes") if name in one}
        reason = Reason(tuple(one["clients"]), tuple(one["tests"]), one["says"], **said)
        if reason.requirement:
            by_id(reason.requirement)
        found.append(reason)
    return found


def patterns(path: Path = _FILE) -> list[str]:
    """Return every pattern for names of tests."""
    return [pattern for table in _tables(path).values() for one in table for pattern in one["tests"]]


def left_out(client: str, test: str, path: Path = _FILE) -> str | None:
    """Return why a test can say nothing about a client; None: it can."""
    for one in _tables(path)["left_out"]:
        if client in one["clients"] and _one_of(one["tests"], test):
            return str(one["why"])
    return None


def explained(client: str, outcomes: Iterable[JudgedTest], reasons: Iterable[Reason]) -> tuple[tuple[JudgedTest, ...], list[str]]:
    """Put the reason to each failure, before the day that its remark may name.

    Args:
        client: The scheme of its URL.
        outcomes: Of all tests.
        reasons: All that are known.
    Returns:
        The outcomes with remarks, and the failures that nothing is known about.
    """
    known = list(reasons)
    unknown: list[str] = []
    told: list[JudgedTest] = []
    for one in outcomes:
        if one.verdict is not Verdict.FAIL:
            told.append(one)
            continue
        why = next((reason for reason in known if reason.covers(client, one)), None)
        if why is None:
            unknown.append(f"{one.test}: {one.reason}")
            told.append(one)
            continue
        right = why.requirement or ", ".join(one.requirements)
        day = _DAY.search(one.remark)
        told.append(replace(one, remark=f"{why.says} The test is right by {right}.{' ' + day[0] if day else ''}"))
    return tuple(told), unknown
