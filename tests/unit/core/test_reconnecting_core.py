"""What an application sees when a link is lost and made again, on the in-process broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import jmsapi
from jmsapi import ConnectionListener, JMSException, Session
from jmsapi.spi import ErrorKind, ProviderError

from .cut import Factory, Line, a_line

Bench = tuple[Line, Factory, jmsapi.Connection]
WAIT_MS = 20_000


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Give a line that can be cut."""
    with a_line() as made:
        yield made


class Told(ConnectionListener):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.interruptions: list[JMSException] = []
        self.failures: list[tuple[str, int]] = []
        self.resumptions: list[str] = []
        self._changed = threading.Condition()

    def on_interrupted(self, cause: JMSException) -> None:
        self._note(lambda: self.interruptions.append(cause))

    def on_attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        self._note(lambda: self.failures.append((url, attempt)))

    def on_resumed(self, url: str) -> None:
        self._note(lambda: self.resumptions.append(url))

    def _note(self, note: Callable[[], None]) -> None:
        with self._changed:
            note()
            self._changed.notify_all()

    def wait_for(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(ready, 20)


def put(safe: jmsapi.Connection, queue: str, text: str) -> None:
    """Send by the connection that nothing cuts."""
    with safe.create_session() as session:
        session.create_producer(session.create_queue(queue)).send(session.create_text_message(text))


def text_of(message: jmsapi.Message | None) -> str | None:
    assert isinstance(message, jmsapi.TextMessage)
    return message.text


def test_a_listener_goes_on_after_a_break(bench: Bench) -> None:
    line, factory, safe = bench
    got: list[str | None] = []
    arrived = threading.Event()

    def listen(message: jmsapi.Message) -> None:
        got.append(text_of(message))
        arrived.set()

    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session()
        session.create_consumer(session.create_queue("q")).message_listener = listen
        line.cut()
        put(safe, "q", "after the break")
        assert arrived.wait(20)
    assert got == ["after the break"]


def test_a_pending_receive_waits_over_the_break_and_keeps_its_own_deadline(bench: Bench) -> None:
    line, factory, safe = bench
    with factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue("q"))
        waiting = pool.submit(consumer.receive, WAIT_MS)
        line.cut()
        put(safe, "q", "over the break")
        assert text_of(waiting.result(20)) == "over the break"
        line.break_off()
        begun = time.monotonic()
        assert consumer.receive(200) is None
        assert 0.15 < time.monotonic() - begun < 10


@pytest.mark.parametrize("prefetch", [0, 1])
def test_receive_no_wait_without_a_link_finds_nothing_and_does_not_wait(bench: Bench, prefetch: int) -> None:
    line, factory, safe = bench
    with factory(prefetch=prefetch).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue("q"))
        line.break_off()
        assert consumer.receive_no_wait() is None
        assert consumer.receive(50) is None
        line.heal()
        put(safe, "q", "back")
        assert text_of(consumer.receive(WAIT_MS)) == "back"


def test_an_acknowledgement_of_what_came_before_the_break_is_refused_and_the_message_comes_again(bench: Bench) -> None:
    line, factory, safe = bench
    put(safe, "q", "a")
    put(safe, "q", "b")
    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer(session.create_queue("q"))
        first = consumer.receive(WAIT_MS)
        assert first is not None
        line.cut()
        with pytest.raises(JMSException) as raised:
            first.acknowledge()
        assert raised.value.error_code == "redelivered"
        again = consumer.receive(WAIT_MS)
        assert text_of(again) == "a"
        assert again is not None
        again.acknowledge()
        last = consumer.receive(WAIT_MS)
        assert text_of(last) == "b"
        assert last is not None
        last.acknowledge()
        assert consumer.receive(50) is None


def test_a_context_says_once_that_what_it_is_to_acknowledge_was_lost(bench: Bench) -> None:
    line, factory, safe = bench
    put(safe, "q", "a")
    with factory().create_context(jmsapi.JMSContext.CLIENT_ACKNOWLEDGE) as context:
        consumer = context.create_consumer(context.create_queue("q"))
        assert consumer.receive_body(str, WAIT_MS) == "a"
        line.cut()
        with pytest.raises(jmsapi.JMSRuntimeException) as raised:
            context.acknowledge()
        assert raised.value.error_code == "redelivered"
        assert consumer.receive_body(str, WAIT_MS) == "a"
        context.acknowledge()


