"""What the STOMP provider costs beside stomp.py alone, as ratios taken in one run.

    python benchmarks/stomp/run.py [--messages N] [--memory N] [URL ...]

Each URL is a broker, ``stomp://user:password@host:port``; without one the brokers named in ``JMSAPI_<BROKER>_URLS`` are
measured. A peer that replays messages from a process of its own is always measured: there the client is the limit. Raw is
stomp.py with a listener that only counts, acknowledging each message as we do. Each pair of figures is taken in turn,
several times, and the medians are compared. A missed bound is marked, and the exit code is 1 then.

| row | what is measured |
|---|---|
| receive | 1 KiB texts from a filled queue through a JMS receive loop, AUTO: each ack goes first; raw: a counting listener |
| listener | the same through a JMS message listener |
| ... dups-ok | the same in DUPS_OK, whose acks are as many, but written in batches |
| send | 1 KiB texts, NON_PERSISTENT, not confirmed; raw: ``Connection12.send`` of the same texts with the same headers |
| bare send | the same against ``Connection12.send`` without a header but the destination: no id, time, mode, priority or type |
| async send | PERSISTENT with completion listener, against one confirmed send after the other |
| memory | growth of the process, in MB, after the first tenth of the messages (``--memory``; the bound is for 1,000,000) |

Bounds: receive and listener in DUPS_OK 1.3 on Artemis and against the peer; 0.9 on Classic and RabbitMQ, where the broker is the
limit, and in AUTO, where every message costs a write before the next is handed out (4.4.12-2), as it does the raw listener;
send 1.0; async send 5 on Artemis; memory 5 MB.
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
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import stomp

import jmsapi
from jmsapi import CompletionListener, Connection, DeliveryMode, Message, MessageListener, Session

TEXT = "x" * 1024
AUTO, DUPS_OK = Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE
ROUNDS = 3
WAIT_S = 60.0
PEER = Path(__file__).with_name("replay.py")


def main() -> int:
    """Measure and print the table; 1 when a bound was missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--memory", type=int, default=0, metavar="N", help="also send and receive N messages and watch memory")
    parser.add_argument("--only", metavar="ROW,ROW", help="measure these rows only, and no peer")
    options = parser.parse_args()
    logging.getLogger("stomp.py").setLevel(logging.CRITICAL)  # it reports each ACK that follows its own goodbye
    urls = options.urls or list(_given())
    only = options.only.split(",") if options.only else None
    met = True
    if only is None:
        with replaying_peer(options.messages) as url:
            rows = [
                StompRow(
                    name, *_pair(lambda: raw_receive(url, "q", options.messages), _jms(url, options.messages, mode)), bound=least
                )
                for name, mode, least in (("receive", AUTO, 0.9), ("receive, dups-ok", DUPS_OK, 1.3))
            ]
            met = _print("replaying peer", rows)
    for url in urls:
        met &= _print(_broker(url), list(_measure(url, options.messages, options.memory, only)))
    return 0 if met else 1


@dataclass(frozen=True)
class StompRow:
    """One line of the table: two rates and the least ratio of them, or a figure with the most it may be."""

    name: str
    base: float
    ours: float
    bound: float | None = None

    def __str__(self) -> str:
        ratio = f"{self.ours / self.base:>6.2f} x" if self.base else f"{self.ours:>6.2f}"
        rates = f"base {self.base:>10,.0f}/s   jmsapi {self.ours:>10,.0f}/s" if self.base else " " * 37
        bound = "" if self.bound is None else f"   bound {self.bound:g}{'' if self.met else ' MISSED'}"
        return f"  {self.name:<17} {rates}   {ratio}{bound}"

    @property
    def met(self) -> bool:
        """Whether the bound holds."""
        if self.bound is None:
            return True
        return self.ours >= self.bound * self.base if self.base else self.ours <= self.bound


def _given() -> Iterator[str]:
    for broker in ("ARTEMIS", "CLASSIC", "RABBITMQ"):
        for url in os.environ.get(f"JMSAPI_{broker}_URLS", "").split(","):
            if url.startswith("stomp"):
                yield url


def _broker(url: str) -> str:
    with jmsapi.connection_factory(url).create_connection() as connection:
        return f"{connection.meta_data.jms_provider_name} {connection.meta_data.provider_version}"


