"""In AUTO the next message is handed out when the broker has the acknowledgement of the one before (4.4.12-2).

RabbitMQ and Artemis forget acknowledgements that they have taken off the wire and not yet carried out when the connection then
breaks. The peer here withholds its receipts, which is a broker that has not come to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from queue import SimpleQueue
from typing import Any

import pytest

import jmsapi
from jmsapi import Message, Session
from jmsapi_conformance.kit import text_of

Peer = Callable[..., Any]
SERVERS = ["RabbitMQ/4.0.5", "ActiveMQ-Artemis/2.56.0"]
WAIT_S = 30.0
A_MOMENT_S = 0.3


class Broker:
    """A broker of three messages that answers an acknowledgement when it is told to."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.acknowledged: SimpleQueue[dict[str, str]] = SimpleQueue()
        self.lets_go = threading.Semaphore(0)

    def script(self, connection: Any) -> None:
        connection.welcome(self._server)
        while True:
            command, headers, _ = connection.frame()
            if command == "ACK":
                self.acknowledged.put(headers)
                if "receipt" in headers:
                    assert self.lets_go.acquire(timeout=WAIT_S)
            if "receipt" in headers:
                connection.send("RECEIPT", {"receipt-id": headers["receipt"]})
            if command == "SUBSCRIBE":
                said = {"subscription": headers["id"], "destination": headers["destination"]}
                for number in "123":
                    connection.send("MESSAGE", {**said, "message-id": f"m{number}", "ack": f"a{number}"}, number.encode())

    def next_acknowledged(self) -> dict[str, str]:
        return self.acknowledged.get(timeout=WAIT_S)


@pytest.mark.parametrize("server", SERVERS)
def test_a_receive_waits_for_the_receipt_of_the_acknowledgement_before(peer: Peer, server: str) -> None:
    broker = Broker(server)
    with jmsapi.connection_factory(peer(broker.script).url, foreign="text").create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.AUTO_ACKNOWLEDGE)
        consumer = session.create_consumer(session.create_queue("orders"))
        assert text_of(consumer.receive(WAIT_S * 1000)) == "1"
        first = broker.next_acknowledged()
        assert first["id"] == "a1"
        assert "receipt" in first
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(consumer.receive, WAIT_S * 1000)
            with pytest.raises(FutureTimeout):
                second.result(A_MOMENT_S)
            broker.lets_go.release()
            assert text_of(second.result(WAIT_S)) == "2"
        broker.lets_go.release(10)


@pytest.mark.parametrize("server", SERVERS)
def test_a_listener_is_called_when_the_acknowledgement_before_has_its_receipt(peer: Peer, server: str) -> None:
    broker = Broker(server)
    came: SimpleQueue[str | None] = SimpleQueue()

    def listen(message: Message) -> None:
        came.put(text_of(message))

    with jmsapi.connection_factory(peer(broker.script).url, foreign="text").create_connection() as connection:
        session = connection.create_session(Session.AUTO_ACKNOWLEDGE)
        session.create_consumer(session.create_queue("orders")).message_listener = listen
        connection.start()
        for number in "123":
            assert came.get(timeout=WAIT_S) == number
            assert broker.next_acknowledged()["id"] == f"a{number}"
            threading.Event().wait(A_MOMENT_S)
            assert came.empty()
            broker.lets_go.release()
        broker.lets_go.release(10)


@pytest.mark.parametrize("server", SERVERS)
def test_dups_ok_waits_for_nothing(peer: Peer, server: str) -> None:
    broker = Broker(server)
    with jmsapi.connection_factory(peer(broker.script).url, foreign="text").create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.DUPS_OK_ACKNOWLEDGE)
        consumer = session.create_consumer(session.create_queue("orders"))
        assert [text_of(consumer.receive(WAIT_S * 1000)) for _ in range(3)] == ["1", "2", "3"]
        broker.lets_go.release(10)


def test_where_the_broker_forgets_none_nothing_is_waited_for(peer: Peer) -> None:
    broker = Broker("ActiveMQ/6.3.1")
    with jmsapi.connection_factory(peer(broker.script).url, foreign="text").create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.AUTO_ACKNOWLEDGE)
        consumer = session.create_consumer(session.create_queue("orders"))
        assert [text_of(consumer.receive(WAIT_S * 1000)) for _ in range(3)] == ["1", "2", "3"]
        assert ["receipt" in broker.next_acknowledged() for _ in range(2)] == [False, False]
        broker.lets_go.release(10)
