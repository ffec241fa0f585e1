"""12 Resource adapters, and 12.1 the activation properties they take."""

from __future__ import annotations

from typing import Any

import pytest

import jmsapi
from jmsapi import (
    Connection,
    ConnectionFactory,
    Message,
    Queue,
    QueueConnection,
    QueueConnectionFactory,
    Session,
    TopicConnection,
    TopicConnectionFactory,
)
from jmsapi.listener import (
    ActivationSpec,
    DeploymentException,
    JMSDestinationListener,
    JMSListenerProperty,
    JMSQueueListener,
    MessageDriven,
    definitions,
    deploy,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.kit import receive, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._deployed import Script, callback

pytestmark = needs("in_process")

TOPIC: dict[str, object] = {"destinationLookup": "news", "destinationType": "javax.jms.Topic"}
BOTH_NAMES = [
    ("destinationLookup", "destination_lookup", "news"),
    ("connectionFactoryLookup", "connection_factory_lookup", "cf"),
    ("acknowledgeMode", "acknowledge_mode", "Dups-ok-acknowledge"),
    ("messageSelector", "message_selector", "a = 1"),
    ("destinationType", "destination_type", "javax.jms.Topic"),
    ("subscriptionDurability", "subscription_durability", "Durable"),
    ("clientId", "client_id", "me"),
    ("subscriptionName", "subscription_name", "s"),
    ("subscriptionScope", "subscription_scope", "Cluster"),
]
"""The nine activation properties, and a value of each."""


def spec(**properties: object) -> ActivationSpec:
    """Give what some properties of a topic's listener mean."""
    return ActivationSpec.from_properties({**TOPIC, **properties}, "an endpoint")


def refused(**properties: object) -> str:
    """Give the text of a deployment error."""
    with pytest.raises(DeploymentException) as caught:
        spec(**properties)
    return str(caught.value)


@requirement("12.1-1")
@pytest.mark.parametrize(("jms_name", "python_name", "value"), BOTH_NAMES)
def test_each_property_goes_by_both_of_its_names(jms_name: str, python_name: str, value: str) -> None:
    needed = {"subscriptionName": "s"} if value == "Durable" else {}
    others = {name: given for name, given in {**TOPIC, **needed}.items() if name != jms_name}
    by_jms_name = ActivationSpec.from_properties({**others, jms_name: value}, "x")
    by_python_name = ActivationSpec.from_properties({**others, python_name: value}, "x")
    assert by_jms_name == by_python_name
    read = getattr(by_jms_name, python_name)
    assert getattr(read, "value", read) == value
    assert by_jms_name.model_dump(by_alias=True)[jms_name] == read


@requirement("12.1-2")
def test_further_properties_are_kept_or_refused_and_never_lost() -> None:
    assert spec(concurrency="2-10").max_consumers == 10
    assert "'vendorWish'" in refused(vendorWish="x")
    assert "did you mean 'messageSelector'" in refused(mesageSelector="a = 1")


@requirement("12.1-5")
def test_two_modes_of_acknowledging_may_be_asked_for() -> None:
    for mode in ("Auto-acknowledge", "Dups-ok-acknowledge"):
        assert spec(acknowledgeMode=mode).acknowledge_mode.value == mode
    assert "acknowledgeMode" in refused(acknowledgeMode="Client")


@requirement("12.1-8")
@pytest.mark.parametrize("package", ["javax.jms", "jakarta.jms"])
def test_a_destination_is_a_queue_or_a_topic(package: str) -> None:
    assert spec(destinationType=f"{package}.Topic").for_topic
    assert not spec(destinationType=f"{package}.Queue").for_topic
    assert "destinationType" in refused(destinationType=f"{package}.Destination")


@requirement("12.1-9")
def test_a_subscription_is_durable_or_not_and_only_topics_have_one() -> None:
    assert spec(subscriptionDurability="Durable", subscriptionName="s").durable
    assert not spec(subscriptionDurability="NonDurable").durable
    assert "subscriptionDurability" in refused(subscriptionDurability="Forever")
    assert "is for topics" in refused(destinationType="javax.jms.Queue", subscriptionDurability="Durable")


@requirement("12.1-12")
def test_a_client_id_and_a_scope_exclude_each_other() -> None:
    for scope in ("Instance", "Cluster"):
        assert "leave out clientId" in refused(clientId="me", subscriptionScope=scope)


@requirement("12.1-18")
def test_a_scope_is_that_of_the_instance_or_of_the_cluster_and_may_be_left_out() -> None:
    assert spec().subscription_scope is None
    for scope in ("Instance", "Cluster"):
        found = spec(subscriptionScope=scope).subscription_scope
        assert found is not None
        assert found.value == scope
        assert spec(subscriptionScope=scope.lower()).subscription_scope is found
    assert "subscriptionScope" in refused(subscriptionScope="Galaxy")
    assert "is for topics" in refused(destinationType="javax.jms.Queue", subscriptionScope="Cluster")


# ---- 12 adapters, and the factory they use


@requirement("12-1")
def test_each_provider_takes_an_activation() -> None:
    found = jmsapi.known_providers()
    assert {"amqp", "inproc", "stomp"} <= set(found)
    for scheme in ("amqp", "inproc", "stomp"):
        target = JMSQueueListener()(JMSListenerProperty("destination", "q")(callback(Script())))
        deployment = deploy(target, factory=f"{scheme}://localhost", start=False)
        assert len(deployment.names) == 1
        assert deployment.stop()


@requirement("12-2")
def test_an_adapter_may_be_written_by_anybody(connection: Connection, queue: Queue, other_session: Session) -> None:
    got: list[str | None] = []

    @MessageDriven({"destination": queue.queue_name})
    class Bean:
        @JMSQueueListener()
        def handle(self, message: Message) -> None:
            got.append(message.get_body(str))

    (endpoint,) = definitions(Bean)
    with connection.create_session() as session:
        consumer = session.create_consumer(session.create_queue(str(endpoint.spec.destination)), endpoint.spec.message_selector)
        send_texts(other_session, queue, "m")
        endpoint.call(endpoint.make(), receive(consumer))
    assert got == ["m"]


class _Counting(ConnectionFactory):
    """A factory that counts the connections it is asked for."""

    def __init__(self, inner: ConnectionFactory) -> None:
        self.inner = inner
        self.made = 0

    def create_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        self.made += 1
        return self.inner.create_connection(user_name, password)

    def create_context(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.create_context(*args, **kwargs)


class _OfQueues(_Counting, QueueConnectionFactory):
    def create_queue_connection(self, user_name: str | None = None, password: str | None = None) -> QueueConnection:
        self.made += 1
        assert isinstance(self.inner, QueueConnectionFactory)
        return self.inner.create_queue_connection(user_name, password)


class _OfTopics(_Counting, TopicConnectionFactory):
    def create_topic_connection(self, user_name: str | None = None, password: str | None = None) -> TopicConnection:
        self.made += 1
        assert isinstance(self.inner, TopicConnectionFactory)
        return self.inner.create_topic_connection(user_name, password)


@requirement("12.1-4")
@needs("transactions")
@pytest.mark.parametrize("kind", [_Counting, _OfQueues, _OfTopics])
def test_the_factory_is_the_one_that_is_bound_to_the_name(
    factory: ConnectionFactory, backend: Backend, other_session: Session, kind: type[_Counting]
) -> None:
    name, script, made = f"java:global/{backend.unique('factory')}", Script(), kind(factory)
    topic = other_session.create_topic(backend.unique("t"))
    queue = other_session.create_queue(backend.unique("q"))
    of_topic = kind is _OfTopics
    terms = {
        "destinationType": "javax.jms.Topic" if of_topic else "javax.jms.Queue",
        "destination": topic.topic_name if of_topic else queue.queue_name,
    }
    jmsapi.register_object(name, made)
    try:
        target = JMSListenerProperty("connectionFactoryLookup", name)(callback(script))
        with deploy(MessageDriven(terms)(JMSDestinationListener()(target)), factory="inproc://nobody-uses-this"):
            send_texts(other_session, topic if of_topic else queue, "m")
            assert script.wait_for_texts(1) == ["m"]
    finally:
        jmsapi.register_object(name, None)
    assert made.made > 0
