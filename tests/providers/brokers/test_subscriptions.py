"""What a process knows of its named subscriptions, over both wires."""

from dataclasses import replace

import pytest

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_brokers.subscriptions import BrokerRegistry, ClientIds, SubscriptionKey, SubscriptionRegistry

NEWS = Address(DestinationKind.TOPIC, "news")
ALONE = ConsumerSpec(NEWS, subscription="s", durable=True)
SHARED = ConsumerSpec(NEWS, subscription="s", durable=True, shared=True)
KEY = SubscriptionKey(1, "me", "s", True)
PASSING = SubscriptionKey(1, "me", "s", False)


def refusal(registry: SubscriptionRegistry, spec: ConsumerSpec) -> ErrorKind:
    with pytest.raises(ProviderError) as refused:
        registry.enter(KEY, spec, "subscribe")
    return refused.value.kind


def test_both_wires_of_a_broker_are_one_broker_and_other_ports_are_others() -> None:
    brokers = BrokerRegistry()
    first = brokers.number("artemis", "localhost", "", "amqp", 5672)
    assert brokers.number("artemis", "localhost", "", "stomp", 61613) == first
    assert brokers.number("artemis", "localhost", "", "amqp", 5672) == first
    second = brokers.number("artemis", "localhost", "", "amqp", 5673)
    assert second != first
    assert brokers.number("artemis", "localhost", "", "stomp", 5673) == second
    assert len({first, second, brokers.number("classic", "localhost", "", "amqp", 5672)}) == 3
    assert brokers.number("artemis", "elsewhere", "", "amqp", 5672) not in (first, second)
    assert brokers.number("artemis", "localhost", "other", "amqp", 5672) not in (first, second)


def test_an_unshared_subscription_has_one_consumer() -> None:
    registry = SubscriptionRegistry()
    assert not registry.enter(KEY, ALONE, "subscribe")
    assert refusal(registry, ALONE) is ErrorKind.IN_USE
    assert registry.leave(KEY)
    assert not registry.enter(KEY, ALONE, "subscribe")


def test_a_name_is_of_one_kind_until_it_is_ended() -> None:
    registry = SubscriptionRegistry()
    registry.enter(KEY, SHARED, "subscribe")
    registry.opened(KEY)
    assert refusal(registry, ALONE) is ErrorKind.MISMATCH
    registry.leave(KEY)
    assert registry.shared(KEY) is True
    assert refusal(registry, ALONE) is ErrorKind.MISMATCH
    registry.forget(KEY)
    assert registry.shared(KEY) is None
    assert not registry.enter(KEY, ALONE, "subscribe")


def test_a_shared_subscription_is_not_changed_while_it_is_used() -> None:
    registry = SubscriptionRegistry()
    registry.enter(KEY, SHARED, "subscribe")
    registry.opened(KEY)
    other = replace(SHARED, selector="a = 1")
    assert refusal(registry, other) is ErrorKind.MISMATCH
    registry.enter(KEY, SHARED, "subscribe")
    assert not registry.leave(KEY)
    assert registry.leave(KEY)
    assert registry.enter(KEY, other, "subscribe"), "it is to be replaced"
    registry.leave(KEY)
    assert registry.enter(KEY, other, "subscribe"), "no consumer of the new kind was there yet"
    registry.opened(KEY)
    registry.leave(KEY)
    assert not registry.enter(KEY, other, "subscribe")


def test_terms_count_as_the_application_gave_them() -> None:
    registry = SubscriptionRegistry()
    registry.enter(KEY, replace(SHARED, selector=None, terms="a = 1"), "subscribe")
    assert not registry.enter(KEY, replace(SHARED, selector="a = 1"), "subscribe")


def test_a_refused_consumer_does_not_count() -> None:
    registry = SubscriptionRegistry()
    registry.enter(KEY, ALONE, "subscribe")
    refusal(registry, ALONE)
    assert registry.leave(KEY)
    assert not registry.active(KEY)


def test_a_passing_subscription_ends_with_its_last_consumer_and_rests() -> None:
    registry = SubscriptionRegistry()
    assert registry.quiet_for(PASSING) is None
    registry.enter(PASSING, replace(SHARED, durable=False), "subscribe")
    registry.opened(PASSING)
    assert registry.quiet_for(PASSING) is None
    registry.leave(PASSING)
    assert (registry.quiet_for(PASSING) or 0) < 5
    assert registry.shared(PASSING) is None
    assert not registry.enter(PASSING, replace(SHARED, durable=False, selector="b = 2"), "subscribe")


def test_a_subscription_that_never_came_to_be_is_not_known() -> None:
    registry = SubscriptionRegistry()
    registry.enter(KEY, ALONE, "subscribe")
    registry.leave(KEY)
    assert registry.shared(KEY) is None
    assert not registry.enter(KEY, SHARED, "subscribe")


def test_a_client_id_is_taken_once_a_broker() -> None:
    ids = ClientIds()
    ids.claim(1, "me")
    ids.claim(2, "me")
    with pytest.raises(ProviderError) as refused:
        ids.claim(1, "me")
    assert (refused.value.kind, refused.value.fatal) == (ErrorKind.CLIENT_ID, True)
    ids.release(1, "me")
    ids.claim(1, "me")
