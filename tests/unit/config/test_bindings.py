"""Definition annotations bind names that lookup finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import jmsapi
from jmsapi import (
    ConnectionFactory,
    JMSConnectionFactoryDefinition,
    JMSConnectionFactoryDefinitions,
    JMSDestinationDefinition,
    JMSDestinationDefinitions,
    JMSException,
    Queue,
    Topic,
)
from jmsapi.bindings import bind_definitions


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    for name in ("main", "orders", "news"):
        with pytest.raises(JMSException, match="nothing is registered"):
            jmsapi.lookup(name)


def defined(*definitions: Any) -> type:
    target = type("Application", (), {})
    for one in definitions:
        one(target)
    return target


def factory(**attributes: Any) -> JMSConnectionFactoryDefinition:
    return JMSConnectionFactoryDefinition(name="main", **attributes)


def refused(code: str, *definitions: Any) -> str:
    with pytest.raises(JMSException) as caught:
        bind_definitions(defined(*definitions))
    assert caught.value.error_code == code
    return str(caught.value)


def test_what_is_defined_is_found_until_the_bindings_are_closed() -> None:
    @JMSDestinationDefinitions(
        [
            JMSDestinationDefinition(name="orders", interface_name="jakarta.jms.Queue", destination_name="shop.orders"),
            JMSDestinationDefinition(name="news", interface_name="Topic"),
        ]
    )
    @JMSConnectionFactoryDefinitions([factory(properties=["url=inproc://definitions"], client_id="me")])
    class Shop:
        pass

    with bind_definitions(Shop, object) as bindings:
        assert set(bindings.names) == {"orders", "news", "main"}
        assert jmsapi.lookup("orders", Queue).queue_name == "shop.orders"
        assert jmsapi.lookup("news", Topic).topic_name == "news"
        with jmsapi.lookup("main", ConnectionFactory).create_connection() as connection:
            assert connection.client_id == "me"


def test_without_a_name_of_its_own_a_destination_has_that_of_its_binding() -> None:
    name = "java:global/jms/orders"
    with bind_definitions(defined(JMSDestinationDefinition(name=name, interface_name="Queue"))):
        assert jmsapi.lookup(name, Queue).queue_name == "jms/orders"


@pytest.mark.parametrize(
    "attributes",
    [
        {"properties": ["url=stomp://broker.example:61613", "prefetch=7"]},
        {"resource_adapter": "stomp://broker.example:61613?prefetch=7"},
        {"resource_adapter": "stomp", "properties": ["host=broker.example", "port=61613", "prefetch=7"]},
        {"properties": ["url=stomp://${HOST_OF_TEST}:61613?prefetch=7"]},
    ],
    ids=["url", "adapter", "scheme", "reference"],
)
@pytest.mark.parametrize("kind", ["ConnectionFactory", "jakarta.jms.QueueConnectionFactory", "javax.jms.TopicConnectionFactory"])
def test_a_factory_says_where_it_leads_in_several_ways(
    monkeypatch: pytest.MonkeyPatch, attributes: dict[str, Any], kind: str
) -> None:
    monkeypatch.setenv("HOST_OF_TEST", "broker.example")
    with bind_definitions(defined(factory(interface_name=kind, **attributes))):
        assert "stomp://broker.example:61613" in repr(jmsapi.lookup("main"))


def test_a_password_may_be_a_reference_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = factory(properties=["url=inproc://definitions", "nonsense=1"], user="ann", password="hunter2")
    assert "hunter2" not in refused("unknown-option", secret)
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    missing = factory(properties=["url=inproc://definitions"], user="ann", password="${NO_SUCH_PASSWORD}")
    assert "NO_SUCH_PASSWORD" in refused("missing-variable", missing)


@pytest.mark.parametrize(
    ("definition", "word"),
    [
        (factory(), "url="),
        (factory(properties=["url"]), "name=value"),
        (factory(properties=["url=inproc://a", "url=inproc://b"]), "once"),
        (factory(resource_adapter="inproc", interface_name="XAConnectionFactory"), "interface_name"),
        (factory(resource_adapter="inproc", class_name="com.acme.Factory"), "class_name"),
        (factory(resource_adapter="inproc", max_pool_size=3), "jmsapi.pool"),
        (factory(resource_adapter="inproc", transactional=False), "transactional"),
        (JMSDestinationDefinition(name="orders", interface_name="Destination"), "Queue, Topic"),
        (JMSDestinationDefinition(name="orders", interface_name="Queue", properties=["a=b"]), "properties"),
        (JMSDestinationDefinition(name="", interface_name="Queue"), "no name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_had_is_refused(definition: Any, word: str) -> None:
    assert word in refused("bad-definition", definition)


def test_a_name_is_bound_once_and_nothing_if_one_is_taken() -> None:
    orders = JMSDestinationDefinition(name="orders", interface_name="Queue")
    news = JMSDestinationDefinition(name="news", interface_name="Topic")
    with bind_definitions(defined(orders)):
        refused("name-taken", news, orders)
        with pytest.raises(JMSException):
            jmsapi.lookup("news")
        assert jmsapi.lookup("orders", Queue)
    refused("name-taken", orders, JMSDestinationDefinition(name="orders", interface_name="Topic"))


def test_a_binding_that_was_replaced_is_left_alone() -> None:
    first = bind_definitions(defined(JMSDestinationDefinition(name="orders", interface_name="Queue")))
    jmsapi.register_object("orders", None)
    second = bind_definitions(defined(JMSDestinationDefinition(name="orders", interface_name="Topic")))
    first.close()
    first.close()
    assert jmsapi.lookup("orders", Topic)
    second.close()
