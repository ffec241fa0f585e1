"""A wire acknowledges what comes at once, or a broker that leaves Nagle's algorithm on answers 40 ms late each time."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from jmsapi.spi import ProviderError, SystemClock, acknowledge_at_once
from jmsapi.wire import IoLoop
from jmsapi_amqp import engine
from jmsapi_amqp.options import AmqpOptions
from jmsapi_amqp.wire import AmqpWire
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.transport import StompTransport

_OPTION = getattr(socket, "TCP_QUICKACK", 0)
pytestmark = pytest.mark.skipif(not _OPTION, reason="only Linux acknowledges at once when it is asked to")


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server


def _delays(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.IPPROTO_TCP, _OPTION) == 0


def _has_come(sock: socket.socket) -> None:
    """Have the kernel put acknowledgements off, as it does by itself between questions and answers, and wait for bytes."""
    sock.setsockopt(socket.IPPROTO_TCP, _OPTION, 0)
    assert _delays(sock)
    sock.settimeout(30)
    sock.recv(1, socket.MSG_PEEK)
    sock.setblocking(False)
    assert _delays(sock)


def test_a_socket_that_put_acknowledgements_off_is_quick_again(listening: socket.socket) -> None:
    with socket.create_connection(listening.getsockname(), 30) as sock, listening.accept()[0] as peer:
        peer.sendall(b"\n")
        _has_come(sock)
        acknowledge_at_once(sock)
        assert not _delays(sock)


def test_a_connection_that_has_ended_meanwhile_costs_nothing_that_was_read(listening: socket.socket) -> None:
    sock = socket.create_connection(listening.getsockname(), 30)
    sock.close()
    acknowledge_at_once(sock)


def test_amqp_acknowledges_at_once_with_each_read(listening: socket.socket) -> None:
    transport = engine.new_transport()
    wire = AmqpWire(AmqpOptions(scheme="amqp", host="127.0.0.1", port=listening.getsockname()[1]), transport)
    sock = wire.connect(30)
    with listening.accept()[0] as peer:
        for piece in (b"AMQP\x03\x01", b"\x00\x00"):
            peer.sendall(piece)
            _has_come(sock)
            assert wire.read()
            assert not _delays(sock)
    wire.close()


class _Deaf:
    """Listens to no frame."""

    def on_frames(self, frames: list[Frame]) -> None:
        raise AssertionError(frames)

    def on_alive(self) -> None:
        """Nothing waits for it."""

    def on_written(self, total: int) -> None:
        raise AssertionError(total)

    def on_end(self, cause: ProviderError) -> None:
        raise AssertionError(cause)


def _no_crash(fault: Exception) -> None:
    raise AssertionError(fault)


def test_stomp_acknowledges_at_once_with_each_read(listening: socket.socket) -> None:
    loop = IoLoop(SystemClock(), _no_crash, logging.getLogger("jmsapi.stomp"))  # never started: the test reads by itself
    transport = StompTransport(loop, _Deaf(), listening.getsockname(), tls=None, timeout=30, limit=1 << 20, vhost=None)
    transport.attempt_connection()
    sock = transport.socket
    assert sock is not None
    with sock, listening.accept()[0] as peer:
        for _ in range(2):
            peer.sendall(b"\n")
            _has_come(sock)
            assert not transport.on_readable()
            assert not _delays(sock)