def test_an_acknowledgement_covers_what_came_by_the_link_of_its_message_and_nothing_before_it(bench: Bench) -> None:
    line, factory, safe = bench
    put(safe, "q", "a")
    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        consumer, other = (session.create_consumer(session.create_queue(name)) for name in ("q", "other"))
        first = consumer.receive(WAIT_MS)
        assert first is not None
        line.cut()
        put(safe, "other", "b")
        later = other.receive(WAIT_MS)
        assert later is not None
        later.acknowledge()
        with pytest.raises(JMSException) as raised:
            first.acknowledge()
        assert raised.value.error_code == "redelivered"
        assert text_of(consumer.receive(WAIT_MS)) == "a"
    assert texts_in(safe, "other") == []
    assert texts_in(safe, "q") == ["a"]


def test_acknowledging_again_what_was_acknowledged_before_the_break_is_harmless(bench: Bench) -> None:
    line, factory, safe = bench
    put(safe, "q", "a")
    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        message = session.create_consumer(session.create_queue("q")).receive(WAIT_MS)
        assert message is not None
        message.acknowledge()
        line.cut()
        message.acknowledge()


def test_a_transaction_with_a_receive_that_spans_a_break_rolls_back_and_its_message_comes_again(bench: Bench) -> None:
    line, factory, safe = bench
    put(safe, "q", "a")
    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        consumer = session.create_consumer(session.create_queue("q"))
        assert text_of(consumer.receive(WAIT_MS)) == "a"
        line.cut()
        with pytest.raises(jmsapi.TransactionRolledBackException):
            session.commit()
        assert text_of(consumer.receive(WAIT_MS)) == "a"
        session.commit()
        assert consumer.receive(50) is None


def test_a_transaction_with_a_send_that_spans_a_break_rolls_back_and_nothing_of_it_is_sent(bench: Bench) -> None:
    line, factory, safe = bench
    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        queue = session.create_queue("q")
        producer = session.create_producer(queue)
        producer.send(session.create_text_message("before"))
        line.cut()
        producer.send(session.create_text_message("after"))
        with pytest.raises(jmsapi.TransactionRolledBackException):
            session.commit()
        producer.send(session.create_text_message("anew"))
        session.commit()
        assert texts_in(safe, "q") == ["anew"]


def texts_in(safe: jmsapi.Connection, queue: str) -> list[str | None]:
    with safe.create_session() as session:
        consumer = session.create_consumer(session.create_queue(queue))
        return [text_of(message) for message in iter(lambda: consumer.receive(100), None)]


def test_an_empty_transaction_outlives_a_break(bench: Bench) -> None:
    line, factory, safe = bench
    with factory().create_connection() as connection:
        session = connection.create_session(Session.SESSION_TRANSACTED)
        producer = session.create_producer(session.create_queue("q"))
        producer.send(session.create_text_message("one"))
        session.commit()
        line.cut()
        session.commit()
        producer.send(session.create_text_message("two"))
        session.commit()
        assert texts_in(safe, "q") == ["one", "two"]


def test_a_rollback_after_a_break_succeeds(bench: Bench) -> None:
    line, factory, safe = bench
    put(safe, "q", "a")
    with factory().create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.SESSION_TRANSACTED)
        consumer = session.create_consumer(session.create_queue("q"))
        assert text_of(consumer.receive(WAIT_MS)) == "a"
        session.create_producer(session.create_queue("out")).send(session.create_text_message("never"))
        line.cut()
        session.rollback()
        assert text_of(consumer.receive(WAIT_MS)) == "a"
        session.commit()
        assert texts_in(safe, "out") == []


def test_a_commit_whose_answer_is_lost_is_in_doubt_and_is_not_made_again(bench: Bench) -> None:
    line, factory, safe = bench
    with factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        session = connection.create_session(Session.SESSION_TRANSACTED)
        producer = session.create_producer(session.create_queue("q"))
        producer.send(session.create_text_message("one"))
        line.mute = True
        committing = pool.submit(session.commit)
        assert line.asked.wait(20)
        line.heal()
        line.cut()
        error = committing.exception(20)
        assert isinstance(error, JMSException)
        assert error.error_code == "in-doubt"
        producer.send(session.create_text_message("two"))
        session.commit()
        assert texts_in(safe, "q") == ["one", "two"]


