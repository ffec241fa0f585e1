"""The loopback server over a provider whose answers come later, from a thread of its own, or are refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

import jmsapi_inproc
from jmsapi.spi import ErrorKind, Handle, Outcome, Provider, ProviderError, SystemClock, Tag
from jmsapi.testing import LoopbackServer
from jmsapi_inproc.options import InprocOptions

from .conftest import Raw, ended, until

QUEUE = "/queue/orders"


class Later:
    """A provider of the in-process broker whose answers are given when the test says so."""

    waiting: list[tuple[Future[Any], Future[Any]]]
    refused: ProviderError | None = None

    def __init__(self, below: Provider, waiting: list[tuple[Future[Any], Future[Any]]]) -> None:
        self._below = below
        self.waiting = waiting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        return self._later(self._below.settle(tags, outcome, tx, failures))

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        refused, self.refused = self.refused, None
        if refused is None:
            return self._later(self._below.end(tx, commit=commit))
        self._below.end(tx, commit=False)
        failed: Future[None] = Future()
        failed.set_exception(refused)
        return self._later(failed)

    def close(self) -> Future[None]:
        return self._later(self._below.close())

    def _later(self, answer: Future[None]) -> Future[None]:
        future: Future[None] = Future()
        self.waiting.append((future, answer))
        return future


class Broker:
    """Makes the provider connections of a server, and gives their answers."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Future[Any]]] = []
        self.made: list[Later] = []

    def make(self, server: LoopbackServer, client_id: str | None) -> Later:
        options = InprocOptions(host=server.inproc_url.partition("://")[2], client_id=client_id)
        self.made.append(Later(jmsapi_inproc.entry.create(options, SystemClock()), self.waiting))
        return self.made[-1]

    def answer(self, n: int = 1) -> None:
        """Give the answers that are due, from another thread than the server's."""
        until(lambda: len(self.waiting) >= n)
        while self.waiting:
            future, answer = self.waiting.pop(0)
            cause = answer.exception()
            if cause is None:
                future.set_result(None)
            else:
                future.set_exception(cause)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def server(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """Give a server over the slow broker."""
    monkeypatch.setattr(LoopbackServer, "_make", lambda server, client_id: broker.make(server, client_id))
    with LoopbackServer() as one:
        yield one


def test_a_receipt_comes_when_the_broker_has_answered_and_not_before(connect: Raw, broker: Broker) -> None:
    connection = connect()
    connection.send("SEND", {"destination": QUEUE, "receipt": "sent"}, b"a")
    connection.expect("RECEIPT")
    connection.send("SUBSCRIBE", {"id": "1", "destination": QUEUE, "ack": "client-individual", "receipt": "there"})
    connection.expect("RECEIPT")
    ack = connection.expect("MESSAGE")["ack"]
    connection.send("ACK", {"id": ack, "receipt": "done"})
    connection.send("SEND", {"destination": "/queue/other", "receipt": "meanwhile"}, b"b")
    assert connection.expect("RECEIPT") == {"receipt-id": "meanwhile"}
    broker.answer()
    assert connection.expect("RECEIPT") == {"receipt-id": "done"}
    connection.send("DISCONNECT", {"receipt": "bye"})
    broker.answer()
    assert connection.expect("RECEIPT") == {"receipt-id": "bye"}


def test_a_commit_that_is_refused_leaves_the_messages_with_the_client(connect: Raw, broker: Broker) -> None:
    connection = connect()
    connection.send("SEND", {"destination": QUEUE, "receipt": "sent"}, b"a")
    connection.expect("RECEIPT")
    connection.send("SUBSCRIBE", {"id": "1", "destination": QUEUE, "ack": "client-individual", "window": "1", "receipt": "there"})
    connection.expect("RECEIPT")
    ack = connection.expect("MESSAGE")["ack"]
    broker.made[0].refused = ProviderError(ErrorKind.ROLLED_BACK, "the disk is full")
    for end in ("refused", "committed"):
        connection.send("BEGIN", {"transaction": "t"})
        connection.send("ACK", {"id": ack, "transaction": "t"})
        connection.send("COMMIT", {"transaction": "t", "receipt": end})
        broker.answer(2)
        if end == "refused":
            error = connection.expect("ERROR")
            assert error["receipt-id"] == end and error["message"] == "[rolled-back] the disk is full"
        else:
            assert connection.expect("RECEIPT") == {"receipt-id": end}
    connection.send("SEND", {"destination": QUEUE}, b"b")
    assert connection.frame()[2] == b"b"  # the window has room again


def test_a_refusal_that_nobody_asked_for_ends_the_connection(connect: Raw, broker: Broker) -> None:
    connection = connect()
    broker.made[0].refused = ProviderError(ErrorKind.ROLLED_BACK, "the disk is full")
    connection.send("BEGIN", {"transaction": "t"})
    connection.send("COMMIT", {"transaction": "t"})
    broker.answer()
    assert ended(connection)["message"] == "[rolled-back] the disk is full"


def test_an_answer_to_a_client_that_has_gone_is_nobodys(connect: Raw, broker: Broker, server: LoopbackServer) -> None:
    connection = connect()
    connection.send("BEGIN", {"transaction": "t"})
    connection.send("COMMIT", {"transaction": "t", "receipt": "1"})
    until(lambda: len(broker.waiting) == 1)
    connection.close()
    until(lambda: server.connections == 0)
    broker.answer()
    other = connect()
    other.send("SEND", {"destination": QUEUE, "receipt": "sent"}, b"a")
    other.expect("RECEIPT")


def test_a_consumer_that_the_broker_ends_ends_its_connection_with_the_reason(connect: Raw, broker: Broker) -> None:
    connection, other = connect(), connect()
    peer = broker.made[0].events
    peer.on_closed(Handle(), ProviderError(ErrorKind.DESTINATION, "the queue is gone"))
    assert ended(connection)["message"] == "[destination] the queue is gone"
    peer.on_resumed()
    other.send("SEND", {"destination": QUEUE, "receipt": "sent"}, b"a")
    other.expect("RECEIPT")
