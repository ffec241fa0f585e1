"""B. Change history: connections, sessions, consumers and producers."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    IllegalStateException,
    IllegalStateRuntimeException,
    InvalidDestinationException,
    JMSException,
    MessageConsumer,
    MessageProducer,
    Queue,
    QueueBrowser,
    Session,
    Topic,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Recorder,
    eventually,
    expect_nothing,
    finish,
    in_second_process,
    in_thread,
    outcome_of,
    receive,
    receive_all,
    receive_text,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

NON_PERSISTENT = 1


@requirement("B.2.19-1")
def test_the_metadata_list_the_jmsx_properties_and_the_exception_listener_can_be_read(connect: Connect) -> None:
    connection = connect()
    assert {"JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq"} <= set(connection.meta_data.jmsx_property_names)
    assert connection.exception_listener is None


@requirement("B.2.21-12")
@needs("transactions")
def test_a_transacted_session_does_not_recover(connection: Connection, queue: Queue, other_session: Session) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    send_texts(other_session, queue, "text")
    consumer = session.create_consumer(queue)
    assert receive_text(consumer) == "text"
    with pytest.raises(IllegalStateException):
        session.recover()
    session.commit()
    expect_nothing(consumer, other_session, queue)


ON_A_PRODUCER: dict[str, Callable[[MessageProducer, Session], object]] = {
    "delivery_delay": lambda producer, _: producer.delivery_delay,
    "delivery_mode": lambda producer, _: producer.delivery_mode,
    "destination": lambda producer, _: producer.destination,
    "disable_message_id": lambda producer, _: producer.disable_message_id,
    "disable_message_timestamp": lambda producer, _: producer.disable_message_timestamp,
    "priority": lambda producer, _: producer.priority,
    "send": lambda producer, session: producer.send(session.create_message()),
    "time_to_live": lambda producer, _: producer.time_to_live,
    "set delivery_delay": lambda producer, _: setattr(producer, "delivery_delay", 0),
    "set delivery_mode": lambda producer, _: setattr(producer, "delivery_mode", 1),
    "set priority": lambda producer, _: setattr(producer, "priority", 1),
    "set time_to_live": lambda producer, _: setattr(producer, "time_to_live", 1),
}
ON_A_CONSUMER: dict[str, Callable[[MessageConsumer], object]] = {
    "message_listener": lambda consumer: consumer.message_listener,
    "message_selector": lambda consumer: consumer.message_selector,
    "receive": lambda consumer: consumer.receive(),
    "receive with a timeout": lambda consumer: consumer.receive(1),
    "receive_no_wait": lambda consumer: consumer.receive_no_wait(),
    "set message_listener": lambda consumer: setattr(consumer, "message_listener", None),
}


@requirement("B.2.21-13")
@pytest.mark.parametrize("call", ON_A_PRODUCER.values(), ids=ON_A_PRODUCER)
def test_a_closed_producer_can_only_be_closed(
    session: Session, queue: Queue, call: Callable[[MessageProducer, Session], object]
) -> None:
    producer = session.create_producer(queue)
    producer.close()
    with pytest.raises(IllegalStateException):
        call(producer, session)
    producer.close()


@requirement("B.2.21-13")
@pytest.mark.parametrize("call", ON_A_CONSUMER.values(), ids=ON_A_CONSUMER)
def test_a_closed_consumer_can_only_be_closed(session: Session, queue: Queue, call: Callable[[MessageConsumer], object]) -> None:
    consumer = session.create_consumer(queue)
    consumer.close()
    with pytest.raises(IllegalStateException):
        call(consumer)
    consumer.close()


CLIENT_THAT_DIES_IN_ITS_LISTENER = """
import os, sys, threading, jmsapi
connection = jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_connection()
session = connection.create_session()
def listen(message):
    print(message.text, flush=True)
    os._exit(1)
