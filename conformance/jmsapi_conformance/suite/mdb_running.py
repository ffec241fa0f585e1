"""MDB-2 to MDB-79 Callbacks at work: their instances, arguments, destinations, and deployments that fail as a whole."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import jmsapi
from jmsapi import ConnectionFactory, InvalidClientIDException, Message, MessageListener, Queue, Session, TextMessage, Topic
from jmsapi.listener import (
    DeploymentException,
    EJBException,
    JMSDurableTopicListener,
    JMSListener,
    JMSListenerProperty,
    MessageDriven,
    MessageSelector,
    deploy,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import PATIENCE_MS, eventually, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._annotated import QUEUE, TOPIC, bound
from jmsapi_conformance.suite._deployed import Script, deployed

__all__ = ["bound"]

BEAN: dict[str, Any] = {"transactionAttribute": "Bean"}


@pytest.fixture
def other_queue(other_session: Session, names: Names) -> Queue:
    """Give a second queue."""
    return other_session.create_queue(names.queue())


@requirement("MDB-2", "MDB-42", "MDB-1")
def test_a_legacy_class_is_called_and_what_it_raises_is_handled_by_the_same_rules(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    script = Script({"m": [ValueError("once")]})

    class Legacy(MessageListener):
        def on_message(self, message: Message) -> None:
            script(message, self)

    kept: list[Any] = []

    class Counted(Legacy):
        def __init__(self) -> None:
            kept.append(self)

    terms: dict[str, Any] = {**BEAN, "destinationType": "javax.jms.Queue"}
    with deployed(factory, Counted, queue, on_error=script.told, **terms):
        send_texts(other_session, queue, "m")
        first, again = script.wait_for(2)
    assert (first.text, again.text, again.redelivered) == ("m", "m", True)
    assert first.instance != again.instance
    assert isinstance(script.errors[0], EJBException)


@requirement("MDB-8", "12.1-3")
def test_messages_come_from_the_destination_that_is_bound_to_the_name(
    factory: ConnectionFactory, queue: Queue, other_session: Session, backend: Backend, bound: str
) -> None:
    script = Script()

    @JMSListenerProperty("transactionAttribute", "NotSupported")
    @JMSListener(lookup=bound, type=QUEUE)
    def on_message(message: Message) -> None:
        script(message)

    with deploy(on_message, factory=factory):
        send_texts(other_session, queue, "m")
        assert script.wait_for_texts(1) == ["m"]

    @JMSListener(lookup=f"java:global/{backend.unique('nothing')}", type=QUEUE)
    def nowhere(message: Message) -> None:
        script(message)

    with pytest.raises(DeploymentException):
        deploy(nowhere, factory=factory)


@requirement("MDB-9")
def test_the_destination_may_be_given_by_a_property_that_the_adapter_knows(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    script = Script()

    @JMSListener(type=QUEUE)
    @JMSListenerProperty("destination", queue.queue_name)
    @JMSListenerProperty("transactionAttribute", "NotSupported")
    def on_message(message: Message) -> None:
        script(message)

    with deploy(on_message, factory=factory):
        send_texts(other_session, queue, "m")
        assert script.wait_for_texts(1) == ["m"]


@requirement("MDB-16", "12.1-7")
@needs("queue_selector")
def test_a_selector_chooses_what_a_callback_sees(factory: ConnectionFactory, queue: Queue, other_session: Session) -> None:
    script = Script()

    @JMSListener(type=QUEUE)
    @MessageSelector("ticker = 'ORCL'")
    def on_message(message: Message) -> None:
        script(message)

    with deployed(factory, on_message, queue, **BEAN):
        send_texts(other_session, queue, "other", ticker="SUNW")
        send_texts(other_session, queue, "own", ticker="ORCL")
        assert script.wait_for_texts(1) == ["own"]
    with other_session.create_consumer(queue) as consumer:
        assert receive_text(consumer) == "other"
    everything = Script()
    with deployed(factory, everything, queue, **BEAN):
        send_texts(other_session, queue, "1", k=1)
        send_texts(other_session, queue, "2", k=2)
        assert everything.wait_for_texts(2) == ["1", "2"]


@requirement("MDB-37")
def test_each_callback_of_a_class_has_its_own_destination(
    factory: ConnectionFactory, queue: Queue, other_queue: Queue, other_session: Session
) -> None:
    one, two = Script(), Script()

    @MessageDriven(BEAN)
    class Both:
        @JMSListener(type=QUEUE)
        @JMSListenerProperty("destination", queue.queue_name)
        def first(self, message: Message) -> None:
            one(message)

        @JMSListener(type=QUEUE)
        @JMSListenerProperty("destination", other_queue.queue_name)
        def second(self, message: Message) -> None:
            two(message)

    with deploy(Both, factory=factory):
        send_texts(other_session, queue, "1")
        send_texts(other_session, other_queue, "2")
        assert (one.wait_for_texts(1), two.wait_for_texts(1)) == (["1"], ["2"])


@requirement("MDB-77")
@needs("queue_selector")
def test_two_callbacks_of_one_queue_get_each_its_kind(factory: ConnectionFactory, queue: Queue, other_session: Session) -> None:
    one, two = Script(), Script()

    @MessageDriven({**BEAN, "destination": queue.queue_name})
    class Both:
        @JMSListener(type=QUEUE)
        @MessageSelector("k = 1")
        def first(self, message: Message) -> None:
            one(message)

        @JMSListener(type=QUEUE)
        @MessageSelector("k = 2")
        def second(self, message: Message) -> None:
            two(message)

    with deploy(Both, factory=factory):
        for number in (2, 1, 2):
            send_texts(other_session, queue, str(number), k=number)
        assert (one.wait_for_texts(1), two.wait_for_texts(2)) == (["1"], ["2", "2"])


@requirement("MDB-38")
def test_one_client_id_for_two_callbacks_is_a_conflict_that_is_said(
    factory: ConnectionFactory, topic: Topic, names: Names
) -> None:
    @MessageDriven({**BEAN, "clientId": names.client_id()})
    class Both:
        @JMSListener(type=TOPIC)
        @JMSListenerProperty("destination", topic.topic_name)
        def first(self, message: Message) -> None: ...

        @JMSListener(type=TOPIC)
        @JMSListenerProperty("destination", topic.topic_name)
        def second(self, message: Message) -> None: ...

    with pytest.raises((DeploymentException, InvalidClientIDException)):
        deploy(Both, factory=factory)


@requirement("MDB-39")
def test_the_callbacks_of_a_class_share_its_instances(
    factory: ConnectionFactory, queue: Queue, other_queue: Queue, other_session: Session
) -> None:
    held = threading.Event()
    script = Script(then=lambda _, __: held.wait(PATIENCE_MS / 1000))

    @MessageDriven({**BEAN, "maxInstances": 2, "concurrency": "2"})
    class Both:
        @JMSListener(type=QUEUE)
        @JMSListenerProperty("destination", queue.queue_name)
        def first(self, message: Message) -> None:
            script(message, self)

        @JMSListener(type=QUEUE)
        @JMSListenerProperty("destination", other_queue.queue_name)
        def second(self, message: Message) -> None:
            script(message, self)

    with deploy(Both, factory=factory) as deployment:
        for place in (queue, other_queue):
            send_texts(other_session, place, "1", "2")
        eventually(lambda: sum(one.busy for one in deployment.health.endpoints) == 4, "four consumers have a message")
        assert script.running == 2
        held.set()
        script.wait_for(4)
    assert script.most_running == 2


@requirement("MDB-40")
@needs("map_message")
def test_a_message_of_another_type_than_the_callback_takes_is_a_failed_delivery(
    factory: ConnectionFactory, queue: Queue, other_session: Session, names: Names
) -> None:
    script, dead = Script(), other_session.create_queue(names.queue())

    @JMSListener(type=QUEUE)
    def on_message(message: TextMessage) -> None:
        script(message)

    terms: dict[str, Any] = {**BEAN, "redeliveryLimit": 1, "deadLetterDestination": dead.queue_name}
    with deployed(factory, on_message, queue, on_error=script.told, **terms):
        message = other_session.create_map_message()
        message.set_string("key", "value")
        with other_session.create_producer(queue) as producer:
            producer.send(message)
        send_texts(other_session, queue, "text")
        assert script.wait_for_texts(1) == ["text"]
        found = other_session.create_consumer(dead).receive(PATIENCE_MS)
        assert found is not None
        assert found.get_body(dict) == {"key": "value"}
    assert [type(error) for error in script.errors] == [EJBException] * 2


@requirement("MDB-79")
def test_if_one_callback_cannot_be_activated_nothing_is(
    factory: ConnectionFactory, queue: Queue, other_session: Session, backend: Backend
) -> None:
    script = Script()

    @MessageDriven(BEAN)
    class Both:
        @JMSListener(type=QUEUE)
        @JMSListenerProperty("destination", queue.queue_name)
        def first(self, message: Message) -> None:
            script(message)

        @JMSListener(lookup=f"java:global/{backend.unique('nothing')}", type=QUEUE)
        def second(self, message: Message) -> None:
            script(message)

    send_texts(other_session, queue, "stays")
    with pytest.raises(DeploymentException):
        deploy(Both, factory=factory)
    assert receive_text(other_session.create_consumer(queue)) == "stays"
    assert script.seen == []


@requirement("12.1-11")
def test_the_client_id_is_that_of_the_connection_and_may_be_left_out(
    factory: ConnectionFactory, topic: Topic, names: Names, other_session: Session, backend: Backend
) -> None:
    script, client_id = Script(), names.client_id()

    @JMSDurableTopicListener(client_id=client_id, subscription_name=names.subscription())
    def on_message(message: Message) -> None:
        script(message)

    try:
        with deployed(factory, on_message, topic, **BEAN):
            send_texts(other_session, topic, "m")
            assert script.wait_for_texts(1) == ["m"]
            with factory.create_connection() as connection, pytest.raises(InvalidClientIDException):
                connection.client_id = client_id
    except jmsapi.UnsupportedFeatureException:
        if backend.capabilities.durable_subscription:
            raise
        pytest.skip("the broker has no durable subscriptions")
    without = Script()
    with deployed(factory, without, topic, **BEAN):
        send_texts(other_session, topic, "m")
        assert without.wait_for_texts(1) == ["m"]
