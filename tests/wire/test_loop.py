"""The I/O thread: jobs in order, timers, sockets, and an end that leaves nobody waiting."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jmsapi.spi import SystemClock
from jmsapi.wire import IoLoop

LOG = logging.getLogger("jmsapi.wire.test")
WAIT_S = 10.0


@contextmanager
def running(on_crash: Callable[[Exception], None] | None = None, guard: Any = None) -> Iterator[IoLoop]:
    loop = IoLoop(SystemClock(), on_crash or raised, LOG, guard)
    loop.start()
    try:
        yield loop
    finally:
        loop.post(loop.stop, lambda: None)
        assert loop.wait_ended(WAIT_S)


def raised(fault: Exception) -> None:
    raise AssertionError(f"the loop ended by {fault!r}")


def done(loop: IoLoop) -> None:
    """Wait until the loop has run what was posted before."""
    event = threading.Event()
    loop.post(event.set)
    assert event.wait(WAIT_S)


class Echo:
    """A channel that sends back what it reads."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.queued = b""

    def on_readable(self) -> bool:
        try:
            self.queued += self.sock.recv(4096)
        except BlockingIOError:
            return False
        return False

    def flush(self) -> bool:
        while self.queued:
            try:
                sent = self.sock.send(self.queued)
            except BlockingIOError:
                return True
            self.queued = self.queued[sent:]
        return False


def test_jobs_run_in_the_order_of_posting_and_on_the_thread_of_the_loop() -> None:
    ran: list[tuple[int, bool]] = []
    with running() as loop:
        for number in range(100):
            loop.post(lambda number: ran.append((number, loop.inside)), number)
        done(loop)
        assert not loop.inside
    assert ran == [(number, True) for number in range(100)]


def test_what_is_gathered_comes_in_line_with_the_jobs() -> None:
    seen: list[object] = []
    with running() as loop:
        loop.gatherer = seen.extend
        held = threading.Event()
        loop.post(held.wait, WAIT_S)
        for item in ("a", "b"):
            loop.gather(item)
        loop.post(seen.append, "job")
        loop.gather("c")
        held.set()
        done(loop)
    assert seen == ["a", "b", "job", "c"]


def test_timers_run_by_time_and_not_when_they_are_cancelled() -> None:
    ran: list[str] = []
    over = threading.Event()
    with running() as loop:

        def begin() -> None:
            loop.later(0.03, lambda: (ran.append("last"), over.set()))
            loop.later(0.01, lambda: ran.append("first"))
            loop.later(0.02, lambda: ran.append("never")).cancel()

        loop.post(begin)
        assert over.wait(WAIT_S)
    assert ran == ["first", "last"]


def test_a_channel_reads_and_writes_also_more_than_a_socket_takes_at_once() -> None:
    near, far = socket.socketpair()
    with near, far, running() as loop:
        near.setblocking(False)
        loop.post(loop.add, Echo(near), near)
        sent = os.urandom(1 << 22)
        writer = threading.Thread(target=far.sendall, args=(sent,))
        writer.start()
        got = bytearray()
        far.settimeout(WAIT_S)
        while len(got) < len(sent):
            got += far.recv(1 << 16)
        writer.join(WAIT_S)
        assert bytes(got) == sent


def test_a_turn_that_is_asked_for_again_comes_without_waiting() -> None:
    turns: list[int] = []
    over = threading.Event()

    class Busy(Echo):
        def flush(self) -> bool:
            turns.append(1)
            if len(turns) < 50:
                loop.again()
            else:
                over.set()
            return False

    near, far = socket.socketpair()
    with near, far, running() as loop:
        near.setblocking(False)
        loop.post(loop.add, Busy(near), near)
        assert over.wait(WAIT_S)


def test_the_guard_is_held_but_while_the_thread_waits() -> None:
    guard = threading.Lock()
    with running(guard=guard) as loop:
        held: list[bool] = []
        loop.post(lambda: held.append(guard.locked()))
        done(loop)
        assert held == [True]
        with guard:  # free while the thread sleeps
            pass


def test_a_job_that_raises_ends_the_thread_and_what_is_posted_later_runs_where_it_is_posted() -> None:
    crashed: list[Exception] = []
    timed = threading.Event()
    loop = IoLoop(SystemClock(), crashed.append, LOG)
    loop.start()
    fault = ZeroDivisionError("a fault of ours")

    def fail() -> None:
        raise fault

    loop.post(loop.later, 3600.0, timed.set)
    loop.post(fail)
    assert loop.wait_ended(WAIT_S)
    assert crashed == [fault]
    assert loop.ended
    assert timed.is_set(), "what waited for time is told that it is over"
    ran: list[bool] = []
    loop.post(lambda: ran.append(loop.inside))
    assert ran == [False]


def test_an_ended_loop_leaves_no_descriptor_and_no_thread() -> None:
    before = (sum(1 for _ in Path("/proc/self/fd").iterdir()), threading.active_count())
    with running() as loop:
        done(loop)
    assert (sum(1 for _ in Path("/proc/self/fd").iterdir()), threading.active_count()) == before
