"""Brokers and backends for our own tests, a check that nothing leaks, and a summary that says what was covered.

A test takes ``broker_url`` to run once on each backend, ``each_broker`` to run once with each broker, ``artemis``, ``classic``
or ``rabbitmq`` to talk to that one, ``restarted_broker`` for one that it may kill and starts again, ``own_broker`` to start one
for itself alone. Brokers start on first use, once a run, whether it has one worker or several. Where a broker cannot be had its
tests are skipped and the summary says LEFT OUT; with ``JMSAPI_REQUIRE_BROKERS=1`` they fail instead.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NoReturn, cast

import pytest

from jmsapi.testing import LoopbackServer
from jmsapi_conformance.brokers import INFO, KINDS, Broker, BrokerKind, LauncherError, Wire, launch, leased_folder, shared

WIRES: tuple[Wire, ...] = ("stomp", "amqp")
BACKENDS: dict[str, tuple[Wire, BrokerKind]] = {f"{wire}-{kind}": (wire, kind) for kind in KINDS for wire in WIRES}
_IN_PROCESS = "inproc on jmsapi in-process"
_LOOPBACK = "STOMP on the loopback server"
REQUIRE = "JMSAPI_REQUIRE_BROKERS"
_FOLDER = "JMSAPI_TEST_BROKERS"
LEFT_OUT = "LEFT OUT: "
_LEAK_GRACE_S = 5.0
_LOG_LINES = 60
_BROKER_TEST_S = 400
_BROKERS_ONLY = Path(__file__).with_name("conformance") / "test_brokers.py"
"""Has no test that needs no broker."""
_PROGRAM_FIXTURES = {"spark", "certificates"}
"""Start other programs: Java, openssl."""
_PROGRAM_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
"""What Python reports to its audit hooks when a program is started."""

_SHARED: list[Broker] = []
_OWN = pytest.StashKey[list[Broker]]()


def pytest_configure(config: pytest.Config) -> None:
    # Set already: this is a worker of pytest-xdist, or a run inside a test, and whoever set it ends the brokers.
    if _FOLDER not in os.environ:
        stack = contextlib.ExitStack()
        os.environ[_FOLDER] = str(stack.enter_context(leased_folder()))
        stack.callback(os.environ.pop, _FOLDER)
        config.add_cleanup(stack.close)
    # Brokers and Spark live for minutes here: what their code gains by being compiled a second time is less than that costs.
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    config.pluginmanager.register(Coverage())
    if "not program" in str(config.getoption("markexpr")):
        programs = Programs()
        config.pluginmanager.register(programs)
        sys.addaudithook(programs.audit)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("loadgroup", False):
        _name_groups(items)
    for item in items:
        if item.path == _BROKERS_ONLY and not item.get_closest_marker("broker"):
            raise pytest.UsageError(f"{item.nodeid} needs no broker, and would be left out of a run without brokers; move it")
        if isinstance(item, pytest.Function) and {*KINDS, "own_broker", "restarted_broker"} & set(item.fixturenames):
            item.add_marker("broker")
        if isinstance(item, pytest.Function) and _PROGRAM_FIXTURES & set(item.fixturenames):
            item.add_marker("program")
        # The first test that needs a broker waits for its start.
        if item.get_closest_marker("broker") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_BROKER_TEST_S))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do without the collector of garbage while tests are collected: what they are made of stays, and is looked at in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep the collector of garbage away from the tests themselves: there are so many that each of its rounds took a second."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Some five thousand tests, which every worker would collect only to leave them out.
    if "not broker" in str(config.getoption("markexpr")) and collection_path == _BROKERS_ONLY:
        return True
    return None


def _name_groups(items: list[pytest.Item]) -> None:
    """Say in a test's id which group it belongs to: pytest-xdist 3.8 means to, but pytest 9.2 keeps ids elsewhere."""
    try:
        from _pytest.nodeid import coerce_node_id
    except ImportError:  # an earlier pytest
        return
    for item in items:
        groups = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")})
        if groups and not item.nodeid.endswith(f"@{'_'.join(groups)}"):
            item._id = coerce_node_id(f"{item.nodeid}@{'_'.join(groups)}")


# ---------------------------------------------------------------- brokers


@pytest.fixture(scope="session")
def artemis() -> Broker:
    """Give the Artemis that all tests of this run share; do not kill it."""
    return _shared("artemis")


@pytest.fixture(scope="session")
def classic() -> Broker:
    """Give the ActiveMQ Classic that all tests of this run share; do not kill it."""
    return _shared("classic")


@pytest.fixture(scope="session")
def rabbitmq() -> Broker:
    """Give the RabbitMQ that all tests of this run share; do not kill it."""
    return _shared("rabbitmq")


