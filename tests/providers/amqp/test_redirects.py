"""A broker that sends its clients on to another one, or refuses them at first."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from proton import Collector, Condition, Connection, Event, Transport, symbol, uint

from jmsapi.spi import Address, ErrorKind, ProviderError
from jmsapi_amqp._provider import CLOSED_CLIENT_IDS
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


class Elsewhere:
    """A peer that takes every login and then names another place; or, for the first so many, says that their id is taken."""

    def __init__(self, info: Callable[[], dict[Any, Any] | None], refused: int = 0) -> None:
        self._refused = refused
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
                    if len(self.hostnames) <= self._refused:
                        taken = {symbol("invalid-field"): symbol("container-id")}
                        connection.condition = Condition("amqp:invalid-field", "", taken)
                    else:
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

    def start(info: Callable[[], dict[Any, Any] | None], refused: int = 0) -> Elsewhere:
        peers.append(Elsewhere(info, refused))
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


@pytest.mark.parametrize(("ours", "asked"), [(True, 3), (False, 1)])
def test_a_client_id_that_the_broker_still_holds_for_us_is_asked_for_again_but_that_of_another_is_refused_at_once(
    dial: Dial, elsewhere: Callable[..., Elsewhere], ours: bool, asked: int
) -> None:
    peer = elsewhere(lambda: None, refused=2)
    client_id = f"still-held-{ours}"
    if ours:
        CLOSED_CLIENT_IDS.note_closed(("127.0.0.1", peer.port, None, client_id))
    with pytest.raises(ProviderError) as caught:
        dial(f"amqp://127.0.0.1:{peer.port}", client_id=client_id)
    assert caught.value.kind is (ErrorKind.CONNECTION if ours else ErrorKind.CLIENT_ID)
    assert len(peer.hostnames) == asked


def test_a_connection_that_is_closed_in_order_gives_its_client_id_back(artemis: Broker, dial: Dial) -> None:
    parts = urlsplit(artemis.url("amqp"))
    key = (parts.hostname, parts.port, None, "given-back")
    line = dial(artemis.url("amqp"), user=artemis.user, password=artemis.password, client_id="given-back")
    assert not CLOSED_CLIENT_IDS.holds(key)
    line.provider.close().result(30)
    assert CLOSED_CLIENT_IDS.holds(key)
