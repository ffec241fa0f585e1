"""What the core costs on the in-process provider, as ratios taken in one run.

    python benchmarks/core/run.py [--messages N]

| row | what is measured |
|---|---|
| queue.Queue | the same 1 KiB texts handed through ``queue.Queue(maxsize=1000)``, one thread on each side |
| send + receive | NON_PERSISTENT 1 KiB texts through a queue, one producer and one consumer thread |
| one thread | each message sent and received by the same thread |
| latency | from send to a waiting receive in another thread, unloaded, 99th percentile |
| idle consumers | memory and threads of 1,000 consumers that wait |
| memory | growth after the first tenth of the messages |
"""

from __future__ import annotations

import argparse
import gc
import queue
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable

import jmsapi
from jmsapi import Connection, DeliveryMode, Message, TextMessage

TEXT = "x" * 1024


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=100_000)
    messages = parser.parse_args().messages
    factory = jmsapi.connection_factory("inproc://benchmark")
    with factory.create_connection() as connection:
        connection.start()
        plain = best(lambda: through_queue(messages))
        both = best(lambda: through_jms(connection, messages))
        single = best(lambda: one_thread(connection, messages // 4))
        rows = [
            ("queue.Queue, two threads", f"{plain:,.0f}/s", "1.00"),
            ("send + receive, two threads", f"{both:,.0f}/s", f"{both / plain:.3f} of queue.Queue"),
            ("send + receive, one thread", f"{single:,.0f}/s", f"{single / plain:.3f} of queue.Queue"),
            ("latency p99, unloaded", f"{latency(connection):.3f} ms", ""),
            ("1,000 idle consumers", *idle_consumers(connection)),
            (f"memory growth over {messages:,} messages", f"{growth(connection, messages):.2f} MB", ""),
        ]
    width = max(len(name) for name, _, _ in rows)
    for name, figure, ratio in rows:
        print(f"{name:<{width}}  {figure:>16}  {ratio}")
    return 0


def best(run: Callable[[], float]) -> float:
    """Return the median rate of three runs after a short one."""
    return statistics.median(run() for _ in range(3))


def two_threads(produce: Callable[[], None], consume: Callable[[], None]) -> float:
    """Return the seconds that both take side by side."""
    threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def through_queue(messages: int) -> float:
    """Hand texts through a queue of the standard library."""
    between: queue.Queue[str] = queue.Queue(maxsize=1000)

    def produce() -> None:
        for _ in range(messages):
            between.put(TEXT)

    def consume() -> None:
        for _ in range(messages):
            between.get()

    return messages / two_threads(produce, consume)


def through_jms(connection: Connection, messages: int) -> float:
    """Send and receive texts, a thread each."""
    with connection.create_session() as sending, connection.create_session() as receiving:
        destination = sending.create_queue("rate")
        producer = sending.create_producer(destination)
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        consumer = receiving.create_consumer(destination)

        def produce() -> None:
            for _ in range(messages):
                producer.send(sending.create_text_message(TEXT))

        def consume() -> None:
            for _ in range(messages):
                read(consumer.receive(30_000))

        return messages / two_threads(produce, consume)


def one_thread(connection: Connection, messages: int) -> float:
    """Send and receive texts in turn."""
    with connection.create_session() as session:
        destination = session.create_queue("turn")
        producer = session.create_producer(destination)
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        consumer = session.create_consumer(destination)
        begin = time.perf_counter()
        for _ in range(messages):
            producer.send(session.create_text_message(TEXT))
            read(consumer.receive(30_000))
        return messages / (time.perf_counter() - begin)


def latency(connection: Connection, messages: int = 2000) -> float:
    """Return the 99th percentile of send to receive, in milliseconds, with nothing else going on."""
    with connection.create_session() as sending, connection.create_session() as receiving:
        destination = sending.create_queue("latency")
        producer = sending.create_producer(destination)
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        consumer = receiving.create_consumer(destination)
        took: list[float] = []
        arrived = threading.Semaphore(0)

        def consume() -> None:
            for _ in range(messages):
                message = consumer.receive(30_000)
                took.append(time.perf_counter() - float(read(message)))
                arrived.release()

        thread = threading.Thread(target=consume)
        thread.start()
        for _ in range(messages):
            producer.send(sending.create_text_message(repr(time.perf_counter())))
            arrived.acquire()
        thread.join()
        return sorted(took)[int(len(took) * 0.99)] * 1000


def idle_consumers(connection: Connection, n: int = 1000) -> tuple[str, str]:
    """Return what consumers that only wait cost: memory, and threads."""
    threads = threading.active_count()
    gc.collect()
    tracemalloc.start()
    with connection.create_session() as session:
        for i in range(n):
            session.create_consumer(session.create_queue(f"idle-{i}"))
        size = tracemalloc.get_traced_memory()[0] / 1e6
        extra = threading.active_count() - threads
    tracemalloc.stop()
    return f"{size:.1f} MB", f"{extra} threads"


def growth(connection: Connection, messages: int) -> float:
    """Return by how many MB the traced memory grows after the first tenth."""
    with connection.create_session() as session:
        destination = session.create_queue("growth")
        producer = session.create_producer(destination)
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        consumer = session.create_consumer(destination)
        tracemalloc.start()
        start = 0
        for i in range(messages):
            if i == messages // 10:
                gc.collect()
                start = tracemalloc.get_traced_memory()[0]
            producer.send(session.create_text_message(TEXT))
            read(consumer.receive(30_000))
        gc.collect()
        size = tracemalloc.get_traced_memory()[0] - start
        tracemalloc.stop()
    return size / 1e6


def read(message: Message | None) -> str:
    """Return a message's text."""
    assert isinstance(message, TextMessage)
    return message.text or ""


if __name__ == "__main__":
    raise SystemExit(main())
