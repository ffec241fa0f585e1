"""Runs the suite against one backend, inside this process, with pytest's engine and none of its output."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import pytest

import jmsapi
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.certificate import Certificate, TestResult, result_from
from jmsapi_conformance.plugin import SUITE
from jmsapi_conformance.verdicts import Verdict

__all__ = ["SuiteError", "run", "tested_ids"]

_INI: Final = Path(__file__).parent / "data" / "suite.ini"
OnResult = Callable[[TestResult | None, int], None]
"""Told each result, and how many tests there are in all; first with None, when they are counted."""


class SuiteError(Exception):
    """The suite itself could not be run: a module that does not import, an expression that selects nothing."""


class _Listener:
    """A pytest plug-in that keeps what the suite's own plug-in found."""

    def __init__(self, on_result: OnResult) -> None:
        self._on_result = on_result
        self._count = 0
        self.items: list[pytest.Item] = []
        self.results: dict[str, TestResult] = {}
        self.errors: list[str] = []
        self._current: TestResult | None = None
        self._seconds = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = list(session.items)
        self._count = len(self.items)
        self._on_result(None, self._count)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        for name, said in report.user_properties:
            if name != "jms" or (self._current is not None and report.when != "teardown"):
                continue
            found = result_from(report.nodeid, cast("dict[str, Any]", said), self._seconds, report.longreprtext)
            # The properties of an earlier phase come again with each later report; only a failure outweighs a verdict.
            if self._current is None or found.verdict is Verdict.FAIL:
                self._current = found
        if report.when == "teardown":
            if self._current is not None:
                self.results[report.nodeid] = self._current
                self._on_result(self._current, self._count)
            self._current, self._seconds = None, 0.0


def _pytest(arguments: list[str], listener: _Listener, keyword: str | None) -> None:
    code = pytest.main(
        [
            str(SUITE),
            f"--rootdir={SUITE}",
            f"--config-file={_INI}",
            # Whatever else is installed here has no say in a certificate.
            "--disable-plugin-autoload",
            "-p",
            "jmsapi_conformance.plugin",
            "-p",
            "no:terminal",
            "-p",
            "no:cacheprovider",
            *(["-k", keyword] if keyword else []),
            *arguments,
        ],
        plugins=[listener],
    )
    if listener.errors:
        raise SuiteError("\n".join(listener.errors))
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        raise SuiteError(f"pytest could not run the suite ({pytest.ExitCode(code).name})")
    if code is pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt


def run(url: str, *, keyword: str | None = None, on_result: OnResult = lambda _result, _count: None) -> Certificate:
    """Run the suite, or a part of it, against a URL.

    Args:
        url: The backend, as for ``jmsapi.connection_factory``.
        keyword: As pytest's ``-k``: part of the names of modules and tests.
        on_result: Told of each result.
    Returns:
        What was found.
    Raises:
        JMSException: The backend cannot be reached, or the URL is wrong.
        SuiteError: The suite could not be run.
    """
    capabilities = Backend(url).capabilities
    certificate = Certificate(jmsapi.redact_url(url), capabilities, selection=keyword or "")
    listener = _Listener(on_result)
    begun = time.monotonic()
    _pytest([f"--jms-url={url}"], listener, keyword)
    certificate.seconds = time.monotonic() - begun
    certificate.tests = list(listener.results.values())
    if not certificate.tests:
        raise SuiteError(f"no test has a name that fits {keyword!r}" if keyword else "the suite has no tests")
    return certificate


def tested_ids() -> dict[str, list[str]]:
    """Return the requirement ids that tests name, each with the names of its tests; nothing is run."""
    listener = _Listener(lambda _result, _count: None)
    _pytest(["--collect-only"], listener, None)
    found: dict[str, list[str]] = {}
    for item in listener.items:
        for mark in item.iter_markers("requirement"):
            for one in mark.args:
                found.setdefault(one, []).append(item.nodeid)
    return found