def unanswered_send(bench: Bench, **options: object) -> tuple[Future[None], list[str | None], list[bool]]:
    """Send, lose the answer and the link; return what the send said, and what is in the queue."""
    line, factory, safe = bench
    with factory(**options).create_connection() as connection, ThreadPoolExecutor(1) as pool:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue("q"))
        line.mute = True
        sending = pool.submit(producer.send, session.create_text_message("once?"))
        with safe.create_session() as watching:
            browser = watching.create_browser(watching.create_queue("q"))
            deadline = time.monotonic() + 20
            while not list(browser.enumeration):
                assert time.monotonic() < deadline
        line.heal()
        line.cut()
        sending.exception(20)
        with safe.create_session() as reading:
            consumer = reading.create_consumer(reading.create_queue("q"))
            found = list(iter(lambda: consumer.receive(100), None))
    return sending, [text_of(one) for one in found], [one.property_exists("jmsapi_resent") for one in found]


def test_a_send_that_was_not_confirmed_fails_as_in_doubt_and_is_not_sent_again(bench: Bench) -> None:
    sending, texts, _ = unanswered_send(bench)
    error = sending.exception()
    assert isinstance(error, JMSException)
    assert error.error_code == "in-doubt"
    assert texts == ["once?"]


def test_a_send_that_was_not_confirmed_is_sent_again_with_a_mark_if_asked_for(bench: Bench) -> None:
    sending, texts, marks = unanswered_send(bench, resend_unconfirmed=True)
    assert sending.exception() is None
    assert texts == ["once?", "once?"]
    assert marks == [False, True]


def test_a_send_without_a_link_waits_for_the_next_one(bench: Bench) -> None:
    line, factory, safe = bench
    with factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue("q"))
        line.break_off()
        tried = line.attempts
        sending = pool.submit(producer.send, session.create_text_message("late"))
        assert line.wait_for_attempts(tried + 2)
        assert not sending.done()
        line.heal()
        assert sending.result(20) is None
        assert texts_in(safe, "q") == ["late"]


def test_everything_can_be_created_without_a_link_and_is_there_with_the_next(bench: Bench) -> None:
    line, factory, _safe = bench
    with factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        connection.start()
        line.break_off()

        def create() -> str | None:
            session = connection.create_session()
            consumer = session.create_consumer(session.create_queue("q"))
            session.create_producer(session.create_queue("q")).send(session.create_text_message("made"))
            return text_of(consumer.receive(WAIT_MS))

        creating = pool.submit(create)
        assert line.wait_for_attempts(3)
        line.heal()
        assert creating.result(20) == "made"


def test_a_temporary_destination_is_gone_after_a_break_and_says_so(bench: Bench) -> None:
    line, factory, _ = bench
    problems: list[JMSException] = []
    heard = threading.Event()

    def listen(problem: JMSException) -> None:
        problems.append(problem)
        heard.set()

    with factory().create_connection() as connection:
        connection.exception_listener = listen  # type: ignore[assignment]
        connection.start()
        session = connection.create_session()
        queue = session.create_temporary_queue()
        consumer = session.create_consumer(queue)
        producer = session.create_producer(queue)
        line.cut()
        assert heard.wait(20)
        assert isinstance(problems[0], jmsapi.InvalidDestinationException)
        with pytest.raises(jmsapi.InvalidDestinationException):
            consumer.receive(1000)
        with pytest.raises(jmsapi.InvalidDestinationException):
            producer.send(session.create_text_message("to nobody"))
        with pytest.raises(jmsapi.InvalidDestinationException):
            session.create_consumer(queue)


