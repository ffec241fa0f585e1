"""The I/O thread of a connection: sockets, jobs from other threads, and timers, all on one selector.

Everything a provider knows of the wire lives on this thread; other threads only post jobs. Jobs run in the order they
were posted. A socket may be full or slow: its channel keeps what could not be written and says so.

One turn: what has come is read, jobs run, due timers run, channels write, the thread waits. All but the waiting happens under
the loop's guard, for a wire some of whose objects another thread may use meanwhile.
"""

from __future__ import annotations

import heapq
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, Final, Protocol

from jmsapi.spi import Clock

__all__ = ["Channel", "IoLoop", "Scheduled"]

_SERIAL: Final = count(1)
_STREAM: Final = 3
"""Jobs of one turn from which on more are expected at once."""
_GATHER_S: Final = 0.0001
_ROUNDS: Final = 100
"""How often timers that set timers again are run at the end of the thread."""
Job = Callable[[], object]


class Channel(Protocol):
    """One socket of the loop."""

    def on_readable(self) -> bool:
        """Take what has come; True when more waits already decrypted, or the turn was cut short."""
        ...

    def flush(self) -> bool:
        """Write what is queued; True when something is left that needs a writable socket. Called at the end of each turn."""
        ...


class Scheduled:
    """A job that is still to come."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job: Job | None = job

    def cancel(self) -> None:
        """Drop the job if it has not run."""
        self.job = None


class IoLoop:
    """One thread that waits for sockets, jobs and time.

    Args:
        clock: Time.
        on_crash: Is given the exception that a job, a channel or a timer raised and that therefore ends the thread.
        log: Where such an end is logged.
        guard: Held by the thread but while it waits; None when nobody else uses what its jobs use.
    """

    def __init__(
        self,
        clock: Clock,
        on_crash: Callable[[Exception], None],
        log: logging.Logger,
        guard: AbstractContextManager[object] | None = None,
    ) -> None:
        self._clock = clock
        self._on_crash = on_crash
        self._log = log
        self._guard: AbstractContextManager[object] = nullcontext() if guard is None else guard
        self._jobs: deque[tuple[Callable[..., object] | None, Any]] = deque()
        """What is to be called, and its arguments; None for the gatherer, and one item for it."""
        self._timers: list[tuple[float, int, Scheduled]] = []
        self._order = count()
        self._channels: dict[Channel, tuple[socket.socket, int]] = {}
        self._hot: set[Channel] = set()
        self._again = False
        self._awake = True
        self._busy = False
        self._running = True
        self._ended = False
        self._last: Job | None = None
        self.serial = next(_SERIAL)
        self.gatherer: Callable[[list[Any]], object] = _no_gatherer
        """Takes what ``gather`` was given: as many items at a time as stand in line one behind the other."""
        self._thread = threading.Thread(target=self._run, name=f"jmsapi-{self.serial}-io", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._selector = selectors.DefaultSelector()
        self._waker, self._wakened = socket.socketpair()
        self._waker.setblocking(False)
        self._wakened.setblocking(False)
        self._selector.register(self._wakened, selectors.EVENT_READ, None)
        self._thread.start()

    @property
    def inside(self) -> bool:
        """Whether the caller is the I/O thread."""
        return threading.current_thread() is self._thread

    @property
    def quiet(self) -> bool:
        """Whether every job that was posted has run and the thread sleeps, or takes in what has come. Any thread."""
        return not self._awake and not self._jobs

    @property
    def ended(self) -> bool:
        """Whether the thread is at its end: what is posted from now on runs at once, in the thread that posts it."""
        return self._ended

    def wait_ended(self, timeout: float) -> bool:
        """Wait for the thread to end, in seconds; True at once in that thread itself, or when it was never started."""
        if self.inside or self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def post(self, job: Callable[..., object], *args: object) -> None:
        """Run ``job`` on the I/O thread, after those posted before. Any thread."""
        self._jobs.append((job, args))
        if not self._awake:
            self.wake()
        if self._ended:
            self._sweep()

    def gather(self, item: object) -> None:
        """Have the gatherer take an item, in line with the jobs posted before and after. Any thread."""
        self._jobs.append((None, item))
        if not self._awake:  # as in post: one call less for each message
            self.wake()
        if self._ended:
            self._sweep()

    def wake(self) -> None:
        """Have the thread take a turn, if it sleeps. Any thread."""
        if not self._awake:
            self._awake = True
            try:
                self._waker.send(b"\0")
            except OSError:
                self._log.debug("a full or closed waking socket needs no more waking")

    def again(self) -> None:
        """Take the next turn without waiting for a socket or for time. I/O thread only."""
        self._again = True

    def later(self, delay: float, job: Job) -> Scheduled:
        """Run ``job`` after ``delay`` seconds. I/O thread only."""
        scheduled = Scheduled(job)
        heapq.heappush(self._timers, (self._clock.monotonic() + delay, next(self._order), scheduled))
        return scheduled

    def add(self, channel: Channel, sock: socket.socket) -> bool:
        """Serve a channel; False when the thread has ended. I/O thread only."""
        if self._ended:
            return False
        self._selector.register(sock, selectors.EVENT_READ, channel)
        self._channels[channel] = (sock, selectors.EVENT_READ)
        self._hot.add(channel)  # TLS may hold what came with the end of its handshake: no selector tells of that
        return True

    def drop(self, channel: Channel) -> None:
        """Serve a channel no more; its socket is not closed. I/O thread only."""
        entry = self._channels.pop(channel, None)
        self._hot.discard(channel)
        if entry is not None:
            self._selector.unregister(entry[0])

    def stop(self, last: Job) -> None:
        """End the thread after this turn; ``last`` is the last thing it does. I/O thread only."""
        self._last = last
        self._running = False

    def _run(self) -> None:
        try:
            while self._running:
                ready = self._selector.select(self._pause())
                with self._guard:
                    self._turn(ready)
                del ready  # it would keep a channel that has gone until the next event
        except Exception as fault:  # whatever it is, nobody may wait for ever
            self._log.exception("the I/O thread of connection %d ends by a fault of its own", self.serial)
            self._on_crash(fault)
        finally:
            with self._guard:
                self._end()

    def _end(self) -> None:
        for channel in list(self._channels):
            self.drop(channel)
        self._ended = True
        self._sweep()
        self._sweep_timers()
        self._selector.close()
        self._waker.close()
        self._wakened.close()
        if self._last is not None:
            self._last()

    def _turn(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        self._again = False
        for key, mask in ready:
            channel: Channel | None = key.data
            if channel is None:
                self._drain_waker()
            elif mask & selectors.EVENT_READ:
                self._hot.add(channel)
        for channel in list(self._hot):
            if not channel.on_readable():
                self._hot.discard(channel)
        self._busy = self._run_jobs(len(self._jobs)) >= _STREAM
        self._run_timers()
        for channel, (sock, events) in list(self._channels.items()):
            wanted = selectors.EVENT_READ | selectors.EVENT_WRITE if channel.flush() else selectors.EVENT_READ
            if wanted != events and channel in self._channels:
                self._selector.modify(sock, wanted, channel)
                self._channels[channel] = (sock, wanted)

    def _run_jobs(self, count: int) -> int:
        jobs = self._jobs
        left = count
        while left:
            job, args = jobs.popleft()
            left -= 1
            if job is not None:
                job(*args)
                continue
            items = [args]
            while left and jobs[0][0] is None:
                items.append(jobs.popleft()[1])
                left -= 1
            self.gatherer(items)
        return count

    def _pause(self) -> float | None:
        """Return how long to wait for the next turn, in seconds; None for no limit."""
        if self._hot or self._again:
            return 0.0
        if self._busy:
            # Jobs come in a stream: a moment's sleep lets many gather, where each would else wake this thread by a call
            # of the system and wait for its answer.
            time.sleep(_GATHER_S)
            return 0.0
        self._awake = False
        if self._jobs:
            self._awake = True
            return 0.0
        while self._timers and self._timers[0][2].job is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - self._clock.monotonic())

    def _drain_waker(self) -> None:
        self._awake = True
        try:
            while self._wakened.recv(4096):
                continue
        except BlockingIOError:
            return

    def _run_timers(self) -> None:
        if not self._timers:
            return
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            job = heapq.heappop(self._timers)[2].job
            if job is not None:
                job()

    def _sweep(self) -> None:
        """Run what is left once the thread is gone, so that no future waits for ever: there is no link, so all of it fails."""
        while self._jobs:
            try:
                job, args = self._jobs.popleft()
            except IndexError:
                return
            if job is None:
                self.gatherer([args])
            else:
                job(*args)

    def _sweep_timers(self) -> None:
        """End the time of whatever waits only for time: it goes on, finds no link, and fails whoever waits for it."""
        for _ in range(_ROUNDS):
            due, self._timers = sorted(self._timers), []
            for _, _, scheduled in due:
                if scheduled.job is not None:
                    try:
                        scheduled.job()
                    except Exception:  # the others run all the same
                        self._log.exception("what waited for time on connection %d failed at its end", self.serial)
            if not self._timers:
                return


def _no_gatherer(items: list[Any]) -> None:
    raise AssertionError(f"nobody takes {len(items)} items")
