"""What ``jmsapi.aio`` costs beside the blocking API on the same broker, as ratios taken in one run.

    python benchmarks/aio/run.py [--messages N] [--rounds N] [URL]

The URL is a broker; without one the first over AMQP of ``JMSAPI_ARTEMIS_URLS``. Each message is a persistent text of 1 KiB.
Both faces take turns. Rates are medians over the rounds; a ratio is the median of the rounds' ratios, of which both figures were
taken one right after the other.

| row | what is measured |
|---|---|
| send, 1000 and 200 | as many unconfirmed at most (``max_in_flight``) on both sides; see below |
| receive, dups-ok, auto | blocking: ``receive`` in a loop; asyncio: ``async for`` |
| request and reply | the median time from a send to its reply, which a blocking listener sends |
| send on RabbitMQ | by 100 tasks: ``rabbitmq-amqp-python-client`` (its asyncio face) and ours, on ``JMSAPI_RABBITMQ_URLS`` |

A blocking send has a completion listener, and one thread makes all of them. In asyncio there are as many tasks as sends may be
unconfirmed, and each awaits one send after the other.

A missed bound is marked, and the exit code is 1 then. RabbitMQ's client is left out, loudly, where it is not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import jmsapi
import jmsapi.aio
from jmsapi import CompletionListener, JMSContext, Message
from jmsapi.aio import AsyncJMSContext

TEXT = "x" * 1024
IN_FLIGHT = (1000, 200)
THEIR_TASKS = 100
WAIT_S = 120.0
WARM_UP = 1000
MODES = {"dups-ok": JMSContext.DUPS_OK_ACKNOWLEDGE, "auto": JMSContext.AUTO_ACKNOWLEDGE}
LEAST = {"send, 1000": 0.9, "send, 200": 0.9, "receive, dups-ok": 0.8, "receive, auto": 0.7}
LATENCY_MOST = 1.3
THEIRS_LEAST = 3.0


class Count(CompletionListener):
    """Counts confirmed sends."""

    def __init__(self, messages: int) -> None:
        self._left = messages
        self.done = threading.Event()

    def on_completion(self, message: Message) -> None:
        """Count one."""
        self._left -= 1
        if not self._left:
            self.done.set()

    def on_exception(self, message: Message, exception: Exception) -> None:
        """Say that the figures are worth nothing."""
        raise SystemExit(f"a send has failed: {exception}")


# ---- the blocking API ---------------------------------------------------------------------------------------------------
def blocking_send(context: JMSContext, queue: str, messages: int) -> float:
    """Return the rate of sends with a completion listener."""
    count, destination = Count(messages), context.create_queue(queue)
    producer = context.create_producer().set_async(count)
    began = time.perf_counter()
    for _ in range(messages):
        producer.send(destination, TEXT)
    if not count.done.wait(WAIT_S):
        raise SystemExit("sends are not confirmed")
    return messages / (time.perf_counter() - began)


def blocking_receive(context: JMSContext, queue: str, messages: int) -> float:
    """Return the rate of a loop of ``receive``."""
    with context.create_consumer(context.create_queue(queue)) as consumer:
        began = time.perf_counter()
        for _ in range(messages):
            if consumer.receive(WAIT_S * 1000) is None:
                raise SystemExit("a message is missing")
        return messages / (time.perf_counter() - began)


def blocking_latency(context: JMSContext, queue: str, rounds: int) -> float:
    """Return the median seconds of a request and its reply."""
    replies = context.create_temporary_queue()
    taken: list[float] = []
    with context.create_consumer(replies) as consumer:
        producer, destination = context.create_producer().set_jms_reply_to(replies), context.create_queue(queue)
        for _ in range(rounds):
            began = time.perf_counter()
            producer.send(destination, TEXT)
            consumer.receive(WAIT_S * 1000)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


# ---- asyncio ------------------------------------------------------------------------------------------------------------
async def many(messages: int, tasks: int, send: Callable[[], Awaitable[object]]) -> float:
    """Return the rate of sends that tasks await, each one after the other."""

    async def some() -> None:
        for _ in range(messages // tasks):
            await send()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(tasks):
            group.create_task(some())
    return messages // tasks * tasks / (time.perf_counter() - began)


async def async_receive(context: AsyncJMSContext, queue: str, messages: int) -> float:
    """Return the rate of ``async for``."""
    async with await context.create_consumer(context.create_queue(queue)) as consumer:
        began, left = time.perf_counter(), messages
        async for _ in consumer:
            left -= 1
            if not left:
                break
        return messages / (time.perf_counter() - began)


async def async_latency(context: AsyncJMSContext, queue: str, rounds: int) -> float:
    """Return the median seconds of a request and its reply."""
    replies = await context.create_temporary_queue()
    taken: list[float] = []
    async with await context.create_consumer(replies) as consumer:
        producer, destination = context.create_producer().set_jms_reply_to(replies), context.create_queue(queue)
        for _ in range(rounds):
            began = time.perf_counter()
            await producer.send(destination, TEXT)
            await consumer.receive(WAIT_S * 1000)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


class RatioFigures:
    """What was measured of both faces, by row."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[list[float], list[float]]] = {}

    def add(self, row: str, blocking: float, ours: float) -> None:
        """Note one round."""
        found = self._of.setdefault(row, ([], []))
        found[0].append(blocking)
        found[1].append(ours)

    def medians(self, row: str) -> tuple[float, float, float]:
        """Return the medians of the blocking API, of asyncio, and of their ratios."""
        blocking, ours = self._of[row]
        ratios = [one / other for one, other in zip(ours, blocking, strict=True)]
        return statistics.median(blocking), statistics.median(ours), statistics.median(ratios)