@pytest.fixture(scope="session")
def leave_out() -> Callable[[str], NoReturn]:
    """Give a function that leaves a test out loudly, saying what is missing here."""
    return _leave_out


@pytest.fixture
def own_broker(request: pytest.FixtureRequest) -> Generator[Callable[[BrokerKind], Broker]]:
    """Give a function that starts a broker for this test alone, which may kill and restart it."""
    with contextlib.ExitStack() as stack:

        def start(kind: BrokerKind) -> Broker:
            broker = stack.enter_context(_or_leave_out(lambda: launch(kind)))
            if not broker.is_ours:
                _leave_out(f"{INFO[kind].title} was given by URL, so it cannot be killed")
            request.node.stash.setdefault(_OWN, []).append(broker)
            _name_backend(request.node, _title(broker))
            return broker

        yield start


@pytest.fixture(scope="session")
def restartable() -> Generator[Callable[[BrokerKind], Broker]]:
    """Give a function that starts a broker which the tests of one worker may restart in turn."""
    started: dict[BrokerKind, Broker] = {}
    with contextlib.ExitStack() as stack:

        def start(kind: BrokerKind) -> Broker:
            if kind not in started:
                started[kind] = stack.enter_context(_or_leave_out(lambda: launch(kind, own=True, ready_s=300)))
                _SHARED.append(started[kind])
            return started[kind]

        yield start


@pytest.fixture
def restarted_broker(
    request: pytest.FixtureRequest, restartable: Callable[[BrokerKind], Broker]
) -> Callable[[BrokerKind], Broker]:
    """Give a function that gives a running broker which this test may kill, and must start again: others have it in turn.

    Such a test bears ``pytest.mark.xdist_group("restarts of <kind>")``, so that one worker has the broker for itself.
    """

    def start(kind: BrokerKind) -> Broker:
        groups = [str(mark.args[0]) for mark in request.node.iter_markers("xdist_group")]
        assert groups == [f"restarts of {kind}"], "a test that restarts a broker is in its group"
        broker = restartable(kind)
        if not broker.is_alive:  # the test before failed
            broker.restart(ready_s=300)
        _name_backend(request.node, _title(broker))
        return broker

    return start


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in KINDS])
def each_broker(request: pytest.FixtureRequest) -> Broker:
    """Give each of the shared brokers in turn; do not kill it."""
    return cast("Broker", request.getfixturevalue(str(request.param)))


