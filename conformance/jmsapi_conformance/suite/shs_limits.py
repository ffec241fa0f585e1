"""Shared subscriptions: how many consumers there may be."""

from typing import Any

import pytest

import jmsapi
from jmsapi import JMSException, Session, Topic
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import receive, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import each_shared_kind, in_total, received_between, subscribe
from jmsapi_conformance.suite._two_apis import refused

OPTIONS = {"jmsapi in-process": "max_shared_consumers", "rabbitmq": "rabbit_max_shared_consumers"}
"""By broker, what limits the consumers; elsewhere, and in providers that do not have it, there is no limit to set."""


@requirement("SHS-25")
@each_shared_kind
def test_the_consumers_of_a_shared_subscription_can_be_limited(
    backend: Backend, connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    skip_without_the_option(backend)
    name = names.subscription()
    consumers = [subscribe(limited(backend, connect, 2), kind, topic, name) for _ in range(2)]
    third = limited(backend, connect, 2)
    with refused(third):
        subscribe(third, kind, topic, name)
    send_texts(other_session, topic, *map(str, range(10)))
    assert in_total(received_between(consumers, 10)) == sorted(map(str, range(10)))


@requirement("SHS-26")
def test_without_an_option_there_is_no_limit(backend: Backend) -> None:
    skip_without_the_option(backend)
    assert option_of(backend) == -1


@requirement("SHS-26")
@each_shared_kind
def test_fifty_consumers_share(connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str) -> None:
    name = names.subscription()
    connections = [connect(prefetch=1) for _ in range(5)]
    consumers = [subscribe(connections[number % 5].create_session(), kind, topic, name) for number in range(50)]
    send_texts(other_session, topic, *map(str, range(200)))
    received = received_between(consumers, 200)
    assert in_total(received) == sorted(map(str, range(200)))
    assert all(received)
    for consumer in consumers:
        consumer.close()


@requirement("SHS-27")
@each_shared_kind
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE])
def test_closing_a_consumer_makes_room_for_another(
    backend: Backend, connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, mode: int
) -> None:
    skip_without_the_option(backend)
    name = names.subscription()
    for text in ("1", "2"):
        session = limited(backend, connect, 1, mode)
        consumer = subscribe(session, kind, topic, name)
        with refused(session):
            subscribe(session, kind, topic, name)
        send_texts(other_session, topic, text)
        message = receive(consumer)
        assert text_of(message) == text
        message.acknowledge()
        consumer.close()


@requirement("SHS-28")
@needs("shared_durable_subscription", "shared_subscription")
def test_the_limit_holds_for_each_subscription_by_itself(backend: Backend, connect: Connect, topic: Topic, names: Names) -> None:
    skip_without_the_option(backend)
    first, second = names.subscription(), names.subscription()
    session = limited(backend, connect, 1)
    for kind, name in (("shared durable", first), ("shared durable", second), ("shared", first), ("shared", second)):
        subscribe(session, kind, topic, name)
    for kind, name in (("shared durable", first), ("shared", first)):
        with refused(session):
            subscribe(session, kind, topic, name)


def limited(backend: Backend, connect: Connect, most: int, mode: int = Session.AUTO_ACKNOWLEDGE) -> Session:
    """Create a session of a connection with a limit."""
    options: dict[str, Any] = {OPTIONS[backend.capabilities.broker]: most}
    return connect(**options).create_session(mode)


def option_of(backend: Backend) -> object:
    """Return the default of the limit, or None where the provider has no such option."""
    scheme = backend.url.partition(":")[0]
    for entry in jmsapi.known_providers().values():
        if not isinstance(entry, JMSException) and scheme in entry.schemes:
            field = entry.options().model_fields.get(OPTIONS.get(backend.capabilities.broker, ""))
            return None if field is None else field.default
    raise AssertionError(f"no provider knows the scheme {scheme!r}")


def skip_without_the_option(backend: Backend) -> None:
    """End the test where consumers cannot be limited."""
    if option_of(backend) is None:
        pytest.skip("this provider cannot limit the consumers of a shared subscription here")
