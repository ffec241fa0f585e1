"""Sends in a transaction: which ask for a receipt, and that none is committed without the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import jmsapi
from jmsapi import CompletionListener, JMSContext, Message
from jmsapi.spi import Address, DestinationKind, Envelope, ErrorKind, ProviderError
from jmsapi_conformance.brokers import Broker
from jmsapi_stomp.artemis import ArtemisStomp
from jmsapi_stomp.transaction import StompTransactions

Dial = Callable[..., Any]
Peer = Callable[..., Any]

QUEUE = Address(DestinationKind.QUEUE, "orders")
OTHER = Address(DestinationKind.QUEUE, "bills")
CLASSIC = "ActiveMQ/6.3.1"
ROLLBACK_ONLY = "COMMIT FAILED\\c Transaction marked rollback only xaErrorCode\\c100"
TRACE = b"""javax.transaction.xa.XAException: COMMIT FAILED: Transaction marked rollback only xaErrorCode:100
\tat org.apache.activemq.transaction.Transaction.newXAException(Transaction.java:223)
Caused by: jakarta.jms.TransactionRolledBackException: COMMIT FAILED: Transaction marked rollback only xaErrorCode:100
\t... 19 more
Caused by: javax.jms.ResourceAllocationException: the store is full
\tat org.apache.activemq.broker.region.AbstractRegion.addDestination(AbstractRegion.java:170)
"""


def refused(call: Callable[[], Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value


def commit_two(line: Any, address: Address = QUEUE) -> None:
    """Commit two sends; of the first in the connection's life the broker is asked."""
    tx = line.begin()
    for body in ("1", "2"):
        line.send(address, body, tx)
    line.end(tx)


class Broker631:
    """A script that confirms what asks for it, records frames, and says more at some of them."""

    def __init__(self, say: Callable[[Any, list[str], dict[str, str]], bool] | None = None, server: str = CLASSIC) -> None:
        self.frames: list[str] = []
        """Command, transaction and whether it asks for a receipt, of each frame."""
        self._say = say
        self._server = server

    def __call__(self, connection: Any) -> None:
        connection.welcome(self._server)
        connection.serve(self._answer)

    def _answer(self, connection: Any, command: str, headers: dict[str, str], body: bytes) -> None:
        asked = " receipt" if "receipt" in headers else ""
        self.frames.append(f"{command}{asked}")
        if self._say is not None and self._say(connection, self.frames, headers):
            headers.pop("receipt", None)  # it is answered


def test_only_the_first_send_to_a_destination_asks_for_a_receipt(dial: Dial, peer: Peer) -> None:
    names: list[str | None] = []

    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        names.append(headers.get("transaction"))
        return False

    broker = Broker631(say)
    line = dial(peer(broker).url)
    commit_two(line)
    commit_two(line)
    line.close()
    first, fence = names[0], names[3]
    assert broker.frames[:10] == [
        *("BEGIN", "SEND receipt", "SEND", "BEGIN receipt", "COMMIT receipt"),
        # The frame that the first one waited for before COMMIT has begun this one.
        *("SEND", "SEND", "BEGIN receipt", "COMMIT receipt", "DISCONNECT receipt"),
    ]
    assert names[:7] == [first, first, first, fence, first, fence, fence]
    assert len(set(names[:9])) == 3


def test_each_send_to_a_temporary_destination_asks_for_a_receipt(dial: Dial, peer: Peer) -> None:
    broker = Broker631()
    line = dial(peer(broker).url)
    commit_two(line, Address(DestinationKind.TEMPORARY_QUEUE, "ID:x-1-1-1:1:1"))
    assert broker.frames == ["BEGIN", "SEND receipt", "SEND receipt", "COMMIT receipt"]


def test_each_send_whose_answer_a_completion_listener_is_told_asks_for_a_receipt(peer: Peer) -> None:
    broker = Broker631()
    with jmsapi.connection_factory(peer(broker).url).create_context(JMSContext.SESSION_TRANSACTED) as context:
        producer = context.create_producer()
        for listener in (None, None, Heard(), None):
            producer.set_async(listener).send(context.create_queue("orders"), "x")
        context.commit()
    sent = [frame for frame in broker.frames if frame.startswith("SEND")]
    assert sent == ["SEND receipt", "SEND", "SEND receipt", "SEND"]


class Heard(CompletionListener):
    """Is told."""

    def on_completion(self, message: Message) -> None:
        assert message is not None

    def on_exception(self, message: Message, exception: Exception) -> None:
        raise exception


@pytest.mark.parametrize("server", ["ActiveMQ/5.9.1", "ActiveMQ"])
def test_each_send_asks_for_a_receipt_where_a_refused_one_does_not_spoil_the_commit(dial: Dial, peer: Peer, server: str) -> None:
    broker = Broker631(server=server)
    line = dial(peer(broker).url)
    commit_two(line)
    assert broker.frames == ["BEGIN", "SEND receipt", "SEND receipt", "COMMIT receipt"]