def _measure(url: str, messages: int, memory: int, only: Collection[str] | None) -> Iterator[StompRow]:
    def wanted(row: str) -> bool:
        return only is None or row in only

    with jmsapi.connection_factory(url).create_connection() as connection:
        connection.start()
        artemis = _kind(url) == "artemis"
        name = f"bench.{uuid.uuid4().hex}"

        def filled(run: Callable[[], float]) -> Callable[[], float]:
            def after() -> float:
                jms_send(connection, name, messages)
                return run()

            return after

        raw = filled(lambda: raw_receive(url, name, messages))
        least = 1.3 if artemis else 0.9
        for row, receive in (("receive", jms_receive), ("listener", jms_listen)):
            if wanted(row):
                yield StompRow(row, *_pair(raw, filled(partial(receive, connection, name, messages, AUTO))), bound=0.9)
                figures = _pair(raw, filled(partial(receive, connection, name, messages, DUPS_OK)))
                yield StompRow(f"{row}, dups-ok", *figures, bound=least)
        sent = f"bench.{uuid.uuid4().hex}"

        def ours() -> float:
            return emptied(jms_send(connection, sent, messages))

        def emptied(rate: float, count: int = messages) -> float:
            # A queue that grows slows its broker.
            jms_receive(connection, sent, count)
            return rate

        if wanted("send"):
            yield StompRow("send", *_pair(lambda: emptied(raw_send(url, sent, messages)), ours), bound=1.0)
        if wanted("bare send"):
            yield StompRow("bare send", *_pair(lambda: emptied(raw_send(url, sent, messages, bare=True)), ours))
        few = max(messages // 20, 100)
        if wanted("async send"):
            yield StompRow(
                "async send",
                *_pair(
                    lambda: emptied(jms_sync(connection, sent, few), few), lambda: emptied(jms_async(connection, sent, messages))
                ),
                bound=5.0 if artemis else None,
            )
        if memory:
            yield StompRow("memory, MB", 0.0, growth(connection, sent, memory), bound=5.0)


def _print(broker: str, rows: list[StompRow]) -> bool:
    print(broker)
    for row in rows:
        print(row)
    return all(row.met for row in rows)


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


def _jms(url: str, messages: int, mode: int) -> Callable[[], float]:
    def run() -> float:
        with jmsapi.connection_factory(url).create_connection() as connection:
            connection.start()
            return jms_receive(connection, "q", messages, mode)

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
        if self._left <= 0:
            return  # it may still be there when the next one fills the queue
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


def raw_send(url: str, name: str, messages: int, *, bare: bool = False) -> float:
    """Send without receipts; unless bare, with the headers that our texts have on this broker."""
    connection = _dial(url)
    where = _wire_name(url, name)
    more = _HEADERS[_kind(url)]
    common = {"JMS_PY_from": str(uuid.uuid4()), "JMS_PY_type": "Text", "priority": 4}
    prefix = f"ID:{uuid.uuid4()}"
    begin = time.perf_counter()
    for number in range(messages):
        headers: dict[str, object] = {"destination-type": "ANYCAST"}
        if not bare:
            message_id = f"{prefix}.{number}"
            headers = {**common, "JMS_PY_id": message_id, **more(message_id, time.time_ns() // 1_000_000)}
        connection.send(where, TEXT, headers=headers)
    seconds = time.perf_counter() - begin
    connection.disconnect("bye")
    return messages / seconds


_HEADERS: dict[str, Callable[[str, int], dict[str, object]]] = {
    "artemis": lambda name, now: {
        "destination-type": "ANYCAST",
        "persistent": "false",
        "NATIVE_MESSAGE_ID": name,
        "JMS_PY_time": now,
    },
    "classic": lambda name, now: {"timestamp": now, "amq-msg-type": "text", "content-length": len(TEXT)},
    "rabbitmq": lambda name, now: {
        "amqp-message-id": name,
        "timestamp": now // 1000,
        "JMS_PY_time": now,
        "content-length": len(TEXT),
        "content-type": "text/plain",
    },
}
_KINDS: dict[str, str] = {}


def _kind(url: str) -> str:
    """Return which broker it is."""
    if url not in _KINDS:
        with jmsapi.connection_factory(url).create_connection() as connection:
            name = connection.meta_data.jms_provider_name.lower()
        _KINDS[url] = next(kind for kind in _HEADERS if kind in name)
    return _KINDS[url]


def _wire_name(url: str, name: str) -> str:
    """Return the queue's name as the broker wants it: Artemis without a prefix."""
    return name if _kind(url) == "artemis" else f"/queue/{name}"


# ---- through the API


def jms_receive(connection: Connection, name: str, messages: int, mode: int = AUTO) -> float:
    """Receive and read texts in a loop."""
    with connection.create_session(mode) as session:
        consumer = session.create_consumer(session.create_queue(name))
        begin = time.perf_counter()
        for _ in range(messages):
            _read(consumer.receive(WAIT_S * 1000))
        return messages / (time.perf_counter() - begin)


def _read(message: Message | None) -> str:
    assert message is not None, "messages are missing"
    return message.get_body(str)


class _CountingListener(MessageListener):
    def __init__(self, limit: int) -> None:
        self._left = limit
        self.done = threading.Event()

    def on_message(self, message: Message) -> None:
        self._left -= 1
        if self._left == 0:
            self.done.set()


def jms_listen(connection: Connection, name: str, messages: int, mode: int) -> float:
    """Count what a message listener is given."""
    with connection.create_session(mode) as session:
        listener = _CountingListener(messages)
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
    """Return how much the process grows, in MB, while it sends and receives all but the first tenth.

    A thousand at a time, so that the broker need not hold many; each thousand by a producer and a consumer of its own.
    """
    before = 0
    for part in range(10):
        for _ in range(messages // 10_000):
            jms_send(connection, name, 1000)
            jms_receive(connection, name, 1000)
        if part == 0:
            before = _resident()
    return (_resident() - before) / 1e6


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    raise SystemExit(main())
