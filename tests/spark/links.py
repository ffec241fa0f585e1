"""A relay before a broker whose way can go silent and break, and a stream that is read through it to its end."""

from __future__ import annotations

import contextlib
import queue
import random
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import jmsapi
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options

_LONGEST_S = 150.0
ROUNDS = {
    "leadMessages": "100",
    "roundMessages": "100",
    "maxMessagesPerBatch": "500",
    "pollTimeout": "300ms",
    "connectTimeout": "5s",
}


class Relay:
    """Passes connections on to a port.

    Args:
        port: Where to, on this machine.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._server.getsockname()[1]
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._up: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._over = threading.Event()
        self.silent = False
        """What goes to the broker is swallowed."""
        self.closed = False
        """New connections are refused."""
        self.links = 0
        self.down = 0
        """Bytes that came from the broker."""
        self.on_down: Callable[[Relay], None] = lambda relay: None
        """Called, on the relay's thread, when more has come from the broker."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)
        self.cut()
        self._server.close()
        self._selector.close()

    def url(self, full: str, *, failover: bool = False) -> str:
        """Return the URL of a broker, without its account, that leads through here."""
        scheme = urlsplit(full).scheme
        return f"failover:({scheme}://127.0.0.1:{self.port})" if failover else f"{scheme}://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break every link, both ways; what is in between is lost."""
        with self._guard:
            ends = list(self._pairs)
        for end in ends:
            self._drop(end)

    def _run(self) -> None:
        while not self._over.is_set():
            for key, _ in self._selector.select(0.05):
                if key.fileobj is self._server:
                    self._accept()
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._pass(key.fileobj)

    def _accept(self) -> None:
        near, _ = self._server.accept()
        if self.closed:
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        self.links += 1
        with self._guard:
            self._pairs |= {near: far, far: near}
            self._up.add(near)
        for end in (near, far):
            self._selector.register(end, selectors.EVENT_READ)

    def _pass(self, source: socket.socket) -> None:
        with self._guard:
            target = self._pairs.get(source)
            up = source in self._up
        try:
            data = source.recv(65536) if target is not None else b""
            if not data or target is None:
                self._drop(source)
                return
            if up and self.silent:
                return
            target.sendall(data)
        except OSError:
            self._drop(source)
            return
        if not up:
            self.down += len(data)
            self.on_down(self)

    def _drop(self, end: socket.socket) -> None:
        with self._guard:
            other = self._pairs.pop(end, None)
            self._up.discard(end)
            if other is not None:
                self._pairs.pop(other, None)
                self._up.discard(other)
        for one in (end, other):
            if one is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(one)
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()


class SlowWay:
    """Passes connections on to a port, and all that they bring a while later.

    Args:
        port: Where to, on this machine.
        delay_s: How long each way takes.
    """

    def __init__(self, port: int, delay_s: float) -> None:
        self._target = port
        self._delay_s = delay_s
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._server.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> SlowWay:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._server, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(10)
        for end in (self._server, *self._ends):
            end.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name="slow way", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._ends += [near, far]
            for source, target in ((near, far), (far, near)):
                under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                self._start(self._take, source, under_way)
                self._start(self._bring, target, under_way)

    def _take(self, source: socket.socket, under_way: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"first"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            under_way.put((time.monotonic() + self._delay_s, data))

    def _bring(self, target: socket.socket, under_way: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        while True:
            due, data = under_way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            with contextlib.suppress(OSError):
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)


@contextlib.contextmanager
def breaking(relay: Relay, times: int, silent_s: float, seed: int) -> Iterator[Callable[[], bool]]:
    """Break the links of a relay so many times, at random moments; give what tells whether that is over.

    Args:
        relay: The relay.
        times: How often.
        silent_s: How long nothing reaches the broker before each break.
        seed: Of the moments.
    """
    chance = random.Random(seed)
    stop = threading.Event()

    def run() -> None:
        for _ in range(times):
            if stop.wait(chance.uniform(0.02, 0.25)):
                return
            relay.silent = silent_s > 0
            stop.wait(silent_s)
            relay.cut()
            stop.wait(0.02)
            relay.silent = False

    thread = threading.Thread(target=run, name="breaking")
    thread.start()
    try:
        yield lambda: not thread.is_alive()
    finally:
        stop.set()
        thread.join(10)
        relay.silent = False


def read_through(options: dict[str, str], folder: Path, over: Callable[[], bool], *, until_ms: float | None = None) -> list[str]:
    """Read a stream to its end, as Spark plans and reads it; return the texts of its rows.

    Args:
        options: Of the source; those that ``ROUNDS`` has make many small batches.
        folder: The staging area.
        over: Whether the trouble is over; until then an idle stream is no end.
        until_ms: As with AvailableNow, the moment it began; then the first idle lead is the end.
    """
    checked = read_options(SourceOptions, {**ROUNDS, **options, "stagingLocation": str(folder)})
    engine = Engine(checked)
    stream = engine.stream()
    offset, idle, found = stream.initial(), 0, list[str]()
    if until_ms is not None:
        stream.until(until_ms)
    until = time.monotonic() + _LONGEST_S
    while idle < 3:
        assert time.monotonic() < until, "the stream does not come to an end"
        end = stream.latest(offset)
        if end == offset:
            idle += over() and stream.last.trouble is None
            continue
        idle = 0
        for work in stream.partitions(offset, end):
            for batch in Engine(checked).read(work, ("text",)):
                found += batch.column("text").to_pylist()
        stream.commit(end)
        offset = end
    engine.receivers.close()
    return found


def sent(full_url: str, queue: str, count: int) -> list[str]:
    """Send so many texts to a queue and return them."""
    texts = [f"m{number:05d}" for number in range(count)]
    with jmsapi.connection_factory(full_url).create_connection() as connection:
        transacted = bool(jmsapi.capabilities(connection).transactions)
        session = connection.create_session(jmsapi.Session.SESSION_TRANSACTED if transacted else jmsapi.Session.AUTO_ACKNOWLEDGE)
        producer = session.create_producer(session.create_queue(queue))
        for text in texts:
            producer.send(session.create_text_message(f"{text} {queue} {'x' * 200}"))
        if transacted:
            session.commit()
    return texts


def dead_letters(full_url: str, queue: str) -> list[str]:
    """Return what the broker has moved to its dead letter queue, for it was delivered too often; leaves it there.

    Artemis counts each delivery over STOMP whose link broke, and after ten it moves the message.
    """
    with jmsapi.connection_factory(full_url).create_connection() as connection:
        name = {"artemis": "DLQ", "classic": "ActiveMQ.DLQ"}.get(jmsapi.capabilities(connection).broker)
        if name is None:
            return []
        connection.start()
        session = connection.create_session()
        browser = session.create_browser(session.create_queue(name))
        texts = [message.text or "" for message in browser if isinstance(message, jmsapi.TextMessage)]
    return [text for text in texts if text.split()[1:2] == [queue]]


def account(expected: list[str], found: list[str], left: list[str], dead: list[str] | None = None) -> tuple[int, int]:
    """Return how many are lost and how many are there more than once.

    Args:
        expected: What was sent.
        found: What the stream gave.
        left: What is on the queue.
        dead: What the broker has moved away; it may have been given before, when its acknowledgement did not arrive.
    """
    there = {one.split()[0] for one in [*found, *left]}
    left = [*left, *(one for one in dead or () if one.split()[0] not in there)]
    counted, wanted = Counter(one.split()[0] for one in [*found, *left]), Counter(expected)
    assert not counted.keys() - wanted.keys(), "messages that nobody sent"
    return (wanted - counted).total(), (counted - wanted).total()
