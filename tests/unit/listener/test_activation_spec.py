"""Activation properties: both names of each, what is wrong with them, and what follows from them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jmsapi.listener import (
    AcknowledgeMode,
    ActivationSpec,
    DeploymentException,
    DestinationType,
    Durability,
    RedeliveryAction,
    ServerInstance,
    Subscription,
    SubscriptionKind,
    SubscriptionScope,
    TransactionAttribute,
    subscription_of,
)
from jmsapi.listener.subscription_name import VALID_NAME, generated_name

QUEUE = {"destinationLookup": "orders", "destinationType": "javax.jms.Queue"}
TOPIC = {"destinationLookup": "news", "destinationType": "javax.jms.Topic"}


def spec(**properties: object) -> ActivationSpec:
    return ActivationSpec.from_properties({**TOPIC, **properties}, "shop.News")


def refused(code: str, properties: dict[str, Any]) -> str:
    with pytest.raises(DeploymentException) as caught:
        ActivationSpec.from_properties(properties, "shop.Orders")
    assert caught.value.error_code == code
    assert str(caught.value).startswith("shop.Orders: ")
    return str(caught.value)


def test_each_property_goes_by_both_of_its_names() -> None:
    values = {
        "destinationLookup": "orders",
        "destinationType": "javax.jms.Topic",
        "connectionFactoryLookup": "cf",
        "acknowledgeMode": "Dups-ok-acknowledge",
        "messageSelector": "a = 1",
        "subscriptionDurability": "Durable",
        "clientId": "me",
        "subscriptionName": "s",
        "transactionAttribute": "Bean",
        "stopDeadlineMs": "5000",
        "redeliveryBackoff": "2.5",
        "orderedByGroup": "true",
    }
    by_jms_name = ActivationSpec.from_properties(values, "x")
    by_python_name = ActivationSpec.from_properties({re.sub("([A-Z])", r"_\1", n).lower(): v for n, v in values.items()}, "x")
    assert by_jms_name == by_python_name
    assert by_jms_name.destination_type is DestinationType.TOPIC
    assert by_jms_name.acknowledge_mode is AcknowledgeMode.DUPS_OK
    assert by_jms_name.subscription_durability is Durability.DURABLE
    assert by_jms_name.transaction_attribute is TransactionAttribute.BEAN
    assert (by_jms_name.stop_deadline_ms, by_jms_name.redelivery_backoff, by_jms_name.ordered_by_group) == (5000, 2.5, True)


@pytest.mark.parametrize("text", ["javax.jms.Queue", "jakarta.jms.Queue", "Queue", "queue"])
def test_a_destination_type_is_read_in_each_spelling(text: str) -> None:
    assert ActivationSpec.from_properties({**QUEUE, "destinationType": text}, "x").destination_type is DestinationType.QUEUE


@pytest.mark.parametrize("text", ["javax.jms.queue", "com.acme.Queue", "QUEUE", "Stack", "", 5])
def test_another_destination_type_is_refused(text: object) -> None:
    assert "destinationType: " in refused("bad-activation", {**QUEUE, "destinationType": text})


@pytest.mark.parametrize(("text", "fewest", "most"), [("1", 1, 1), ("2-10", 2, 10), (" 3 - 4 ", 3, 4), (5, 5, 5), ("7-7", 7, 7)])
def test_concurrency_is_one_number_or_two(text: object, fewest: int, most: int) -> None:
    found = ActivationSpec.from_properties({**QUEUE, "concurrency": text}, "x")
    assert (found.min_consumers, found.max_consumers) == (fewest, most)


@pytest.mark.parametrize("text", ["0", "10-2", "2-", "-2", "two", "1-2-3", "", True, 1.5, None])
def test_another_concurrency_is_refused(text: object) -> None:
    assert "as in '2-10'" in refused("bad-activation", {**QUEUE, "concurrency": text})


@pytest.mark.parametrize(
    ("properties", "fix"),
    [
        ({"destinationLookup": "q"}, "set it to javax.jms.Queue or javax.jms.Topic"),
        ({"destinationType": "queue"}, "set destinationLookup"),
        ({**QUEUE, "destination": "q"}, "leave one of them out"),
        ({**QUEUE, "acknowledgeMode": "Client"}, "'Auto-acknowledge' or 'Dups-ok-acknowledge'"),
        ({**TOPIC, "subscriptionDurability": "Sometimes"}, "'Durable' or 'NonDurable'"),
        ({**TOPIC, "subscriptionScope": "Galaxy"}, "'Instance' or 'Cluster'"),
        ({**TOPIC, "subscriptionScope": "Cluster", "clientId": "a"}, "leave out clientId"),
        ({**TOPIC, "subscriptionDurability": "Durable"}, "needs subscriptionName, or a subscriptionScope"),
        (
            {**TOPIC, "subscriptionDurability": "Durable", "subscriptionName": "s", "clientId": "a", "concurrency": "2"},
            "set concurrency to 1, or leave out clientId",
        ),
        ({**TOPIC, "subscriptionName": "a b"}, "letters, digits, underscore, dot, minus"),
        ({**TOPIC, "subscriptionName": "x" * 129}, "1 to 128 characters"),
        ({**QUEUE, "subscriptionName": "s"}, "subscriptionName is for topics: leave it out"),
        ({**QUEUE, "subscriptionDurability": "Durable"}, "subscriptionDurability is for topics"),
        ({**QUEUE, "subscriptionScope": "Cluster"}, "subscriptionScope is for topics"),
        ({**QUEUE, "messageSelector": "price >"}, "messageSelector: "),
        ({**QUEUE, "redeliveryLimit": "3"}, "set deadLetterDestination, or redeliveryAction to Delete"),
        ({**QUEUE, "redeliveryAction": "Delete"}, "need redeliveryLimit"),
        ({**QUEUE, "redeliveryLimit": 1, "redeliveryAction": "Forward"}, "needs deadLetterDestination"),
        ({**QUEUE, "redeliveryLimit": 1, "redeliveryAction": "Delete", "deadLetterDestination": "d"}, "leave one of them out"),
        ({**QUEUE, "prefetch": "-1"}, "prefetch: "),
        ({**QUEUE, "redeliveryJitter": 2}, "redeliveryJitter: "),
        ({**QUEUE, "destination_lookup": "q"}, "destinationLookup is given twice"),
    ],
)
def test_what_is_wrong_is_said_with_the_fix(properties: dict[str, Any], fix: str) -> None:
    assert fix in refused("bad-activation", properties)


def test_an_unknown_property_is_refused_with_the_nearest_that_is_known() -> None:
    assert "did you mean 'concurrency'" in refused("unknown-property", {**QUEUE, "concurency": "3"})
    assert "unknown activation property 'foo1'" in refused("unknown-property", {**QUEUE, "foo1": "bar1"})


def test_a_queue_may_be_said_to_be_what_it_is() -> None:
    assert not ActivationSpec.from_properties({**QUEUE, "subscriptionDurability": "NonDurable"}, "x").durable


def test_a_dead_letter_destination_alone_means_to_forward() -> None:
    found = ActivationSpec.from_properties({**QUEUE, "redeliveryLimit": "2", "deadLetterDestination": "dlq"}, "x")
    assert found.action_at_limit is RedeliveryAction.FORWARD
    assert ActivationSpec.from_properties(QUEUE, "x").action_at_limit is None


def test_a_blank_selector_is_none() -> None:
    assert spec(messageSelector="  ").message_selector is None


# ---- subscriptions ----------------------------------------------------------------------------------------------------
A1, A2 = ServerInstance("server-1", "blue"), ServerInstance("server-2", "blue")
B1 = ServerInstance("server-1", "green")
LONE1, LONE2 = ServerInstance("server-1"), ServerInstance("server-2")
NAMELESS = ServerInstance()


def name(found: Subscription | None) -> str:
    assert found is not None
    assert found.name is not None
    return found.name


def test_a_queue_has_no_subscription() -> None:
    assert subscription_of(ActivationSpec.from_properties(QUEUE, "x"), "x", NAMELESS) is None


def test_without_a_scope_the_kind_follows_from_durability_client_id_and_concurrency() -> None:
    durable = {"subscriptionDurability": "Durable", "subscriptionName": "s"}
    assert subscription_of(spec(), "E", NAMELESS) == Subscription(SubscriptionKind.UNSHARED, None)
    assert subscription_of(spec(subscriptionName="s"), "E", NAMELESS) == Subscription(SubscriptionKind.UNSHARED, None)
    assert subscription_of(spec(**durable, clientId="c"), "E", NAMELESS) == Subscription(SubscriptionKind.UNSHARED_DURABLE, "s")
    assert subscription_of(spec(**durable), "E", NAMELESS) == Subscription(SubscriptionKind.SHARED_DURABLE, "s")


def test_several_consumers_of_a_topic_share_a_subscription_so_that_no_message_comes_to_each() -> None:
    found = subscription_of(spec(concurrency="2-10"), "E", NAMELESS)
    assert found is not None
    assert found.kind is SubscriptionKind.SHARED
    assert found.name == name(subscription_of(spec(concurrency="2-10"), "E", NAMELESS))
    assert found.name != name(subscription_of(spec(concurrency="2-10"), "F", NAMELESS))


def test_a_durable_name_is_generated_only_where_it_can_be_found_again() -> None:
    durable = spec(subscriptionDurability="Durable", subscriptionScope="Instance")
    with pytest.raises(DeploymentException, match="JMSAPI_SERVER_NAME") as caught:
        subscription_of(durable, "E", NAMELESS)
    assert caught.value.error_code == "no-server-name"
    cluster = spec(subscriptionDurability="Durable", subscriptionScope="Cluster")
    assert name(subscription_of(cluster, "E", ServerInstance(None, "blue")))


def test_the_scope_says_whose_a_generated_name_is() -> None:
    for durability in ("Durable", "NonDurable"):
        cluster = spec(subscriptionDurability=durability, subscriptionScope="Cluster")
        instance = spec(subscriptionDurability=durability, subscriptionScope="Instance")
        assert name(subscription_of(cluster, "E", A1)) == name(subscription_of(cluster, "E", A2))
        different = [
            name(subscription_of(found, endpoint, server))
            for found, endpoint, server in [
                (cluster, "E", A1),
                (cluster, "F", A1),
                (cluster, "E", B1),
                (cluster, "E", LONE1),
                (cluster, "E", LONE2),
                *((instance, endpoint, server) for endpoint in ("E", "F") for server in (A1, A2, B1)),
            ]
        ]
        assert len(set(different)) == len(different)


def test_a_given_name_is_the_clusters_or_becomes_part_of_the_instances() -> None:
    cluster = spec(subscriptionScope="cluster", subscriptionName="s")
    assert cluster.subscription_scope is SubscriptionScope.CLUSTER
    assert name(subscription_of(cluster, "E", A1)) == "s"
    instance = spec(subscriptionScope="instance", subscriptionName="mine", subscriptionDurability="Durable")
    found = name(subscription_of(instance, "Endpoint", A1))
    assert "mine" in found
    assert "server-1" in found
    assert "Endpoint" not in found


@pytest.mark.parametrize("parts", [("ö" * 300, "server\n"), ("a/b", "c"), ("x" * 500, "y" * 500, "z" * 500), ("", "")])
def test_a_generated_name_is_valid(parts: tuple[str, ...]) -> None:
    assert VALID_NAME.fullmatch(generated_name(*parts))


def test_generated_names_that_look_alike_differ_and_stay_readable() -> None:
    names = {
        generated_name(*parts)
        for parts in [("a/b", "c"), ("a?b", "c"), ("a", "bc"), ("ab", "c"), ("a", "b", "c"), ("x" * 200, "c")]
    }
    assert len(names) == 6
    assert len({generated_name("x" * count, "c") for count in range(100, 200)}) == 100
    assert generated_name("shop.Orders", "server-1").startswith("shop.Orders-server-1-")


def test_a_server_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_SERVER_NAME", "s1")
    monkeypatch.setenv("JMSAPI_CLUSTER_NAME", "")
    assert ServerInstance.from_environment() == ServerInstance("s1", None)
