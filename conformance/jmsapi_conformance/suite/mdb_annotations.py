"""MDB-3 to MDB-33 Annotations: what they say, and which of them counts."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSConnectionFactory, JMSContext, Message, MessageListener, Queue, Session
from jmsapi.listener import (
    Acknowledge,
    ClientId,
    Durability,
    JMSDestinationListener,
    JMSDurableTopicListener,
    JMSListener,
    JMSListenerProperties,
    JMSListenerProperty,
    JMSMessageDrivenBean,
    JMSNonDurableTopicListener,
    JMSQueueListener,
    MessageDriven,
    MessageSelector,
    SubscriptionDurability,
    SubscriptionName,
    activation_properties,
    definitions,
    deploy,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.kit import send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._annotated import QUEUE, TOPIC, Decorator, bound, decorated, properties, refused
from jmsapi_conformance.suite._deployed import Script

__all__ = ["bound"]

pytestmark = needs("in_process")

CONFIG = {"destinationLookup": "q", "destinationType": "javax.jms.Queue"}


_EACH: list[Decorator] = [
    JMSListener(lookup="q", type=QUEUE),
    JMSConnectionFactory("cf"),
    SubscriptionDurability(Durability.DURABLE),
    ClientId("c"),
    SubscriptionName("s"),
    MessageSelector("a = 1"),
    Acknowledge(JMSContext.DUPS_OK_ACKNOWLEDGE),
    JMSListenerProperty("foo", "bar"),
    JMSListenerProperties([JMSListenerProperty("foo", "bar")]),
    JMSQueueListener("q"),
    JMSDurableTopicListener("t"),
    JMSNonDurableTopicListener("t"),
    JMSDestinationListener("q", type=QUEUE),
]


# ---- MDB-3 to MDB-6 kinds of classes


@requirement("MDB-3", "MDB-4")
@pytest.mark.parametrize("where", ["on_message", "other"])
@pytest.mark.parametrize("annotation", _EACH, ids=lambda annotation: type(annotation).__name__)
def test_a_message_listener_with_an_annotation_on_a_method_is_not_definitions(annotation: Decorator, where: str) -> None:
    class Plain(MessageListener):
        def on_message(self, message: Message) -> None: ...

    def method(self: object, message: Message) -> None: ...

    mixed = MessageDriven(CONFIG)(type("Mixed", (Plain,), {where: annotation(method)}))
    assert f"Mixed.{where}" in refused(mixed)
    (one,) = definitions(MessageDriven(CONFIG)(Plain))
    assert one.legacy


@requirement("MDB-5")
def test_the_marker_is_not_needed() -> None:
    class Marked(JMSMessageDrivenBean):
        @JMSQueueListener("q")
        def handle(self, message: Message) -> None: ...

    class Unmarked:
        @JMSQueueListener("q")
        def handle(self, message: Message) -> None: ...

    assert [one.spec for one in definitions(Marked)] == [one.spec for one in definitions(Unmarked)]


@requirement("MDB-6")
@pytest.mark.parametrize("annotation", [one for one in _EACH if "Listener(" not in repr(one)], ids=lambda one: type(one).__name__)
def test_a_method_without_a_listener_annotation_is_no_callback(annotation: Decorator) -> None:
    class Half:
        @annotation
        def handle(self, message: Message) -> None: ...

    class Whole:
        @annotation
        @JMSListener(lookup="q", type=QUEUE)
        def handle(self, message: Message) -> None: ...

        def other(self, message: Message) -> None: ...

    assert "JMSListener" in refused(Half)
    assert activation_properties(Whole.handle, Whole)["destinationLookup"] == "q"


# ---- MDB-7 to MDB-20 what each says


@requirement("MDB-7", "MDB-10")
@pytest.mark.parametrize(("kind", "word"), [(QUEUE, "javax.jms.Queue"), (TOPIC, "javax.jms.Topic")])
def test_a_listener_says_where_its_messages_come_from(kind: Any, word: str) -> None:
    assert properties(JMSListener(lookup="java:global/Trades", type=kind)) == {
        "destinationLookup": "java:global/Trades",
        "destinationType": word,
    }


@requirement("MDB-11")
def test_the_type_is_mandatory() -> None:
    with pytest.raises(TypeError):
        JMSListener(lookup="q")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


@requirement("MDB-12")
@needs("transactions")
def test_the_connection_factory_is_the_one_that_is_named(
    backend: Backend, bound: str, queue: Queue, other_session: Session
) -> None:
    script, name = Script(), f"java:global/{backend.unique('factory')}"
    jmsapi.register_object(name, backend.factory())

    @JMSConnectionFactory(name)
    @JMSListener(lookup=bound, type=QUEUE)
    def on_message(message: Message) -> None:
        script(message)

    try:
        assert activation_properties(on_message)["connectionFactoryLookup"] == name
        with deploy(on_message, factory="inproc://nobody-uses-this"):
            send_texts(other_session, queue, "m")
            assert script.wait_for_texts(1) == ["m"]
    finally:
        jmsapi.register_object(name, None)


@requirement("MDB-13")
def test_a_subscription_is_durable_if_that_is_said() -> None:
    listener = JMSListener(lookup="t", type=TOPIC)
    name = SubscriptionName("s")
    for said, word in [(Durability.DURABLE, "Durable"), (Durability.NON_DURABLE, "NonDurable")]:
        assert properties(listener, SubscriptionDurability(said))["subscriptionDurability"] == word
        (one,) = definitions(decorated(listener, SubscriptionDurability(said), name))
        assert one.spec.subscription_durability is said
    (one,) = definitions(decorated(listener))
    assert one.spec.subscription_durability is Durability.NON_DURABLE


@requirement("MDB-14", "MDB-15")
def test_client_id_and_subscription_name_are_those_that_are_said() -> None:
    found = properties(JMSListener(lookup="t", type=TOPIC), ClientId("myClientID1"), SubscriptionName("mySubName1"))
    assert (found["clientId"], found["subscriptionName"]) == ("myClientID1", "mySubName1")


@requirement("MDB-17")
def test_messages_are_acknowledged_as_it_is_said() -> None:
    listener = JMSListener(lookup="q", type=QUEUE)
    lazily = Acknowledge(JMSContext.DUPS_OK_ACKNOWLEDGE)
    assert properties(listener, lazily)["acknowledgeMode"] == "Dups-ok-acknowledge"
    assert [definitions(decorated(*said))[0].spec.acknowledge_mode.value for said in [(listener, lazily), (listener,)]] == [
        "Dups-ok-acknowledge",
        "Auto-acknowledge",
    ]


@requirement("MDB-18")
@pytest.mark.parametrize(
    "annotation", [JMSConnectionFactory, SubscriptionDurability, ClientId, SubscriptionName, MessageSelector, Acknowledge]
)
def test_an_annotation_for_one_property_has_one_attribute(annotation: type) -> None:
    assert list(inspect.signature(annotation).parameters) == ["value"]


@requirement("MDB-19", "MDB-25")
def test_any_property_may_be_set_and_one_that_the_adapter_does_not_know_is_refused() -> None:
    listener, foo = JMSListener(lookup="q", type=QUEUE), JMSListenerProperty(name="foo1", value="bar1")
    assert properties(listener, foo)["foo1"] == "bar1"
    assert "foo1" in refused(decorated(listener, foo))
    (one,) = definitions(decorated(listener, JMSListenerProperty(name="prefetch", value="7")))
    assert one.spec.prefetch == 7


@requirement("MDB-20")
def test_properties_may_be_repeated_or_stand_in_their_container() -> None:
    foo, bar = JMSListenerProperty("foo1", "bar1"), JMSListenerProperty("foo2", "bar2")
    assert properties(foo, bar) == properties(JMSListenerProperties([foo, bar])) == {"foo1": "bar1", "foo2": "bar2"}


# ---- MDB-21 to MDB-24 which of them counts


@requirement("MDB-21")
def test_a_property_wins_over_the_annotation_that_says_the_same() -> None:
    stack = (JMSListener(lookup="q", type=QUEUE), MessageSelector("a = 1"), JMSListenerProperty("messageSelector", "a = 2"))
    for order in itertools.permutations(stack):
        assert properties(*order)["messageSelector"] == "a = 2"


@requirement("MDB-22")
def test_the_class_and_the_descriptor_win_over_a_property() -> None:
    class Bean:
        @JMSListener(lookup="q", type=QUEUE)
        @JMSListenerProperty("prefetch", "1")
        def handle(self, message: Message) -> None: ...

    (plain,) = definitions(Bean)
    assert plain.spec.prefetch == 1
    assert definitions(Bean, descriptor={plain.group: {"prefetch": 3}})[0].spec.prefetch == 3
    whole = MessageDriven({"prefetch": 2})(Bean)
    assert activation_properties(whole.handle, whole)["prefetch"] == 2
    assert definitions(whole)[0].spec.prefetch == 2
    assert definitions(whole, descriptor={plain.group: {"prefetch": 3}})[0].spec.prefetch == 3


@requirement("MDB-23")
def test_levels_that_are_taken_away_uncover_the_next() -> None:
    annotation, named = MessageSelector("p = 1"), JMSListenerProperty("messageSelector", "p = 2")
    listener, whole = JMSListener(lookup="q", type=QUEUE), MessageDriven({"messageSelector": "p = 3"})
    for decorators, expected in [
        ((whole, listener, named, annotation), "p = 3"),
        ((listener, named, annotation), "p = 2"),
        ((listener, annotation), "p = 1"),
        ((listener,), None),
        ((whole, listener, annotation), "p = 3"),
        ((whole, listener), "p = 3"),
    ]:
        assert definitions(decorated(*decorators))[0].spec.message_selector == expected


@requirement("MDB-24")
def test_what_the_class_says_holds_for_each_of_its_callbacks() -> None:
    @MessageDriven({"messageSelector": "a = 3"})
    class Bean:
        @JMSQueueListener("one", message_selector="a = 1")
        def one(self, message: Message) -> None: ...

        @JMSQueueListener("two", message_selector="a = 2")
        def two(self, message: Message) -> None: ...

    assert [one.spec.message_selector for one in definitions(Bean)] == ["a = 3", "a = 3"]


# ---- MDB-26 to MDB-33 options B, C and D
_FOUR: dict[str, Any] = {
    "destination_lookup": "d",
    "connection_factory_lookup": "cf",
    "message_selector": "a = 1",
    "acknowledge": JMSContext.DUPS_OK_ACKNOWLEDGE,
}
_SIX: dict[str, Any] = {**_FOUR, "client_id": "me", "subscription_name": "s"}
_SAID = {
    "destinationLookup": "d",
    "connectionFactoryLookup": "cf",
    "messageSelector": "a = 1",
    "acknowledgeMode": "Dups-ok-acknowledge",
}
_OF_QUEUE = {**_SAID, "destinationType": "javax.jms.Queue"}
_OF_DURABLE = {
    **_SAID,
    "destinationType": "javax.jms.Topic",
    "subscriptionDurability": "Durable",
    "clientId": "me",
    "subscriptionName": "s",
}
_OF_NON_DURABLE = {**_SAID, "destinationType": "javax.jms.Topic", "subscriptionDurability": "NonDurable"}
_A_COMMON: tuple[Decorator, ...] = (
    JMSConnectionFactory("cf"),
    MessageSelector("a = 1"),
    Acknowledge(JMSContext.DUPS_OK_ACKNOWLEDGE),
)


@requirement("MDB-26", "MDB-27", "MDB-28")
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (JMSQueueListener(**_FOUR), _OF_QUEUE),
        (JMSDurableTopicListener(**_SIX), _OF_DURABLE),
        (JMSNonDurableTopicListener(**_FOUR), _OF_NON_DURABLE),
    ],
    ids=["queue", "durable", "non durable"],
)
def test_an_annotation_for_one_kind_of_listener_says_all_of_it(annotation: Decorator, expected: dict[str, object]) -> None:
    assert properties(annotation) == expected


@requirement("MDB-29", "MDB-30")
def test_what_follows_from_the_kind_or_does_not_fit_it_is_no_attribute() -> None:
    for kind in (JMSQueueListener, JMSDurableTopicListener, JMSNonDurableTopicListener):
        assert not {"type", "subscription_durability"} & set(inspect.signature(kind).parameters)
    for wrong in (JMSQueueListener, JMSNonDurableTopicListener):
        with pytest.raises(TypeError):
            wrong("d", client_id="a")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


@requirement("MDB-31")
@pytest.mark.parametrize("kind", [JMSQueueListener, JMSDurableTopicListener, JMSNonDurableTopicListener])
def test_a_property_wins_over_these_annotations_too(kind: Any) -> None:
    said = (kind("d", message_selector="a = 1"), JMSListenerProperty("messageSelector", "a = 2"))
    assert properties(*said)["messageSelector"] == properties(*reversed(said))["messageSelector"] == "a = 2"


@requirement("MDB-32", "MDB-33")
@pytest.mark.parametrize(
    ("generic", "option_a", "expected"),
    [
        (JMSDestinationListener(type=QUEUE, **_FOUR), (JMSListener(lookup="d", type=QUEUE), *_A_COMMON), _OF_QUEUE),
        (
            JMSDestinationListener(type=TOPIC, subscription_durability=Durability.DURABLE, **_SIX),
            (
                JMSListener(lookup="d", type=TOPIC),
                SubscriptionDurability(Durability.DURABLE),
                ClientId("me"),
                SubscriptionName("s"),
                *_A_COMMON,
            ),
            _OF_DURABLE,
        ),
        (
            JMSDestinationListener(type=TOPIC, subscription_durability=Durability.NON_DURABLE, **_FOUR),
            (JMSListener(lookup="d", type=TOPIC), SubscriptionDurability(Durability.NON_DURABLE), *_A_COMMON),
            _OF_NON_DURABLE,
        ),
    ],
    ids=["queue", "durable", "non durable"],
)
def test_the_generic_annotation_says_the_same_as_the_others(
    generic: Decorator, option_a: tuple[Decorator, ...], expected: dict[str, object]
) -> None:
    assert properties(generic) == properties(*option_a) == expected
    further = JMSListenerProperty("prefetch", "3")
    assert properties(generic, further) == properties(*option_a, further)
