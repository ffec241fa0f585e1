"""A loopback server for each test, and clients that speak STOMP by code of their own."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

import jmsapi
from jmsapi.testing import LoopbackServer

from ..peers.stomp_peer import PeerConnection, PeerGone

WAIT_S = 30.0
Raw = Callable[..., PeerConnection]


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """Give a server that ends with the test."""
    with LoopbackServer() as one:
        yield one


@pytest.fixture
def connect(server: LoopbackServer) -> Iterator[Raw]:
    """Give a function that connects a socket to a server, greeted or not."""
    made: list[PeerConnection] = []

    def dial(*, greeted: bool = True, to: LoopbackServer | None = None, **headers: str) -> PeerConnection:
        sock = socket.create_connection(("127.0.0.1", (to or server).port), WAIT_S)
        connection = PeerConnection(sock)
        made.append(connection)
        if greeted:
            connection.send("CONNECT", {"accept-version": "1.2", "host": "/", **headers})
            assert connection.expect("CONNECTED")["version"] == "1.2"
        return connection

    yield dial
    for connection in made:
        connection.close()


@pytest.fixture
def inside(server: LoopbackServer) -> Iterator[jmsapi.JMSContext]:
    """Give a context on the server's broker that does not go over the wire."""
    with jmsapi.connection_factory(server.inproc_url).create_context() as context:
        yield context


@pytest.fixture
def over(server: LoopbackServer) -> Iterator[jmsapi.JMSContext]:
    """Give a context over the wire."""
    with jmsapi.connection_factory(server.url, checked=True).create_context() as context:
        yield context


def texts(context: jmsapi.JMSContext, queue: str) -> list[str | None]:
    """Return the texts that wait on a queue, without taking them."""
    with context.create_browser(context.create_queue(queue)) as browser:
        return [message.get_body(str) for message in browser]


def until(ready: Callable[[], bool]) -> None:
    """Wait for a state that nobody tells of."""
    deadline = time.monotonic() + WAIT_S
    while not ready():
        assert time.monotonic() < deadline, "the state was not reached"
        time.sleep(0.005)


def ended(connection: PeerConnection) -> dict[str, str]:
    """Read the ERROR that ends a connection, and see that it is the end."""
    headers = connection.expect("ERROR")
    with pytest.raises(PeerGone):
        connection.frame()
    return headers
