"""A thread that is not the session's runs a listener of it: who waits for its end is called when it leaves."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from jmsapi._core.dispatch import Dispatcher
from jmsapi._core.waiting import Deadline, StateCondition


@pytest.mark.parametrize("of_whom", ["any consumer", "that consumer", "another consumer"])
def test_who_waits_for_a_listener_that_another_thread_runs_is_called_when_it_has_returned(of_whom: str) -> None:
    changed = StateCondition(threading.Lock())
    state: Any = SimpleNamespace(changed=changed)
    dispatcher = Dispatcher(state)
    consumer: Any = SimpleNamespace()
    other: Any = SimpleNamespace()
    with changed:
        dispatcher.enter(consumer)
    assert dispatcher.is_own_thread
    wanted: Any = {"any consumer": None, "that consumer": consumer, "another consumer": other}[of_whom]
    wait = next(dispatcher.idle_steps(Deadline(30_000), wanted))
    called: list[bool] = []
    waits = wait.subscribe(called.append, True)
    assert (waits, called) == (of_whom != "another consumer", [])
    with changed:
        dispatcher.leave()
    assert called == ([True] if waits else [])
    assert wait.outcome()
    assert not dispatcher.is_own_thread
