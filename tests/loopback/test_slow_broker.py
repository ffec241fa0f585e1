"""The loopback server over a provider whose answers come later, from a thread of its own, or are refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi.spi import (
    ConsumerSpec,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    SystemClock,
    Tag,
    failed,
)
from jmsapi.testing import LoopbackServer
from jmsapi_inproc.options import InprocOptions

from .conftest import Raw, ended, texts, until

QUEUE = "/queue/orders"


class Later:
    """A provider of the in-process broker whose answers are given when the test says so."""

    waiting: list[tuple[Future[Any], Future[Any]]]
    refused: ProviderError | None = None

    def __init__(self, below: Provider, waiting: list[tuple[Future[Any], Future[Any]]]) -> None:
        self._below = below
        self.waiting = waiting
        self.slow: set[str] = set()
        """Calls that are answered late, besides those that always are."""
        self.unsaid: list[object] = []
        """Tokens of sends that are not answered yet."""

    def open(self, events: Events) -> Future[Any]:
        self._events = events
        return self._below.open(events)

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        if "open_consumer" not in self.slow:
            return self._below.open_consumer(session, spec)
        refused, self.refused = self.refused, None
        return self._later(failed(refused) if refused else self._below.open_consumer(session, spec))

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        if "send" in self.slow:
            self.unsaid.append(token)
        else:
            self._below.send(producer, envelope, tx, token)

    def say(self, error: ProviderError | None = None) -> None:
        """Answer the sends."""
        self._events.on_sent([(token, error) for token in self.unsaid])

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
        return self._later(failed(refused))

    def close(self) -> Future[None]:
        return self._later(self._below.close())

    def _later(self, answer: Future[Any]) -> Future[Any]:
        future: Future[Any] = Future()
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
                future.set_result(answer.result())
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


def test_a_receipt_comes_when_the_broker_has_answered_and_in_its_turn(
    connect: Raw, broker: Broker, inside: jmsapi.JMSContext
) -> None:
    connection = connect()
    connection.send("SEND", {"destination": QUEUE, "receipt": "sent"}, b"a")
    connection.expect("RECEIPT")
    connection.send("SUBSCRIBE", {"id": "1", "destination": QUEUE, "ack": "client-individual", "receipt": "there"})
    connection.expect("RECEIPT")
    ack = connection.expect("MESSAGE")["ack"]
    connection.send("ACK", {"id": ack, "receipt": "done"})
    connection.send("SEND", {"destination": "/queue/other", "receipt": "behind it"}, b"b")
    until(lambda: texts(inside, "other") == ["b"])
    # Another client need not wait, and this one's receipt comes after the one before.
    other = connect()
    other.send("SEND", {"destination": "/queue/third", "receipt": "meanwhile"}, b"c")
    assert other.expect("RECEIPT") == {"receipt-id": "meanwhile"}
    broker.answer()
    assert connection.expect("RECEIPT") == {"receipt-id": "done"}
    assert connection.expect("RECEIPT") == {"receipt-id": "behind it"}
    connection.send("DISCONNECT", {"receipt": "bye"})
    broker.answer()
    assert connection.expect("RECEIPT") == {"receipt-id": "bye"}


def test_a_subscription_that_takes_its_time_holds_up_its_own_client_only_and_keeps_the_order(
    connect: Raw, broker: Broker
) -> None:
    connection, other = connect(**{"heart-beat": "0,100"}), connect()
    broker.made[0].slow.add("open_consumer")
    connection.send("SEND", {"destination": QUEUE, "receipt": "before"}, b"a")
    connection.send("SUBSCRIBE", {"id": "1", "destination": "/queue/empty", "receipt": "there"})
    connection.send("SEND", {"destination": "/queue/other", "receipt": "behind"}, b"b")
    connection.send("UNSUBSCRIBE", {"id": "1", "receipt": "gone"})
    until(lambda: len(broker.waiting) == 1)
    for _ in range(3):
        other.send("SEND", {"destination": "/queue/third", "receipt": "meanwhile"}, b"c")
        assert other.expect("RECEIPT") == {"receipt-id": "meanwhile"}
    assert connection.expect("RECEIPT") == {"receipt-id": "before"}
    assert connection.socket.recv(1) == b"\n"
    broker.answer()
    assert connection.expect("RECEIPT") == {"receipt-id": "there"}
    assert connection.expect("RECEIPT") == {"receipt-id": "behind"}
    assert connection.expect("RECEIPT") == {"receipt-id": "gone"}


def test_a_subscription_that_is_refused_late_is_refused_in_its_turn(connect: Raw, broker: Broker) -> None:
    connection = connect()
    broker.made[0].slow.add("open_consumer")
    broker.made[0].refused = ProviderError(ErrorKind.RESOURCE, "the disk is full")
    connection.send("SUBSCRIBE", {"id": "1", "destination": QUEUE, "receipt": "there"})
    connection.send("UNSUBSCRIBE", {"id": "1", "receipt": "gone"})
    broker.answer()
    error = connection.expect("ERROR")
    assert (error["receipt-id"], error["message"]) == ("there", "[resource] the disk is full")
    assert connection.expect("ERROR")["receipt-id"] == "gone"
    connection.send("SUBSCRIBE", {"id": "1", "destination": QUEUE, "receipt": "again"})
    broker.answer()
    assert connection.expect("RECEIPT") == {"receipt-id": "again"}


def test_a_client_that_goes_while_its_subscription_is_opened_leaves_nothing_behind(
    connect: Raw, broker: Broker, server: LoopbackServer, inside: jmsapi.JMSContext
) -> None:
    connection = connect()
    broker.made[0].slow.add("open_consumer")
    connection.send("SUBSCRIBE", {"id": "1", "destination": QUEUE, "receipt": "there"})
    until(lambda: len(broker.waiting) == 1)
    connection.close()
    until(lambda: server.connections == 0)
    broker.answer()
    inside.create_producer().send(inside.create_queue("orders"), "x")
    assert inside.create_consumer(inside.create_queue("orders")).receive_body(str, 20_000) == "x"


def test_who_disconnects_is_told_so_when_all_it_sent_is_taken(connect: Raw, broker: Broker) -> None:
    connection = connect()
    broker.made[0].slow.add("send")
    connection.send("SEND", {"destination": QUEUE}, b"a")
    connection.send("SEND", {"destination": QUEUE, "receipt": "sent"}, b"b")
    connection.send("DISCONNECT", {"receipt": "bye"})
    broker.answer(1)
    until(lambda: len(broker.made[0].unsaid) == 2)
    broker.made[0].say()
    assert connection.expect("RECEIPT") == {"receipt-id": "sent"}
    assert connection.expect("RECEIPT") == {"receipt-id": "bye"}


def test_who_disconnects_is_told_that_what_it_sent_was_refused(connect: Raw, broker: Broker) -> None:
    connection = connect()
    broker.made[0].slow.add("send")
    connection.send("SEND", {"destination": QUEUE}, b"a")
    connection.send("DISCONNECT", {"receipt": "bye"})
    broker.answer(1)
    until(lambda: len(broker.made[0].unsaid) == 1)
    broker.made[0].say(ProviderError(ErrorKind.RESOURCE, "the disk is full"))
    assert ended(connection)["message"] == "[resource] the disk is full"


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
