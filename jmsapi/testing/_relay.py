"""The loop of the fault proxy: one thread that accepts, connects and passes bytes, and does what it is told in between.

Everything but the queue of orders belongs to that thread.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from jmsapi.testing._flow import Faults, Flow, FlowState, Pair, reset

__all__ = ["Relay"]

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_ORDER_S = 10.0
_LONGEST_WAIT_S = 60.0


class Relay:
    """Passes bytes between clients and one target.

    Args:
        family: Address family of the target.
        target: The target's socket address.
        name: Of the thread.
    """

    def __init__(self, family: int, target: tuple[object, ...], name: str) -> None:
        self._family = family
        self._target = target
        self.faults = (Faults(), Faults())
        """Of the way to the broker, and of the way to the client."""
        self.pairs: list[Pair] = []
        self.accepted = 0
        self.passed = [0, 0]
        self.changed = threading.Condition()
        """Notified whenever a connection comes, goes or passes bytes."""
        self.silent = False
        self.holding = 0
        """Connections that are to be held until the next one has had an answer."""
        self._held: Pair | None = None
        self._server: socket.socket | None = _listen(0)
        self._spare: socket.socket | None = None
        self.port: int = self._server.getsockname()[1]
        self._waker, self._woken = socket.socketpair()
        for end in (self._waker, self._woken):
            end.setblocking(False)
        self._orders: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._orders_lock = threading.Lock()
        self._ended = False
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ---- from any thread ------------------------------------------------------------------------------------------
    def order(self, do: Callable[[], None]) -> None:
        """Have the loop do something, and wait until it has."""
        done: Future[None] = Future()
        with self._orders_lock:
            if self._ended:
                return
            self._orders.append((do, done))
        self._wake()
        done.result(_ORDER_S)

    def close(self) -> None:
        """End every connection and the thread."""
        with self._orders_lock:
            if self._ended:
                return
            self._ended = True
        self._wake()
        self._thread.join(_ORDER_S)

    def _wake(self) -> None:
        # Full: it is awake. Closed: it has ended meanwhile.
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    # ---- orders ---------------------------------------------------------------------------------------------------
    def refuse(self) -> None:
        """Stop listening, yet keep the port from others."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._spare = _bind(self.port)

    def allow(self) -> None:
        """Listen again."""
        if self._server is None:
            if self._spare is not None:
                self._spare.close()
                self._spare = None
            self._server = _listen(self.port)

    def let_go(self) -> None:
        """Let held connections go on."""
        self._held = None
        for pair in self.pairs:
            pair.hastens = None
            if pair.state is FlowState.HELD:
                self._connect(pair)

    def count_anew(self, way: int) -> None:
        """Count the bytes of one way from here."""
        for pair in self.pairs:
            for flow in pair.flows[way : way + 1]:
                flow.counted = 0

    # ---- the loop -------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while not self._ended:
                timeout = self._watch()
                ready = {key.fd: mask for key, mask in self._selector.select(timeout)}
                self._obey()
                self._serve(ready)
        finally:
            self._end()

    def _obey(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        while True:
            with self._orders_lock:
                if not self._orders:
                    return
                do, done = self._orders.popleft()
            try:
                do()
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(None)
            self._tell()

    def _watch(self) -> float:
        """Say what to wait for; return the longest wait, in seconds."""
        now = time.monotonic()
        wanted: dict[int, int] = {self._woken.fileno(): _READ}
        timeout = _LONGEST_WAIT_S

        def want(end: socket.socket, event: int) -> None:
            wanted[end.fileno()] = wanted.get(end.fileno(), 0) | event

        if self._server is not None:
            want(self._server, _READ)
        for pair in self.pairs:
            if pair.state is FlowState.CONNECTING and pair.broker is not None:
                want(pair.broker, _WRITE)
            elif pair.state is FlowState.DRAINING:
                for end in pair.sockets():
                    want(end, _READ)
            elif pair.state is FlowState.PASSING:
                for flow in pair.flows:
                    if flow.wants:
                        want(flow.source, _READ)
                    if flow.allowed(now):
                        want(flow.sink, _WRITE)
                    else:
                        due = flow.due_in(now)
                        timeout = timeout if due is None else min(timeout, due)
        # Descriptors are used again by other sockets, so nothing is kept from the last time.
        self._selector.close()
        self._selector = selectors.DefaultSelector()
        for descriptor, mask in wanted.items():
            self._selector.register(descriptor, mask)
        return timeout

    def _serve(self, ready: dict[int, int]) -> None:
        now = time.monotonic()
        server = self._server
        changed = False
        for pair in list(self.pairs):
            changed = self._serve_pair(pair, ready, now) or changed
        if server is not None and ready.get(server.fileno(), 0):
            changed = self._accept(server) or changed
        self.pairs = [pair for pair in self.pairs if pair.state is not FlowState.CLOSED]
        if changed:
            self._tell()

    def _serve_pair(self, pair: Pair, ready: dict[int, int], now: float) -> bool:
        """Do what one pair is ready for; return whether anything happened."""
        before = pair.state
        if before is FlowState.CONNECTING and pair.broker is not None and ready.get(pair.broker.fileno(), 0):
            self._connected(pair, pair.broker, now)
        elif before is FlowState.DRAINING:
            for end in pair.sockets():
                if ready.get(end.fileno(), 0):
                    pair.drain(end)
        elif before is FlowState.PASSING:
            moved = False
            try:
                for way, flow in enumerate(pair.flows):
                    # A cut in the first way ends both.
                    if pair.state is FlowState.PASSING:
                        moved = self._pass(pair, way, flow, ready, now) or moved
                if pair.state is FlowState.PASSING:
                    pair.finish()
            except OSError:
                # One side broke: the other hears of it in the same way.
                pair.cut(fin=False)
            return moved or pair.state is not before
        return pair.state is not before

    def _pass(self, pair: Pair, way: int, flow: Flow, ready: dict[int, int], now: float) -> bool:
        if flow.wants and ready.get(flow.source.fileno(), 0) & _READ:
            flow.read(now)
        sent = 0
        if ready.get(flow.sink.fileno(), 0) & _WRITE:
            n = flow.allowed(now)
            sent = flow.write(n) if n else 0
            self.passed[way] += sent
        if flow.at_its_cut:
            fin, flow.faults.cut_at = flow.faults.cut_fin, None
            pair.cut(fin=fin)
        elif way == 1 and sent and pair.hastens is not None:
            held, pair.hastens = pair.hastens, None
            self._connect(held)
        if pair.state is FlowState.PASSING:
            flow.pass_end_on()
        return sent > 0

    def _accept(self, server: socket.socket) -> bool:
        try:
            client, _ = server.accept()
        except OSError:
            return False
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.accepted += 1
        pair = Pair(client)
        self.pairs.append(pair)
        if self.silent:
            pair.state = FlowState.SILENT
        elif self.holding:
            self.holding -= 1
            self._held = pair
        else:
            pair.hastens, self._held = self._held, None
            self._connect(pair)
        return True

    def _connect(self, pair: Pair) -> None:
        if pair.state is not FlowState.HELD:
            return
        pair.broker = broker = socket.socket(self._family, socket.SOCK_STREAM)
        broker.setblocking(False)
        broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair.state = FlowState.CONNECTING
        if broker.connect_ex(self._target) not in (0, errno.EINPROGRESS):
            pair.cut(fin=False)

    def _connected(self, pair: Pair, broker: socket.socket, now: float) -> None:
        if broker.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            pair.cut(fin=False)
        else:
            pair.join(broker, *self.faults, now)

    def _tell(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def _end(self) -> None:
        with self._orders_lock:
            self._ended = True
            left, self._orders = self._orders, deque()
        for pair in self.pairs:
            pair.cut(fin=False)
        self.pairs = []
        for end in (self._server, self._spare, self._waker, self._woken):
            if end is not None:
                reset(end)
        self._selector.close()
        for _, done in left:
            done.set_result(None)
        self._tell()


def _bind(port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
    except OSError:
        server.close()
        raise
    return server


def _listen(port: int) -> socket.socket:
    server = _bind(port)
    server.listen(128)
    server.setblocking(False)
    return server
