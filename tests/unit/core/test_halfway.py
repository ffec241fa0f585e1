"""What fails or is interrupted halfway: nothing is consumed that was rolled back, nothing comes twice, nothing stays behind.

Spec: 4.4.7-2, 4.4.7-5, 4.4.11-1, 4.5.2-4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, cast

import pytest

import jmsapi
from jmsapi import Connection, JMSException, MessageFormatException, Session, TransactionRolledBackException, Xid
from jmsapi._core import waiting
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._emulation import stack
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    DONE,
    Capabilities,
    Delivery,
    Envelope,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    Provider,
    ProviderError,
    Tag,
    failed,
)
from jmsapi.testing import EmbeddedBroker
from jmsapi.xa import TMNOFLAGS, TMSUCCESS, XA_RBROLLBACK, XAException

WAIT_MS = 20_000
SHORT_MS = 200


class Halting(Exception):
    """What a signal's handler raises, to end a wait."""


class Bench(Forwarding):
    """The in-process broker, which does as AMQP brokers do: they give back by themselves what a rolled back transaction had."""

    refuse_commit = False
    """Roll back what the next commit is asked of, and say so."""
    unheard = False
    """Sends are not answered."""
    garbled = ""
    """The text whose messages nothing can be made of."""

    def __init__(self, below: Provider) -> None:
        super().__init__(below)
        self._accepted: dict[Handle, list[Tag]] = {}
        self._gone: set[Tag] = set()
        self.held: list[Any] = []
        self.consumers: list[Handle] = []

    def changed(self, capabilities: Capabilities) -> Capabilities:
        return replace(capabilities, rollback_returns=True)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        left = [tag for tag in tags if tag not in self._gone]
        if tx is not None:
            self._accepted.setdefault(tx, []).extend(left)
        return self.below.settle(left, outcome, tx, failures if len(left) == len(tags) else ()) if left else DONE

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        accepted = self._accepted.pop(tx, [])
        refused = commit and self.refuse_commit
        if commit and not refused:
            return self.below.end(tx, commit=True)
        self.refuse_commit = False
        ended = self.below.end(tx, commit=False)
        if accepted:
            self._gone |= set(accepted)
            self.below.settle(accepted, Outcome.FAILED)
        return failed(ProviderError(ErrorKind.ROLLED_BACK, "the transaction took too long")) if refused else ended

    def on_sent(self, results: Any) -> None:
        if self.unheard:
            self.held.extend(results)
        else:
            super().on_sent(results)

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        self.consumers.append(consumer)
        super().on_deliveries(consumer, [self._garble(delivery) for delivery in deliveries])

    def _garble(self, delivery: Delivery) -> Delivery:
        if not self.garbled or delivery.envelope.body != self.garbled:
            return delivery
        return Delivery(delivery.tag, cast("Envelope", Garbled(delivery.envelope)), delivery.delivery_count)


