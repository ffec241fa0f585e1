"""Who waits for the answer to a send is woken by it, however many sends of the session were awaited before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jmsapi import Message
from jmsapi._core.pending_sends import PendingSend, PendingSends
from jmsapi._core.waiting import StateCondition
from jmsapi.errors import JMSException
from jmsapi.spi import ErrorKind, ProviderError


class Amid(StateCondition):
    """Has something happen on another thread's behalf while somebody waits, and counts how often waiters are woken."""

    def __init__(self) -> None:
        super().__init__(threading.Lock())
        self.happens: Callable[[], object] = lambda: None
        self.woken = 0

    def wait_until(self, predicate: Callable[[], object], timeout: float | None) -> bool:
        self.happens()
        return super().wait_until(predicate, timeout)

    def notify_all(self, concern: object = None) -> None:
        self.woken += 1
        super().notify_all(concern)


@pytest.mark.parametrize("refused", [False, True])
def test_each_of_many_sends_in_turn_is_woken_by_its_answer(refused: bool) -> None:
    changed = Amid()
    sends = PendingSends(cast("Any", SimpleNamespace(lock=changed.lock, changed=changed)), lambda _: None)
    producer: Any = SimpleNamespace(pending=0)
    for number in range(1, 6):
        send = PendingSend(sends, producer, cast("Message", None), None, True)
        with changed:
            sends.register(send)
        error = ProviderError(ErrorKind.RESOURCE, "it is full") if refused else None
        changed.happens = lambda send=send, error=error: send.answered(error)  # type: ignore[misc]
        try:
            sends.wait_for(send, 30.0, lambda _: pytest.fail("it is answered, and there is nothing to take back"))
            raised = False
        except JMSException:
            raised = True
        assert (changed.woken, raised) == (number, refused)
