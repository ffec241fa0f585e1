"""What a run found, as values and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, cast

import jmsapi
from jmsapi.spi import Capabilities
from jmsapi_conformance.inventory import chapter_of, load
from jmsapi_conformance.verdicts import Verdict, combine

__all__ = ["LEVEL", "SCHEMA", "Certificate", "TestResult", "as_json"]

SCHEMA: Final = 1
"""Version of the JSON; a change that breaks a reader raises it."""
LEVEL: Final = "2026.1"
"""The dated level of the suite: what counts in it does not change."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test."""

    name: str
    """Module and function, parameters included."""
    requirements: tuple[str, ...]
    needs: tuple[str, ...]
    verdict: Verdict
    reason: str
    seconds: float
    detail: str = ""
    """The traceback of a failure."""


@dataclass(slots=True)
class Certificate:
    """One run against one backend."""

    url: str
    """Redacted."""
    capabilities: Capabilities
    tests: list[TestResult] = field(default_factory=list[TestResult])
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    selection: str = ""
    """The ``-k`` expression; empty when everything ran."""

    def requirements(self) -> dict[str, Verdict]:
        """Return the verdict over each requirement that a test of this run named."""
        found: dict[str, list[Verdict]] = {}
        for test in self.tests:
            for one in test.requirements:
                found.setdefault(one, []).append(test.verdict)
        return {one.id: combine(found[one.id]) for one in load() if one.id in found}

    def failures(self) -> list[TestResult]:
        """Return the tests that failed."""
        return [test for test in self.tests if test.verdict is Verdict.FAIL]

    def chapters(self) -> dict[str, dict[Verdict | None, int]]:
        """Return, by chapter in the order of the inventory, how many requirements have each verdict; None: not run."""
        verdicts = self.requirements()
        counts: dict[str, dict[Verdict | None, int]] = {}
        for one in load():
            chapter = counts.setdefault(chapter_of(one.id), {})
            verdict = verdicts.get(one.id)
            chapter[verdict] = chapter.get(verdict, 0) + 1
        return counts


def as_json(certificates: Iterable[Certificate]) -> dict[str, Any]:
    """Return what the JSON file says."""
    return {
        "schema": SCHEMA,
        "suite": {"version": jmsapi.__version__, "level": LEVEL},
        "certificates": [_one(certificate) for certificate in certificates],
    }


def _one(certificate: Certificate) -> dict[str, Any]:
    capabilities = certificate.capabilities
    return {
        "url": certificate.url,
        "provider": capabilities.provider,
        "broker": capabilities.broker,
        "broker_version": capabilities.version,
        "started": certificate.started.isoformat(timespec="seconds"),
        "seconds": round(certificate.seconds, 1),
        "selection": certificate.selection,
        "capabilities": {
            name: {"level": support.level.value, "note": support.note, "emulate": support.emulate}
            for name, support in capabilities.supports().items()
        },
        "requirements": {name: verdict.value for name, verdict in certificate.requirements().items()},
        "tests": [
            {
                "test": test.name,
                "requirements": list(test.requirements),
                "needs": list(test.needs),
                "verdict": test.verdict.value,
                "reason": test.reason,
                "seconds": round(test.seconds, 3),
            }
            for test in certificate.tests
        ],
    }


def result_from(nodeid: str, said: Mapping[str, object], seconds: float, detail: str) -> TestResult:
    """Return a test's result from what the plug-in put into its report."""
    return TestResult(
        name=nodeid,
        requirements=tuple(cast("list[str]", said["requirements"])),
        needs=tuple(cast("list[str]", said["needs"])),
        verdict=Verdict(said["verdict"]),
        reason=str(said["reason"]),
        seconds=seconds,
        detail=detail,
    )