def test_commit_is_not_written_behind_a_send_that_was_refused_without_a_name(dial: Dial, peer: Peer) -> None:
    """Nothing of it is committed or acknowledged, the connection goes on, and the next send is asked of again."""

    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames == ["BEGIN", "SEND receipt", "SEND", "BEGIN receipt"]:
            connection.send("ERROR", {"message": "the store is full"})
        return False

    broker = Broker631(say)
    line = dial(peer(broker).url)
    error = refused(lambda: commit_two(line))
    assert error.kind is ErrorKind.ROLLED_BACK
    assert "the store is full" in error.message
    assert not error.fatal
    commit_two(line)
    assert line.events.lost == []
    line.close()
    assert broker.frames[:5] == ["BEGIN", "SEND receipt", "SEND", "BEGIN receipt", "ABORT receipt"]
    assert broker.frames[5:9] == ["SEND receipt", "SEND", "BEGIN receipt", "COMMIT receipt"]


def test_a_refusal_that_comes_after_the_rollback_does_not_end_the_connection(dial: Dial, peer: Peer) -> None:
    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames[-1] == "ABORT receipt":
            connection.send("RECEIPT", {"receipt-id": headers["receipt"]})
            connection.send("ERROR", {"message": "the store is full"})
            return True
        return False

    line = dial(peer(Broker631(say)).url)
    tx = line.begin()
    for body in ("1", "2"):
        line.send(QUEUE, body, tx)
    line.end(tx, commit=False)
    commit_two(line)
    assert line.events.lost == []


def test_a_refusal_that_belongs_to_no_transaction_ends_the_connection(dial: Dial, peer: Peer) -> None:
    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames[-1] == "COMMIT receipt":
            connection.send("RECEIPT", {"receipt-id": headers["receipt"]})
            connection.send("ERROR", {"message": "the store is full"})
            return True
        return False

    line = dial(peer(Broker631(say)).url)
    commit_two(line)
    line.events.wait(lambda: line.events.lost != [], "end of the connection")


@pytest.mark.parametrize("words", ["Unexpected ACK received for message-id [null]", "Unmatched acknowledge"])
def test_an_error_about_an_acknowledgement_is_not_taken_for_a_refused_send(dial: Dial, peer: Peer, words: str) -> None:
    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames == ["BEGIN", "SEND receipt", "SEND", "BEGIN receipt"]:
            connection.send("ERROR", {"message": words})
        return False

    broker = Broker631(say)
    line = dial(peer(broker).url)
    assert refused(lambda: commit_two(line)).kind is ErrorKind.ROLLED_BACK
    assert "COMMIT receipt" not in broker.frames
    line.events.wait(lambda: line.events.lost != [], "end of the connection")


def test_an_error_that_may_be_about_a_send_outside_transactions_ends_the_connection(dial: Dial, peer: Peer) -> None:
    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames[-4:] == ["BEGIN", "SEND receipt", "SEND", "BEGIN receipt"]:
            connection.send("ERROR", {"message": "the store is full"})
        return False

    broker = Broker631(say)
    line = dial(peer(broker).url)
    line.send(QUEUE, "outside", delivery_mode=1)
    error = refused(lambda: commit_two(line))
    assert error.kind is ErrorKind.ROLLED_BACK
    assert "the store is full" in error.message
    assert "COMMIT receipt" not in broker.frames
    line.events.wait(lambda: line.events.lost != [], "end of the connection")


def test_without_an_answer_to_the_frame_before_commit_the_transaction_is_rolled_back(dial: Dial, peer: Peer) -> None:
    rolled_back = threading.Event()

    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames[-1] == "ABORT receipt":
            rolled_back.set()
        return frames[-1] == "BEGIN receipt"

    broker = Broker631(say)
    line = dial(peer(broker).url, request_timeout_ms=300)
    error = refused(lambda: commit_two(line))
    assert error.kind is ErrorKind.ROLLED_BACK
    assert rolled_back.wait(30)
    assert "COMMIT receipt" not in broker.frames


def test_what_was_refused_is_told_when_the_refused_commit_tells_it_first(dial: Dial, peer: Peer) -> None:
    """The broker writes that ERROR with another thread than the answers; the second one comes when all is over."""

    def say(connection: Any, frames: list[str], headers: dict[str, str]) -> bool:
        if frames.count("COMMIT receipt") == 1 and frames[-1] == "COMMIT receipt":
            connection.send("ERROR", {"message": ROLLBACK_ONLY, "receipt-id": headers["receipt"]}, TRACE)
            connection.send("ERROR", {"message": "the store is full"})
            return True
        return False

    line = dial(peer(Broker631(say)).url)
    error = refused(lambda: commit_two(line))
    assert error.kind is ErrorKind.ROLLED_BACK
    assert "the store is full" in error.message
    commit_two(line)
    assert line.events.lost == []


