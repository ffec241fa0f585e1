"""Selectors, browsers, subscriptions and temporary destinations at the SPI, on each broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


def refusal(line: Any, address: Address, **spec: Any) -> ErrorKind:
    with pytest.raises(ProviderError) as refused:
        line.provider.open_consumer(line.session(), ConsumerSpec(address, **spec)).result(30)
    assert not refused.value.fatal
    kind: ErrorKind = refused.value.kind
    return kind


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in ("artemis", "classic")])
def jms_broker(request: pytest.FixtureRequest) -> Broker:
    """Give each of the brokers that follow the JMS mapping."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


def test_a_selector_sees_typed_properties_and_headers(jms_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(jms_broker)
    consumer = line.consumer(queue, selector="n > 2 AND JMSType = 'a'")
    line.send(queue, "no", properties={"n": 2}, jms_type="a")
    line.send(queue, "yes", properties={"n": 2.5}, jms_type="a")
    [delivery] = line.receive(consumer)
    assert delivery.envelope.body == "yes"
    assert line.nothing_more(consumer)
    line.receive(line.consumer(queue))


def test_a_selector_the_broker_cannot_read_is_refused_and_the_session_lives(
    jms_broker: Broker, dial: Dial, queue: Address
) -> None:
    line = dial(jms_broker)
    assert refusal(line, queue, selector="n >> 2") is ErrorKind.SELECTOR
    line.send(queue)
    line.receive(line.consumer(queue))


def test_a_browser_shows_everything_and_takes_nothing(jms_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(jms_broker)
    for number in range(150):
        line.send(queue, str(number), properties={"n": number}, delivery_mode=1)
    browser = line.consumer(queue, browse=True, selector="n >= 20")
    line.provider.credit(browser, 1000).result(30)
    line.provider.drain(browser).result(30)
    assert [delivery.envelope.body for delivery in line.events.waiting(browser)] == [str(n) for n in range(20, 150)]
    line.provider.release(browser).result(30)
    assert len(line.receive(line.consumer(queue), 150)) == 150


def test_a_queue_and_a_topic_of_one_name_are_two(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    topic = Address(DestinationKind.TOPIC, queue.name)
    from_queue, from_topic = line.consumer(queue), line.consumer(topic)
    line.send(queue, "q")
    line.send(topic, "t")
    assert [line.receive(consumer)[0].envelope.body for consumer in (from_queue, from_topic)] == ["q", "t"]
    assert line.nothing_more(from_queue)
    assert line.nothing_more(from_topic)


# ---------------------------------------------------------------- durable


def test_a_durable_subscription_keeps_what_comes_while_nobody_listens(each_broker: Broker, dial: Dial, topic: Address) -> None:
    line = dial(each_broker, client_id=f"c.{topic.name}")
    spec = {"subscription": "s", "durable": True}
    line.provider.release(line.consumer(topic, **spec)).result(30)
    line.send(topic, "kept")
    line.close()
    line = dial(each_broker, client_id=f"c.{topic.name}")
    consumer = line.consumer(topic, **spec)
    assert line.receive(consumer)[0].envelope.body == "kept"
    with pytest.raises(ProviderError) as refused:
        line.provider.remove(line.session(), "s").result(30)
    assert refused.value.kind is ErrorKind.IN_USE
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "s").result(30)
    with pytest.raises(ProviderError) as refused:
        line.provider.remove(line.session(), "s").result(30)
    assert refused.value.kind is ErrorKind.SUBSCRIPTION


def test_an_unshared_durable_subscription_has_one_consumer_at_a_time(each_broker: Broker, dial: Dial, topic: Address) -> None:
    line = dial(each_broker, client_id=f"c.{topic.name}")
    spec = {"subscription": "s", "durable": True}
    consumer = line.consumer(topic, **spec)
    assert refusal(line, topic, **spec) is ErrorKind.IN_USE
    line.provider.release(consumer).result(30)
    line.provider.release(line.consumer(topic, **spec)).result(30)
    line.provider.remove(line.session(), "s").result(30)


@pytest.mark.parametrize("change", ["selector", "topic"])
def test_a_durable_subscription_with_other_terms_begins_anew(jms_broker: Broker, dial: Dial, topic: Address, change: str) -> None:
    line = dial(jms_broker, client_id=f"c.{topic.name}")
    line.provider.release(line.consumer(topic, subscription="s", durable=True)).result(30)
    line.send(topic, "old", properties={"n": 1})
    other = topic if change == "selector" else Address(DestinationKind.TOPIC, topic.name + ".other")
    consumer = line.consumer(other, subscription="s", durable=True, selector="n = 1" if change == "selector" else None)
    assert line.nothing_more(consumer)
    line.send(other, "new", properties={"n": 1})
    assert line.receive(consumer)[0].envelope.body == "new"
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "s").result(30)


def test_a_changed_selector_begins_anew_also_where_the_client_evaluates_it(
    each_broker: Broker, dial: Dial, topic: Address
) -> None:
    line = dial(each_broker, client_id=f"c.{topic.name}")
    spec = {"subscription": "s", "durable": True}
    line.provider.release(line.consumer(topic, terms="n = '1'", **spec)).result(30)
    line.send(topic, "kept")
    consumer = line.consumer(topic, terms="n = '1'", **spec)
    assert line.receive(consumer, accept=False)[0].envelope.body == "kept"
    line.provider.release(consumer).result(30)
    consumer = line.consumer(topic, terms="n = 2", **spec)
    assert line.nothing_more(consumer)
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "s").result(30)