def one_round(url: str, queue: str, messages: int, figures: RatioFigures) -> None:
    """Measure each row once, the blocking API and asyncio right after one another."""
    blocking, asynchronous = jmsapi.connection_factory(url), jmsapi.aio.connection_factory(url)

    async def sent(number: int, tasks: int) -> float:
        async with jmsapi.aio.connection_factory(url, max_in_flight=tasks).create_context() as context:
            producer, destination = context.create_producer(), context.create_queue(queue)
            await many(WARM_UP, tasks, lambda: producer.send(destination, TEXT))
            return await many(number, tasks, lambda: producer.send(destination, TEXT))

    async def received(number: int, mode: int) -> float:
        async with asynchronous.create_context(mode) as context:
            await async_receive(context, queue, WARM_UP)
            return await async_receive(context, queue, number)

    for most in IN_FLIGHT:  # as often as there are modes to receive in: as much is put into the queue as is taken
        with jmsapi.connection_factory(url, max_in_flight=most).create_context() as context:
            blocking_send(context, queue, WARM_UP)
            before = blocking_send(context, queue, messages)
        figures.add(f"send, {most}", before, asyncio.run(sent(messages, most)))
    for name, mode in MODES.items():
        with blocking.create_context(mode) as context:
            blocking_receive(context, queue, WARM_UP)
            before = blocking_receive(context, queue, messages)
        figures.add(f"receive, {name}", before, asyncio.run(received(messages, mode)))


