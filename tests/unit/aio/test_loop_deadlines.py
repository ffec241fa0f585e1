"""The deadlines of waits in a loop: one timer for those of equal length, each ended when its own time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from jmsapi.aio.loop_deadlines import LoopDeadlines

LONG_S = 3600.0


class HandSetLoop(asyncio.SelectorEventLoop):
    """A loop that counts its timers, and whose clock can be set on."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0
        self.timers: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        return super().time() + self.ahead

    def call_at(self, *call: Any, **options: Any) -> asyncio.TimerHandle:
        self.timers.append(super().call_at(*call, **options))
        return self.timers[-1]

    @property
    def waiting(self) -> int:
        return sum(not timer.cancelled() for timer in self.timers)


def run(program: Callable[[HandSetLoop, LoopDeadlines], Any]) -> Any:
    with asyncio.Runner(loop_factory=HandSetLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, HandSetLoop)
        return runner.run(program(loop, LoopDeadlines(loop)))


def test_a_thousand_waits_of_one_length_need_one_timer_and_leave_none() -> None:
    async def program(loop: HandSetLoop, deadlines: LoopDeadlines) -> None:
        waiters = [loop.create_future() for _ in range(1000)]
        for waiter in waiters:
            deadlines.add(waiter, LONG_S)
        assert len(loop.timers) == 1
        for waiter in reversed(waiters):
            deadlines.remove(waiter, LONG_S)
        assert loop.waiting == 0
        # A length that nobody waits for any more is forgotten: there may be a new one for each wait.
        assert deadlines._lines == {}

    run(program)


def test_each_wait_ends_when_its_own_time_is_up_and_not_before() -> None:
    async def program(loop: HandSetLoop, deadlines: LoopDeadlines) -> None:
        first, second, third = (loop.create_future() for _ in range(3))
        deadlines.add(first, LONG_S)
        loop.ahead += LONG_S / 2
        deadlines.add(second, LONG_S)
        deadlines.add(third, LONG_S)
        # The first leaves the line before its time, for which the timer was set.
        deadlines.remove(first, LONG_S)
        loop.ahead += LONG_S / 2
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not second.done()
        deadlines.remove(third, LONG_S)
        loop.ahead += LONG_S / 2
        assert await asyncio.wait_for(second, 30) is False
        assert not first.done()
        assert not third.done()
        assert deadlines._lines == {}

    run(program)


def test_waits_of_other_lengths_do_not_wait_for_one_another() -> None:
    async def program(loop: HandSetLoop, deadlines: LoopDeadlines) -> None:
        long, short = loop.create_future(), loop.create_future()
        deadlines.add(long, LONG_S)
        deadlines.add(short, 0.01)
        assert await asyncio.wait_for(short, 30) is False
        assert not long.done()
        deadlines.remove(long, LONG_S)

    run(program)


def test_a_wait_that_is_over_when_its_time_is_up_keeps_its_result() -> None:
    async def program(loop: HandSetLoop, deadlines: LoopDeadlines) -> None:
        over, late = loop.create_future(), loop.create_future()
        deadlines.add(over, LONG_S)
        deadlines.add(late, LONG_S)
        over.set_result(True)
        loop.ahead += 2 * LONG_S
        assert await asyncio.wait_for(late, 30) is False
        assert over.result() is True
        deadlines.remove(over, LONG_S)

    run(program)


@pytest.mark.parametrize("seconds", [0.0, 0.0004, 0.02])
def test_a_loop_whose_clock_counts_milliseconds_ends_them_too(seconds: float) -> None:
    async def program() -> bool:
        loop = asyncio.get_running_loop()
        deadlines = LoopDeadlines(loop)
        waiters: list[asyncio.Future[bool]] = [loop.create_future() for _ in range(3)]
        for waiter in waiters:
            deadlines.add(waiter, seconds)
        return any(await asyncio.wait_for(asyncio.gather(*waiters), 30))

    assert uvloop.run(program()) is False