def test_a_temporary_destination_is_made_again_if_asked_for(bench: Bench) -> None:
    line, factory, safe = bench
    with factory(recreate_temporary=True).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        queue = session.create_temporary_queue()
        consumer = session.create_consumer(queue)
        producer = session.create_producer(queue)
        line.cut()
        producer.send(session.create_text_message("still there"))
        assert text_of(consumer.receive(WAIT_MS)) == "still there"
        asking = session.create_text_message("answer me")
        asking.jms_reply_to = queue
        session.create_producer(session.create_queue("asked")).send(asking)
        with safe.create_session() as answering:
            asked = answering.create_consumer(answering.create_queue("asked")).receive(WAIT_MS)
            assert asked is not None
            answering.create_producer(asked.jms_reply_to).send(answering.create_text_message("answer"))
        assert text_of(consumer.receive(WAIT_MS)) == "answer"
        consumer.close()
        producer.close()
        queue.delete()


def test_a_temporary_destination_whose_sessions_are_closed_is_made_again_too(bench: Bench) -> None:
    line, factory, _ = bench
    told = Told()
    with factory(recreate_temporary=True).create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        connection.start()
        with connection.create_session() as making:
            queues = [making.create_temporary_queue() for _ in range(2)]
        line.cut()
        told.wait_for(lambda: bool(told.resumptions))
        session = connection.create_session()
        for queue in queues:
            session.create_producer(queue).send(session.create_text_message("there"))
            assert text_of(session.create_consumer(queue).receive(WAIT_MS)) == "there"


def test_a_temporary_destination_is_deleted_while_another_session_is_being_closed(bench: Bench) -> None:
    line, factory, _ = bench
    with factory().create_connection() as connection, ThreadPoolExecutor(1) as pool:
        first, second = connection.create_session(), connection.create_session()
        queue = second.create_temporary_queue()
        line.unreleased = held = Future[None]()
        closing = pool.submit(first.close)
        try:
            with pytest.raises(jmsapi.IllegalStateException):
                while True:
                    first.create_text_message("until it is closing")
            queue.delete()
        finally:
            line.unreleased = None
            held.set_result(None)
        closing.result(20)


def test_the_connection_listener_hears_of_interruption_attempts_and_resumption_and_the_exception_listener_of_nothing(
    bench: Bench,
) -> None:
    line, factory, _ = bench
    told, problems = Told(), list[JMSException]()
    with factory().create_context() as context:
        context.exception_listener = problems.append
        jmsapi.set_connection_listener(context, told)
        line.break_off()
        told.wait_for(lambda: len(told.failures) >= 2)
        assert told.resumptions == []
        line.heal()
        told.wait_for(lambda: bool(told.resumptions))
    assert [error.error_code for error in told.interruptions] == ["connection"]
    assert [attempt for _, attempt in told.failures][:2] == [1, 2]
    assert told.failures[0][0] == told.resumptions[0]
    assert told.resumptions[0].startswith("cut://")
    assert problems == []


def test_a_closed_connection_has_no_connection_listener_and_takes_none(bench: Bench) -> None:
    _, factory, _ = bench
    connection = factory().create_connection()
    told = Told()
    jmsapi.set_connection_listener(connection, told)
    assert connection.connection_listener is told  # type: ignore[attr-defined]
    connection.close()
    with pytest.raises(jmsapi.IllegalStateException):
        _ = connection.connection_listener  # type: ignore[attr-defined]
    with pytest.raises(jmsapi.IllegalStateException):
        jmsapi.set_connection_listener(connection, None)


def test_with_attempts_exhausted_everything_pending_fails_and_the_exception_listener_hears_of_it_once(bench: Bench) -> None:
    line, factory, _ = bench
    problems: list[JMSException] = []
    heard = threading.Event()

    def listen(problem: JMSException) -> None:
        problems.append(problem)
        heard.set()

    with factory(max_reconnect_attempts=2).create_connection() as connection, ThreadPoolExecutor(2) as pool:
        connection.exception_listener = listen  # type: ignore[assignment]
        connection.start()
        receiving, sending = connection.create_session(), connection.create_session()
        queue = sending.create_queue("q")
        consumer, producer = receiving.create_consumer(queue), sending.create_producer(queue)
        pending = pool.submit(consumer.receive)
        before = line.attempts
        line.break_off()
        unsent = pool.submit(producer.send, sending.create_text_message("never"))
        assert heard.wait(20)
        for future in (pending, unsent):
            error = future.exception(20)
            assert isinstance(error, JMSException)
            assert "tried 2 times" in str(error)
        with pytest.raises(JMSException, match="tried 2 times"):
            connection.create_session()
        assert line.attempts - before == 2
    assert len(problems) == 1


