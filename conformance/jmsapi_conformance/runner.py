"""Runs the suite against one backend, with pytest's engine and none of its output.

In this process, or spread over workers: most tests wait, for a delay, an expiry, a broker's answer.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import pytest

import jmsapi
from jmsapi.spi import Capabilities
from jmsapi_conformance.backend import Backend, stored_file
from jmsapi_conformance.certificate import LEVEL, Certificate, TestResult, result_from
from jmsapi_conformance.plugin import SUITE, Certify
from jmsapi_conformance.sources import commit, digests
from jmsapi_conformance.verdicts import Verdict

__all__ = ["FACES", "SuiteError", "run", "tested_ids"]

_INI: Final = Path(__file__).parent / "data" / "suite.ini"
FACES: Final = {"aio": "jmsapi_conformance.aio_plugin"}
"""Other APIs than the blocking one, with the pytest plug-in of each."""
_OF_BOTH_APIS: Final = (
    "ch04_4_7_*",
    "ch05_9_*",
    "ch06_3_*",
    "ch06_11_*",
    "ch11_1_*",
    "ch11_2_*",
    "ch11_4_*",
    "ch12_*",
    "shs_*",
)
"""What the simplified API has, also where the classic one has it, too: transactions, browsers, subscriptions."""
OnResult = Callable[[TestResult | None, int], None]
"""Told each result, and how many tests there are in all; first with None, when they are counted."""


class SuiteError(Exception):
    """The suite itself could not be run: a module that does not import, an expression that selects nothing."""


class _Listener:
    """A pytest plug-in that keeps what the suite's own plug-in found."""

    def __init__(self, on_result: OnResult, level: str = LEVEL, before: int = 0) -> None:
        self._on_result = on_result
        self._level = level
        self._before = before
        self._names: list[str] = []
        self._current: dict[str, TestResult] = {}
        self._seconds: dict[str, float] = {}
        self.items: list[pytest.Item] = []
        self.results: dict[str, TestResult] = {}
        self.errors: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # with workers, each of them collects, and this process has none
            self.items = list(session.items)
            self._collected([item.nodeid for item in self.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if not self._names:
            self._collected(ids)

    def _collected(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._on_result(None, self._before + len(self._names))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        text = f"{report.nodeid}: {report.longreprtext}"
        if report.failed and text not in self.errors:  # each worker collects, and says so
            self.errors.append(text)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        if report.when not in ("setup", "call", "teardown"):  # a worker died under this test, and nobody judged it
            self._keep(TestResult(name, (), (), Verdict.FAIL, "the process that ran the test ended", 0.0, report.longreprtext))
            return
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        current = self._current.get(name)
        for key, said in report.user_properties:
            if key != "jms" or (current is not None and report.when != "teardown"):
                continue
            found = result_from(name, cast("dict[str, Any]", said), self._seconds[name], report.longreprtext, self._level)
            # The properties of an earlier phase come again with each later report; only a failure outweighs a verdict.
            if current is None or found.verdict is Verdict.FAIL:
                current = self._current[name] = found
        if report.when == "teardown" and current is not None:
            self._keep(current)

    def _keep(self, result: TestResult) -> None:
        self.results[result.name] = result
        self._on_result(result, self._before + len(self._names))

    def in_order(self) -> list[TestResult]:
        """Return the results in the order of the suite, whichever test ended first."""
        return [self.results[name] for name in self._names if name in self.results]

    def unjudged(self) -> list[str]:
        """Return the tests that were collected and have no result."""
        return [name for name in self._names if name not in self.results]


@contextmanager
def _no_foreign_plugins() -> Generator[None]:
    """Keep pytest's plug-ins that are installed here out, in workers too: they have no say in a certificate."""
    name = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _pytest(arguments: list[str], listener: _Listener, keyword: str | None, modules: Sequence[Path] = ()) -> None:
    with _no_foreign_plugins():
        code = _main(arguments, listener, keyword, modules)
    if listener.errors:
        raise SuiteError("\n".join(listener.errors))
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        raise SuiteError(f"pytest could not run the suite ({pytest.ExitCode(code).name})")
    if code is pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt


def _main(arguments: list[str], listener: _Listener, keyword: str | None, modules: Sequence[Path]) -> int | pytest.ExitCode:
    return pytest.main(
        [
            *(map(str, modules) if modules else [str(SUITE)]),
            f"--rootdir={SUITE}",
            f"--config-file={_INI}",
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


def _named_by(keyword: str) -> list[Path]:
    """Return the modules, when the keyword names modules only: what cannot fit need not be imported. Else none, which is all."""
    words = keyword.split(" or ")
    if not all(re.fullmatch(r"(ch\d\d|appendix|asf|j11|mdb|shs)_\w+", word) for word in words):
        return []
    return sorted(path for path in SUITE.glob("[a-z]*.py") if any(word in path.stem for word in words))


def _begun(url: str, capabilities: Capabilities, face: str) -> Certificate:
    """Return a certificate without results, of the code as it is now."""
    shown = jmsapi.redact_url(url)
    return Certificate(
        shown,
        capabilities,
        options=shown.partition("?")[2],
        face=face,
        commit=commit(),
        sources=digests(capabilities.provider, face),
    )


def run(
    url: str,
    *,
    keyword: str | None = None,
    only: Iterable[str] = (),
    workers: int = 1,
    level: str = LEVEL,
    deadline_s: float | None = None,
    broker: Path | None = None,
    title: str = "",
    backend: Backend | None = None,
    plugins: Iterable[str] = (),
    face: str = "",
    on_result: OnResult = lambda _result, _count: None,
) -> Certificate:
    """Run the suite, or a part of it, against a URL.

    Args:
        url: The backend, as for ``jmsapi.connection_factory``.
        keyword: As pytest's ``-k``: part of the names of modules and tests.
        only: Patterns of module names, such as ``ch04_4_*``; without any, the whole suite.
        workers: How many processes run tests at once. 1: this process runs them, and sees providers that it registered.
        level: What is certified; tests that are new in it only report.
        deadline_s: The longest that a test may take, 12 times that where it restarts the broker; None leaves it at the default.
        broker: Where the launcher noted the broker (``root / kind``), if tests may restart it: they come last, one by one.
        title: What the column is called in a report; made of provider and broker when empty.
        backend: What stands behind the URL, where that is no provider; tests get it from a fixture of one of the plug-ins.
        plugins: Modules of pytest plug-ins that come behind the suite's own, and win over its fixtures.
        face: One of ``FACES``: through which API the tests go; empty for the blocking one, which has all of them.
        on_result: Told of each result.
    Returns:
        What was found.
    Raises:
        JMSException: The backend cannot be reached, or the URL is wrong.
        SuiteError: The suite could not be run, or a test was left without a result.
    """
    capabilities = (backend or Backend(url)).capabilities
    certificate = replace(_begun(url, capabilities, face), selection=keyword or "", level=level, title=title)
    if face:
        plugins, only = (*plugins, FACES[face]), tuple(only) or _OF_BOTH_APIS
    alone = workers == 1 or stored_file(url) is not None  # a store belongs to one process
    spread = [] if alone else ["-p", "xdist", f"--numprocesses={workers}", "--dist=load", "--maxschedchunk=4"]
    phases: list[tuple[str, list[str]]] = [("with", spread)] if broker is None else [("without", spread), ("only", [])]
    modules = _named_by(keyword or "")
    if patterns := tuple(only):
        among = Certify(url, only=patterns).modules()
        modules = [one for one in among if one in modules] or among
    begun = time.monotonic()
    for restarts, how in phases:
        listener = _Listener(on_result, level, before=len(certificate.tests))
        asked = [f"--jms-url={url}", f"--jms-restarts={restarts}", *(f"-p{one}" for one in plugins)]
        asked += [] if deadline_s is None else [f"--jms-deadline={deadline_s}"]
        _pytest([*asked, *([f"--jms-broker={broker}"] if broker else []), *how], listener, keyword, modules)
        certificate.tests += listener.in_order()
        if left := listener.unjudged():
            raise SuiteError(f"{len(left)} tests ended without a result, the first of them {left[0]}")
    certificate.seconds = time.monotonic() - begun
    if not certificate.tests:
        raise SuiteError(f"no test has a name that fits {keyword!r}" if keyword else "the suite has no tests")
    return certificate


def tested_ids() -> dict[str, list[str]]:
    """Return the requirement ids that tests name, each with the names of its tests; nothing is run."""
    listener = _Listener(lambda _result, _count: None)
    # Nothing runs, so nothing need be rewritten to say more when it fails.
    _pytest(["--collect-only", "--assert=plain"], listener, None)
    found: dict[str, list[str]] = {}
    for item in listener.items:
        for mark in item.iter_markers("requirement"):
            for one in mark.args:
                found.setdefault(one, []).append(item.nodeid)
    return found
