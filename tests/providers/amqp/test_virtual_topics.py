"""Shared durable subscriptions on Classic over AMQP, through virtual topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

import jmsapi
from jmsapi.spi import Address, DestinationKind, ErrorKind, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]
SHARED = {"subscription": "s", "durable": True, "shared": True}
VIRTUAL = {"classic_virtual_topics": True}


@pytest.fixture
def topic() -> Address:
    return Address(DestinationKind.TOPIC, f"amqp.v.{uuid.uuid4().hex}")


def bodies(deliveries: list[Any]) -> list[str]:
    return sorted(delivery.envelope.body for delivery in deliveries)


@pytest.mark.parametrize("client_id", [None, "with client id"])
def test_members_on_two_connections_share_and_nobody_else_misses_anything(
    classic: Broker, dial: Dial, topic: Address, client_id: str | None
) -> None:
    one, other = dial(classic, **VIRTUAL), dial(classic, **VIRTUAL)
    if client_id is not None:
        # One client id is one connection on Classic: its sessions share.
        one = other = dial(classic, **VIRTUAL, client_id=topic.name)
    plain = one.consumer(topic)
    members = [(line, line.consumer(topic, credit=10, **SHARED)) for line in (one, other)]
    for number in range(20):
        one.send(topic, f"{number:02}")
    shares = [line.receive(member, 10, credit=False) for line, member in members]
    assert bodies(shares[0] + shares[1]) == [f"{number:02}" for number in range(20)]
    assert {delivery.envelope.destination for delivery in shares[0]} == {topic}
    assert bodies(one.receive(plain, 20)) == [f"{number:02}" for number in range(20)]
    assert not one.capabilities.shared_subscription


def test_it_keeps_what_comes_while_nobody_listens(classic: Broker, dial: Dial, topic: Address) -> None:
    line = dial(classic, **VIRTUAL)
    line.provider.release(line.consumer(topic, **SHARED)).result(30)
    line.send(topic, "kept")
    assert line.receive(line.consumer(topic, **SHARED))[0].envelope.body == "kept"


def test_what_a_members_selector_does_not_want_leaves_the_queue(classic: Broker, dial: Dial, topic: Address) -> None:
    line = dial(classic, **VIRTUAL)
    member = line.consumer(topic, selector="n > 1", **SHARED)
    for number in range(300):  # more than goes ahead
        line.send(topic, str(number), properties={"n": number % 3} if number % 4 else {})
    line.send(topic, "last", properties={"n": 2})
    wanted = [str(number) for number in range(300) if number % 4 and number % 3 == 2]
    assert bodies(line.receive(member, len(wanted) + 1)) == sorted([*wanted, "last"])
    line.provider.release(member).result(30)
    # Over the queue's own name: nothing of it is left.
    rest = line.consumer(Address(DestinationKind.QUEUE, f"Consumer.-s.VirtualTopic.{topic.name}"))
    assert line.nothing_more(rest)


def test_members_must_agree_and_the_name_is_of_one_kind(classic: Broker, dial: Dial, topic: Address) -> None:
    line = dial(classic, **VIRTUAL, client_id=topic.name)
    member = line.consumer(topic, selector="n > 1", **SHARED)
    for spec in (SHARED | {"selector": "n > 2"}, SHARED | {"shared": False}):
        with pytest.raises(ProviderError) as refused:
            line.consumer(topic, **spec)
        assert refused.value.kind is ErrorKind.MISMATCH
    line.provider.release(member).result(30)
    with pytest.raises(ProviderError, match="shared durable") as refused:
        line.consumer(topic, subscription="s", durable=True)
    assert refused.value.kind is ErrorKind.MISMATCH


@pytest.mark.requirement("6.11.4-7", "SHS-24")
def test_another_selector_makes_an_idle_subscription_anew(classic: Broker, dial: Dial, topic: Address) -> None:
    line = dial(classic, **VIRTUAL)
    line.provider.release(line.consumer(topic, **SHARED)).result(30)
    for number in range(250):
        line.send(topic, "of the old one", properties={"n": number % 2})
    member = line.consumer(topic, selector="n = 1", **SHARED)
    line.send(topic, "not selected", properties={"n": 0})
    line.send(topic, "new", properties={"n": 1})
    assert bodies(line.receive(member)) == ["new"]
    assert line.nothing_more(member)


def test_what_somebody_else_consumes_from_is_not_emptied(classic: Broker, dial: Dial, topic: Address) -> None:
    line, other = dial(classic, **VIRTUAL), dial(classic, **VIRTUAL)
    line.provider.release(line.consumer(topic, **SHARED)).result(30)
    line.send(topic, "kept", properties={"n": 1})
    other.consumer(Address(DestinationKind.QUEUE, f"Consumer.-s.VirtualTopic.{topic.name}"), selector="n = 2")
    assert bodies(line.receive(line.consumer(topic, selector="n = 1", **SHARED))) == ["kept"]


def test_a_reply_goes_to_the_topic_as_its_sender_calls_it(classic: Broker, dial: Dial, topic: Address) -> None:
    line, queue = dial(classic, **VIRTUAL), Address(DestinationKind.QUEUE, topic.name)
    line.send(queue, reply_to=topic)
    assert line.receive(line.consumer(queue))[0].envelope.reply_to == topic


def test_its_end_is_refused_with_the_reason(classic: Broker, dial: Dial, topic: Address) -> None:
    line = dial(classic, **VIRTUAL)
    member = line.consumer(topic, **SHARED)
    with pytest.raises(ProviderError) as refused:
        line.provider.remove(line.session(), "s").result(30)
    assert refused.value.kind is ErrorKind.IN_USE
    line.provider.release(member).result(30)
    with pytest.raises(ProviderError, match="cannot delete") as refused:
        line.provider.remove(line.session(), "s").result(30)
    assert refused.value.kind is ErrorKind.UNSUPPORTED


def test_members_over_stomp_and_amqp_share_one_subscription(classic: Broker, topic: Address) -> None:
    contexts = [
        jmsapi.connection_factory(classic.url(wire) + "?classic.virtual_topics=true").create_context()
        for wire in ("stomp", "amqp")
    ]
    try:
        members = [one.create_shared_durable_consumer(one.create_topic(topic.name), "s") for one in contexts]
        for number in range(20):
            contexts[number % 2].create_producer().send(contexts[number % 2].create_topic(topic.name), str(number))
        found: list[str] = []
        for member in members:
            while (body := member.receive_body(str, 500)) is not None:
                found.append(body)
        assert sorted(found, key=int) == [str(number) for number in range(20)]
    finally:
        for one in contexts:
            one.close()


def test_without_the_flag_the_provider_does_not_share_and_the_flag_is_named(classic: Broker, dial: Dial) -> None:
    """The library then shares by an emulation of its own, whatever the broker can do."""
    support = dial(classic).capabilities.shared_durable_subscription
    assert not support
    assert "classic.virtual_topics" in support.note


def test_a_broker_that_does_not_copy_is_found_out_before_anything_is_missed(
    classic: Broker, dial: Dial, topic: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic under another prefix stands for a broker whose operator took the default virtual topics away."""
    monkeypatch.setattr("jmsapi_brokers.classic.VIRTUAL_TOPIC_PREFIX", "NoVirtualTopic.")
    monkeypatch.setattr("jmsapi_amqp.brokers.classic_virtual._PATIENCE_S", 1.0)
    line = dial(classic, **VIRTUAL)
    with pytest.raises(ProviderError, match="does not copy") as refused:
        line.consumer(topic, **SHARED)
    assert refused.value.kind is ErrorKind.UNSUPPORTED
    line.send(topic, "alive")
