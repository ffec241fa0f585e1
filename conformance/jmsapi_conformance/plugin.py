"""The pytest plug-in: it collects the suite for a backend, judges each test, and gives the results to whoever runs it.

Loaded by name only (``-p jmsapi_conformance.plugin``). Two ways in:

- ``jmsapi-conformance URL`` runs pytest on the suite's folder with ``--jms-url``;
- a project's own tests say ``inproc = Certify("inproc://certify")`` in a test module, and the whole suite appears there.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pytest

from jmsapi_conformance import _rewrite  # noqa: F401  # pyright: ignore[reportUnusedImport] - comes first, see there
from jmsapi_conformance.backend import Backend, restart_of
from jmsapi_conformance.brokers import KINDS
from jmsapi_conformance.brokers import found as noted
from jmsapi_conformance.deadline import run_within
from jmsapi_conformance.fixtures import (
    connect,
    connection,
    context,
    contract,
    factory,
    interceptor,
    names,
    other_session,
    queue,
    restart,
    session,
    topic,
)
from jmsapi_conformance.levels import LEVEL, counts_in
from jmsapi_conformance.verdicts import Applicability, Verdict, applicability, is_refusal, judge

__all__ = [
    "SUITE",
    "Certify",
    "applicable",
    "backend",
    "connect",
    "connection",
    "context",
    "contract",
    "factory",
    "interceptor",
    "names",
    "other_session",
    "queue",
    "restart",
    "session",
    "topic",
]

SUITE: Final = Path(__file__).parent / "suite"
DEADLINE: Final = "JMSAPI_CONFORMANCE_TEST_DEADLINE"
DEADLINE_S: Final = 60.0
N = TypeVar("N", bound=pytest.Collector)
_BACKENDS = pytest.StashKey[dict[str, Backend]]()
_APPLIES = pytest.StashKey[Applicability]()


class Certify:
    """Puts the whole suite into a test module, for one backend.

    Args:
        url: The backend's URL.
        fixture: Instead of it, the name of a session-scoped fixture that gives the URL, or a ``Backend``.
        marks: Put on every test, such as ``pytest.mark.broker``.
        only: Patterns of module names, such as ``ch04_4_*``; without any, the whole suite.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        fixture: str | None = None,
        marks: Iterable[pytest.MarkDecorator] = (),
        only: Iterable[str] = ("[a-z]*",),
    ) -> None:
        if (url is None) == (fixture is None):
            raise ValueError("give a URL or the name of a fixture")
        self.url, self.fixture, self.marks, self.only = url, fixture, tuple(marks), tuple(only)

    def modules(self) -> list[Path]:
        """Return the files to run; a pattern that fits none is refused, since it would certify nothing."""
        chosen = {pattern: set(SUITE.glob(f"{pattern}.py")) for pattern in self.only}
        for pattern, found in chosen.items():
            if not found:
                raise ValueError(f"no module of the suite is called {pattern}")
        return sorted(set[Path]().union(*chosen.values()))


def _node(kind: type[N], parent: pytest.Collector, **arguments: object) -> N:
    """Make a node; pytest does not say of what types ``from_parent`` takes its arguments."""
    make = cast("Callable[..., N]", kind.from_parent)  # pyright: ignore[reportUnknownMemberType]
    return make(parent, **arguments)