@pytest.mark.parametrize("kind", [ErrorKind.SECURITY, ErrorKind.CLIENT_ID])
def test_a_refused_login_ends_the_first_attempt_at_once(bench: Bench, kind: ErrorKind) -> None:
    line, factory, _ = bench
    line.refusal = ProviderError(kind, "not you", fatal=True)
    with pytest.raises((jmsapi.JMSSecurityException, jmsapi.InvalidClientIDException), match="not you"):
        factory().create_connection()
    assert line.attempts == 1


def test_a_refused_login_ends_reconnecting_at_once(bench: Bench) -> None:
    line, factory, _ = bench
    problems: list[JMSException] = []
    heard = threading.Event()
    with factory().create_connection() as connection:
        connection.exception_listener = lambda problem: (problems.append(problem), heard.set())  # type: ignore[assignment]
        before = line.attempts
        line.refusal = ProviderError(ErrorKind.SECURITY, "not you any more", fatal=True)
        line.cut()
        assert heard.wait(20)
        assert isinstance(problems[0], jmsapi.JMSSecurityException)
        assert line.attempts == before + 1


def test_a_client_id_that_our_dead_link_still_holds_is_asked_for_again(bench: Bench) -> None:
    line, factory, _safe = bench
    told = Told()
    with factory(client_id_grace_ms=20_000).create_connection() as connection:
        jmsapi.set_connection_listener(connection, told)
        line.refusal = ProviderError(ErrorKind.CLIENT_ID, "in use", fatal=True)
        line.cut()
        told.wait_for(lambda: len(told.failures) >= 3)
        line.heal()
        told.wait_for(lambda: bool(told.resumptions))
        connection.create_session().close()


def test_a_client_id_that_is_held_for_longer_ends_reconnecting(bench: Bench) -> None:
    line, factory, _ = bench
    heard = threading.Event()
    problems: list[JMSException] = []
    with factory(client_id_grace_ms=50).create_connection() as connection:
        connection.exception_listener = lambda problem: (problems.append(problem), heard.set())  # type: ignore[assignment]
        line.refusal = ProviderError(ErrorKind.CLIENT_ID, "in use", fatal=True)
        line.cut()
        assert heard.wait(20)
    assert isinstance(problems[0], jmsapi.InvalidClientIDException)


def test_the_first_link_is_tried_as_often_as_the_options_say(bench: Bench) -> None:
    line, factory, _ = bench
    line.refusal = ProviderError(ErrorKind.CONNECTION, "nobody listens", fatal=True)
    with pytest.raises(JMSException, match="tried 3 times without success; the last: nobody listens"):
        factory(startup_max_reconnect_attempts=3).create_connection()
    assert line.attempts == 3
    with pytest.raises(JMSException, match="nobody listens"):
        factory(startup_timeout_ms=100).create_connection()


def test_close_ends_within_its_deadline_while_a_link_is_being_made(bench: Bench) -> None:
    line, factory, _ = bench
    connection = factory(close_timeout_ms=3000).create_connection()
    connection.start()
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = session.create_consumer(session.create_queue("q"))
    session.create_producer(session.create_queue("q")).send(session.create_text_message("in a transaction"))
    with ThreadPoolExecutor(2) as pool:
        receiving = pool.submit(consumer.receive)
        line.break_off()
        assert line.wait_for_attempts(3)
        creating = pool.submit(connection.create_session)
        begun = time.monotonic()
        connection.close()
        assert time.monotonic() - begun < 8
        assert receiving.result(20) is None
        assert isinstance(creating.exception(20), JMSException)
    attempts = line.attempts
    assert line.links == []
    assert line.attempts == attempts


def test_a_browser_ends_with_its_link_and_says_so(bench: Bench) -> None:
    line, factory, safe = bench
    for number in range(300):
        put(safe, "q", str(number))
    with factory().create_connection() as connection:
        session = connection.create_session()
        browser = session.create_browser(session.create_queue("q"))
        look = browser.enumeration
        next(look)
        line.cut()
        with pytest.raises(JMSException):
            list(look)
        assert len(list(browser.enumeration)) == 300
