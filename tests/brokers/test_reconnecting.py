"""What holds when the link to a real broker is lost and made again: each line of docs/reconnecting.md, on both wires.

The link goes through a fault proxy, so that it is cut, stalled and refused while the broker lives.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

import jmsapi
from jmsapi import CompletionListener, ConnectionListener, JMSException, Session
from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

PAIRS: list[tuple[Wire, BrokerKind]] = [("amqp", "artemis"), ("stomp", "classic"), ("amqp", "classic"), ("stomp", "artemis")]
WAIT_MS = 60_000
WAIT_S = 60.0
QUIET_MS = 500

pytestmark = pytest.mark.broker


class Told(ConnectionListener):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.interruptions = 0
        self.resumptions = 0
        self.failures: list[JMSException] = []
        self._changed = threading.Condition()

    def on_interrupted(self, cause: JMSException) -> None:
        with self._changed:
            self.interruptions += 1
            self._changed.notify_all()

    def on_attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        with self._changed:
            self.failures.append(cause)
            self._changed.notify_all()

    def on_resumed(self, url: str) -> None:
        with self._changed:
            self.resumptions += 1
            self._changed.notify_all()

    def wait_for(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(ready, WAIT_S)


class Answered(CompletionListener):
    """Counts the answers to sends."""

    def __init__(self) -> None:
        self._good = threading.Semaphore(0)

    def on_completion(self, message: jmsapi.Message) -> None:
        self._good.release()

    def on_exception(self, message: jmsapi.Message, exception: Exception) -> None:
        raise AssertionError(f"the send failed: {exception}")

    def wait_for(self, n: int) -> None:
        for _ in range(n):
            assert self._good.acquire(timeout=WAIT_S)


@dataclass
class Bench:
    """A broker, a way to it that breaks, and a connection that does not."""

    wire: Wire
    kind: BrokerKind
    proxy: FaultProxy
    safe: jmsapi.Connection
    url: str
    name: str

    def factory(self, **options: Any) -> jmsapi.ConnectionFactory:
        given = {"checked": True, "max_reconnect_delay_ms": 200, **options}
        if self.wire == "stomp" and self.kind == "artemis":
            given["emulate"] = "tx"
        return jmsapi.connection_factory(f"failover:({self.proxy.url})", **given)

    def put(self, text: str, *, topic: bool = False) -> None:
        with self.safe.create_session() as session:
            where = session.create_topic(self.name) if topic else session.create_queue(self.name)
            session.create_producer(where).send(session.create_text_message(text))

    def take_all(self) -> list[jmsapi.Message]:
        """Empty the queue, by a marker behind what is there."""
        self.put("the marker")
        with self.safe.create_session() as session:
            consumer = session.create_consumer(session.create_queue(self.name))
            found: list[jmsapi.Message] = []
            while True:
                message = consumer.receive(WAIT_MS)
                assert message is not None
                if text_of(message) == "the marker":
                    return found
                found.append(message)

    def break_off(self) -> None:
        self.proxy.refuse_new()
        self.proxy.cut()


@pytest.fixture(params=PAIRS, ids=["-".join(pair) for pair in PAIRS])
def bench(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Iterator[Bench]:
    """Give each wire of both brokers."""
    wire, kind = request.param
    broker: Broker = request.getfixturevalue(kind)
    if wire not in broker.wires:
        leave_out(f"{kind} was given without {wire}")
    url = broker.url(wire)
    with FaultProxy(url) as proxy, jmsapi.connection_factory(url).create_connection() as safe:
        safe.start()
        yield Bench(wire, kind, proxy, safe, url, f"jmsapi.again.{uuid.uuid4().hex}")


def text_of(message: jmsapi.Message | None) -> str | None:
    assert isinstance(message, jmsapi.TextMessage)
    return message.text


def failure(future: Future[Any]) -> JMSException:
    error = future.exception(WAIT_S)
    assert isinstance(error, JMSException)
    return error


def test_sessions_consumers_producers_and_listeners_go_on_after_a_cut(bench: Bench) -> None:
    got: list[str | None] = []
    arrived = threading.Condition()
    told = Told()

    def listen(message: jmsapi.Message) -> None:
        with arrived:
            got.append(text_of(message))
            arrived.notify_all()

    with bench.factory().create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        listening, sending = connection.create_session(), connection.create_session()
        queue = sending.create_queue(bench.name)
        listening.create_consumer(queue, "n > 0").message_listener = listen
        producer = sending.create_producer(queue)
        for number in range(1, 4):
            for n in (-number, number):
                message = sending.create_text_message(f"message {n}")
                message.set_int_property("n", n)
                producer.send(message)
            with arrived:
                assert arrived.wait_for(lambda number=number: f"message {number}" in got, WAIT_S)
            bench.proxy.cut("fin" if number % 2 else "rst")
            told.wait_for(lambda number=number: told.resumptions == number)  # type: ignore[misc]
    # A cut may overtake the acknowledgement of the message before it; that one then comes again.
    assert list(dict.fromkeys(got)) == ["message 1", "message 2", "message 3"]
    assert told.interruptions == 3
    left = [text_of(message) for message in bench.take_all()]
    assert [text for text in left if text not in got] == ["message -1", "message -2", "message -3"]


def test_heartbeats_go_on_after_a_cut(bench: Bench) -> None:
    beats = {"heartbeat_ms": 1000} if bench.wire == "stomp" else {"idle_timeout_ms": 2000}
    told = Told()
    with bench.factory(**beats).create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        bench.proxy.cut()
        told.wait_for(lambda: told.resumptions == 1)
        # Longer than either side waits for a sign of life.
        quiet = threading.Event()
        assert not quiet.wait(6)
        assert told.interruptions == 1
        # The other way round: a link that falls silent is noticed, and made again.
        bench.proxy.stall()
        told.wait_for(lambda: told.interruptions == 2)
        bench.proxy.heal()
        told.wait_for(lambda: told.resumptions == 2)
        connection.create_session().close()


def test_a_durable_subscription_goes_on_and_gets_what_was_published_meanwhile(bench: Bench) -> None:
    told = Told()
    with bench.factory(client_id=bench.name, client_id_grace_ms=60_000).create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        session = connection.create_session()
        consumer = session.create_durable_consumer(session.create_topic(bench.name), "sub")
        bench.put("one", topic=True)
        assert text_of(consumer.receive(WAIT_MS)) == "one"
        bench.break_off()
        told.wait_for(lambda: bool(told.failures))
        bench.put("two", topic=True)
        bench.proxy.heal()
        found = text_of(consumer.receive(WAIT_MS))
        # The acknowledgement may have been lost with the link; then that message comes again, before the next one.
        assert (text_of(consumer.receive(WAIT_MS)) if found == "one" else found) == "two"
        consumer.close()
        session.unsubscribe("sub")


def test_a_shared_subscription_goes_on(bench: Bench) -> None:
    if not jmsapi.capabilities(bench.safe).shared_durable_subscription:
        with bench.factory().create_connection() as connection, pytest.raises(JMSException):
            session = connection.create_session()
            session.create_shared_durable_consumer(session.create_topic(bench.name), "shared")
        return
    told = Told()
    with bench.factory().create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        session = connection.create_session()
        consumer = session.create_shared_durable_consumer(session.create_topic(bench.name), bench.name)
        bench.break_off()
        told.wait_for(lambda: bool(told.failures))
        bench.put("kept", topic=True)
        bench.proxy.heal()
        assert text_of(consumer.receive(WAIT_MS)) == "kept"
        consumer.close()
        session.unsubscribe(bench.name)


def test_what_came_before_the_break_cannot_be_acknowledged_and_comes_again(bench: Bench) -> None:
    bench.put("a")
    told = Told()
    with bench.factory().create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer(session.create_queue(bench.name))
        first = consumer.receive(WAIT_MS)
        assert first is not None
        bench.proxy.cut()
        told.wait_for(lambda: told.interruptions == 1)
        with pytest.raises(JMSException) as raised:
            first.acknowledge()
        assert raised.value.error_code == "redelivered"
        again = consumer.receive(WAIT_MS)
        assert text_of(again) == "a"
        assert again is not None
        if (bench.wire, bench.kind) != ("amqp", "artemis"):
            assert again.jms_redelivered
        again.acknowledge()
    assert bench.take_all() == []


def test_an_automatic_acknowledgement_that_was_lost_brings_the_message_again(bench: Bench) -> None:
    bench.put("a")
    told = Told()
    with bench.factory().create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(bench.name))
        assert text_of(consumer.receive(WAIT_MS)) == "a"
        # An automatic acknowledgement has no answer; what is answered after it says that it has arrived.
        session.create_consumer(session.create_queue(f"{bench.name}.other")).close()
        bench.put("b")
        bench.proxy.stall("to_broker")
        assert text_of(consumer.receive(WAIT_MS)) == "b"
        bench.proxy.cut()
        bench.proxy.heal()
        told.wait_for(lambda: told.resumptions == 1)
        again = consumer.receive(WAIT_MS)
        assert text_of(again) == "b"
    assert bench.take_all() == []


def test_a_transaction_that_spans_a_break_rolls_back(bench: Bench) -> None:
    bench.put("in")
    told = Told()
    with bench.factory().create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        queue, out = session.create_queue(bench.name), session.create_queue(f"{bench.name}.out")
        consumer, producer = session.create_consumer(queue), session.create_producer(out)
        for attempt in ("first", "second"):
            assert text_of(consumer.receive(WAIT_MS)) == "in"
            producer.send(session.create_text_message(attempt))
            if attempt == "first":
                bench.proxy.cut()
                told.wait_for(lambda: told.interruptions == 1)
                with pytest.raises(jmsapi.TransactionRolledBackException):
                    session.commit()
        session.commit()
        results = connection.create_session().create_consumer(out)
        assert text_of(results.receive(WAIT_MS)) == "second"
        assert results.receive(QUIET_MS) is None
    assert bench.take_all() == []


def test_a_commit_whose_answer_is_lost_is_in_doubt_and_whole(bench: Bench) -> None:
    with bench.factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        session = connection.create_session(Session.SESSION_TRANSACTED)
        producer = session.create_producer(session.create_queue(bench.name))
        answered = Answered()
        for number in range(3):
            producer.send(session.create_text_message(str(number)), completion_listener=answered)
        # A commit waits for the answers to the sends before it asks for anything.
        answered.wait_for(3)
        bench.proxy.stall("to_client")
        before = bench.proxy.passed("to_broker")
        committing = pool.submit(session.commit)
        assert bench.proxy.wait_for(lambda: bench.proxy.passed("to_broker") > before, WAIT_S)
        bench.proxy.cut()
        bench.proxy.heal()
        assert failure(committing).error_code in ("in-doubt", "transaction-rolled-back")
        producer.send(session.create_text_message("next"))
        session.commit()
    found = [text_of(message) for message in bench.take_all()]
    # The broker may come to the old link's commit after the new link's.
    assert sorted(found) in (["0", "1", "2", "next"], ["next"])
    assert [text for text in found if text != "next"] in (["0", "1", "2"], [])


def unanswered_send(bench: Bench, **options: Any) -> Future[None]:
    with bench.factory(**options).create_connection() as connection, ThreadPoolExecutor(1) as pool:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(bench.name))
        producer.send(session.create_text_message("before"))
        bench.proxy.stall("to_client")
        sending = pool.submit(producer.send, session.create_text_message("once"))
        # It is in the queue, and its sender does not know.
        with bench.safe.create_session() as session:
            consumer = session.create_consumer(session.create_queue(bench.name))
            assert text_of(consumer.receive(WAIT_MS)) == "before"
            assert text_of(consumer.receive(WAIT_MS)) == "once"
        bench.proxy.cut()
        bench.proxy.heal()
        sending.exception(WAIT_S)
        return sending


def test_a_send_that_was_not_confirmed_is_in_doubt(bench: Bench) -> None:
    assert failure(unanswered_send(bench)).error_code == "in-doubt"
    assert bench.take_all() == []


def test_a_send_that_was_not_confirmed_is_sent_again_if_asked_for_exactly_where_the_broker_detects_duplicates(
    bench: Bench,
) -> None:
    assert unanswered_send(bench, resend_unconfirmed=True).exception() is None
    again = bench.take_all()
    if bench.kind == "artemis":
        assert again == []
    else:
        assert [text_of(message) for message in again] == ["once"]
        assert again[0].get_boolean_property("jmsapi_resent")


def test_a_temporary_queue_is_gone_or_made_again(bench: Bench) -> None:
    for again in (False, True):
        told = Told()
        with bench.factory(recreate_temporary=again).create_connection() as connection:
            jmsapi.set_connection_listener(connection, told)
            connection.start()
            session = connection.create_session()
            queue = session.create_temporary_queue()
            consumer = session.create_consumer(queue)
            bench.proxy.cut()
            told.wait_for(lambda told=told: told.resumptions == 1)  # type: ignore[misc]
            if not again:
                with pytest.raises(jmsapi.InvalidDestinationException):
                    consumer.receive(WAIT_MS)
                continue
            asking = session.create_text_message("?")
            asking.jms_reply_to = queue
            session.create_producer(session.create_queue(bench.name)).send(asking)
            with bench.safe.create_session() as answering:
                asked = answering.create_consumer(answering.create_queue(bench.name)).receive(WAIT_MS)
                assert asked is not None
                answering.create_producer(asked.jms_reply_to).send(answering.create_text_message("!"))
            assert text_of(consumer.receive(WAIT_MS)) == "!"


def test_a_pending_receive_waits_over_the_break(bench: Bench) -> None:
    with bench.factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(bench.name))
        waiting = pool.submit(consumer.receive, WAIT_MS)
        bench.proxy.cut()
        bench.put("at last")
        assert text_of(waiting.result(WAIT_S)) == "at last"
        bench.break_off()
        begun = time.monotonic()
        assert consumer.receive(1000) is None
        assert 0.9 < time.monotonic() - begun < 20


def test_a_client_id_held_by_our_own_dead_link_is_taken_back(bench: Bench) -> None:
    beats = {"heartbeat_ms": 1000} if bench.wire == "stomp" else {"idle_timeout_ms": 4000}
    if (bench.wire, bench.kind) == ("amqp", "artemis"):
        pytest.skip("Artemis goes by its own idle time of a minute, whatever a client says of itself")
    told = Told()
    with bench.factory(client_id=bench.name, client_id_grace_ms=60_000, **beats).create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        # The broker is not told, and holds the client id until it misses our signs of life.
        bench.proxy.half_open("client")
        told.wait_for(lambda: told.resumptions == 1)
        assert all(isinstance(error, jmsapi.InvalidClientIDException) for error in told.failures)
        connection.create_session().close()


def test_a_wrong_password_ends_the_attempts_at_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jmsapi.reconnect")
    begun = time.monotonic()
    with pytest.raises(jmsapi.JMSSecurityException):
        bench.factory(password="wrong").create_connection()
    assert time.monotonic() - begun < 20
    assert [text.partition(":")[0] for text in caplog.messages if text.startswith("attempt")] == ["attempt 1"]
    # Classic with much to do now and then closes a connection over STOMP without saying why, and is asked once more.
    assert bench.proxy.accepted <= (2 if (bench.wire, bench.kind) == ("stomp", "classic") else 1)


def test_another_server_of_the_list_takes_over(bench: Bench) -> None:
    told = Told()
    with FaultProxy(bench.url) as second:
        url = f"failover:({bench.proxy.url},{second.url})?maxReconnectDelay=200"
        with jmsapi.connection_factory(url, checked=True).create_connection() as connection:
            jmsapi.set_connection_listener(connection, told)
            session = connection.create_session()
            producer = session.create_producer(session.create_queue(bench.name))
            assert second.accepted == 0
            bench.break_off()
            told.wait_for(lambda: told.resumptions == 1)
            producer.send(session.create_text_message("by some link"))
    assert [text_of(message) for message in bench.take_all()] == ["by some link"]


def test_exhausted_attempts_are_told_once_and_end_everything(bench: Bench) -> None:
    problems: list[JMSException] = []
    heard = threading.Event()

    def listen(problem: JMSException) -> None:
        problems.append(problem)
        heard.set()

    with bench.factory(max_reconnect_attempts=2).create_connection() as connection, ThreadPoolExecutor(1) as pool:
        connection.exception_listener = listen  # type: ignore[assignment]
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(bench.name))
        waiting = pool.submit(consumer.receive)
        bench.break_off()
        assert heard.wait(WAIT_S)
        assert "tried 2 times" in str(failure(waiting))
        with pytest.raises(JMSException, match="tried 2 times"):
            session.create_consumer(session.create_queue(bench.name))
    assert len(problems) == 1


def test_close_returns_within_its_deadline_at_any_time(bench: Bench) -> None:
    for fault in (bench.break_off, bench.proxy.stall, bench.proxy.cut):
        connection = bench.factory(close_timeout_ms=2000).create_connection()
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        session.create_consumer(session.create_queue(bench.name))
        session.create_producer(session.create_queue(bench.name)).send(session.create_text_message("rolled back"))
        fault()
        begun = time.monotonic()
        connection.close()
        assert time.monotonic() - begun < 12
        bench.proxy.heal()
