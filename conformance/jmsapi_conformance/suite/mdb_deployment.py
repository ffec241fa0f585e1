"""MDB-34 to MDB-36, MDB-72 to MDB-78 What is refused at deployment, and who receives asynchronously."""

from __future__ import annotations

import functools
import itertools
import logging
from typing import Any

import pytest

from jmsapi import ConnectionFactory, JMSContext, JMSException, Message, Queue, Session, Topic
from jmsapi.listener import (
    Acknowledge,
    JMSDestinationListener,
    JMSDurableTopicListener,
    JMSListener,
    JMSListenerProperty,
    JMSQueueListener,
    MessageSelector,
    SubscriptionDurability,
    activation_properties,
    definitions,
    deploy,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.kit import eventually, expect_nothing, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._annotated import QUEUE, TOPIC, Decorator, binding, bound, decorated, refused

__all__ = ["bound"]

pytestmark = needs("in_process")


@requirement("MDB-34")
def test_two_listener_annotations_on_one_callback_are_refused() -> None:
    assert "JMSQueueListener" in refused(decorated(JMSListener(lookup="q", type=QUEUE), JMSQueueListener("q")))
    assert "JMSDestinationListener" in refused(decorated(JMSDestinationListener("q", type=QUEUE), JMSQueueListener("q")))


@requirement("MDB-35")
def test_a_listener_without_a_type_is_refused() -> None:
    assert "destinationType is missing" in refused(decorated(JMSDestinationListener("d")))
    (one,) = definitions(decorated(JMSDestinationListener("d"), JMSListenerProperty("destinationType", "javax.jms.Queue")))
    assert not one.spec.for_topic


@requirement("MDB-36")
@pytest.mark.parametrize(("kind", "said", "right"), [("queue", TOPIC, QUEUE), ("topic", QUEUE, TOPIC)])
def test_a_destination_of_another_type_than_is_said_is_refused(
    queue: Queue, topic: Topic, backend: Backend, kind: str, said: str, right: str
) -> None:
    with binding(queue if kind == "queue" else topic, backend) as bound:
        assert bound in refused(decorated(JMSListener(lookup=bound, type=said)))
        (one,) = definitions(decorated(JMSListener(lookup=bound, type=right)))
        assert one.spec.for_topic is (kind == "topic")


@requirement("MDB-74")
@pytest.mark.parametrize("value", [5, None, True, b"x"])
def test_the_value_of_a_property_is_text(value: Any) -> None:
    with pytest.raises(TypeError):
        JMSListenerProperty(name="a", value=value)


@requirement("MDB-75")
def test_a_callback_stays_callable_and_the_order_of_its_decorators_does_not_matter() -> None:
    stack = (JMSListener(lookup="q", type=QUEUE), JMSListenerProperty("prefetch", "3"), MessageSelector("a = 1"))
    found: list[object] = []
    for order in itertools.permutations(stack):

        def double(number: int) -> int:
            return 2 * number

        made = functools.reduce(lambda target, decorator: decorator(target), order, double)
        assert made is double
        assert made(21) == 42
        found.append(dict(activation_properties(made)))
    assert all(one == found[0] for one in found)


@requirement("MDB-76")
@pytest.mark.parametrize(
    ("decorators", "word"),
    [
        ((JMSQueueListener("q", message_selector="price >"),), "messageSelector"),
        ((JMSListener(lookup="q", type="Stack"),), "destinationType"),
        ((JMSListener(lookup="t", type=TOPIC), SubscriptionDurability("Sometimes")), "subscriptionDurability"),
        ((JMSQueueListener("q"), Acknowledge(JMSContext.CLIENT_ACKNOWLEDGE)), "acknowledgeMode"),
        ((JMSListener(type=QUEUE),), "destination"),
        ((JMSQueueListener("q"), JMSListenerProperty("concurrency", "10-2")), "concurrency"),
    ],
    ids=["selector", "type", "durability", "acknowledge", "no destination", "concurrency"],
)
def test_what_makes_no_valid_activation_fails_at_deployment(decorators: tuple[Decorator, ...], word: str) -> None:
    assert word in refused(decorated(*decorators))


@requirement("MDB-78")
def test_two_callbacks_with_one_unshared_durable_subscription_are_refused() -> None:
    class Bean:
        @JMSDurableTopicListener("t", client_id="me", subscription_name="s")
        def one(self, message: Message) -> None: ...

        @JMSDurableTopicListener("t", client_id="me", subscription_name="s")
        def two(self, message: Message) -> None: ...

    assert "'me'" in refused(Bean)


# ---- MDB-72, MDB-73 who receives asynchronously


@requirement("MDB-72")
@needs("transactions")
def test_in_a_container_only_callbacks_receive_asynchronously(
    factory: ConnectionFactory, bound: str, queue: Queue, other_session: Session
) -> None:
    caught: list[BaseException] = []

    @JMSQueueListener(bound)
    def on_message(message: Message) -> None:
        with factory.create_connection() as connection, connection.create_session() as session:
            try:
                session.create_consumer(queue).message_listener = lambda _: None
            except JMSException as error:
                caught.append(error)

    with deploy(on_message, factory=factory):
        send_texts(other_session, queue, "m")
        eventually(lambda: caught, "the callback was called, and its listener refused")
    assert isinstance(caught[0], JMSException)
    assert caught[0].error_code == "container"
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("MDB-73")
def test_outside_of_a_container_a_listener_that_raises_is_named_in_the_log(
    session: Session, queue: Queue, other_session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    class Careless:
        def on_message(self, message: Message) -> None:
            if not message.jms_redelivered:
                raise ValueError("careless")

        def __repr__(self) -> str:
            return "<the careless listener>"

    with caplog.at_level(logging.WARNING, logger="jmsapi"):
        session.create_consumer(queue).message_listener = Careless()
        send_texts(other_session, queue, "m")
        eventually(lambda: "<the careless listener>" in caplog.text, "a warning names the listener")
