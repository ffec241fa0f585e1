"""What went wrong with sessions, subscriptions and times in other people's clients, tried with ours on every backend.

B03, B09, B10, B11, B13, B15, B17, B20, B21, B23, B24. Where a report takes ``amqp_backend`` or ``stomp_backend`` the other wire's
test is in ``tests/providers``.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest

import jmsapi
from jmsapi import CompletionListener, DeliveryMode, Message, Session, TextMessage
from jmsapi.pool import SessionPool
from jmsapi.spi import Level
from jmsapi_conformance.brokers import Broker

Backend = Any
WAIT_MS = 30_000
DELAY_MS = 700


def text_of(message: Message | None) -> str | None:
    assert message is None or isinstance(message, TextMessage)
    return None if message is None else message.text


def send(session: Session, place: jmsapi.Destination, *texts: str) -> None:
    with session.create_producer(place) as producer:
        for text in texts:
            producer.send(session.create_text_message(text))


def test_b03_a_lock_of_the_application_around_send_and_in_a_listener_does_no_harm(amqp_backend: Backend) -> None:
    connection = amqp_backend.connect()
    lock, done = threading.Lock(), threading.Event()
    left = 100
    with connection.create_session() as listening, connection.create_session() as sending:
        answers = listening.create_producer(listening.create_queue(amqp_backend.label + ".answers"))

        def on_message(message: Message) -> None:
            nonlocal left
            with lock:
                answers.send(listening.create_text_message("answer"))
            left -= 1
            if left == 0:
                done.set()

        listening.create_consumer(listening.create_queue(amqp_backend.label)).message_listener = on_message
        producer = sending.create_producer(sending.create_queue(amqp_backend.label))
        for _ in range(100):
            with lock:
                producer.send(sending.create_text_message("question"))
        assert done.wait(60)


def test_b09_a_durable_subscription_with_another_selector_begins_anew(amqp_backend: Backend) -> None:
    connection = amqp_backend.connect(client_id=amqp_backend.label)
    with connection.create_session() as session:
        topic = session.create_topic(amqp_backend.label)
        producer = session.create_producer(topic)

        def publish(tag: str) -> None:
            message = session.create_text_message(tag)
            message.set_string_property("tag", tag)
            producer.send(message)

        session.create_durable_consumer(topic, "d").close()
        publish("kept before")
        consumer = session.create_durable_consumer(topic, "d", "tag = 'a'", False)
        publish("b")
        publish("a")
        assert text_of(consumer.receive(WAIT_MS)) == "a"
        with pytest.raises(jmsapi.JMSException):
            session.create_durable_consumer(topic, "d", "tag = 'b'", False)
        consumer.close()
        session.unsubscribe("d")


def test_b10_rollback_brings_messages_back_marked_and_in_order(amqp_backend: Backend) -> None:
    connection = amqp_backend.connect()
    if "transactions" in amqp_backend.refuses:
        with pytest.raises(jmsapi.UnsupportedFeatureException, match="transacted session"):
            connection.create_session(Session.SESSION_TRANSACTED)
        return
    with connection.create_session(Session.SESSION_TRANSACTED) as session:
        queue, other = session.create_queue(amqp_backend.label), session.create_queue(amqp_backend.label + ".other")
        send(session, queue, "1", "2", "3")
        session.commit()
        consumer = session.create_consumer(queue)
        assert [text_of(consumer.receive(WAIT_MS)) for _ in range(3)] == ["1", "2", "3"]
        send(session, other, "never")
        session.rollback()
        again = [consumer.receive(WAIT_MS) for _ in range(3)]
        assert [text_of(message) for message in again] == ["1", "2", "3"]
        found = [(m.jms_redelivered, m.get_int_property("JMSXDeliveryCount")) for m in again if m is not None]
        assert found == [(True, 2)] * 3
        session.commit()
        assert consumer.receive_no_wait() is None
        assert session.create_consumer(other).receive_no_wait() is None


def test_b11_no_local_takes_away_own_messages_only_and_the_selector_the_rest(backend: Backend) -> None:
    own, foreign = backend.connect(), backend.connect()
    with own.create_session() as session, foreign.create_session() as another:
        topic = session.create_topic(backend.label)
        consumer = session.create_consumer(topic, "c = 'x'", True)
        everything = another.create_consumer(topic)

        def publish(sender: Session, text: str, c: str | None) -> None:
            message = sender.create_text_message(text)
            if c is not None:
                message.set_string_property("c", c)
            sender.create_producer(topic).send(message)

        publish(session, "own x", "x")
        publish(another, "foreign x", "x")
        publish(another, "foreign y", "y")
        publish(another, "foreign", None)
        publish(another, "last x", "x")
        assert [text_of(consumer.receive(WAIT_MS)) for _ in range(2)] == ["foreign x", "last x"]
        assert len({text_of(everything.receive(WAIT_MS)) for _ in range(5)}) == 5


class Answers(CompletionListener):
    """Notes which message was answered how."""

    def __init__(self) -> None:
        self.completed: list[str | None] = []
        self.failed: list[Exception] = []

    def on_completion(self, message: Message) -> None:
        self.completed.append(text_of(message))

    def on_exception(self, message: Message, exception: Exception) -> None:
        self.failed.append(exception)


def test_b13_close_waits_for_the_answers_to_asynchronous_sends(stomp_backend: Backend) -> None:
    answers = Answers()
    texts = [str(number) for number in range(20)]
    session = stomp_backend.connect().create_session()
    producer = session.create_producer(session.create_queue(stomp_backend.label))
    for text in texts:
        producer.send(session.create_text_message(text), completion_listener=answers)
    session.close()
    assert (answers.completed, answers.failed) == (texts, [])


def test_b15_prefetch_0_keeps_the_limit_of_receive_and_loses_nothing(stomp_backend: Backend) -> None:
    with stomp_backend.connect(prefetch=0).create_session() as session:
        queue = session.create_queue(stomp_backend.label)
        consumer = session.create_consumer(queue)
        began = time.monotonic()
        assert consumer.receive(500) is None
        assert 0.4 < time.monotonic() - began < 4
        send(session, queue, "1", "2")
        assert [text_of(consumer.receive(WAIT_MS)) for _ in range(2)] == ["1", "2"]


@pytest.mark.parametrize("transacted", [False, True])
def test_b20_a_delayed_message_comes_when_it_is_due_and_says_so(backend: Backend, transacted: bool) -> None:
    connection = backend.connect()
    if transacted and "transactions" in backend.refuses:
        with pytest.raises(jmsapi.UnsupportedFeatureException):
            connection.create_session(Session.SESSION_TRANSACTED)
        return
    mode = Session.SESSION_TRANSACTED if transacted else Session.AUTO_ACKNOWLEDGE
    with connection.create_session() as session, connection.create_session(mode) as sending:
        queue, topic = session.create_queue(backend.label), session.create_topic(backend.label + ".topic")
        consumers = [session.create_consumer(queue), session.create_consumer(topic)]
        sent: list[Message] = []
        for place in (queue, topic):
            for delivery_mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT):
                producer = sending.create_producer(place)
                producer.delivery_mode, producer.delivery_delay = delivery_mode, DELAY_MS
                sent.append(sending.create_text_message("late"))
                producer.send(sent[-1])
        if transacted:
            sending.commit()
        # With whole seconds of a broker's clock, and what a loaded machine adds.
        due = min(message.jms_delivery_time for message in sent) / 1000
        for consumer in consumers:
            for _ in range(2):
                message = consumer.receive(WAIT_MS)
                assert message is not None
                assert time.time() >= due - 0.05
                assert abs(message.jms_delivery_time - message.jms_timestamp - DELAY_MS) <= 1000


def test_b20_whether_a_broker_obeys_a_delay_is_found_out_without_an_option(classic: Broker) -> None:
    with jmsapi.connection_factory(classic.url("amqp")).create_context() as context:
        queue = context.create_queue(f"field.delay.{uuid.uuid4()}")
        began = time.monotonic()
        context.create_producer().set_delivery_delay(500).send(queue, "x")
        assert context.create_consumer(queue).receive_body(str, WAIT_MS) == "x"
        assert time.monotonic() - began >= 0.5


def test_b21_a_message_a_listener_cannot_take_is_tried_again_and_then_put_away(amqp_backend: Backend) -> None:
    connection = amqp_backend.connect(max_redeliveries=2)
    seen: list[tuple[str | None, int]] = []
    good = threading.Event()

    def on_message(message: Message) -> None:
        seen.append((text_of(message), message.get_int_property("JMSXDeliveryCount")))
        if seen[-1][0] == "bad":
            raise ValueError("on purpose")
        good.set()

    with connection.create_session() as session:
        queue = session.create_queue(amqp_backend.label)
        # Before the listener starts: on Artemis a message that arrives may overtake one that is handed out again.
        with connection.create_session() as sending:
            send(sending, queue, "bad", "good")
        session.create_consumer(queue).message_listener = on_message
        assert good.wait(20)
    assert seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
    with connection.create_session() as session:
        assert session.create_consumer(queue).receive_no_wait() is None


def test_b23_a_wrong_selector_is_found_before_the_broker_sees_it(backend: Backend) -> None:
    wrong = [
        "(a = 'y' AND ( OR ))",
        "a =",
        "a = 'x",
        "a LIKE 5",
        "NOT > 1",
        "a IN ()",
        "a BETWEEN 1",
        "a = 1 b",
        "a NOT = 1",
        "(",
    ]
    with backend.connect(client_id=backend.label).create_session() as session:
        topic = session.create_topic(backend.topic)
        healthy = session.create_consumer(topic)
        for selector in wrong:
            with pytest.raises(jmsapi.InvalidSelectorException):
                session.create_consumer(topic, selector)
            with pytest.raises(jmsapi.InvalidSelectorException):
                session.create_durable_consumer(topic, "d", selector, False)
            if "shared durable" not in backend.refuses:
                with pytest.raises(jmsapi.InvalidSelectorException):
                    session.create_shared_durable_consumer(topic, "s", selector)
            if "browser" not in backend.refuses:
                with pytest.raises(jmsapi.InvalidSelectorException):
                    session.create_browser(session.create_queue(backend.label), selector)
        send(session, topic, "still there")
        assert text_of(healthy.receive(WAIT_MS)) == "still there"


def test_b17_a_borrowed_session_starts_with_defaults_whatever_the_last_borrower_set(backend: Backend) -> None:
    with SessionPool(backend.factory(), sessions=1) as pool:
        with pool.session() as session:
            producer = session.create_producer(session.create_queue(backend.label))
            producer.priority, producer.delivery_mode, producer.time_to_live = 9, DeliveryMode.NON_PERSISTENT, 60_000
            producer.disable_message_id = True
            if jmsapi.capabilities(backend.connect()).delivery_delay:
                producer.delivery_delay = 60_000
        with pool.session() as session:
            place = session.create_queue(backend.label)
            send(session, place, "text")
            message = session.create_consumer(place).receive(WAIT_MS)
            assert message is not None
            assert (message.jms_priority, message.jms_delivery_mode) == (4, DeliveryMode.PERSISTENT)
            assert (message.jms_expiration, message.jms_message_id is None) == (0, False)


def test_b24_members_of_a_shared_durable_subscription_share_over_connections(backend: Backend) -> None:
    name = backend.label.replace(".", "-")
    one, two = backend.connect(), backend.connect()
    with one.create_session() as first, two.create_session() as second:
        topic = first.create_topic(backend.topic)
        members = [session.create_shared_durable_consumer(topic, name) for session in (first, second)]
        send(first, topic, *map(str, range(20)))
        counts = [0, 0]
        deadline = time.monotonic() + 30
        while sum(counts) < 20 and time.monotonic() < deadline:
            for number, member in enumerate(members):
                counts[number] += member.receive(100) is not None
        assert sum(counts) == 20
        assert min(counts) > 0
        for member in members:
            assert member.receive_no_wait() is None
            member.close()
        send(first, topic, *map(str, range(5)))
        again = second.create_shared_durable_consumer(topic, name)
        assert sorted(str(text_of(again.receive(WAIT_MS))) for _ in range(5)) == list("01234")
        again.close()


@pytest.mark.parametrize("mode", [Session.SESSION_TRANSACTED, Session.CLIENT_ACKNOWLEDGE])
def test_what_fails_again_and_again_goes_round_no_faster_than_the_waits_allow_and_is_put_away_where_it_is_kept(
    backend: Backend, mode: int
) -> None:
    if mode == Session.SESSION_TRANSACTED and "transactions" in backend.refuses:
        return
    connection = backend.connect(max_redeliveries=3)
    capabilities = jmsapi.capabilities(connection)
    session = connection.create_session(mode)
    consumer = session.create_consumer(session.create_queue(backend.label))
    send(connection.create_session(), session.create_queue(backend.label), "poison", "next")
    give_back = session.rollback if mode == Session.SESSION_TRANSACTED else session.recover
    seen: list[str | None] = []
    end = time.monotonic() + 1.5
    while time.monotonic() < end and "next" not in seen:
        seen.append(text_of(consumer.receive(10_000)))
        if seen[-1] == "poison":
            give_back()
    if capabilities.redelivery_policy:
        assert 1 < len(seen) <= 11  # the broker's own limit
    elif capabilities.dead_letter.level is Level.NATIVE:
        assert seen == ["poison"] * 4 + ["next"]
    else:
        assert seen == ["poison"] * len(seen)
        assert 3 < len(seen) < 9  # at once, then after 50, 100, 200, 400, 800 ms