class SuiteModule(pytest.Module):
    """A module of the suite, as one backend's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_marker(pytest.mark.usefixtures("applicable", "contract"))


class SuiteNode(pytest.Collector):
    """The suite inside somebody's test module."""

    certify: Certify

    def collect(self) -> Iterable[pytest.Collector]:
        """Give a node for each module of the suite."""
        for path in self.certify.modules():
            yield _node(SuiteModule, self, path=path, name=path.stem, nodeid=f"{self.nodeid}::{path.stem}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that the runner gives to its workers, too."""
    group = parser.getgroup("jmsapi conformance")
    group.addoption("--jms-url", metavar="URL", help="the backend that the suite runs against")
    group.addoption("--jms-broker", metavar="FOLDER", help="where a launched broker is noted that tests may restart")
    group.addoption("--jms-restarts", choices=["with", "without", "only"], default="with", help="tests that restart the broker")
    group.addoption(
        "--jms-deadline",
        metavar="SECONDS",
        type=float,
        default=os.environ.get(DEADLINE, DEADLINE_S),
        help="the longest that a test may take",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the suite's marks known."""
    config.stash[_BACKENDS] = {}
    config.addinivalue_line("markers", "requirement(*ids): requirement ids that this test proves")
    config.addinivalue_line("markers", "new_in(level): the level that this test is new in; it only reports there")
    config.addinivalue_line("markers", "needs(*names): capabilities or surroundings that this test needs")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Recognise the suite's own modules, when pytest runs on their folder."""
    if module_path.parent == SUITE and not module_path.name.startswith("_"):
        return _node(SuiteModule, parent, path=module_path)
    return None


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> pytest.Collector | None:
    """Turn a ``Certify`` of a test module into the suite."""
    if not isinstance(obj, Certify):
        return None
    node = _node(SuiteNode, collector, name=name)
    node.certify = obj
    for mark in obj.marks:
        node.add_marker(mark)
    return node


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that restart the broker apart from those that run side by side."""
    which = config.getoption("--jms-restarts")
    if which == "with":
        return
    chosen = [item for item in items if ("broker_restart" in _needs_of(item)) == (which == "only")]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _needs_of(item: pytest.Item) -> list[str]:
    return [name for mark in item.iter_markers("needs") for name in mark.args]


def _launched(folder: str | None, url: str) -> Backend:
    """Return the backend of a URL, with a hand on its broker where that was launched for the run."""
    if folder is not None:
        path = Path(folder)
        broker = next((noted(path.parent, kind) for kind in KINDS if kind == path.name), None)
        if broker is None:
            raise pytest.UsageError(f"no broker is noted in {folder}")
        return Backend(url, restart=restart_of(broker))
    return Backend(url)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """Give the backend that this test is to certify."""
    node = request.node.getparent(SuiteNode)
    given = request.config.getoption("--jms-url")
    if node is not None:
        given = node.certify.url or request.getfixturevalue(node.certify.fixture)
    if isinstance(given, Backend):
        return given
    if not given:
        raise pytest.UsageError("the conformance suite needs a backend: --jms-url URL")
    known = request.config.stash[_BACKENDS]
    if given not in known:
        known[given] = _launched(request.config.getoption("--jms-broker"), given)
    return known[given]


@pytest.fixture
def applicable(request: pytest.FixtureRequest, backend: Backend) -> None:
    """Compare the test's needs with the backend; skip it where it can say nothing."""
    needed = _needs_of(request.node)
    applies = applicability(needed, backend.capabilities, backend.environment) if needed else Applicability()
    request.node.stash[_APPLIES] = applies
    request.node.user_properties.append(("backend", backend.title))
    if applies.not_applicable is not None:
        pytest.skip(applies.not_applicable)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of the suite under a deadline."""
    if pyfuncitem.getparent(SuiteModule) is None:
        return None
    call: Callable[..., object] = pyfuncitem.obj
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(call).parameters}
    # A broker takes its time to come back.
    deadline_s = cast("float", pyfuncitem.config.getoption("--jms-deadline"))
    deadline_s *= 12 if "broker_restart" in _needs_of(pyfuncitem) else 1
    run_within(deadline_s, lambda: call(**arguments))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge: a refusal that was due passes, a claim of NONE that works fails."""
    report = yield
    if item.getparent(SuiteModule) is None:
        return report
    applies = item.stash.get(_APPLIES, Applicability())
    error = call.excinfo.value if call.excinfo is not None else None
    found: tuple[Verdict, str] | None = None
    if report.skipped:
        found = Verdict.NOT_APPLICABLE, str(error)
    elif report.when == "call" or (report.when == "setup" and is_refusal(error)):
        found = judge(applies, error)
    elif error is not None:
        found = Verdict.FAIL, f"{report.when}: {type(error).__name__}: {error}"
    if found is None:
        return report
    verdict, reason = found
    if verdict is Verdict.FAIL:
        if error is None:
            report.outcome, report.longrepr = "failed", reason
    elif verdict is Verdict.REFUSED:
        if report.when == "call":
            report.outcome, report.longrepr = "passed", None
        else:
            # A setup that "passed" would be followed by the call.
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Refused: {reason}")
    ids = [one for mark in item.iter_markers("requirement") for one in mark.args]
    newest = item.get_closest_marker("new_in")
    new_in = str(newest.args[0]) if newest is not None else None
    if verdict is Verdict.FAIL and not counts_in(LEVEL, new_in):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: new in {new_in}, so it only reports: {reason}")
    report.user_properties.append(
        ("jms", {"requirements": ids, "needs": _needs_of(item), "verdict": verdict.value, "reason": reason, "new_in": new_in}),
    )
    return report
