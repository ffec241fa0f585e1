"""What the STOMP provider costs beside stomp.py alone, as ratios taken in one run.

    python benchmarks/stomp/run.py [--messages N] [--memory N] [URL ...]

Each URL is a broker, ``stomp://user:password@host:port``; without one the brokers named in ``JMSAPI_<BROKER>_URLS`` are
measured. A peer that replays messages from a process of its own is always measured: there the client is the limit. Raw is
stomp.py with a listener that only counts, acknowledging each message as we do. Each pair of figures is taken in turn,
several times, and the medians are compared.

| row | what is measured |
|---|---|
| receive | 1 KiB texts from a filled queue through a JMS receive loop, AUTO; raw: a counting listener |
| listener | the same through a JMS message listener |
| send | 1 KiB texts, NON_PERSISTENT, not confirmed; raw: ``Connection12.send`` |
| async send | PERSISTENT with completion listener, against one confirmed send after the other |
| memory | growth of the process after the first tenth of the messages (``--memory``) |
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import stomp

import jmsapi
from jmsapi import CompletionListener, Connection, DeliveryMode, Message, MessageListener

TEXT = "x" * 1024
ROUNDS = 3
WAIT_S = 60.0
PEER = Path(__file__).with_name("replay.py")


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--memory", type=int, default=0, metavar="N", help="also send and receive N messages and watch memory")
    options = parser.parse_args()
    logging.getLogger("stomp.py").setLevel(logging.CRITICAL)  # it reports each ACK that follows its own goodbye
    urls = options.urls or list(_given())
    with replaying_peer(options.messages) as url:
        _print(
            "replaying peer", [("receive", *_pair(lambda: raw_receive(url, "q", options.messages), _jms(url, options.messages)))]
        )
    for url in urls:
        _print(_broker(url), _measure(url, options.messages, options.memory))
    return 0


def _given() -> Iterator[str]:
    for broker in ("ARTEMIS", "CLASSIC", "RABBITMQ"):
        for url in os.environ.get(f"JMSAPI_{broker}_URLS", "").split(","):
            if url.startswith("stomp"):
                yield url


def _broker(url: str) -> str:
    with jmsapi.connection_factory(url).create_connection() as connection:
        return f"{connection.meta_data.jms_provider_name} {connection.meta_data.provider_version}"


Row = tuple[str, float, float]


def _measure(url: str, messages: int, memory: int) -> list[Row]:
    rows: list[Row] = []
    with jmsapi.connection_factory(url).create_connection() as connection:
        connection.start()
        name = f"bench.{uuid.uuid4().hex}"

        def filled(run: Callable[[], float]) -> Callable[[], float]:
            def after() -> float:
                jms_send(connection, name, messages)
                return run()

            return after

        raw = filled(lambda: raw_receive(url, name, messages))
        rows.append(("receive", *_pair(raw, filled(lambda: jms_receive(connection, name, messages)))))
        rows.append(("listener", *_pair(raw, filled(lambda: jms_listen(connection, name, messages)))))
        sent = f"bench.{uuid.uuid4().hex}"
        rows.append(("send", *_pair(lambda: raw_send(url, sent, messages), lambda: jms_send(connection, sent, messages))))
        jms_receive(connection, sent, messages * 2 * ROUNDS)
        few = max(messages // 20, 100)
        rows.append(
            ("async send", *_pair(lambda: jms_sync(connection, sent, few), lambda: jms_async(connection, sent, messages)))
        )
        jms_receive(connection, sent, (few + messages) * ROUNDS)
        if memory:
            rows.append(("memory, MB", 0.0, growth(connection, sent, memory)))
    return rows


def _print(broker: str, rows: list[Row]) -> None:
    print(broker)
    for name, base, ours in rows:
        if base:
            print(f"  {name:<12} base {base:>10,.0f}/s   jmsapi {ours:>10,.0f}/s   {ours / base:.2f} x")
        else:
            print(f"  {name:<12} {ours:.2f}")


def _pair(base: Callable[[], float], ours: Callable[[], float]) -> tuple[float, float]:
    """Return the median rates of two runs taken in turn."""
    figures = [(base(), ours()) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in figures), statistics.median(other for _, other in figures)


@contextmanager
def replaying_peer(messages: int) -> Iterator[str]:
    """Run a peer that gives out the same message again and again, in a process of its own."""
    process = subprocess.Popen([sys.executable, str(PEER), str(messages)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"stomp://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


def _jms(url: str, messages: int) -> Callable[[], float]:
    def run() -> float:
        with jmsapi.connection_factory(url).create_connection() as connection:
            connection.start()
            return jms_receive(connection, "q", messages)

    return run


# ---- stomp.py alone


def _dial(url: str, listener: stomp.ConnectionListener | None = None) -> stomp.Connection12:
    parts = urlsplit(url)
    connection = stomp.Connection12([(parts.hostname, parts.port)], vhost="/", heartbeats=(0, 60_000), auto_content_length=False)
    if listener is not None:
        connection.set_listener("count", listener)
    connection.connect(parts.username, parts.password, wait=True)
    return connection


class _Counting(stomp.ConnectionListener):  # type: ignore[misc]
    def __init__(self, limit: int) -> None:
        self.connection: stomp.Connection12 | None = None
        self._left = limit
        self.done = threading.Event()

    def on_message(self, frame: stomp.utils.Frame) -> None:
        self.connection.ack(frame.headers["ack"])
        self._left -= 1
        if self._left == 0:
            self.done.set()


def raw_receive(url: str, name: str, messages: int) -> float:
    """Count what a subscription brings."""
    listener = _Counting(messages)
    connection = listener.connection = _dial(url, listener)
    window = {"consumer-window-size": 1_100_000, "activemq.prefetchSize": 1000, "prefetch-count": 1000}
    begin = time.perf_counter()
    connection.subscribe(_wire_name(url, name), "1", "client-individual", headers=window | {"subscription-type": "ANYCAST"})
    assert listener.done.wait(WAIT_S), "messages are missing"
    seconds = time.perf_counter() - begin
    connection.disconnect()
    return messages / seconds


def raw_send(url: str, name: str, messages: int) -> float:
    """Send without receipts."""
    connection = _dial(url)
    where = _wire_name(url, name)
    begin = time.perf_counter()
    for _ in range(messages):
        connection.send(where, TEXT, headers={"destination-type": "ANYCAST"})
    seconds = time.perf_counter() - begin
    connection.disconnect("bye")
    return messages / seconds


_NAMES: dict[str, str] = {}


def _wire_name(url: str, name: str) -> str:
    """Return the queue's name as the broker wants it: Artemis without a prefix."""
    if url not in _NAMES:
        with jmsapi.connection_factory(url).create_connection() as connection:
            _NAMES[url] = "" if "artemis" in connection.meta_data.jms_provider_name.lower() else "/queue/"
    return _NAMES[url] + name