ENDS_IT = """
import sys, jmsapi
with jmsapi.connection_factory(sys.argv[1], client_id=sys.argv[2]).create_context() as context:
    context.unsubscribe("s")
"""


@pytest.mark.parametrize("shared", [True, False])
def test_a_name_that_another_process_has_freed_may_be_of_the_other_kind(
    artemis: Broker, dial: Dial, topic: Address, shared: bool
) -> None:
    client_id = f"c.{topic.name}"
    line = dial(artemis, client_id=client_id)
    line.provider.release(line.consumer(topic, subscription="s", durable=True, shared=shared)).result(30)
    with pytest.raises(ProviderError) as refused:
        line.consumer(topic, subscription="s", durable=True, shared=not shared)
    assert refused.value.kind is ErrorKind.MISMATCH
    line.close()
    subprocess.run([sys.executable, "-c", ENDS_IT, artemis.url("amqp"), client_id], check=True, timeout=60)
    line = dial(artemis, client_id=client_id)
    consumer = line.consumer(topic, subscription="s", durable=True, shared=not shared)
    line.send(topic, "here")
    assert line.receive(consumer)[0].envelope.body == "here"
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "s").result(30)


# ---------------------------------------------------------------- shared


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in ("artemis", "rabbitmq")])
def sharing_broker(request: pytest.FixtureRequest) -> Broker:
    """Give each of the brokers that have shared subscriptions."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("with_id", [False, True])
def test_a_shared_subscription_spreads_messages_over_its_consumers(
    sharing_broker: Broker, dial: Dial, topic: Address, durable: bool, with_id: bool
) -> None:
    line = dial(sharing_broker, client_id=f"c.{topic.name}" if with_id else None)
    # Without a client id the subscription is the broker's, so a second connection shares it too.
    other = line if with_id else dial(sharing_broker)
    spec = {"subscription": f"s.{topic.name}", "durable": durable, "shared": True}
    mine, theirs = line.consumer(topic, **spec), other.consumer(topic, **spec)
    line.provider.credit(mine, 4).result(30)
    other.provider.credit(theirs, 4).result(30)
    for number in range(8):
        line.send(topic, str(number))
    # As many as each may take, so each has its half, whoever is served first; given to both, the second half would be missing.
    taken = [*line.events.take(mine, 4), *other.events.take(theirs, 4)]
    assert sorted(str(delivery.envelope.body) for delivery in taken) == [str(number) for number in range(8)]
    assert line.events.waiting(mine) == other.events.waiting(theirs) == []
    line.provider.release(mine).result(30)
    other.provider.release(theirs).result(30)
    if durable:
        line.provider.remove(line.session(), spec["subscription"]).result(30)
        with pytest.raises(ProviderError) as refused:
            line.provider.remove(line.session(), spec["subscription"]).result(30)
        assert refused.value.kind is ErrorKind.SUBSCRIPTION


@pytest.mark.parametrize("durable", [False, True])
def test_members_of_a_shared_subscription_must_agree(sharing_broker: Broker, dial: Dial, topic: Address, durable: bool) -> None:
    line = dial(sharing_broker)
    spec = {"subscription": f"s.{topic.name}", "durable": durable, "shared": True}
    consumer = line.consumer(topic, **spec)
    assert refusal(line, Address(DestinationKind.TOPIC, topic.name + ".other"), **spec) is ErrorKind.MISMATCH
    assert refusal(line, topic, terms="n = 1", **spec) is ErrorKind.MISMATCH
    line.send(topic)
    line.receive(consumer)


@pytest.mark.parametrize("durable", [False, True])
def test_another_connection_with_other_terms_is_refused_and_lives(
    sharing_broker: Broker, dial: Dial, topic: Address, durable: bool
) -> None:
    spec = {"subscription": f"s.{topic.name}", "durable": durable, "shared": True}
    line, other = dial(sharing_broker), dial(sharing_broker)
    consumer = line.consumer(topic, **spec)
    assert refusal(other, Address(DestinationKind.TOPIC, topic.name + ".other"), **spec) is ErrorKind.MISMATCH
    other.send(topic)
    line.receive(consumer)
    line.provider.release(consumer).result(30)
    if durable:
        line.provider.remove(line.session(), spec["subscription"]).result(30)


def test_the_name_of_a_shared_subscription_that_has_ended_is_free_at_once(
    sharing_broker: Broker, dial: Dial, topic: Address
) -> None:
    spec = {"subscription": f"s.{topic.name}", "shared": True}
    line = dial(sharing_broker)
    for number in range(4):
        address = Address(DestinationKind.TOPIC, f"{topic.name}.{number % 2}")
        consumer = line.consumer(address, **spec)
        line.send(address, str(number))
        assert [delivery.envelope.body for delivery in line.receive(consumer)] == [str(number)]
        line.provider.release(consumer).result(30)


# ---------------------------------------------------------------- temporary


@pytest.mark.parametrize("is_topic", [False, True])
def test_a_temporary_destination_serves_its_connection_and_is_closed_to_others(
    each_broker: Broker, dial: Dial, is_topic: bool
) -> None:
    line, other = dial(each_broker), dial(each_broker)
    address = line.provider.create_temporary(line.session(), topic=is_topic).result(30)
    assert address.kind.is_temporary
    assert address.kind.is_topic is is_topic
    consumer = line.consumer(address)
    other.send(address, "answer", reply_to=address)
    [delivery] = line.receive(consumer)
    assert (delivery.envelope.body, delivery.envelope.destination, delivery.envelope.reply_to) == ("answer", address, address)
    assert refusal(other, address) is ErrorKind.DESTINATION
    with pytest.raises(ProviderError) as refused:
        line.provider.remove(line.session(), address).result(30)
    assert refused.value.kind is ErrorKind.IN_USE
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), address).result(30)
    assert refusal(line, address) is ErrorKind.DESTINATION


def test_the_plain_name_of_anothers_temporary_queue_opens_nothing(each_broker: Broker, dial: Dial) -> None:
    line, other = dial(each_broker), dial(each_broker)
    address = line.provider.create_temporary(line.session(), topic=False).result(30)
    assert refusal(other, Address(DestinationKind.QUEUE, address.name)) in (ErrorKind.DESTINATION, ErrorKind.IN_USE)
    line.send(address)


def test_a_temporary_destination_outlives_the_session_that_made_it(each_broker: Broker, dial: Dial) -> None:
    line = dial(each_broker)
    maker = line.provider.open_session(transacted=False).result(30)
    address = line.provider.create_temporary(maker, topic=False).result(30)
    line.provider.release(maker).result(30)
    line.send(address, "here")
    assert line.receive(line.consumer(address))[0].envelope.body == "here"


def test_sessions_that_end_while_a_consumer_is_being_attached_leave_the_connection_usable(
    each_broker: Broker, dial: Dial, queue: Address
) -> None:
    # Artemis 2.56.0 stopped writing after a few of them.
    line = dial(each_broker)

    def end_early(number: int) -> None:
        session = line.provider.open_session(transacted=False).result(120)
        opened = line.provider.open_consumer(session, ConsumerSpec(queue))
        time.sleep(number % 10 / 1000)  # at any moment of it
        line.provider.release(session).result(120)
        opened.exception(120)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(end_early, range(300)))
    line.send(queue, "still here")
    [delivery] = line.receive(line.consumer(queue))
    assert delivery.envelope.body == "still here"
