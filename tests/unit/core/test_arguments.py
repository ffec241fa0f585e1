"""Arguments of the wrong type or out of range: refused by name, never taken for something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, cast

import pytest

import jmsapi
from jmsapi import (
    Connection,
    ConnectionFactory,
    IllegalArgumentException,
    InvalidClientIDException,
    JMSException,
    JMSRuntimeException,
    MessageFormatRuntimeException,
    Session,
)

HALF_A_PAIR = "\ud800"
LONGEST = 2**63 - 1


@pytest.fixture
def factory() -> ConnectionFactory:
    return jmsapi.connection_factory("inproc://arguments", checked=True)


@pytest.fixture
def connection(factory: ConnectionFactory) -> Iterator[Connection]:
    with factory.create_connection() as made:
        made.start()
        yield made


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        ({}, Session.AUTO_ACKNOWLEDGE),
        ({"session_mode": 3}, Session.DUPS_OK_ACKNOWLEDGE),
        ({"session_mode": 0}, Session.SESSION_TRANSACTED),
        ({"acknowledge_mode": 2}, Session.CLIENT_ACKNOWLEDGE),
        ({"session_mode": False, "acknowledge_mode": 2}, Session.CLIENT_ACKNOWLEDGE),
        ({"session_mode": False}, Session.AUTO_ACKNOWLEDGE),
        ({"session_mode": True, "acknowledge_mode": 99}, Session.SESSION_TRANSACTED),
        ({"transacted": True}, Session.SESSION_TRANSACTED),
        ({"transacted": False, "acknowledge_mode": 3}, Session.DUPS_OK_ACKNOWLEDGE),
    ],
)
def test_each_form_of_create_session_gives_the_mode_it_names(connection: Connection, arguments: Any, mode: int) -> None:
    assert connection.create_session(**arguments).acknowledge_mode == mode


@pytest.mark.parametrize(
    "arguments",
    [
        {"session_mode": []},
        {"session_mode": 1.0},
        {"session_mode": 1, "acknowledge_mode": 2},
        {"session_mode": 0, "acknowledge_mode": 1},
        {"session_mode": 2, "transacted": True},
        {"transacted": "no"},
        {"transacted": 0, "acknowledge_mode": 1},
        {"session_mode": False, "acknowledge_mode": []},
        {"acknowledge_mode": 0},
    ],
)
def test_a_session_mode_that_is_none_or_said_twice_is_refused(connection: Connection, arguments: Any) -> None:
    with pytest.raises(JMSException) as refused:
        connection.create_session(**arguments)
    assert refused.value.error_code == "session-mode"


@pytest.mark.parametrize("transacted", [0, 1, "no"])
def test_a_domain_session_takes_only_true_or_false_for_transacted(transacted: Any) -> None:
    factory = jmsapi.connection_factory("inproc://arguments")
    queues = cast("jmsapi.QueueConnectionFactory", factory).create_queue_connection()
    with queues, pytest.raises(JMSException, match="transacted is True or False"):
        queues.create_queue_session(transacted, Session.AUTO_ACKNOWLEDGE)
    topics = cast("jmsapi.TopicConnectionFactory", factory).create_topic_connection()
    with topics, pytest.raises(JMSException, match="transacted is True or False"):
        topics.create_topic_session(transacted, Session.AUTO_ACKNOWLEDGE)


@pytest.mark.parametrize("mode", [[], 1.5, "1", True])
def test_a_context_refuses_what_is_no_session_mode(factory: ConnectionFactory, mode: Any) -> None:
    with pytest.raises(JMSRuntimeException, match="is no session mode"):
        factory.create_context("user", "secret", mode)
    with factory.create_context() as context, pytest.raises(JMSRuntimeException, match="is no session mode"):
        context.create_context(mode)


@pytest.mark.parametrize("wrong", [b"hidden", 5, ["hidden"]])
def test_a_user_name_or_password_that_is_no_text_is_refused_and_not_shown(factory: ConnectionFactory, wrong: Any) -> None:
    connects: list[Callable[[], object]] = [
        lambda: factory.create_connection(wrong, "secret"),
        lambda: factory.create_connection("user", wrong),
        lambda: factory.create_context("user", wrong),
    ]
    for connect in connects:
        with pytest.raises(IllegalArgumentException, match="is text, not") as refused:
            connect()
        assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("timeout", ["5", [], object(), -1, float("nan")])
def test_a_receive_timeout_that_is_no_time_is_refused(factory: ConnectionFactory, connection: Connection, timeout: Any) -> None:
    session = connection.create_session()
    queue = session.create_queue("timeouts")
    with pytest.raises(IllegalArgumentException, match="receive: a timeout is a number of milliseconds"):
        session.create_consumer(queue).receive(timeout)
    with factory.create_context() as context:
        consumer = context.create_consumer(queue)
        with pytest.raises(IllegalArgumentException, match="receive_body: a timeout is a number of milliseconds"):
            consumer.receive_body(str, timeout)


@pytest.mark.parametrize("timeout", [1, 0.5, Fraction(1, 2)])
def test_a_receive_timeout_may_be_any_real_number(connection: Connection, timeout: Any) -> None:
    session = connection.create_session()
    assert session.create_consumer(session.create_queue("timeouts")).receive(timeout_ms=timeout) is None


def test_names_that_no_wire_can_write_are_refused(factory: ConnectionFactory, connection: Connection) -> None:
    session = connection.create_session()
    topic = session.create_topic("names")
    uses: list[Callable[[], object]] = [
        lambda: session.create_shared_consumer(topic, HALF_A_PAIR),
        lambda: session.create_shared_durable_consumer(topic, HALF_A_PAIR),
        lambda: session.create_durable_consumer(topic, HALF_A_PAIR),
        lambda: session.unsubscribe(HALF_A_PAIR),
    ]
    for use in uses:
        with pytest.raises(JMSException) as refused:
            use()
        assert refused.value.error_code == "subscription-name"
    with factory.create_connection() as other:
        with pytest.raises(InvalidClientIDException):
            other.client_id = HALF_A_PAIR
        other.client_id = "\U0001f600"
        assert other.client_id == "\U0001f600"


def test_a_time_behind_the_end_of_time_is_the_end_of_time(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("times")
    producer = session.create_producer(queue)
    lasting, late = session.create_text_message("lasting"), session.create_text_message("late")
    producer.send(lasting, time_to_live_ms=LONGEST)
    producer.delivery_delay = LONGEST
    producer.send(late)
    received = session.create_consumer(queue).receive(5000)
    assert received is not None
    assert (received.jms_expiration, lasting.jms_expiration, late.jms_delivery_time) == (LONGEST, LONGEST, LONGEST)


@pytest.mark.parametrize("property_type", [[], "nothing", 5])
def test_a_property_type_that_there_is_not_is_refused(factory: ConnectionFactory, property_type: Any) -> None:
    with factory.create_context() as context:
        producer = context.create_producer()
        with pytest.raises(IllegalArgumentException, match="is no property type"):
            producer.set_property("name", 1, property_type)
        assert not producer.property_exists("name")


@pytest.mark.parametrize("name", [[], {}, None, 5, ""])
def test_a_property_name_that_is_no_text_is_refused(factory: ConnectionFactory, connection: Connection, name: Any) -> None:
    message = connection.create_session().create_message()
    with pytest.raises(IllegalArgumentException, match="the name of a property must be text"):
        message.set_int_property(name, 1)
    with factory.create_context() as context:
        producer = context.create_producer()
        with pytest.raises(IllegalArgumentException, match="the name of a property must be text"):
            producer.set_property(name, 1)


@pytest.mark.parametrize("wrong", [5, "text", [1, 2], object()])
def test_a_correlation_id_of_bytes_is_never_made_of_something_else(factory: ConnectionFactory, wrong: Any) -> None:
    with factory.create_context() as context:
        producer = context.create_producer().set_jms_correlation_id_as_bytes(bytearray(b"kept"))
        with pytest.raises(MessageFormatRuntimeException, match="bytes is needed"):
            producer.set_jms_correlation_id_as_bytes(wrong)
        assert producer.jms_correlation_id_as_bytes == b"kept"


def test_a_held_correlation_id_of_bytes_is_a_copy(factory: ConnectionFactory) -> None:
    given = bytearray(b"kept")
    with factory.create_context() as context:
        producer = context.create_producer().set_jms_correlation_id_as_bytes(given)
        given[0] = 0
        assert producer.jms_correlation_id_as_bytes == b"kept"


@pytest.mark.parametrize("wrong", [None, 5, b"inproc://x", ["inproc://x"]])
def test_a_url_or_name_that_is_no_text_is_refused(wrong: Any) -> None:
    with pytest.raises(JMSException) as refused:
        jmsapi.connection_factory(wrong)
    assert refused.value.error_code == "bad-url"
    uses: list[Callable[[], object]] = [
        lambda: jmsapi.lookup(wrong, jmsapi.Queue),
        lambda: jmsapi.register_object(wrong, None),
    ]
    for use in uses:
        with pytest.raises(JMSException) as refused:
            use()
        assert refused.value.error_code == "bad-name"


@pytest.mark.parametrize("wrong", ["queue", 5, object])
def test_only_factories_and_destinations_are_registered(wrong: Any) -> None:
    with pytest.raises(JMSException) as refused:
        jmsapi.register_object("arguments/wrong", wrong)
    assert refused.value.error_code == "wrong-kind"
    with pytest.raises(JMSException) as unknown:
        jmsapi.lookup("arguments/wrong")
    assert unknown.value.error_code == "unknown-name"


def test_a_kind_that_is_no_class_is_refused(factory: ConnectionFactory) -> None:
    jmsapi.register_object("arguments/factory", factory)
    kind: Any = "Queue"
    try:
        with pytest.raises(JMSException, match="the kind that is asked for is a type, not a str"):
            jmsapi.lookup("arguments/factory", kind)
    finally:
        jmsapi.register_object("arguments/factory", None)