class Garbled:
    """An envelope of which not even the kind can be told."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope

    def __getattr__(self, name: str) -> Any:
        return getattr(self._envelope, name)

    @property
    def kind(self) -> MessageKind:
        raise ProviderError(ErrorKind.FORMAT, "bytes that are nothing")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Bench]:
    """Have each connection run over a bench; the benches are listed here."""
    benches: list[Bench] = []
    real = stack.build

    def build(make: Callable[[Any], Provider], *rest: Any) -> Provider:
        def wrapped(options: Any) -> Provider:
            benches.append(Bench(make(options)))
            return benches[-1]

        return real(wrapped, *rest)

    monkeypatch.setattr(stack, "build", build)
    return benches


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as one:
        yield one


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[Connection]:
    with jmsapi.connection_factory(broker.url).create_connection() as made:
        made.start()
        yield made


def text(message: jmsapi.Message | None) -> str | None:
    return None if message is None else message.get_body(str)


def left(broker: EmbeddedBroker, queue: str) -> list[str | None]:
    with jmsapi.connection_factory(broker.url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(queue))
        return [text(message) for message in iter(lambda: consumer.receive(SHORT_MS), None)]


def interrupt(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


# Rolling back


def test_what_was_to_be_rolled_back_is_in_no_later_commit_though_the_rollback_failed(
    broker: EmbeddedBroker, connection: Connection
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    for body in ("seven", "eight"):
        broker.queue("in").send(body)
    consumer = session.create_consumer(session.create_queue("in"))
    assert text(consumer.receive(WAIT_MS)) == "seven"
    session.create_producer(session.create_queue("out")).send(session.create_text_message("half of seven"))
    broker.faults.fail("rollback", nth=1, error="timeout")
    with pytest.raises(JMSException, match="roll back"):
        session.rollback()
    again = consumer.receive(WAIT_MS)
    assert text(again) == "seven", "it has to come again, and not be consumed by a commit that is about others"
    assert again is not None
    assert again.jms_redelivered
    session.commit()
    session.close()
    assert left(broker, "in") == ["eight"]
    assert left(broker, "out") == []


def test_a_rollback_that_waits_too_long_for_sends_rolls_back_all_the_same(broker: EmbeddedBroker, made: list[Bench]) -> None:
    with jmsapi.connection_factory(f"{broker.url}?send_timeout_ms=200").create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        for body in ("seven", "eight"):
            broker.queue("in").send(body)
        consumer = session.create_consumer(session.create_queue("in"))
        producer = session.create_producer(session.create_queue("out"))
        assert text(consumer.receive(WAIT_MS)) == "seven"
        made[0].unheard = True
        producer.send(session.create_text_message("half of seven"))
        with pytest.raises(JMSException, match=r"still not confirmed.*rolled back") as caught:
            session.rollback()
        assert caught.value.error_code == "timeout"
        made[0].unheard = False
        made[0].above.on_sent(made[0].held)
        assert text(consumer.receive(WAIT_MS)) == "seven"
        producer.send(session.create_text_message("seven"))
        session.commit()
    assert left(broker, "in") == ["eight"]
    assert left(broker, "out") == ["seven"]


# Committing


def test_what_a_refused_commit_had_received_comes_once(broker: EmbeddedBroker, made: list[Bench]) -> None:
    with jmsapi.connection_factory(broker.url).create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        broker.queue("in").send("seven")
        consumer = session.create_consumer(session.create_queue("in"))
        assert text(consumer.receive(WAIT_MS)) == "seven"
        made[0].refuse_commit = True
        with pytest.raises(TransactionRolledBackException, match="too long"):
            session.commit()
        assert text(consumer.receive(WAIT_MS)) == "seven"
        session.commit()
        assert consumer.receive(SHORT_MS) is None
    assert left(broker, "in") == []


def test_a_commit_for_which_no_transaction_can_be_begun_can_be_tried_again(
    broker: EmbeddedBroker, connection: Connection
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    broker.queue("in").send("seven")
    consumer = session.create_consumer(session.create_queue("in"))
    assert text(consumer.receive(WAIT_MS)) == "seven"
    broker.faults.fail("begin", nth=1)
    with pytest.raises(JMSException, match="begin a transaction"):
        session.commit()
    session.rollback()
    assert text(consumer.receive(WAIT_MS)) == "seven", "nothing has happened, so it is still there to be rolled back"
    session.commit()
    session.close()
    assert left(broker, "in") == []


def test_a_commit_that_is_interrupted_hands_nothing_out_again(
    broker: EmbeddedBroker, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    broker.queue("in").send("seven")
    consumer = session.create_consumer(session.create_queue("in"))
    assert text(consumer.receive(WAIT_MS)) == "seven"
    session.create_producer(session.create_queue("out")).send(session.create_text_message("booked"))
    with monkeypatch.context() as patched:
        patched.setattr("jmsapi._core.waiting.AnswerWait.block", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.commit()
    session.rollback()
    # The broker was asked to commit before the wait for its answer was interrupted.
    assert consumer.receive(SHORT_MS) is None
    session.close()
    assert left(broker, "in") == []
    assert left(broker, "out") == ["booked"]


def test_what_a_signals_handler_raises_in_a_wait_is_not_taken_for_the_providers() -> None:
    class Interrupted(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            raise Halting

    with pytest.raises(Halting):
        waiting.result(Interrupted(), 1, "wait")
    refused: Future[None] = Future()
    refused.set_exception(Halting())
    with pytest.raises(JMSException, match="Halting"):
        waiting.result(refused, 1, "wait")


# Acknowledging


def test_an_acknowledgement_that_failed_does_not_succeed_by_being_asked_for_again(
    broker: EmbeddedBroker, connection: Connection
) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    broker.queue("in").send("seven")
    consumer = session.create_consumer(session.create_queue("in"))
    message = consumer.receive(WAIT_MS)
    assert message is not None
    broker.faults.fail("acknowledge", nth=1)
    with pytest.raises(JMSException, match="goes wrong"):
        message.acknowledge()
    for _ in range(2):
        with pytest.raises(JMSException, match=r"failed, acknowledge number 1.*comes again") as caught:
            message.acknowledge()
        assert caught.value.error_code == "redelivered"
    broker.queue("in").send("eight")
    later = consumer.receive(WAIT_MS)
    assert later is not None
    later.acknowledge()
    session.close()
    assert left(broker, "in") == ["seven"]


# Consumers that the broker ends


@pytest.mark.parametrize("mode", [Session.SESSION_TRANSACTED, Session.CLIENT_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE])
def test_what_came_by_a_consumer_that_the_broker_has_ended_is_neither_handed_out_nor_consumed(
    broker: EmbeddedBroker, made: list[Bench], mode: int
) -> None:
    factory = jmsapi.connection_factory(broker.url)
    with factory.create_connection() as connection, factory.create_connection() as others:
        connection.start()
        others.start()
        session = connection.create_session(mode)
        for body in ("seven", "eight"):
            broker.queue("in").send(body)
        consumer = session.create_consumer(session.create_queue("in"))
        message = consumer.receive(WAIT_MS)
        assert text(message) == "seven"
        assert message is not None
        producer = session.create_producer(session.create_queue("out"))
        if mode == Session.SESSION_TRANSACTED:
            producer.send(session.create_text_message("booked seven"))
        bench, handle = made[0], made[0].consumers[0]
        bench.below.release(handle).result(20)
        bench.above.on_closed(handle, ProviderError(ErrorKind.RESOURCE, "too slow"))
        # Others have it now.
        other = others.create_session()
        expected = ["eight"] if mode == Session.AUTO_ACKNOWLEDGE else ["seven", "eight"]
        taker = other.create_consumer(other.create_queue("in"))
        assert sorted(str(text(taker.receive(WAIT_MS))) for _ in expected) == sorted(expected)
        with pytest.raises(JMSException, match="too slow"):
            consumer.receive(WAIT_MS)
        if mode == Session.SESSION_TRANSACTED:
            with pytest.raises(TransactionRolledBackException, match="too slow"):
                session.commit()
        elif mode == Session.CLIENT_ACKNOWLEDGE:
            with pytest.raises(JMSException, match="too slow"):
                message.acknowledge()
        consumer.close()
    assert left(broker, "out") == []


def test_the_end_of_one_consumer_says_nothing_of_what_came_by_another(broker: EmbeddedBroker, made: list[Bench]) -> None:
    with jmsapi.connection_factory(broker.url).create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        broker.queue("in").send("seven")
        message = session.create_consumer(session.create_queue("in")).receive(WAIT_MS)
        assert message is not None
        idle = cast("ConsumerImpl", session.create_consumer(session.create_queue("elsewhere")))
        made[0].above.on_closed(idle.handle, ProviderError(ErrorKind.RESOURCE, "too slow"))
        message.acknowledge()
    assert left(broker, "in") == []


def test_a_branch_whose_consumer_the_broker_has_ended_can_only_be_rolled_back(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    xid = Xid(1, b"global", b"branch")
    factory = cast("jmsapi.XAConnectionFactory", jmsapi.connection_factory(broker.url))
    with factory.create_xa_context() as context:
        resource = context.xa_resource
        resource.start(xid, TMNOFLAGS)
        broker.queue("in").send("seven")
        with monkeypatch.context() as patched:
            consumers: list[ConsumerImpl] = []
            opened = ConsumerImpl.open

            def open_(consumer: ConsumerImpl) -> None:
                consumers.append(consumer)
                opened(consumer)

            patched.setattr(ConsumerImpl, "open", open_)
            receiver = context.create_consumer(context.create_queue("in"))
        assert receiver.receive_body(str, WAIT_MS) == "seven"
        context.create_producer().send(context.create_queue("out"), "booked seven")
        consumers[0].broke(ProviderError(ErrorKind.RESOURCE, "too slow"))
        with pytest.raises(XAException, match="too slow") as caught:
            resource.end(xid, TMSUCCESS)
        assert caught.value.xa_code == XA_RBROLLBACK
        resource.rollback(xid)
    assert left(broker, "in") == ["seven"]
    assert left(broker, "out") == []


# Messages that nothing can be made of


@pytest.mark.parametrize("mode", [Session.SESSION_TRANSACTED, Session.CLIENT_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE])
@pytest.mark.parametrize("prefetch", [0, 100])
def test_an_unreadable_message_is_told_and_is_not_consumed_by_what_is_said_of_others(
    broker: EmbeddedBroker, made: list[Bench], mode: int, prefetch: int
) -> None:
    with jmsapi.connection_factory(f"{broker.url}?prefetch={prefetch}&max_redeliveries=1").create_connection() as connection:
        made[0].garbled = "noise"
        connection.start()
        session = connection.create_session(mode)
        consumer = session.create_consumer(session.create_queue("in"))
        broker.queue("in").send("noise")
        with pytest.raises(MessageFormatException, match="bytes that are nothing"):
            consumer.receive(WAIT_MS)
        if mode == Session.SESSION_TRANSACTED:
            session.commit()
        session.close()
        assert left(broker, "in") == ["noise"]


@pytest.mark.parametrize("prefetch", [0, 100])
def test_a_listener_gets_what_comes_behind_an_unreadable_message_and_the_exception_listener_hears_of_it(
    broker: EmbeddedBroker, made: list[Bench], prefetch: int
) -> None:
    with jmsapi.connection_factory(f"{broker.url}?prefetch={prefetch}&max_redeliveries=1").create_connection() as connection:
        made[0].garbled = "noise"
        told: SimpleQueue[JMSException] = SimpleQueue()
        connection.exception_listener = told.put
        session = connection.create_session()
        heard: Future[str | None] = Future()
        consumer = session.create_consumer(session.create_queue("in"))
        consumer.message_listener = lambda message: heard.set_result(text(message))
        broker.queue("in").send("noise")
        broker.queue("in").send("eight")
        connection.start()
        assert heard.result(20) == "eight"
        # Once, and once again before it is rejected.
        assert [type(told.get(timeout=20)) for _ in range(2)] == [MessageFormatException] * 2
        assert told.empty()


# Messages that expire here


@pytest.mark.parametrize("wait", [True, False])
def test_a_message_that_expired_here_does_not_use_up_the_receive_that_asks_for_one(broker: EmbeddedBroker, wait: bool) -> None:
    with jmsapi.connection_factory(f"{broker.url}?prefetch=0").create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        producer = session.create_producer(session.create_queue("in"))
        producer.send(session.create_text_message("short"), time_to_live_ms=1_500)
        producer.send(session.create_text_message("payment"))
        consumer = session.create_consumer(session.create_queue("in"))
        assert text(consumer.receive(WAIT_MS)) == "short"
        session.recover()
        broker.clock.advance(2)
        assert text(consumer.receive(WAIT_MS) if wait else consumer.receive_no_wait()) == "payment"


# Closing


def test_a_closed_consumer_holds_no_subscription_for_what_dups_ok_has_not_acknowledged_yet(broker: EmbeddedBroker) -> None:
    with jmsapi.connection_factory(broker.url, client_id="me").create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.DUPS_OK_ACKNOWLEDGE)
        topic = session.create_topic("news")
        consumer = session.create_durable_consumer(topic, "mine")
        for number in range(3):
            session.create_producer(topic).send(session.create_text_message(str(number)))
        assert text(consumer.receive(WAIT_MS)) == "0"
        consumer.close()
        again = connection.create_session().create_durable_consumer(topic, "mine")
        assert text(again.receive(WAIT_MS)) == "1"


def test_an_interrupted_close_leaves_nothing_at_the_broker(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = jmsapi.connection_factory(broker.url).create_connection()
    connection.start()
    session = connection.create_session()
    broker.queue("in").send("seven")
    session.create_consumer(session.create_queue("in"))
    with monkeypatch.context() as patched:
        patched.setattr("jmsapi._core.session_parts.SessionParts.quiesce_steps", interrupt)
        with pytest.raises(KeyboardInterrupt):
            connection.close()
    connection.close()
    assert left(broker, "in") == ["seven"]


def test_an_interrupted_send_keeps_no_later_commit_waiting(broker: EmbeddedBroker, made: list[Bench]) -> None:
    with jmsapi.connection_factory(broker.url).create_connection() as connection:
        session = connection.create_session(Session.SESSION_TRANSACTED)
        producer = session.create_producer(session.create_queue("out"))
        made[0].send = interrupt  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            producer.send(session.create_text_message("seven"))
        del made[0].send
        producer.send(session.create_text_message("eight"))
        session.commit()
    assert left(broker, "out") == ["eight"]


def test_a_begin_that_is_interrupted_keeps_no_later_transaction_out(broker: EmbeddedBroker, made: list[Bench]) -> None:
    with jmsapi.connection_factory(broker.url).create_connection() as connection:
        session = connection.create_session(jmsapi.Session.SESSION_TRANSACTED)
        producer = session.create_producer(session.create_queue("out"))
        begin = made[0].begin

        def begin_and_interrupt(of: Handle) -> Any:
            begin(of)
            raise KeyboardInterrupt

        made[0].begin = begin_and_interrupt  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            producer.send(session.create_text_message("seven"))
        del made[0].begin
        producer.send(session.create_text_message("eight"))
        session.commit()
    assert left(broker, "out") == ["eight"]


def test_consumers_may_be_made_while_the_connection_is_stopped_and_started(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("in")
    ended = False
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def stop_and_start() -> None:
        while not ended:
            connection.stop()
            connection.start()

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(stop_and_start)
        try:
            for _ in range(3_000):
                session.create_consumer(queue)
        finally:
            ended = True
            sys.setswitchinterval(interval)
        busy.result(20)
