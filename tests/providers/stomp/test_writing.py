"""What a transport says that it has written: whole pieces, one by one or joined, however little the socket takes at a time."""

from __future__ import annotations

import select
import socket
import struct
from typing import Any
from unittest.mock import MagicMock

import pytest

from jmsapi_stomp.transport import StompTransport


class Narrow:
    """A socket that takes a few bytes at a time, and none in between."""

    def __init__(self, takes: int) -> None:
        self._takes = takes
        self._full = False
        self.got = b""

    def send(self, data: bytes | memoryview) -> int:
        self._full = not self._full
        if not self._full:
            raise BlockingIOError
        taken = bytes(data[: self._takes])
        self.got += taken
        return len(taken)


class Told:
    """Keeps what it is told has been written."""

    def __init__(self) -> None:
        self.written: list[int] = []

    def on_written(self, count: int) -> None:
        self.written.append(count)


@pytest.mark.parametrize("takes", [1, 4, 9, 1000])
@pytest.mark.parametrize("turns", [[["one "]], [["one "], ["two "]], [["one ", "two ", "three "], ["four "], ["five ", "six "]]])
def test_no_piece_counts_before_its_last_byte_is_written(takes: int, turns: list[list[str]]) -> None:
    told, nobody = Told(), Any
    transport = StompTransport(
        nobody,  # type: ignore[arg-type]
        told,  # type: ignore[arg-type]
        ("here", 1),
        tls=None,
        timeout=1,
        limit=1000,
        vhost=None,
    )
    narrow: Any = Narrow(takes)
    transport.socket = narrow
    pieces: list[str] = []
    for turn in turns:
        for piece in turn:
            pieces.append(piece)
            transport.queue(piece.encode())
        while transport.flush():
            whole = sum(narrow.got.startswith("".join(pieces[: n + 1]).encode()) for n in range(len(pieces)))
            assert max(told.written, default=0) <= whole
        assert narrow.got == "".join(pieces).encode()
        assert told.written[-1] == len(pieces) == transport.queued
        assert transport.idle


@pytest.mark.parametrize(("reset", "at_once"), [(True, False), (True, True), (False, False)])
def test_a_peer_that_resets_has_not_closed_in_order_although_a_write_heard_of_it_first(reset: bool, at_once: bool) -> None:
    told, loop = MagicMock(), MagicMock()
    transport = StompTransport(loop, told, ("here", 1), tls=None, timeout=1, limit=1000, vhost=None)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        if reset:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        select.select([ours], [], [], 10)
        transport.socket = ours
        if at_once:
            assert transport.write_now(b"ACK\n\n\0") == 0
        elif reset:
            transport.queue(b"CONNECT\n\n\0")
            transport.flush()
        if at_once or not reset:
            transport.on_readable()
    assert transport.ended_in_order is not reset
    told.on_end.assert_called_once()


def transport_to(socket: object) -> StompTransport:
    nobody = Any
    transport = StompTransport(nobody, Told(), ("here", 1), tls=None, timeout=1, limit=1000, vhost=None)  # type: ignore[arg-type]
    transport.socket = socket
    return transport


def test_what_must_come_before_an_answer_is_done_before_the_piece_is_written_at_once() -> None:
    socket = Narrow(1000)
    transport = transport_to(socket)
    seen: list[bytes] = []
    assert transport.write_now(b"piece", lambda: seen.append(socket.got)) == 5
    assert (seen, socket.got) == ([b""], b"piece")
    assert transport.write_now(b"more", lambda: seen.append(socket.got)) == 0, "the socket is full"
    assert seen == [b"", b"piece"]


@pytest.mark.parametrize("state", ["closed", "waiting"])
def test_nothing_is_done_where_a_piece_cannot_be_written_at_once(state: str) -> None:
    socket = Narrow(1000)
    transport = transport_to(None if state == "closed" else socket)
    if state == "waiting":
        transport.queue(b"first")
    seen: list[bytes] = []
    assert transport.write_now(b"piece", lambda: seen.append(b"")) is None
    assert (seen, socket.got) == ([], b"")