def test_what_was_received_in_a_transaction_whose_commit_is_refused_comes_again_by_another_connection(
    dial: Dial, peer: Peer
) -> None:
    """The broker has forgotten the ids by which it could be acknowledged, and hands out nothing again."""

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        subscription = connection.confirm("SUBSCRIBE")["id"]
        connection.send("MESSAGE", {"subscription": subscription, "ack": "a1", "destination": "orders"}, b"x")
        connection.expect("BEGIN")
        connection.confirm("SEND")
        connection.expect("SEND")
        assert connection.expect("ACK")["id"] == "a1"
        connection.confirm("BEGIN")
        receipt = connection.expect("COMMIT")["receipt"]
        connection.send("ERROR", {"message": ROLLBACK_ONLY, "receipt-id": receipt}, TRACE)
        connection.serve()

    line = dial(peer(script).url)
    got = line.receive(line.consumer(QUEUE), accept=False)
    tx = line.begin()
    for body in ("1", "2"):
        line.send(OTHER, body, tx)
    line.accept(got, tx)
    error = refused(lambda: line.end(tx))
    assert error.kind is ErrorKind.ROLLED_BACK
    assert error.fatal
    line.events.wait(lambda: line.events.lost != [], "end of the connection")


def test_commit_says_which_send_was_refused_where_the_refusal_ends_the_connection(peer: Peer) -> None:
    refuse = "AMQ229032: User: u does not have permission='SEND' on address orders"

    def script(connection: Any) -> None:
        connection.welcome("ActiveMQ-Artemis/2.56.0")
        connection.expect("BEGIN")
        connection.send("ERROR", {"message": refuse.replace(":", "\\c"), "receipt-id": connection.expect("SEND")["receipt"]})
        connection.serve()

    factory = jmsapi.connection_factory(peer(script).url, emulate="tx")
    with factory.create_context(JMSContext.SESSION_TRANSACTED) as context:
        context.create_producer().send(context.create_queue("orders"), "x")
        with pytest.raises(jmsapi.TransactionRolledBackRuntimeException, match="does not have permission"):
            context.commit()


@pytest.mark.broker
@pytest.mark.parametrize("count", [1, 20])
def test_classic_commits_nothing_of_a_transaction_with_a_refused_send_that_asked_for_no_receipt(
    dial: Dial, classic: Broker, queue: Address, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Some times the ERROR comes before COMMIT is written, some times the broker's answer to COMMIT overtakes it."""
    monkeypatch.setattr(StompTransactions, "_is_to_be_asked", lambda *_: False)
    target = Address(DestinationKind.QUEUE, queue.name + ".target")
    gone = Address(DestinationKind.TEMPORARY_QUEUE, "ID:nobody-1-1-1:1:1")
    sender = dial(classic)
    for n in range(3):
        sender.send(queue, str(n))
    for _ in range(10):
        line = dial(classic)
        got = line.receive(line.consumer(queue, prefetch=3), 3, accept=False)
        # Their order is lost when it is the end of the connection that rolls back.
        assert sorted(one.envelope.body for one in got) == ["0", "1", "2"]
        tx = line.begin()
        line.send(target, "not alone", tx)
        for _ in range(count):
            line.send(gone, "refused", tx)
        line.accept(got, tx)
        error = refused(lambda line=line, tx=tx: line.end(tx))
        assert error.kind is ErrorKind.ROLLED_BACK
        assert "temp-queue" in error.message
        line.close()
    assert sender.nothing_more(sender.consumer(target))


@pytest.mark.broker
def test_artemis_commits_nothing_and_takes_no_acknowledgement_of_a_transaction_with_a_refused_send(
    dial: Dial, artemis: Broker, queue: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has no right to write is refused in the same way: what was received in the transaction was lost."""
    lines = ArtemisStomp.send_lines

    def send_lines(self: ArtemisStomp, envelope: Envelope, name: str | None, now_ms: int) -> str:
        bad = "expires:no number\n" if envelope.body == "refused" else ""
        return bad + lines(self, envelope, name, now_ms)

    monkeypatch.setattr(ArtemisStomp, "send_lines", send_lines)
    target = Address(DestinationKind.QUEUE, queue.name + ".target")
    sender = dial(artemis)
    sender.send(queue, "received")
    for _ in range(10):
        line = dial(artemis, emulate="tx")
        got = line.receive(line.consumer(queue, prefetch=3), accept=False)
        tx = line.begin()
        tokens = [line.post(target, body, tx) for body in ("1", "refused", "2")]
        # As a session does, which waits for the answers to its sends before it commits.
        errors = [line.events.answer(token) for token in tokens]
        assert [error for error in errors if error is not None]

        def commit(line: Any = line, tx: Any = tx, got: Any = got) -> None:
            line.accept(got, tx)
            line.end(tx)

        assert refused(commit).kind in (ErrorKind.ROLLED_BACK, ErrorKind.CONNECTION)
        line.close()
    assert sender.nothing_more(sender.consumer(target))
