"""A model of everything around the claims: broker, store, and a Spark that crashes. Drives the real code, step by step.

Each process is a greenlet: before every operation on broker or store it hands back to a random scheduler, which says who goes
on, who is killed, whose consumer the broker drops. A run is a function of its seed. (Threads that hand a baton on need the
system's scheduler twice a step, which on a busy machine takes minutes for a schedule.)
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from jmsapi.errors import JMSException
from jmsapi.spark.batchlog import BatchLog
from jmsapi.spark.claim import Claim, Limits
from jmsapi.spark.staging import Gone
from jmsapi.spark.stream import ReadTask, Stream, StreamLimits


class Killed(BaseException):
    """The process is no more; nothing it does on its way out has an effect."""


class Process:
    """A greenlet that waits for its turn."""

    def __init__(self, world: World, name: str, body: Callable[[], None]) -> None:
        self.world = world
        self.name = name
        self.done = False
        self.killed = False
        self.asleep_until = 0
        """Not scheduled before this step: a process that hangs, on a slow disk or a stopped machine."""
        self.error: BaseException | None = None
        self._body = body
        self._greenlet = greenlet(self._run, parent=world.scheduler)

    def _run(self) -> None:
        try:
            if not self.killed:
                self._body()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.done = True

    def go_on(self) -> None:
        """Let it do one step. Called by the scheduler."""
        self._greenlet.switch()

    def pause(self) -> None:
        """Hand back to the scheduler, until it says to go on. Called by the process."""
        try:
            self.world.scheduler.switch()
        except GreenletExit:  # nobody can schedule it any more
            self.killed = True


class World:
    """The scheduler, and the number of steps it has made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scheduler = getcurrent()
        self.processes: list[Process] = []
        self.current: Process | None = None
        self.steps = 0
        self.now = 0.0
        self.errors: Counter[str] = Counter()

    def spawn(self, name: str, body: Callable[[], None]) -> Process:
        process = Process(self, name, body)
        self.processes.append(process)
        return process

    def step(self) -> None:
        """Wait for the next turn. Called by processes before everything that others can see."""
        process = self.current
        assert process is not None
        if process.killed:
            raise Killed
        process.pause()
        if process.killed:
            raise Killed

    def until(self, process: Process, reached: Callable[[], bool]) -> None:
        """Run one process alone until something is so."""
        while not reached():
            assert not process.done, f"{process.name} ended before that: {process.error!r}"
            self.run(process)

    def finish(self, process: Process) -> None:
        """Run one process alone to its end."""
        while not process.done:
            self.run(process)
        if process.error is not None:
            raise process.error

    def run(self, process: Process) -> None:
        self.current = process
        self.steps += 1
        self.now += 1
        process.go_on()
        if process.done:
            self.processes.remove(process)
            if process.error is not None:
                self.errors[repr(process.error)[:200]] += 1

    def kill(self, process: Process) -> None:
        process.killed = True
        while not process.done:
            self.run(process)


class ModelStore:
    """The store; ``local``: a folder that was removed takes nothing more and goes in one step, else object by object."""

    def __init__(self, world: World, *, local: bool) -> None:
        self.world = world
        self.local = local
        self.objects: dict[str, bytes] = {}
        self.folders: set[str] = set()

    def publish(self, name: str, data: bytes) -> bool:
        self.world.step()
        self._check(name)
        if name in self.objects:
            return False
        self.objects[name] = data
        return True

    def put(self, name: str, data: bytes | memoryview) -> None:
        self.world.step()
        self._check(name)
        self.objects[name] = bytes(data)

    def mark(self, name: str) -> None:
        self.world.step()
        self._check(name)
        self.objects[name] = b""

    def read(self, name: str) -> memoryview:
        self.world.step()
        if name not in self.objects:
            raise FileNotFoundError(name)
        return memoryview(self.objects[name])

    def list(self, folder: str) -> list[str]:
        self.world.step()
        start = f"{folder}/"
        return [name[len(start) :] for name in self.objects if name.startswith(start)]

    def names(self) -> list[str]:
        self.world.step()
        return list({name.partition("/")[0] for name in self.objects})

    def make_folder(self, folder: str) -> None:
        self.world.step()
        self.folders.add(folder)

    def delete(self, name: str) -> None:
        self.world.step()
        self.objects.pop(name, None)

    def remove(self, folder: str) -> None:
        names = [name for name in self.objects if name.startswith(f"{folder}/")]
        if self.local:
            self.world.step()
            self.folders.discard(folder)
            for name in names:
                self.objects.pop(name, None)
        else:
            for name in names:
                self.world.step()
                self.objects.pop(name, None)

    def _check(self, name: str) -> None:
        folder = name.rpartition("/")[0]
        if self.local and folder and folder not in self.folders:
            raise Gone(name)


