"""What brokers seldom do: they end a consumer whose messages are not settled, and answer a transfer in steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from proton import Delivery, Described, ulong

import jmsapi
from jmsapi.spi import Address, ConsumerSpec, ErrorKind, Handle, Outcome, ProviderError
from jmsapi.spi import Delivery as Given
from jmsapi_amqp.closed_links import ClosedLinks

from ...peers.amqp_peer import TRANSACTIONAL, AmqpPeer

Dial = Callable[..., Any]


@pytest.fixture
def peer() -> Iterator[AmqpPeer]:
    """Give a broker that does as it is told."""
    made = AmqpPeer()
    yield made
    made.close()


class Steps:
    """Answers transfers in steps: the first with one state, the rest when the test says so."""

    def __init__(self, peer: AmqpPeer, first: int, data: list[Any] | None = None) -> None:
        self._peer = peer
        self._first, self._data = first, data
        self._open: list[Delivery] = []
        peer.on_transfer = self._begin

    def _begin(self, delivery: Delivery) -> None:
        size = delivery.pending
        self._peer.queue.append(self._peer.body(delivery))
        if self._data is not None:
            delivery.local.data = self._data
        else:
            delivery.local.section_number, delivery.local.section_offset = 0, size
        delivery.update(self._first)
        self._open.append(delivery)

    def wait(self, until: Callable[[Callable[[], bool]], None]) -> None:
        """Wait for a transfer."""
        until(lambda: self._peer.do(lambda: len(self._open)) > 0)

    def go_on(self, state: int | None) -> None:
        """Settle the transfers, with an outcome or without."""

        def settle() -> None:
            while self._open:
                delivery = self._open.pop()
                if state is not None:
                    delivery.update(state)
                delivery.settle()

        self._peer.do(settle)


Until = Callable[[Callable[[], bool]], None]


def test_a_transfer_that_is_only_received_has_no_outcome_yet(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    steps.go_on(Delivery.ACCEPTED)
    assert line.events.answer(token) is None


def test_a_transfer_that_is_received_and_then_refused_is_refused(
    peer: AmqpPeer, dial: Dial, queue: Address, until: Until
) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    steps.go_on(Delivery.REJECTED)
    error = line.events.answer(token)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.RESOURCE


def test_a_transfer_that_ends_without_an_outcome_is_in_doubt(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    steps.go_on(None)
    error = line.events.answer(token)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.IN_DOUBT


def test_a_transfer_in_a_transaction_that_is_only_received_and_then_ended_is_in_doubt(
    peer: AmqpPeer, dial: Dial, queue: Address, until: Until
) -> None:
    line = dial(peer.url)
    received = Described(ulong(0x23), [0, 0])
    steps = Steps(peer, TRANSACTIONAL, [b"tx1", received])
    token = line.post(queue, "payment", line.begin())
    steps.wait(until)
    steps.go_on(None)
    error = line.events.answer(token)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.IN_DOUBT


# ---- consumers that the broker ends ---------------------------------------------------------------------------------


def given(peer: AmqpPeer, line: Any, queue: Address, *bodies: str) -> tuple[Handle, list[Given]]:
    """Open a consumer and take these messages, without a word about them."""
    consumer = line.consumer(queue, credit=len(bodies))
    peer.put(*bodies)
    return consumer, line.events.take(consumer, len(bodies))


def ended(peer: AmqpPeer, line: Any, consumer: Handle) -> None:
    """Have the broker end a consumer, and wait until that is known here."""
    peer.do(peer.end_consumers)
    line.events.wait(lambda: [handle for handle, _ in line.events.closed] == [consumer], "end of the consumer")


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.REJECTED])
def test_what_came_by_a_consumer_that_the_broker_has_ended_cannot_be_acknowledged(
    peer: AmqpPeer, dial: Dial, queue: Address, outcome: Outcome
) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    ended(peer, line, consumer)
    with pytest.raises(ProviderError, match=r"gives it out again.*slow consumer") as caught:
        line.accept(deliveries, outcome=outcome)
    assert (caught.value.kind, caught.value.fatal) == (ErrorKind.CLOSED, False)
    again = line.consumer(queue)
    assert [delivery.envelope.body for delivery in line.receive(again)] == ["transfer"]


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.FAILED])
def test_giving_it_back_has_happened_already(peer: AmqpPeer, dial: Dial, queue: Address, outcome: Outcome) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    ended(peer, line, consumer)
    line.accept(deliveries, outcome=outcome)
    assert peer.told("accepted") == []


def test_it_is_said_as_well_when_the_io_thread_is_at_work(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    other, others = given(peer, line, queue, "payment")
    del other
    ended_ones = [consumer]
    peer.do(lambda: peer.end_consumer_of("transfer"))
    line.events.wait(lambda: [handle for handle, _ in line.events.closed] == ended_ones, "end of the consumer")
    with line.wire._connection.settling.engine:
        lost = line.provider.settle([delivery.tag for delivery in deliveries], Outcome.ACCEPTED)
        kept = line.provider.settle([delivery.tag for delivery in others], Outcome.ACCEPTED)
        assert not lost.done()
    assert isinstance(lost.exception(30), ProviderError)
    assert kept.result(30) is None
    line.close()
    assert peer.told("accepted") == ["accepted payment"]


def test_a_transaction_with_something_of_it_is_rolled_back(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    tx = line.begin()
    line.send(queue, "booked", tx)
    ended(peer, line, consumer)
    line.provider.settle([delivery.tag for delivery in deliveries], Outcome.ACCEPTED, tx)
    with pytest.raises(ProviderError, match="slow consumer") as caught:
        line.end(tx)
    assert caught.value.kind is ErrorKind.ROLLED_BACK
    assert peer.told("committed", "rolled back") == ["rolled back []"]


def test_a_transaction_in_which_it_was_accepted_before_is_rolled_back_as_well(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    tx = line.begin()
    line.accept(deliveries, tx)
    ended(peer, line, consumer)
    with pytest.raises(ProviderError, match="slow consumer") as caught:
        line.end(tx)
    assert caught.value.kind is ErrorKind.ROLLED_BACK
    assert peer.told("committed") == []
    assert len(peer.told("rolled back")) == 1


def test_a_commit_during_which_the_broker_ends_a_consumer_is_in_doubt(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    line = dial(peer.url)
    _, deliveries = given(peer, line, queue, "transfer")
    tx = line.begin()
    line.accept(deliveries, tx)
    peer.before_commit = peer.end_consumers
    with pytest.raises(ProviderError, match=r"may come again.*slow consumer") as caught:
        line.end(tx)
    assert caught.value.kind is ErrorKind.IN_DOUBT


def test_a_session_that_was_opened_for_a_consumer_alone_ends_with_it(dial: Dial, queue: Address, until: Until) -> None:
    peer = AmqpPeer("ActiveMQ")
    line = dial(peer.url)
    line.session()
    before = peer.do(lambda: peer.sessions)
    consumer, _ = given(peer, line, queue, "transfer")
    assert peer.do(lambda: peer.sessions) == before + 1
    ended(peer, line, consumer)
    until(lambda: peer.do(lambda: peer.sessions) == before)
    line.close()
    peer.close()


def test_transactions_without_anything_of_it_are_committed(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    tx = line.begin()
    line.accept(deliveries, tx)
    line.end(tx)
    ended(peer, line, consumer)
    tx = line.begin()
    line.end(tx)
    assert peer.told("committed", "rolled back") == ["committed ['transfer']", "committed []"]


def test_what_is_said_of_a_consumer_that_we_have_released_is_no_fault(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    line = dial(peer.url)
    consumer, deliveries = given(peer, line, queue, "transfer")
    line.provider.release(consumer).result(30)
    # Not through the check of the contract, which forbids it.
    line.wire.settle([delivery.tag for delivery in deliveries], Outcome.ACCEPTED).result(30)
    assert peer.told("accepted") == []


def test_what_was_taken_back_is_known_until_the_consumer_is_released() -> None:
    closed = ClosedLinks()
    error = ProviderError(ErrorKind.RESOURCE, "slow consumer")
    closed.link(1, error, [10, 11])
    closed.link(2, error, [20])
    assert (closed.took_back(10), closed.took_back(10)) == (error, None)
    closed.forget(1)
    assert (closed.took_back(11), closed.took_back(20)) == (None, error)


def test_a_send_without_credit_is_taken_back_and_never_goes_out(peer: AmqpPeer, dial: Dial, queue: Address) -> None:
    peer.sender_credit = 0
    line = dial(peer.url)
    late, kept = line.post(queue, "late"), line.post(queue, "kept")
    line.provider.take_back(late)
    error = line.events.answer(late)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.TIMEOUT
    peer.do(lambda: [link.flow(10) for link in peer.senders])
    assert line.events.answer(kept) is None
    line.provider.take_back(kept)
    assert peer.do(lambda: list(peer.queue)) == ["kept"]


def test_a_send_that_was_written_is_not_taken_back(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    line.provider.take_back(token)
    steps.go_on(Delivery.ACCEPTED)
    assert line.events.answer(token) is None


@pytest.mark.parametrize(("credit", "code"), [(0, "timeout"), (1000, "in-doubt")])
def test_a_send_of_which_no_answer_comes_says_whether_it_was_made(peer: AmqpPeer, queue: Address, credit: int, code: str) -> None:
    peer.sender_credit = credit
    peer.on_transfer = lambda delivery: peer.queue.append(peer.body(delivery))
    with jmsapi.connection_factory(peer.url, send_timeout_ms=300, close_timeout_ms=500).create_connection() as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(queue.name))
        with pytest.raises(jmsapi.JMSException) as caught:
            producer.send(session.create_text_message("order"))
        assert caught.value.error_code == code
        peer.do(lambda: [link.flow(10) for link in peer.senders])
        session.create_producer(session.create_queue(queue.name))  # a round trip behind the credit
        assert peer.do(lambda: list(peer.queue)) == ([] if code == "timeout" else ["order"])


# ---- drains -------------------------------------------------------------------------------------------------------------
def test_a_consumer_does_not_end_before_the_answer_to_its_drain(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    """Artemis 2.56.0 answers on a channel that is none when consumer and session have ended by then."""
    peer.keeps_drains = True
    line = dial(peer.url)
    session = line.provider.open_session(transacted=False).result(30)
    consumer = line.provider.open_consumer(session, ConsumerSpec(queue)).result(30)
    line.provider.credit(consumer, 5)
    drained = line.provider.drain(consumer)
    until(lambda: peer.do(lambda: len(peer.drains)) > 0)
    ended = [line.provider.release(one) for one in (consumer, session)]
    time.sleep(0.2)
    assert len(peer.do(lambda: peer.consumers)) == 1
    peer.put("for nobody")
    peer.do(peer.answer_drains)
    for each in (drained, *ended):
        each.result(30)
    until(lambda: peer.do(lambda: peer.queue) == ["for nobody"])
    assert line.events.waiting(consumer) == []


@pytest.mark.parametrize("what", ["consumer", "producer"])
def test_a_session_does_not_end_before_the_answer_to_an_attach(
    what: str, peer: AmqpPeer, dial: Dial, queue: Address, until: Until
) -> None:
    """Artemis 2.56.0 frees such a link twice, and writes nothing more; a cancelled ``create_consumer`` did it."""
    line = dial(peer.url)
    line.session()
    before = peer.do(lambda: peer.sessions)
    session = line.provider.open_session(transacted=False).result(30)
    peer.keeps_attaches = True
    opened = (
        line.provider.open_consumer(session, ConsumerSpec(queue))
        if what == "consumer"
        else line.provider.open_producer(session, queue)
    )
    until(lambda: peer.do(lambda: len(peer.attaches)) > 0)
    ended = line.provider.release(session)
    line.provider.open_session(transacted=False).result(30)  # a round trip behind it
    assert peer.do(lambda: peer.sessions) == before + 2
    peer.do(peer.answer_attaches)
    ended.result(30)
    with pytest.raises(ProviderError) as caught:
        opened.result(30)
    assert caught.value.kind is ErrorKind.CLOSED
    until(lambda: peer.do(lambda: peer.sessions) == before + 1)


def test_a_stop_ends_a_drain_that_still_looks_for_messages(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    """The consumer of a cancelled ``receive_no_wait`` is closed: nobody waits for proof that the queue is empty."""
    peer.keeps_drains = True
    line = dial(peer.url)
    consumer = line.consumer(queue)
    line.provider.credit(consumer, 5)
    drained = line.provider.drain(consumer)
    until(lambda: peer.do(lambda: len(peer.drains)) > 0)
    time.sleep(0.3)  # so long an answer proves nothing
    stopped = line.provider.stop(consumer)
    peer.do(peer.answer_drains)
    for each in (drained, stopped):
        each.result(30)
    assert peer.do(lambda: len(peer.drains)) == 0


def test_a_session_more_than_the_peer_allows_is_refused_and_costs_nobody_else_anything(
    peer: AmqpPeer, dial: Dial, queue: Address, until: Until
) -> None:
    peer.channels = 3
    line = dial(peer.url)
    line.send(queue, "before")
    opened = [line.provider.open_session(transacted=False) for _ in range(6)]
    errors = [future.exception(30) for future in opened]
    assert [error for error in errors if error is None] == [None] * 2
    assert {error.kind for error in errors if isinstance(error, ProviderError)} == {ErrorKind.RESOURCE}
    line.send(queue, "after")
    line.provider.release(opened[0].result()).result(30)
    # The channel is free when the peer has answered.
    until(lambda: line.provider.open_session(transacted=False).exception(30) is None)
