"""12.1.1, 12.1.2 Subscriptions of endpoints: whose they are, and what they are called."""

from __future__ import annotations

from typing import Any

import pytest

from jmsapi import ConnectionFactory, Session, Topic
from jmsapi.listener import (
    ActivationSpec,
    ServerInstance,
    Subscription,
    SubscriptionKind,
    subscription_of,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import eventually, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._deployed import Script, deployed

TOPIC: dict[str, object] = {"destinationLookup": "news", "destinationType": "javax.jms.Topic"}
BLUE_1, BLUE_2 = ServerInstance("server-1", "blue"), ServerInstance("server-2", "blue")
GREEN_1 = ServerInstance("server-1", "green")
ALONE_1, ALONE_2 = ServerInstance("server-1"), ServerInstance("server-2")


def subscribed(endpoint: str, server: ServerInstance, **properties: object) -> Subscription:
    """Give what an endpoint for a topic subscribes with."""
    found = subscription_of(ActivationSpec.from_properties({**TOPIC, **properties}, endpoint), endpoint, server)
    assert found is not None
    return found


def name(endpoint: str, server: ServerInstance, **properties: object) -> str:
    """Give the name of the subscription, which must have one."""
    found = subscribed(endpoint, server, **properties)
    assert found.name
    return found.name


DURABILITIES = pytest.mark.parametrize("durability", ["Durable", "NonDurable"])


# ---- names, without a broker


@requirement("12.1-15", "12.1-22")
@needs("in_process")
@DURABILITIES
@pytest.mark.parametrize("scope", ["Instance", "Cluster"])
def test_with_a_scope_a_name_that_is_left_out_is_generated(durability: str, scope: str) -> None:
    assert name("Orders", BLUE_1, subscriptionScope=scope, subscriptionDurability=durability)


@requirement("12.1-16", "12.1.2-2")
@needs("in_process")
@DURABILITIES
def test_with_the_scope_of_an_instance_a_given_name_becomes_a_part(durability: str) -> None:
    found = name("Orders", BLUE_1, subscriptionScope="Instance", subscriptionName="mine", subscriptionDurability=durability)
    assert "mine" in found
    assert found != "mine"
    assert "server-1" in found
    assert "Orders" not in found


@requirement("12.1-17")
@needs("in_process")
@DURABILITIES
def test_with_the_scope_of_the_cluster_a_given_name_is_the_name(durability: str) -> None:
    terms: dict[str, object] = {"subscriptionScope": "Cluster", "subscriptionName": "s", "subscriptionDurability": durability}
    assert name("Orders", BLUE_1, **terms) == "s"


@requirement("12.1.1.2-1", "12.1.1.2-2")
@needs("in_process")
def test_the_scope_of_the_cluster_means_a_shared_subscription() -> None:
    plain = subscribed("Orders", BLUE_1, subscriptionScope="Cluster")
    durable = subscribed("Orders", BLUE_1, subscriptionScope="Cluster", subscriptionDurability="Durable")
    assert (plain.kind, durable.kind) == (SubscriptionKind.SHARED, SubscriptionKind.SHARED_DURABLE)


@requirement("12.1.1.2-3", "12.1.1.4-1")
@needs("in_process")
@DURABILITIES
def test_in_a_cluster_one_name_is_one_endpoints(durability: str) -> None:
    terms: dict[str, object] = {"subscriptionScope": "Cluster", "subscriptionDurability": durability}
    assert name("A", BLUE_1, **terms) == name("A", BLUE_2, **terms)
    assert name("B", BLUE_1, **terms) == name("B", BLUE_2, **terms)
    assert len({name("A", BLUE_1, **terms), name("B", BLUE_1, **terms), name("A", GREEN_1, **terms)}) == 3


@requirement("12.1.1.3-2", "12.1.1.4-1")
@needs("in_process")
@DURABILITIES
def test_with_the_scope_of_an_instance_each_endpoint_of_each_instance_has_a_name(durability: str) -> None:
    terms: dict[str, object] = {"subscriptionScope": "Instance", "subscriptionDurability": durability}
    assert len({name(endpoint, server, **terms) for endpoint in "AB" for server in (BLUE_1, BLUE_2, GREEN_1)}) == 6


@requirement("12.1.1.4-2")
@needs("in_process")
@DURABILITIES
@pytest.mark.parametrize("scope", ["Instance", "Cluster"])
def test_outside_of_a_cluster_each_endpoint_of_each_instance_has_a_name(durability: str, scope: str) -> None:
    terms: dict[str, object] = {"subscriptionScope": scope, "subscriptionDurability": durability}
    assert len({name(endpoint, server, **terms) for endpoint in "AB" for server in (ALONE_1, ALONE_2)}) == 4


@requirement("12.1.1.5-1")
@needs("in_process")
@pytest.mark.parametrize(
    ("endpoint", "server"), [("x" * 300, "y" * 300), ("shop/Orders[ü]", "server\n1"), ("a b", "c d"), ("ä", "")]
)
def test_a_generated_name_is_valid_whatever_it_is_made_from(endpoint: str, server: str) -> None:
    found = [name(endpoint + end, ServerInstance(server + "!"), subscriptionScope="Instance") for end in ("", "/", "?", "1")]
    for one in found:
        assert len(one) <= 128
        assert one.isascii()
        assert all(character.isalnum() or character in "_.-" for character in one)
    assert len(set(found)) == 4


@requirement("12.1.1.5-2", "12.1.1.5-3", "12.1.2-1")
@needs("in_process")
def test_a_generated_name_can_be_read_and_stays_the_same() -> None:
    terms: dict[str, object] = {"subscriptionScope": "Instance", "subscriptionDurability": "Durable"}
    found = name("Orders", BLUE_1, **terms)
    assert "Orders" in found
    assert "server-1" in found
    assert found == name("Orders", ServerInstance("server-1", "blue"), **terms, messageSelector="a = 1", prefetch=1)
    # Written down, since another one after an upgrade would leave what is durable behind.
    assert found == "Orders-server-1-blue-f24b2840deb46168"


# ---- endpoints at work


def kept(factory: ConnectionFactory, topic: Topic, server: ServerInstance, **terms: Any) -> tuple[Script, Any]:
    """Give a script and its deployment, which is not started yet."""
    script = Script()
    return script, deployed(factory, script, topic, server=server, transactionAttribute="NotSupported", **terms)


@requirement("12.1-10")
def test_a_subscription_is_not_durable_unless_that_is_said(
    factory: ConnectionFactory, topic: Topic, other_session: Session
) -> None:
    script, deployment = kept(factory, topic, ALONE_1)
    with deployment:
        send_texts(other_session, topic, "one")
        script.wait_for(1)
    send_texts(other_session, topic, "missed")
    later, deployment = kept(factory, topic, ALONE_1)
    with deployment:
        send_texts(other_session, topic, "two")
        assert later.wait_for_texts(1) == ["two"]


@requirement("12.1-13")
@needs("shared_durable_subscription", "unsubscribe", "shared_unsubscribe")
def test_a_durable_subscription_has_the_name_that_is_given(
    factory: ConnectionFactory, topic: Topic, names: Names, other_session: Session
) -> None:
    subscription = names.subscription()
    terms = {"subscriptionDurability": "Durable", "subscriptionName": subscription}
    script, deployment = kept(factory, topic, ALONE_1, **terms)
    with deployment:
        send_texts(other_session, topic, "one")
        script.wait_for(1)
    send_texts(other_session, topic, "kept")
    later, deployment = kept(factory, topic, ALONE_1, **terms)
    with deployment:
        assert later.wait_for_texts(1) == ["kept"]
    other_session.unsubscribe(subscription)
    send_texts(other_session, topic, "missed")
    anew, deployment = kept(factory, topic, ALONE_1, **terms)
    with deployment:
        send_texts(other_session, topic, "two")
        assert anew.wait_for_texts(1) == ["two"]


@requirement("12.1-14", "12.1.1.1-1")
@pytest.mark.parametrize("terms", [{}, {"subscriptionName": "s"}], ids=["no name", "name"])
def test_without_a_scope_a_name_is_not_needed(
    factory: ConnectionFactory, topic: Topic, other_session: Session, terms: dict[str, object]
) -> None:
    script, deployment = kept(factory, topic, ALONE_1, **terms)
    with deployment:
        send_texts(other_session, topic, "m")
        assert script.wait_for_texts(1) == ["m"]


@requirement("12.1-19", "12.1.1.3-1")
@needs("shared_subscription")
def test_with_the_scope_of_an_instance_each_gets_each_message(
    factory: ConnectionFactory, topic: Topic, other_session: Session
) -> None:
    both_get_it(factory, topic, other_session, BLUE_1, BLUE_2, "Instance")


@requirement("12.1-21")
@needs("shared_subscription")
def test_outside_of_a_cluster_its_scope_means_the_instances_own(
    factory: ConnectionFactory, topic: Topic, other_session: Session
) -> None:
    both_get_it(factory, topic, other_session, ALONE_1, ALONE_2, "Cluster")


def both_get_it(
    factory: ConnectionFactory, topic: Topic, session: Session, one: ServerInstance, other: ServerInstance, scope: str
) -> None:
    """See that two servers get one message each."""
    first, first_deployment = kept(factory, topic, one, subscriptionScope=scope)
    second, second_deployment = kept(factory, topic, other, subscriptionScope=scope)
    with first_deployment, second_deployment:
        send_texts(session, topic, "m")
        assert (first.wait_for_texts(1), second.wait_for_texts(1)) == (["m"], ["m"])


@requirement("12.1-20")
@needs("shared_subscription")
def test_in_a_cluster_its_scope_means_one_subscription(factory: ConnectionFactory, topic: Topic, other_session: Session) -> None:
    first, first_deployment = kept(factory, topic, BLUE_1, subscriptionScope="Cluster")
    second, second_deployment = kept(factory, topic, BLUE_2, subscriptionScope="Cluster")
    texts = [str(number) for number in range(10)]
    with first_deployment, second_deployment:
        send_texts(other_session, topic, *texts)
        eventually(lambda: len(first.seen) + len(second.seen) >= 10, "ten messages are handled")
    assert sorted([*map(str, first.texts), *map(str, second.texts)]) == texts