class ModelConsumer:
    """A session with one consumer. Dropped by the broker it does not know before it acknowledges."""

    def __init__(self, broker: ModelBroker, limit: int) -> None:
        self.broker = broker
        self.owner = broker.world.current
        self.limit = limit
        self.held: list[str] = []
        self.gone = False

    def receive(self, most: int, most_bytes: int, timeout_ms: float) -> list[str]:
        world = self.broker.world
        world.step()
        if self.gone or not self.broker.pending or len(self.held) >= self.limit:
            return []
        message = self.broker.pending.pop(0)
        self.broker.assigned[message] = self
        self.held.append(message)
        return [message]

    def acknowledge(self) -> None:
        world = self.broker.world
        world.step()
        still = [message for message in self.held if self.broker.assigned.get(message) is self]
        for message in still:
            del self.broker.assigned[message]
            self.broker.acknowledged.add(message)
        lost = len(still) < len(self.held)
        self.held = []
        world.step()
        if lost or world.random.random() < self.broker.silence:
            raise JMSException("the acknowledgement is not confirmed")

    def close(self) -> None:
        self.broker.world.step()
        self.broker.drop(self)


class ModelBroker:
    """One queue."""

    def __init__(self, world: World, *, silence: float) -> None:
        self.world = world
        self.silence = silence
        """How often the answer to an acknowledgement is lost."""
        self.pending: list[str] = []
        self.assigned: dict[str, ModelConsumer] = {}
        self.acknowledged: set[str] = set()
        self.consumers: list[ModelConsumer] = []

    def connect(self, limit: int) -> ModelConsumer:
        self.world.step()
        consumer = ModelConsumer(self, limit)
        self.consumers.append(consumer)
        return consumer

    def drop(self, consumer: ModelConsumer) -> None:
        """Give back what a consumer holds, in front."""
        consumer.gone = True
        back = [message for message, owner in self.assigned.items() if owner is consumer]
        for message in back:
            del self.assigned[message]
        self.pending[:0] = back
        if consumer in self.consumers:
            self.consumers.remove(consumer)


class ModelCodec:
    """Messages are their ids; a file is a list of them."""

    def message_id(self, message: str) -> str | None:
        return message

    def size(self, message: str) -> int:
        return 1

    def encode(self, messages: Sequence[str]) -> bytes:
        return json.dumps(list(messages)).encode()


def ids_of(data: memoryview) -> list[str]:
    return json.loads(bytes(data))


@dataclass(frozen=True)
class Chaos:
    """How likely each fault is, at a step; ``silence``: that the answer to an acknowledgement is lost."""

    kill: float = 0.0
    kill_driver: float = 0.5
    zombie: float = 0.0
    hang: float = 0.0
    deaf: float = 0.3
    """That a hanging process loses its consumer."""
    drop: float = 0.0
    silence: float = 0.0
    sent: float = 0.05
    """That a message is sent."""
    rival: float = 0.02
    """That Spark starts another attempt of a task that runs."""

    @staticmethod
    def level(level: int) -> Chaos:
        """Return from calm (0) to wild (3)."""
        return Chaos(kill=0.01 * level, zombie=0.004 * level, hang=0.02 * level, drop=0.003 * level, silence=0.05 * level)


