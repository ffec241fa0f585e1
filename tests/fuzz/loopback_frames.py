"""Mutations of a client's frames through the development broker, whose socket is the caller."""

from __future__ import annotations

import itertools
import logging
import random
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import jmsapi_inproc
from jmsapi import config
from jmsapi.spi import Provider, SystemClock
from jmsapi.testing._stomp_peer import Peer
from jmsapi.testing._stomp_setting import Setting
from jmsapi.testing._stomp_wire import ServerChannel, WaitingBytes
from jmsapi.wire import IoLoop
from jmsapi_stomp.loopback import LoopbackStomp
from jmsapi_stomp.options import StompOptions

_READ: Final = 1 << 16
_PEERS: Final = 500
"""Clients of one broker; then another one begins, so that what they have sent is gone."""
SEEDS: Final = (
    b"SEND\ndestination:/queue/q\nreceipt:1\ncontent-length:5\nJMS_PY_type:Text\npriority:7\nexpires:99999999999999\n\nhello\0",
    b"SEND\ndestination:/topic/t\nJMS_PY_type:Map\nJMS_PY_props:n=i\nn:7\n\n{}\0",
    b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\nprefetch-count:5\nselector:n > 3\n\n\0",
    b"SUBSCRIBE\nid:2\ndestination:/topic/t\nack:auto\ndurable:true\nsubscription:s\n\n\0",
    b"UNSUBSCRIBE\nid:1\n\n\0",
    b"ACK\nid:1\nreceipt:2\n\n\0",
    b"NACK\nid:1\n\n\0",
    b"BEGIN\ntransaction:t\n\n\0",
    b"SEND\ndestination:/queue/q\ntransaction:t\ndelay:5\n\nx\0",
    b"COMMIT\ntransaction:t\nreceipt:3\n\n\0",
    b"ABORT\ntransaction:t\n\n\0",
    b"DISCONNECT\nreceipt:9\n\n\0",
    b"\n\n",
)
_CONNECT: Final = b"CONNECT\naccept-version:1.2\nhost:h\nheart-beat:0,0\nclient-id:c%d\n\n\0"
_PIECES: Final = (
    *(b"\0", b"\n", b"\r\n", b":", b"\\", b"\\t", b"\xff", b"\n\n", b"-1", b"9" * 30, b"id:", b"receipt:5\n", b"ack:x\n"),
    *(b"destination:/temp-queue/x\n", b"destination:nowhere\n", b"content-length:3\n", b"credit:1\n"),
    *(b"selector:((((\n", b"durable:true\n", b"browser:true\n"),
    *(b"JMS_PY_props:a=z\n", b"timestamp:soon\n", b"priority:high\n", b"expires:-7\n", b"JMS_PY_due:x\n", b"transaction:t\n"),
)


@dataclass
class Outcomes:
    """What became of the clients."""

    reads: int = 0
    clients: int = 0
    answers: int = 0