# ---- through the API


def jms_receive(connection: Connection, name: str, messages: int) -> float:
    """Receive and read texts in a loop."""
    with connection.create_session() as session:
        consumer = session.create_consumer(session.create_queue(name))
        begin = time.perf_counter()
        for _ in range(messages):
            _read(consumer.receive(WAIT_S * 1000))
        return messages / (time.perf_counter() - begin)


def _read(message: Message | None) -> str:
    assert message is not None, "messages are missing"
    return message.get_body(str)


class _Listener(MessageListener):
    def __init__(self, limit: int) -> None:
        self._left = limit
        self.done = threading.Event()

    def on_message(self, message: Message) -> None:
        self._left -= 1
        if self._left == 0:
            self.done.set()


def jms_listen(connection: Connection, name: str, messages: int) -> float:
    """Count what a message listener is given."""
    with connection.create_session() as session:
        listener = _Listener(messages)
        consumer = session.create_consumer(session.create_queue(name))
        begin = time.perf_counter()
        consumer.message_listener = listener
        assert listener.done.wait(WAIT_S), "messages are missing"
        return messages / (time.perf_counter() - begin)


def jms_send(connection: Connection, name: str, messages: int) -> float:
    """Send NON_PERSISTENT texts."""
    with connection.create_session() as session:
        producer = session.create_producer(session.create_queue(name))
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        begin = time.perf_counter()
        for _ in range(messages):
            producer.send(session.create_text_message(TEXT))
        return messages / (time.perf_counter() - begin)


def jms_sync(connection: Connection, name: str, messages: int) -> float:
    """Send PERSISTENT texts, each confirmed before the next."""
    with connection.create_session() as session:
        producer = session.create_producer(session.create_queue(name))
        begin = time.perf_counter()
        for _ in range(messages):
            producer.send(session.create_text_message(TEXT))
        return messages / (time.perf_counter() - begin)


class _Completion(CompletionListener):
    def __init__(self, limit: int) -> None:
        self._left = limit
        self.done = threading.Event()

    def on_completion(self, message: Message) -> None:
        self._left -= 1
        if self._left == 0:
            self.done.set()

    def on_exception(self, message: Message, exception: Exception) -> None:
        raise exception


def jms_async(connection: Connection, name: str, messages: int) -> float:
    """Send PERSISTENT texts, confirmed while the next are on their way."""
    with connection.create_session() as session:
        producer = session.create_producer(session.create_queue(name))
        listener = _Completion(messages)
        begin = time.perf_counter()
        for _ in range(messages):
            producer.send(session.create_text_message(TEXT), completion_listener=listener)
        assert listener.done.wait(WAIT_S), "answers are missing"
        return messages / (time.perf_counter() - begin)


def growth(connection: Connection, name: str, messages: int) -> float:
    """Return how much the process grows, in MB, while it sends and receives all but the first tenth."""
    step = messages // 10
    for part in range(10):
        jms_send(connection, name, step)
        jms_receive(connection, name, step)
        if part == 0:
            before = _resident()
    return (_resident() - before) / 1e6


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    raise SystemExit(main())
