"""Brokers and backends for our own tests, a check that nothing leaks, and a summary that says what was covered.

A test takes ``broker_url`` to run once on each backend, ``each_broker`` to run once with each broker, ``artemis``, ``classic``
or ``rabbitmq`` to talk to that one, ``own_broker`` to start one that it may kill. Brokers start on first use, once a run, whether
it has one worker or several. Where a broker cannot be had its tests are skipped and the summary says LEFT OUT; with
``JMSAPI_REQUIRE_BROKERS=1`` they fail instead.
"""

from __future__ import annotations

import contextlib
import os
import signal
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

_SHARED: list[Broker] = []
_OWN = pytest.StashKey[list[Broker]]()


def pytest_configure(config: pytest.Config) -> None:
    # Set already: this is a worker of pytest-xdist, or a run inside a test, and whoever set it ends the brokers.
    if _FOLDER not in os.environ:
        stack = contextlib.ExitStack()
        os.environ[_FOLDER] = str(stack.enter_context(leased_folder()))
        stack.callback(os.environ.pop, _FOLDER)
        config.add_cleanup(stack.close)
    config.pluginmanager.register(Coverage())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("loadgroup", False):
        _name_groups(items)
    for item in items:
        if isinstance(item, pytest.Function) and {*KINDS, "own_broker"} & set(item.fixturenames):
            item.add_marker("broker")
        # The first test that needs a broker waits for its start.
        if item.get_closest_marker("broker") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_BROKER_TEST_S))


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
    folder = Path("/proc/self/fd")
    for entry in folder.iterdir() if folder.is_dir() else ():
        # The descriptor of the listing itself is closed by the time it is looked at.
        with contextlib.suppress(OSError):
            target = str(entry.readlink())
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