@pytest.fixture(params=["inproc", "loopback", *(pytest.param(backend, marks=pytest.mark.broker) for backend in BACKENDS)])
def broker_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of each backend in turn: in process, the loopback server, each wire of each broker, credentials included."""
    if request.param == "inproc":
        _name_backend(request.node, _IN_PROCESS)
        yield f"inproc://test-{uuid.uuid4()}"
        return
    if request.param == "loopback":
        _name_backend(request.node, _LOOPBACK)
        with LoopbackServer() as server:
            yield server.url
        return
    wire, kind = BACKENDS[request.param]
    broker = cast("Broker", request.getfixturevalue(kind))
    if wire not in broker.wires:
        _leave_out(f"{INFO[kind].title} was given without {wire}")
    _name_backend(request.node, f"{wire.upper()} on {_title(broker)}")
    yield broker.url(wire)


def _shared(kind: BrokerKind) -> Broker:
    broker = _or_leave_out(lambda: shared(kind, Path(os.environ[_FOLDER])))
    _SHARED.append(broker)
    return broker


def _or_leave_out(start: Callable[[], Broker]) -> Broker:
    try:
        return start()
    except LauncherError as error:
        _leave_out(str(error))


def _leave_out(why: str) -> NoReturn:
    if os.environ.get(REQUIRE, "") not in ("", "0"):
        pytest.fail(f"{why} ({REQUIRE} is set)", pytrace=False)
    pytest.skip(f"{LEFT_OUT}{why}")


def _title(broker: Broker) -> str:
    return f"{INFO[broker.kind].title} {broker.version or ''}".strip()


# ---------------------------------------------------------------- leaks


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have this process and its children listen to SIGINT: a shell has what runs in its background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread of ours running or a socket open."""
    threads, sockets = _threads(), _sockets()
    yield
    deadline = time.monotonic() + _LEAK_GRACE_S
    while (left := [*(_threads() - threads), *(_sockets() - sockets)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    if left:
        pytest.fail(f"left behind after the test: {', '.join(sorted(map(_named, left)))}", pytrace=False)


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("jmsapi-")}


def _sockets() -> set[str]:
    """Name the open sockets of this process, where the system tells (Linux)."""
    found: set[str] = set()
    # Before and after each test, so by plain strings: paths took a fifth of what a short test takes.
    folder = "/proc/self/fd"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():  # noqa: PTH112, PTH208
        # The descriptor of the listing itself is closed by the time it is looked at.
        with contextlib.suppress(OSError):
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
            if target.startswith("socket:"):
                found.add(target)
    return found


def _named(left: threading.Thread | str) -> str:
    """Say what was left behind; of a socket its row in the system's tables, which has its two ends, and who else runs here."""
    if isinstance(left, threading.Thread):
        return str(left)
    inode = left.removeprefix("socket:").strip("[]")
    rows = [
        f"{table}: {' '.join(row.split())}"
        for table in ("tcp", "tcp6", "unix", "netlink", "udp")
        for row in Path("/proc/self/net", table).read_text(encoding="ascii", errors="replace").splitlines()
        if inode in row.split()
    ]
    threads = ", ".join(sorted(thread.name for thread in threading.enumerate()))
    return f"{left} ({'; '.join(rows) or 'in no table'}; threads: {threads})"


# ---------------------------------------------------------------- other programs


class Programs:
    """Sees to it that a test which starts a program says so: one without the marks runs in this process alone.

    Only in runs that leave such tests out: libraries may start one where nobody expects it, to ask for the processor's name, say.
    """

    def __init__(self) -> None:
        self._forbidden_to: str | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        may = item.get_closest_marker("program") or item.get_closest_marker("broker")
        self._forbidden_to = None if may else item.nodeid
        try:
            return (yield)
        finally:
            self._forbidden_to = None

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Refuse to start a program for a test that may not."""
        if self._forbidden_to is not None and event in _PROGRAM_STARTS:
            raise RuntimeError(f"{self._forbidden_to} starts {arguments[:2]} ({event}): it needs the mark `program`")


# ---------------------------------------------------------------- summary


def _name_backend(node: pytest.Item, backend: str) -> None:
    # The conformance suite names its backends in the same property.
    if ("backend", backend) not in node.user_properties:
        node.user_properties.append(("backend", backend))


def _keep_log(broker: Broker, item: pytest.Item) -> None:
    folder = item.config.rootpath / "reports" / "broker-logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{broker.kind}.log").write_text(broker.log(), encoding="utf-8")


class Coverage:
    """What a run did on each backend, told at its end.

    A plug-in of its own: the hooks of a conftest see only tests below its folder, and the conformance suite is elsewhere.
    """

    def __init__(self) -> None:
        self._tests: dict[str, Counter[str]] = {}
        self._left_out: Counter[str] = Counter()
        self._cells: dict[str, dict[str, dict[str, str]]] = {}
        """By title and route, what came of each aspect: tests say it in the property ``cells``."""
        self._older: list[str] = []
        """Certificates of older code, which a test lets pass for a while."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Broker):
                assert item.get_closest_marker("broker"), "a test that gets a broker needs the mark `broker`"
                _name_backend(item, _title(value))
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        used = " ".join(str(value) for name, value in item.user_properties if name == "backend")
        for broker in (*_SHARED, *item.stash.get(_OWN, ())):
            if report.failed and _title(broker) in used:
                tail = "\n".join(broker.log().splitlines()[-_LOG_LINES:])
                report.sections.append((f"log of {_title(broker)}", tail or "(none: it was given by URL)"))
                _keep_log(broker, item)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            for name, value in report.user_properties:
                if name == "older certificate":
                    self._older.append(str(value))
                if name == "cells" and isinstance(value, list | tuple):
                    title, route, cells = value
                    self._cells.setdefault(title, {}).setdefault(route, {}).update(cells)
        if report.when != "call" and report.passed:
            return
        for name, value in report.user_properties:
            if name == "backend":
                self._tests.setdefault(str(value), Counter())[report.outcome] += 1
        if report.skipped and LEFT_OUT in (why := str(report.longrepr)):
            self._left_out[why.partition(LEFT_OUT)[2].rstrip("')")] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for title, routes in sorted(self._cells.items()):
            terminalreporter.section(title)
            for line in _table(dict(sorted(routes.items()))):
                terminalreporter.line(line)
        if self._tests:
            terminalreporter.section("backends covered")
        for backend, counts in sorted(self._tests.items()):
            terminalreporter.line(f"{backend:<34} {', '.join(f'{count} {word}' for word, count in counts.items())}")
        for said in self._older:
            terminalreporter.line(f"older than the code: {said}", yellow=True)
        for why, count in self._left_out.items():
            terminalreporter.line(f"{LEFT_OUT}{count} tests. {why}", red=True, bold=True)


def _table(routes: dict[str, dict[str, str]]) -> Generator[str, None, None]:
    """Draw a table: a column for each route, a row for each aspect."""
    aspects = list(dict.fromkeys(aspect for cell in routes.values() for aspect in cell))
    rows = [[aspect, *(routes[route].get(aspect, "") for route in routes)] for aspect in aspects]
    for part in (0, 1):
        rows.insert(part, [("from", "to")[part], *(route.split(" > ")[part] for route in routes)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
