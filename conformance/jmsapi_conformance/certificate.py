"""What a run found: results as they come, and the column of a document that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import jmsapi
from jmsapi.spi import Capabilities
from jmsapi_conformance.document import SCHEMA, CapabilityClaim, Column, Document, JudgedTest, Suite, plain, verdicts_over
from jmsapi_conformance.inventory import chapter_of, load
from jmsapi_conformance.levels import LEVEL, counts_in
from jmsapi_conformance.verdicts import Verdict

__all__ = ["LEVEL", "SCHEMA", "Certificate", "TestResult", "as_document", "as_json", "chapters_of", "result_from"]


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
    counts: bool = True
    """False for a test that is new in the level: it reports, and decides nothing."""

    def outcome(self) -> JudgedTest:
        """Return it as a document has it."""
        return JudgedTest(
            test=self.name,
            requirements=self.requirements,
            verdict=self.verdict,
            reason=self.reason,
            needs=self.needs,
            seconds=round(self.seconds, 3),
            counts=self.counts,
        )


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
    level: str = LEVEL
    title: str = ""
    options: str = ""
    """Those of the URL, redacted."""
    face: str = ""
    """Through which API the tests went: empty for the blocking one."""
    commit: str = ""
    """What was certified, as it was when the run began."""
    sources: dict[str, str] = field(default_factory=dict[str, str])

    def requirements(self) -> dict[str, Verdict]:
        """Return the verdict over each requirement that a test of this run named."""
        return verdicts_over(test.outcome() for test in self.tests)

    def failures(self) -> list[TestResult]:
        """Return the tests that failed, and count."""
        return [test for test in self.tests if test.verdict is Verdict.FAIL and test.counts]

    def reports(self) -> list[TestResult]:
        """Return the tests that failed and only report."""
        return [test for test in self.tests if test.verdict is Verdict.FAIL and not test.counts]

    def chapters(self) -> dict[str, dict[Verdict | None, int]]:
        """Return what ``chapters_of`` does; of a run with ``-k``, or of another face, only what was run."""
        return chapters_of(self.requirements(), only_run=bool(self.selection or self.face))

    def column(self) -> Column:
        """Return it as a document has it."""
        claims = self.capabilities.supports().items()
        return Column(
            url=self.url,
            provider=self.capabilities.provider,
            broker=self.capabilities.broker,
            broker_version=self.capabilities.version,
            tests=tuple(test.outcome() for test in self.tests),
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(self.seconds, 1),
            selection=self.selection,
            capabilities={name: CapabilityClaim(support.level.value, support.note, support.emulate) for name, support in claims},
            requirements=self.requirements(),
            title=self.title,
            level=self.level,
            options=self.options,
            face=self.face,
            version=jmsapi.__version__,
            commit=self.commit,
            sources=dict(self.sources),
        )


def chapters_of(verdicts: Mapping[str, Verdict], *, only_run: bool = False) -> dict[str, dict[Verdict | None, int]]:
    """Return, by chapter in the order of the inventory, how many requirements have each verdict; None: not run.

    Args:
        verdicts: By requirement id.
        only_run: Leave out requirements without a verdict, and chapters that have no other.
    """
    counts: dict[str, dict[Verdict | None, int]] = {}
    for one in load():
        if only_run and one.id not in verdicts:
            continue
        chapter = counts.setdefault(chapter_of(one.id), {})
        verdict = verdicts.get(one.id)
        chapter[verdict] = chapter.get(verdict, 0) + 1
    return counts


def as_document(certificates: Iterable[Certificate], level: str = LEVEL) -> Document:
    """Return certificates as one document."""
    return Document(SCHEMA, Suite(jmsapi.__version__, level), tuple(one.column() for one in certificates))


def as_json(certificates: Iterable[Certificate]) -> dict[str, Any]:
    """Return what the JSON file says."""
    return plain(as_document(certificates))


def result_from(nodeid: str, said: Mapping[str, Any], seconds: float, detail: str, level: str = LEVEL) -> TestResult:
    """Return a test's result from what the plug-in put into its report."""
    return TestResult(
        name=nodeid,
        requirements=tuple(cast("list[str]", said["requirements"])),
        needs=tuple(cast("list[str]", said["needs"])),
        verdict=Verdict(said["verdict"]),
        reason=str(said["reason"]),
        seconds=seconds,
        detail=detail,
        counts=counts_in(level, said["new_in"]),
    )
