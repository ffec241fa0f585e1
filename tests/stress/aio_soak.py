"""Tasks of one event loop that are cancelled at random: sent equals received, nothing doubled in transactions, nothing left.

    python tests/stress/aio_soak.py [--seconds 60] [--tasks 1000] [--seed N] [URL...]

Without a URL those of Artemis over AMQP and of Classic over STOMP that the environment names. Tasks send to one queue, move in
transactions from there to a second one, and receive there in AUTO mode; others use a third queue in CLIENT mode. A further task
cancels them all the time, wherever they are. A message counts as sent by what ``send`` returned or the cause of its
``CancelledError`` says. In the end the queues are emptied and both sides compared message by message; tasks, threads and
descriptors must be as many as before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import jmsapi.aio
from jmsapi import JMSRuntimeException, Message, Queue
from jmsapi.aio import (
    AsyncJMSConsumer,
    AsyncJMSContext,
    AsyncJMSProducer,
    CancelledBeforehand,
    CancelledTooLate,
    cancelled_call,
)

CONNECTIONS = 4
BACKLOG = 500
"""Messages on their way; senders wait for the others above it."""
PATIENCE_S = 60.0
LATE_MS, EMPTY_MS = 10_000, 300
"""The longest wait for a message that must come, and for one that must not."""
AUTO, CLIENT, TRANSACTED = (
    AsyncJMSContext.AUTO_ACKNOWLEDGE,
    AsyncJMSContext.CLIENT_ACKNOWLEDGE,
    AsyncJMSContext.SESSION_TRANSACTED,
)


@dataclass
class Book:
    """What tasks say they did, of the messages of one way."""

    sent: set[str] = field(default_factory=set[str])
    maybe_sent: set[str] = field(default_factory=set[str])
    received: Counter[str] = field(default_factory=Counter[str])
    maybe_again: set[str] = field(default_factory=set[str])
    """Acknowledged by a call that was cancelled, so they may come once more."""

    def differences(self) -> list[str]:
        """Compare both sides."""
        found: list[str] = []
        for name, texts in (
            ("lost", self.sent - self.received.keys()),
            ("never sent", self.received.keys() - self.sent - self.maybe_sent),
            ("doubled", {text for text, n in self.received.items() if n > 1} - self.maybe_again),
        ):
            if texts:
                found.append(f"{len(texts)} {name}: {sorted(texts)[:5]}")
        return found


@dataclass
class Findings:
    """What a soak has found."""

    moved: Book = field(default_factory=Book)
    kept: Book = field(default_factory=Book)
    events: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])


class Soak:
    """One run against one broker.

    Args:
        url: The broker.
        seconds: How long tasks are cancelled.
        tasks: How many.
        seed: For all that is random.
    """

    def __init__(self, url: str, seconds: float, tasks: int, seed: int) -> None:
        self._factory = jmsapi.aio.connection_factory(url)
        self._tasks = tasks
        self._seconds = seconds
        self._end = 0.0
        self._random = random.Random(seed)
        self._names = [f"aio-soak.{uuid.uuid4().hex}.{word}" for word in ("from", "to", "kept")]
        self._serial = 0
        self.found = Findings()

    async def run(self) -> None:
        """Work, cancel, end, empty the queues and compare."""
        contexts = [await self._factory.create_context() for _ in range(min(CONNECTIONS, self._tasks))]
        self._end = time.monotonic() + self._seconds
        try:
            workers = self._begun(contexts)
            await self._cancel_at_random(workers)
            _, late = await asyncio.wait(workers, timeout=PATIENCE_S)
            for task in late:
                self.found.faults.append(f"stuck: {task.get_stack(limit=1)}")
                task.cancel()
        finally:
            for context in contexts:
                await context.close()
        await self._empty()
        self.found.faults[:0] = [*self.found.moved.differences(), *self.found.kept.differences()]

    def _begun(self, contexts: list[AsyncJMSContext]) -> list[asyncio.Task[None]]:
        roles = [self._send_all, self._send_all, self._move, self._receive, self._move, self._receive, self._acknowledge]
        return [
            asyncio.create_task(self._persist(roles[number % len(roles)], contexts[number % len(contexts)]))
            for number in range(self._tasks)
        ]

    async def _cancel_at_random(self, workers: list[asyncio.Task[None]]) -> None:
        while time.monotonic() < self._end:
            for task in self._random.sample(workers, max(1, len(workers) // 100)):
                task.cancel()
            await asyncio.sleep(0.05)

    async def _persist(self, role: Callable[[AsyncJMSContext], Awaitable[None]], context: AsyncJMSContext) -> None:
        """Go on with a role whenever it was cancelled, until the time is up."""
        task = asyncio.current_task()
        assert task is not None
        while time.monotonic() < self._end:
            try:
                await role(context)
            except asyncio.CancelledError:
                self.found.events["cancelled"] += 1
                while task.cancelling():
                    task.uncancel()
            except Exception as error:
                self.found.faults.append(f"{role.__name__}: {type(error).__name__}: {error}")
                return

    # ---- roles ----------------------------------------------------------------------------------------------------
    async def _send_all(self, context: AsyncJMSContext) -> None:
        producer = context.create_producer()
        book, name = self._random.choice([(self.found.moved, self._names[0])] * 3 + [(self.found.kept, self._names[2])])
        queue = context.create_queue(name)
        while time.monotonic() < self._end:
            while len(book.sent) - len(book.received) > BACKLOG and time.monotonic() < self._end:
                await asyncio.sleep(0.1)
            self._serial += 1
            await self._send_one(producer, queue, f"m{self._serial}", book)
            await asyncio.sleep(self._random.random() / 5)

    async def _send_one(self, producer: AsyncJMSProducer, queue: Queue, text: str, book: Book) -> None:
        try:
            async with asyncio.timeout(self._random.choice([None, None, self._random.random() / 20])):
                await producer.send(queue, text)
        except (asyncio.CancelledError, TimeoutError) as error:
            told = cancelled_call(error)
            self.found.events[f"send: {type(told).__name__}"] += 1
            if isinstance(told, CancelledTooLate):
                book.sent.add(text)
            elif told is None:
                self.found.faults.append(f"{error!r} does not say what became of a send")
            elif not isinstance(told, CancelledBeforehand):
                book.maybe_sent.add(text)
            if isinstance(error, asyncio.CancelledError):
                raise
        except JMSRuntimeException:
            # A fault of the run in any case; whether it was sent is for the comparison to leave open.
            book.maybe_sent.add(text)
            raise
        else:
            book.sent.add(text)

    async def _move(self, context: AsyncJMSContext) -> None:
        async with context.create_context(TRANSACTED) as own:
            source, target = (own.create_queue(name) for name in self._names[:2])
            producer = own.create_producer()
            async with await own.create_consumer(source) as consumer:
                for _ in range(self._random.randrange(5, 50)):
                    if time.monotonic() >= self._end:
                        break
                    async with own.transaction():
                        for _ in range(self._random.randrange(1, 4)):
                            message = await consumer.receive(200)
                            if message is not None:
                                await producer.send(target, text_of(message))
                    self.found.events["committed"] += 1

    async def _receive(self, context: AsyncJMSContext) -> None:
        async with context.create_context(AUTO) as own:
            consumer = await own.create_consumer(own.create_queue(self._names[1]))
            for _ in range(self._random.randrange(5, 100)):
                if time.monotonic() >= self._end:
                    break
                message = await self._taken(consumer)
                if message is not None:
                    self.found.moved.received[text_of(message)] += 1

    async def _taken(self, consumer: AsyncJMSConsumer) -> Message | None:
        """Receive in one of several ways."""
        dice = self._random.random()
        if dice < 0.2:
            return await consumer.receive_no_wait()
        if dice < 0.6:
            return await consumer.receive(200)
        message: Message | None = None
        try:
            async with asyncio.timeout(self._random.random() / 5):
                async for one in consumer:
                    message = one
                    break
        except TimeoutError:
            self.found.events["receive: timeout"] += 1
        return message

    async def _acknowledge(self, context: AsyncJMSContext) -> None:
        book = self.found.kept
        async with context.create_context(CLIENT) as own:
            consumer = await own.create_consumer(own.create_queue(self._names[2]))
            for _ in range(self._random.randrange(5, 50)):
                if time.monotonic() >= self._end:
                    break
                held: list[str] = []
                while len(held) < 3 and (message := await consumer.receive(200)) is not None:
                    held.append(text_of(message))
                try:
                    await own.acknowledge()
                except asyncio.CancelledError:
                    book.maybe_again.update(held)
                    book.received.update(held)
                    raise
                book.received.update(held)

    # ---- the end --------------------------------------------------------------------------------------------------
    async def _empty(self) -> None:
        """Take what is left, of the first two queues as of one."""
        async with self._factory.create_context() as context:
            for names, book in ((self._names[:2], self.found.moved), (self._names[2:], self.found.kept)):
                consumers = [await context.create_consumer(context.create_queue(name)) for name in names]
                deadline = time.monotonic() + LATE_MS / 1000
                while book.sent - book.received.keys() and time.monotonic() < deadline:
                    for consumer in consumers:
                        self._count(book, await consumer.receive(EMPTY_MS))
                for consumer in consumers:
                    while self._count(book, await consumer.receive(EMPTY_MS)):
                        pass
                    await consumer.close()

    def _count(self, book: Book, message: Message | None) -> bool:
        if message is None:
            return False
        book.received[text_of(message)] += 1
        self.found.events["left in the end"] += 1
        return True


def text_of(message: Message) -> str:
    """Return the text, which every message here has."""
    return str(message.get_body(str))


def soak(url: str, *, seconds: float, tasks: int, seed: int) -> Findings:
    """Run one soak in an event loop of its own, and count what it leaves."""
    before = _threads_and_descriptors()

    async def main() -> None:
        others = asyncio.all_tasks()
        await one.run()
        left = asyncio.all_tasks() - others
        if left:
            one.found.faults.append(f"{len(left)} tasks left: {[*left][:3]}")

    one = Soak(url, seconds, tasks, seed)
    asyncio.run(main())
    deadline = time.monotonic() + 10
    while (after := _threads_and_descriptors()) != before and time.monotonic() < deadline:
        time.sleep(0.05)
    if any(now > then for now, then in zip(after, before, strict=True)):
        one.found.faults.append(f"threads and descriptors: {before} before, {after} after")
    return one.found


def _threads_and_descriptors() -> tuple[int, int]:
    return threading.active_count(), len(list(Path("/dev/fd").iterdir()))


def _named_by_environment() -> list[str]:
    found: list[str] = []
    for variable, scheme in (("JMSAPI_ARTEMIS_URLS", "amqp"), ("JMSAPI_CLASSIC_URLS", "stomp")):
        found += [url for url in os.environ.get(variable, "").split(",") if url.startswith(scheme)][:1]
    return found


def main() -> int:
    """Run as a program, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("urls", nargs="*")
    given = parser.parse_args()
    urls = given.urls or _named_by_environment()
    if not urls:
        parser.error("no broker: give URLs, or set JMSAPI_ARTEMIS_URLS and JMSAPI_CLASSIC_URLS (`make brokers-up`)")
    faulty = False
    for url in urls:
        found = soak(url, seconds=given.seconds, tasks=given.tasks, seed=given.seed)
        print(f"{jmsapi.redact_url(url)}: {given.tasks} tasks, {given.seconds:g} s, seed {given.seed}")
        for name, book in (("moved in transactions", found.moved), ("acknowledged in CLIENT mode", found.kept)):
            received = sum(book.received.values())
            print(f"  {name}: {len(book.sent)} sent, {len(book.maybe_sent)} in doubt, {received} received")
        print(f"  {', '.join(f'{word} {n}' for word, n in sorted(found.events.items()))}")
        for fault in found.faults[:20]:
            print(f"  FAULT {fault}")
        if len(found.faults) > 20:
            print(f"  FAULT and {len(found.faults) - 20} more")
        faulty = faulty or bool(found.faults)
    return int(faulty)


if __name__ == "__main__":
    raise SystemExit(main())