def latencies(url: str, queue: str, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a request through the blocking API and through asyncio, with the same responder."""

    async def ours() -> float:
        async with jmsapi.aio.connection_factory(url).create_context() as context:
            await async_latency(context, queue, 20)
            return await async_latency(context, queue, rounds)

    with jmsapi.connection_factory(url).create_context() as server, jmsapi.connection_factory(url).create_context() as client:
        replier = server.create_producer()

        def reply(message: Message) -> None:
            if message.jms_reply_to is not None:
                replier.send(message.jms_reply_to, TEXT)

        server.create_consumer(server.create_queue(queue)).message_listener = reply
        blocking_latency(client, queue, 20)
        pairs = [(blocking_latency(client, queue, rounds), asyncio.run(ours())) for _ in range(3)]
    return statistics.median(one for one, _ in pairs), statistics.median(one for _, one in pairs)


# ---- RabbitMQ's own client ----------------------------------------------------------------------------------------------
async def their_sends(url: str, queue: str, messages: int) -> float:
    """Return the rate of sends by RabbitMQ's client; the queue is there."""
    from rabbitmq_amqp_python_client import AddressHelper, AsyncEnvironment, Converter  # type: ignore[import-not-found]
    from rabbitmq_amqp_python_client import Message as TheirMessage

    parts = urlsplit(url)
    environment: Any = AsyncEnvironment(uri=f"amqp://{parts.username}:{parts.password}@{parts.hostname}:{parts.port}/")
    connection = await environment.connection()
    await connection.dial()
    publisher = await connection.publisher(AddressHelper.queue_address(queue))
    try:
        body = Converter.string_to_bytes(TEXT)
        return await many(messages, THEIR_TASKS, lambda: publisher.publish(TheirMessage(body=body)))
    finally:
        await publisher.close()
        await connection.close()
        await environment.close()


def against_theirs(url: str, queue: str, messages: int, rounds: int) -> tuple[float, float] | None:
    """Return the median rates of RabbitMQ's client and of ours; None where it is not installed."""
    try:
        import rabbitmq_amqp_python_client  # noqa: F401
    except ImportError:
        return None

    async def ours() -> float:
        async with jmsapi.aio.connection_factory(url).create_context() as context:
            producer, destination = context.create_producer(), context.create_queue(queue)
            await producer.send(destination, TEXT)
            return await many(messages, THEIR_TASKS, lambda: producer.send(destination, TEXT))

    pairs = [(asyncio.run(ours()), asyncio.run(their_sends(url, queue, messages))) for _ in range(rounds)]
    return statistics.median(one for _, one in pairs), statistics.median(one for one, _ in pairs)


def named(variable: str) -> str | None:
    """Return the first AMQP URL of a variable of the environment."""
    return next((one for one in os.environ.get(variable, "").split(",") if one.startswith("amqp")), None)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", default=named("JMSAPI_ARTEMIS_URLS"))
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.url is None:
        parser.error("no broker: give a URL, or set JMSAPI_ARTEMIS_URLS")
    queue, figures = f"benchmark.{uuid.uuid4().hex}", RatioFigures()
    for _ in range(given.rounds):
        one_round(given.url, queue, given.messages, figures)
    met = True

    def line(name: str, before: str, ours: str, ratio: float, bound: str, *, holds: bool) -> None:
        nonlocal met
        met = met and holds
        print(f"{name:<22}{before:>14}{ours:>14}{ratio:>8.2f} {bound}{'' if holds else '  MISSED'}")

    print(f"{'':<22}{'blocking':>14}{'asyncio':>14}{'ratio':>8}")
    for row, least in LEAST.items():
        before, ours, ratio = figures.medians(row)
        line(row, f"{before:,.0f}/s", f"{ours:,.0f}/s", ratio, f">= {least:g}", holds=ratio >= least)
    before, ours = latencies(given.url, f"{queue}.requests", 300)
    ratio = ours / before
    line(
        "request and reply",
        f"{before * 1e6:,.0f} us",
        f"{ours * 1e6:,.0f} us",
        ratio,
        f"<= {LATENCY_MOST:g}",
        holds=ratio <= LATENCY_MOST,
    )
    rabbit = named("JMSAPI_RABBITMQ_URLS")
    theirs = None if rabbit is None else against_theirs(rabbit, queue, given.messages // 5, 3)
    if theirs is None:
        print("LEFT OUT: RabbitMQ's client: `pip install rabbitmq-amqp-python-client`, and JMSAPI_RABBITMQ_URLS")
    else:
        ratio = theirs[1] / theirs[0]
        print(f"{'':<22}{'theirs':>14}{'asyncio':>14}{'ratio':>8}")
        line(
            "send on RabbitMQ",
            f"{theirs[0]:,.0f}/s",
            f"{theirs[1]:,.0f}/s",
            ratio,
            f">= {THEIRS_LEAST:g}",
            holds=ratio >= THEIRS_LEAST,
        )
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