session.create_consumer(session.create_queue(sys.argv[1])).message_listener = listen
connection.start()
threading.Event().wait(20)
"""


@requirement("B.3.1-10")
@needs("second_process", "redelivered_flag")
def test_a_message_whose_listener_was_at_work_when_the_client_died_comes_again_marked(
    backend: Backend, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "text")
    printed = in_second_process(backend.url, CLIENT_THAT_DIES_IN_ITS_LISTENER, queue.queue_name)
    assert printed.split() == ["text"]
    again = receive(other_session.create_consumer(queue))
    assert (text_of(again), again.jms_redelivered) == ("text", True)


@requirement("B.3.1-12")
@needs("temporary_queue")
def test_messages_of_a_temporary_queue_come_again_within_the_life_of_its_connection(
    connection: Connection, other_session: Session
) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    temporary = session.create_temporary_queue()
    send_texts(other_session, temporary, "text")
    assert receive_text(session.create_consumer(temporary)) == "text"
    session.close()
    consumer = connection.create_session().create_consumer(temporary)
    assert receive_text(consumer) == "text"
    consumer.close()
    temporary.delete()


METHODS: dict[type, tuple[str, ...]] = {
    ConnectionFactory: ("create_connection",),
    Connection: ("create_session", "create_connection_consumer", "create_durable_connection_consumer"),
    Session: (
        "create_producer",
        "create_consumer",
        "create_queue",
        "create_topic",
        "create_temporary_queue",
        "create_temporary_topic",
        "create_durable_subscriber",
        "create_browser",
        "unsubscribe",
    ),
    MessageProducer: ("send", "destination"),
}


@requirement("B.4.4-1")
@pytest.mark.parametrize(
    ("interface", "name"),
    [(kind, name) for kind, names in METHODS.items() for name in names],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_the_common_interfaces_have_the_methods_of_both_domains(interface: type, name: str) -> None:
    assert hasattr(interface, name)


@requirement("B.5.9-3")
@needs("delivery_delay")
def test_after_recover_a_message_may_come_whose_time_has_come_meanwhile(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    delayed = other_session.create_text_message("m2")
    with other_session.create_producer(queue) as producer:
        producer.send(other_session.create_text_message("m1"))
        assert receive_text(consumer) == "m1"
        producer.delivery_delay = 300
        producer.send(delayed)
    eventually(lambda: time.time() * 1000 > delayed.jms_delivery_time, "the time of the delayed message has come")
    session.recover()
    messages = receive_all(consumer, 2)
    assert {text_of(message): message.jms_redelivered for message in messages} == {"m1": True, "m2": False}
    messages[-1].acknowledge()


@requirement("B.5.11-1")
@pytest.mark.parametrize("raises", [False, True], ids=["ends", "raises"])
@pytest.mark.parametrize(
    "what", ["connection", "session", "producer", "consumer", pytest.param("browser", marks=needs("browser"))]
)
def test_the_objects_of_the_classic_api_are_closed_at_the_end_of_a_block(
    connect: Connect, queue: Queue, what: str, raises: bool
) -> None:
    connection = connect()
    session = connection.create_session()
    made: dict[str, Callable[[], Connection | Session | MessageProducer | MessageConsumer | QueueBrowser]] = {
        "connection": lambda: connection,
        "session": lambda: session,
        "producer": lambda: session.create_producer(queue),
        "consumer": lambda: session.create_consumer(queue),
        "browser": lambda: session.create_browser(queue),
    }
    with suppress(KeyError), made[what]() as one:
        use(one)
        if raises:
            raise KeyError("from the block")
    with pytest.raises(IllegalStateException):
        use(one)


@requirement("B.5.11-1")
@pytest.mark.parametrize("raises", [False, True], ids=["ends", "raises"])
def test_the_objects_of_the_simplified_api_are_closed_at_the_end_of_a_block(
    factory: ConnectionFactory, queue: Queue, raises: bool
) -> None:
    with suppress(KeyError), factory.create_context() as context, context.create_consumer(queue) as consumer:
        context.create_message()
        if raises:
            raise KeyError("from the block")
    with pytest.raises(IllegalStateRuntimeException):
        consumer.receive(1)
    with pytest.raises(IllegalStateRuntimeException):
        context.create_message()


@requirement("B.5.17-3")
def test_stop_and_close_do_not_wait_for_a_running_exception_listener(interceptor: Interceptor, queue: Queue) -> None:
    entered, going = threading.Event(), threading.Event()

    def listen(_: JMSException) -> None:
        entered.set()
        going.wait(PATIENCE_MS / 1000)

    connection = interceptor.connect()
    connection.exception_listener = listen
    interceptor.refuse(lambda _: True)
    session = connection.create_session()
    with session.create_producer(queue) as producer:
        # Nobody waits for the answer to this, so the exception listener hears of it.
        producer.send(session.create_message(), delivery_mode=NON_PERSISTENT)
    assert entered.wait(PATIENCE_MS / 1000)
    try:
        finish(in_thread(connection.stop))
        finish(in_thread(connection.close))
        assert not going.is_set()
    finally:
        going.set()


@requirement("B.5.18-4")
@pytest.mark.parametrize("call", ["stop", "close"])
def test_a_listener_that_stops_or_closes_its_own_context_is_refused_or_succeeds(
    connect: Connect, queue: Queue, other_session: Session, call: str
) -> None:
    context = connect.context()
    outcomes: list[BaseException | None] = []
    recorder = Recorder(lambda _: outcomes.append(outcome_of(getattr(context, call))))
    context.create_consumer(queue).message_listener = recorder
    send_texts(other_session, queue, "text")
    eventually(lambda: outcomes, "the call returns in the listener")
    # The final text lets it succeed instead.
    if outcomes[0] is None:
        return
    assert isinstance(outcomes[0], IllegalStateRuntimeException)
    send_texts(other_session, queue, "more")
    assert recorder.wait_for_texts(2) == ["text", "more"]


@requirement("B.5.21-1")
def test_a_queue_that_nobody_made_keeps_messages_or_is_refused(session: Session, other_session: Session, names: Names) -> None:
    queue = session.create_queue(names.queue())
    try:
        send_texts(session, queue, "text")
    except InvalidDestinationException:
        return
    assert receive_text(other_session.create_consumer(queue)) == "text"


@requirement("B.2.1-1")
@pytest.mark.parametrize("selector", [None, pytest.param("k > 0", marks=needs("topic_selector"))])
def test_overlapping_subscriptions_of_a_session_each_get_the_message(
    session: Session, topic: Topic, other_session: Session, selector: str | None
) -> None:
    consumers = [session.create_consumer(topic), session.create_consumer(topic, selector)]
    send_texts(other_session, topic, "text", k=1)
    assert [receive_text(consumer) for consumer in consumers] == ["text", "text"]


def use(one: Connection | Session | MessageProducer | MessageConsumer | QueueBrowser) -> None:
    """Make a call that a closed object refuses."""
    if isinstance(one, Connection):
        one.create_session()
    elif isinstance(one, Session):
        one.create_message()
    elif isinstance(one, MessageProducer):
        _ = one.priority
    elif isinstance(one, MessageConsumer):
        one.receive_no_wait()
    else:
        _ = one.enumeration