class Spark:
    """A checkpoint, a sink that is idempotent by batch, and drivers that run batches of tasks."""

    def __init__(
        self, seed: int, *, local: bool, chaos: Chaos, log: type[BatchLog] = BatchLog, claim: type[Claim[str]] = Claim
    ) -> None:
        self.world = World(seed)
        self.store = ModelStore(self.world, local=local)
        self.broker = ModelBroker(self.world, silence=chaos.silence)
        self.chaos = chaos
        self.offsets: list[dict[str, Any]] = []
        self.commits: set[int] = set()
        self.sink: dict[int, list[str]] = {}
        self.reads: dict[tuple[int, int], list[str]] = {}
        self.driver: Process | None = None
        self.idle = 0
        self.faults: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._log, self._claim = log, claim

    # ---- one run --------------------------------------------------------------------------------------------------
    def run(self, messages: int, *, most_steps: int = 20_000) -> None:
        """Deliver so many messages through chaos, then through calm."""
        unsent = [f"m{number}" for number in range(messages)]
        everything = Counter(unsent)
        world = self.world
        self._start_driver()
        while world.steps < most_steps:
            calm = not unsent and world.steps > messages * 60
            if unsent and world.random.random() < self.chaos.sent:
                self.broker.pending.append(unsent.pop(0))
            if not calm:
                self._fault()
            else:
                self._notice_the_dead(1.0)
            if self.driver is None or self.driver.done:
                self._start_driver()
            if calm and self.idle >= 2 and not self.broker.pending and not self.broker.assigned:
                break
            awake = [process for process in world.processes if calm or process.asleep_until <= world.steps]
            if awake:
                world.run(world.random.choice(awake))
            else:
                world.steps += 1
        for process in list(world.processes):
            world.kill(process)
        if world.steps >= most_steps:
            self.wrong.append(f"it does not come to an end ({world.errors})")
            return
        delivered = Counter(one for rows in self.sink.values() for one in rows)
        left = Counter([*self.broker.pending, *self.broker.assigned])
        lost = everything - delivered - left
        double = delivered - everything
        if lost:
            self.wrong.append(f"lost {sorted(lost)}")
        if double:
            self.wrong.append(f"duplicated {sorted(double)}")
        if left:
            self.wrong.append(f"left on the queue {sorted(left)}")

    def _fault(self) -> None:
        world, chance = self.world, self.world.random.random
        if chance() < self.chaos.kill and world.processes:
            victim = world.random.choice(world.processes)
            if victim is not self.driver or chance() < self.chaos.kill_driver:
                self.faults["kill"] += 1
                world.kill(victim)
        if chance() < self.chaos.zombie and self.driver is not None:
            # The driver is given up; its processes go on for as long as they are scheduled.
            self.faults["zombie driver"] += 1
            if chance() < 0.5:
                for process in list(world.processes):
                    if process is not self.driver and chance() < 0.5:
                        world.kill(process)
            self.driver = None
        if chance() < self.chaos.hang and world.processes:
            self.faults["hang"] += 1
            sleeper = world.random.choice(world.processes)
            sleeper.asleep_until = world.steps + world.random.choice((10, 40, 160, 640))
            if chance() < self.chaos.deaf:
                # Heart-beats stop as well.
                for consumer in list(self.broker.consumers):
                    if consumer.owner is sleeper:
                        self.faults["drop"] += 1
                        self.broker.drop(consumer)
            if sleeper is self.driver and chance() < 0.5:
                self.driver = None
        if chance() < self.chaos.drop and self.broker.consumers:
            self.faults["drop"] += 1
            self.broker.drop(world.random.choice(self.broker.consumers))
        self._notice_the_dead(0.05)

    def _notice_the_dead(self, likely: float) -> None:
        for consumer in list(self.broker.consumers):
            if consumer.owner is not None and consumer.owner.done and self.world.random.random() < likely:
                self.broker.drop(consumer)

    # ---- processes ------------------------------------------------------------------------------------------------
    def _start_driver(self) -> None:
        self.idle = 0
        self.driver = self.world.spawn("driver", self._drive)

    def _parts(self) -> tuple[BatchLog, Claim[str]]:
        world = self.world
        log = self._log(self.store, ids_of, lambda: world.now)
        limits = Limits(round_messages=3, round_bytes=1 << 30, idle_gap_ms=1, claim_timeout_ms=10_000)
        return log, self._claim(log, ModelCodec(), self.broker.connect, limits, lambda: world.now)

    def _drive(self) -> None:
        me = self.world.current
        log, claim = self._parts()
        limits = StreamLimits(batch_messages=14, lead_messages=4, parallelism=3, poll_timeout_ms=1)
        stream = Stream(log, claim, limits, lambda batch, number: 0.0)
        last = len(self.offsets) - 1
        if last >= 0 and last not in self.commits:
            self._batch(stream, last, self.offsets[last - 1] if last else stream.initial(), me)
        while True:
            start = self.offsets[-1] if self.offsets else stream.initial()
            end = stream.latest(start)
            self._alive(me)
            if end == start:
                self.idle += 1
                continue
            self.idle = 0
            self.offsets.append(end)
            last = len(self.offsets) - 1
            if last:
                stream.commit(self.offsets[last - 1])
            self._batch(stream, last, start, me)

    def _alive(self, me: Process | None) -> None:
        """Spark lets only one driver write a checkpoint."""
        self.world.step()
        if self.driver is not me:
            raise Killed

    def _batch(self, stream: Stream[str], number: int, start: dict[str, Any], me: Process | None) -> None:
        works = stream.partitions(start, self.offsets[number])
        rows = [row for work in works for row in self._task(work, me)]
        self._alive(me)
        if self.sink.setdefault(number, rows) != rows:
            self.wrong.append(f"batch {number} changed")
        self._alive(me)
        self.commits.add(number)

    def _task(self, work: ReadTask, me: Process | None) -> list[str]:
        results: list[list[str]] = []
        attempts: list[Process] = []
        rivals = 0
        while not results:
            self._alive(me)
            alive = [one for one in attempts if not one.done]
            if not alive or (rivals < 3 and self.world.random.random() < self.chaos.rival):
                rivals += 1
                attempts.append(self.world.spawn("task", lambda: results.append(self._attempt(work))))
        return results[0]

    def _attempt(self, work: ReadTask) -> list[str]:
        log, claim = self._parts()
        claim.run(work.seq, work.claim, work.cap, first_wait_ms=1)
        rows = list(self._rows(log, work))
        before = self.reads.setdefault((work.seq, work.claim), rows)
        if before != rows:
            self.wrong.append(f"claim {work.claim} of batch {work.seq} changed")
        return rows

    def _rows(self, log: BatchLog, work: ReadTask) -> Iterator[str]:
        for data, left_out in log.content(work.seq, work.claim):
            yield from (one for one in ids_of(data) if one not in left_out)
