"""A broker that sends its clients on to another one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from proton import Collector, Condition, Connection, Event, Transport, symbol, uint

from jmsapi.spi import Address, ErrorKind, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


class Elsewhere:
    """A peer that takes every login and then names another place."""

    def __init__(self, info: Callable[[], dict[Any, Any] | None]) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._info = info
        self.hostnames: list[str] = []
        self._thread = threading.Thread(target=self._accept, name="elsewhere", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            with client:
                client.settimeout(10)
                if not self._serve(client):
                    return

    def _serve(self, client: socket.socket) -> bool:
        """Answer one client; False for one that says nothing at all."""
        connection, collector, transport = Connection(), Collector(), Transport(Transport.SERVER)
        connection.collect(collector)
        transport.sasl().allowed_mechs("ANONYMOUS")
        transport.bind(connection)
        data = client.recv(4096)
        heard = bool(data)
        while data:
            transport.push(data)
            while (event := collector.peek()) is not None:
                if event.type == Event.CONNECTION_REMOTE_OPEN:
                    self.hostnames.append(connection.remote_hostname or "")
                    connection.properties = {symbol("amqp:connection-establishment-failed"): True}
                    connection.condition = Condition("amqp:connection:redirect", "not here", self._info())
                    connection.open()
                    connection.close()
                collector.pop()
            while transport.pending() > 0:
                client.sendall(transport.peek(transport.pending()) or b"")
                transport.pop(transport.pending())
            data = client.recv(4096)
        transport.unbind()
        return heard

    def close(self) -> None:
        socket.create_connection(("127.0.0.1", self.port), 10).close()
        self._thread.join(10)
        self._server.close()
        assert not self._thread.is_alive()


def place(port: int, **more: str) -> dict[Any, Any]:
    return {symbol("network-host"): "127.0.0.1", symbol("port"): uint(port), **{symbol(k): v for k, v in more.items()}}


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., Elsewhere]]:
    """Give a function that starts such a peer."""
    peers: list[Elsewhere] = []

    def start(info: Callable[[], dict[Any, Any] | None]) -> Elsewhere:
        peers.append(Elsewhere(info))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()


def test_a_connection_that_is_sent_on_opens_there(
    artemis: Broker, dial: Dial, queue: Address, elsewhere: Callable[..., Elsewhere]
) -> None:
    port = urlsplit(artemis.url("amqp")).port or 5672
    peer = elsewhere(lambda: place(port))
    login = {"user": artemis.user, "password": artemis.password, "sasl_mechanisms": "PLAIN ANONYMOUS"}
    line = dial(f"amqp://127.0.0.1:{peer.port}", **login)
    assert len(peer.hostnames) == 1
    assert line.capabilities.broker == "artemis"
    line.send(queue, "here")
    assert line.receive(line.consumer(queue))[0].envelope.body == "here"


def test_one_that_sends_in_a_circle_is_given_up(dial: Dial, elsewhere: Callable[..., Elsewhere]) -> None:
    peer = elsewhere(lambda: place(peer.port, hostname="other"))
    with pytest.raises(ProviderError, match="not here") as caught:
        dial(f"amqp://127.0.0.1:{peer.port}")
    assert (caught.value.kind, caught.value.fatal) == (ErrorKind.CONNECTION, True)
    assert peer.hostnames == ["127.0.0.1", "other", "other", "other"]


def test_one_that_does_not_say_where_is_a_plain_refusal(dial: Dial, elsewhere: Callable[..., Elsewhere]) -> None:
    peer = elsewhere(lambda: None)
    with pytest.raises(ProviderError, match="not here"):
        dial(f"amqp://127.0.0.1:{peer.port}")
    assert len(peer.hostnames) == 1
