"""The machine's timers: one thread waits for all, each call has a thread of its own, and nothing is left."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from jmsapi.spi import SystemClock
from jmsapi.spi._timers import MOST_CANCELLED, NAME

DEADLINE_S = 30.0


def waiting() -> int:
    return sum(thread.name == NAME for thread in threading.enumerate())


def until(reached: Callable[[], bool]) -> None:
    ends = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_a_thousand_timers_wait_in_one_thread_and_leave_none() -> None:
    until(lambda: waiting() == 0)
    timers = [SystemClock().call_later(3600, lambda: None) for _ in range(1000)]
    assert waiting() == 1
    for timer in timers:
        timer.cancel()
        timer.cancel()
    until(lambda: waiting() == 0)


def test_what_is_due_earlier_is_called_earlier_whenever_it_was_asked_for() -> None:
    called: list[str] = []
    done = threading.Event()
    clock = SystemClock()
    late = clock.call_later(3600, lambda: called.append("late"))
    clock.call_later(0.3, done.set)
    clock.call_later(0.05, lambda: called.append("second"))
    clock.call_later(0, lambda: called.append("first"))
    assert done.wait(DEADLINE_S)
    late.cancel()
    assert called == ["first", "second"]


def test_a_call_that_hangs_holds_up_no_other() -> None:
    go_on, done = threading.Event(), threading.Event()

    def hang() -> None:
        go_on.wait(DEADLINE_S)

    SystemClock().call_later(0, hang)
    SystemClock().call_later(0.01, done.set)
    assert done.wait(DEADLINE_S)
    go_on.set()


class Held:
    """What a call refers to."""

    def call(self) -> None:
        raise AssertionError("it was cancelled")


def test_what_was_cancelled_is_not_kept() -> None:
    clock = SystemClock()
    first = clock.call_later(60, threading.Event().set)
    seen: list[weakref.ref[Held]] = []
    for _ in range(MOST_CANCELLED + 2):
        held = Held()
        seen.append(weakref.ref(held))
        clock.call_later(3600, held.call).cancel()
        del held
    gc.collect()
    until(lambda: not any(ref() for ref in seen))
    first.cancel()


def test_a_thread_that_cannot_be_started_makes_the_call_late_and_not_never(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    begin = threading.Thread.start
    armed = SystemClock().call_later(3600, lambda: None)

    def start(thread: threading.Thread) -> None:
        if thread.name == NAME:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    SystemClock().call_later(0.01, done.set)
    assert done.wait(DEADLINE_S)
    armed.cancel()


def test_a_waiting_thread_that_cannot_be_started_leaves_timers_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: waiting() == 0)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            SystemClock().call_later(0, lambda: None)
    done = threading.Event()
    SystemClock().call_later(0, done.set)
    assert done.wait(DEADLINE_S)


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_timers_of_its_own_and_none_of_its_parent() -> None:
    parents: list[int] = []
    timer = SystemClock().call_later(0.5, lambda: parents.append(os.getpid()))
    child = os.fork()
    if child == 0:
        done = threading.Event()
        SystemClock().call_later(0.8, done.set)
        os._exit(0 if done.wait(DEADLINE_S) and not parents else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    until(lambda: parents == [os.getpid()])
    timer.cancel()