class _Fault(logging.Handler):
    """Makes an exception of what the server logs as a fault of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            raise AssertionError(record.getMessage()) from record.exc_info[1]


class _Timer:
    def cancel(self) -> None:
        """Nothing is due here."""


class _Loop:
    """A loop whose jobs are done by the caller, and whose timers are never due."""

    inside = True

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], object]] = deque()

    def add(self, channel: object, sock: object) -> None:
        """The caller reads."""

    def drop(self, channel: object) -> None:
        """The caller reads no more."""

    def post(self, job: Callable[..., object], *arguments: object) -> None:
        self._jobs.append(lambda: job(*arguments))

    def later(self, delay_s: float, job: Callable[[], object]) -> _Timer:
        return _Timer()

    def run(self) -> None:
        while self._jobs:
            self._jobs.popleft()()


class _Socket:
    """Gives what the caller has put there, and counts what it is told."""

    def __init__(self) -> None:
        self.given: deque[bytes] = deque()
        self.written = 0
        self.closed = False

    def recv(self, size: int) -> bytes:
        if not self.given:
            raise BlockingIOError
        data = self.given.popleft()
        if len(data) > size:
            self.given.appendleft(data[size:])
        return data[:size]

    def send(self, data: memoryview) -> int:
        self.written += len(data)
        return len(data)

    def shutdown(self, how: int) -> None:
        """The caller does not mind."""

    def close(self) -> None:
        self.closed = True


class _Server:
    def __init__(self, number: int) -> None:
        self.loop = _Loop()
        self.name = f"fuzz-{number}"
        self._options = config.parse_url(f"inproc://{self.name}", {}, entries={"inproc": jmsapi_inproc.entry})
        behaviour = LoopbackStomp(StompOptions(scheme="stomp", host="127.0.0.1"), "1")
        self._setting = Setting(self._make, SystemClock(), behaviour, None, "word")
        self._waiting = WaitingBytes(1 << 22)
        self.peers = 0

    def _make(self, client_id: str | None) -> Provider:
        return jmsapi_inproc.entry.create(self._options.having(client_id=client_id), SystemClock())

    def client(self) -> tuple[_Socket, ServerChannel]:
        self.peers += 1
        loop, sock = cast("IoLoop", self.loop), _Socket()
        peer = Peer(loop, self._setting, self.peers, lambda _: None)
        wire = ServerChannel(loop, cast("socket.socket", sock), 1 << 20, self._waiting, peer)
        peer.start(wire)
        return sock, wire

    def close(self) -> None:
        jmsapi_inproc.discard(self.name)


def mutated(dice: random.Random, number: int) -> bytes:
    """Return what one client may send, greeting included."""
    frames = [_CONNECT % number, *dice.choices(SEEDS, k=dice.randrange(1, 6))]
    data = bytearray(b"".join(frames))
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        # The greeting stays whole most often: what follows is what it is about.
        low = 0 if dice.randrange(10) == 0 else len(frames[0])
        at = dice.randrange(min(low, len(data)), len(data) + 1)
        match dice.randrange(4):
            case 0 if at < len(data):
                data[at] = dice.randrange(256)
            case 1:
                data[at:at] = dice.choice(_PIECES)
            case 2:
                del data[at : at + dice.randrange(1, 12)]
            case _:
                start = dice.randrange(len(data) + 1)
                data[at:at] = data[start : start + dice.randrange(40)]
    return bytes(data)


def fuzz(reads: int, seed: int) -> Outcomes:
    """Let so many clients send mutated frames, each in one to three reads, and go.

    Raises:
        AssertionError: The server met an exception that it has no answer for; the bytes are in its text.
    """
    dice = random.Random(seed)
    outcomes = Outcomes()
    logger, fault = logging.getLogger("jmsapi.testing"), _Fault()
    numbers = itertools.count()
    logger.addHandler(fault)
    server = _Server(next(numbers))
    try:
        while outcomes.reads < reads:
            if server.peers >= _PEERS:
                server.close()
                server = _Server(next(numbers))
            data = mutated(dice, server.peers)
            outcomes.clients += 1
            try:
                outcomes.answers += _serve(server, data, dice, outcomes)
            except Exception as error:
                raise AssertionError(f"seed {seed}, client {outcomes.clients}: {error!r} came of {data!r}") from error
    finally:
        logger.removeHandler(fault)
        server.close()
    return outcomes


def _serve(server: _Server, data: bytes, dice: random.Random, outcomes: Outcomes) -> int:
    sock, wire = server.client()
    pieces: list[Any] = sorted(dice.randrange(len(data) + 1) for _ in range(dice.randrange(3)))
    for start, end in itertools.pairwise([0, *pieces, len(data)]):
        outcomes.reads += 1
        if start < end:
            sock.given.append(data[start:end])
            wire.on_readable()
        server.loop.run()
        wire.flush()
    wire.end()
    server.loop.run()
    return sock.written
