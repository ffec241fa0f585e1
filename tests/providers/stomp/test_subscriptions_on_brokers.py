"""Durable, shared and temporary: what each broker gives, and what is refused by name."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi.spi import Address, DestinationKind, ErrorKind, ProviderError
from jmsapi_brokers import artemis_management
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


def bodies(deliveries: list[Any]) -> list[Any]:
    return [delivery.envelope.body for delivery in deliveries]


@pytest.fixture
def client() -> str:
    return f"client-{uuid.uuid4().hex}"


def refused(call: Callable[[], Any]) -> ErrorKind:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value.kind


def test_a_durable_subscription_keeps_what_comes_while_nobody_listens(
    dial: Dial, each_broker: Broker, topic: Address, client: str
) -> None:
    line = dial(each_broker, client_id=client)
    first = line.consumer(topic, subscription="news", durable=True, prefetch=10)
    line.send(topic, "0")
    assert bodies(line.receive(first)) == ["0"]
    line.provider.release(first).result(30)
    line.send(topic, "1")
    line.close()
    with_another = dial(each_broker)
    with_another.send(topic, "2")
    line = dial(each_broker, client_id=client)
    again = line.consumer(topic, subscription="news", durable=True, prefetch=10)
    assert bodies(line.receive(again, 2)) == ["1", "2"]
    line.provider.release(again).result(30)
    line.provider.remove(line.session(), "news").result(30)


def test_an_expired_message_does_not_hold_up_a_durable_subscription(
    dial: Dial, each_broker: Broker, topic: Address, client: str
) -> None:
    line = dial(each_broker, client_id=client)
    line.provider.release(line.consumer(topic, subscription="news", durable=True)).result(30)
    expires = int(time.time() * 1000) + 200
    line.send(topic, "expiring", expiration=expires, delivery_mode=2)
    line.send(topic, "lasting", delivery_mode=2)
    while time.time() * 1000 <= expires + 50:
        time.sleep(0.01)
    again = line.consumer(topic, subscription="news", durable=True, prefetch=10, deferred_acks=True)
    assert bodies(line.receive(again)) == ["lasting"]
    line.provider.release(again).result(30)
    line.provider.remove(line.session(), "news").result(30)


def test_an_unsubscribed_subscription_keeps_nothing(dial: Dial, each_broker: Broker, topic: Address, client: str) -> None:
    line = dial(each_broker, client_id=client)
    line.provider.release(line.consumer(topic, subscription="news", durable=True)).result(30)
    line.send(topic, "old")
    line.provider.remove(line.session(), "news").result(30)
    again = line.consumer(topic, subscription="news", durable=True, prefetch=10)
    line.send(topic, "new")
    assert bodies(line.receive(again)) == ["new"]
    line.provider.release(again).result(30)
    line.provider.remove(line.session(), "news").result(30)


def test_a_durable_subscription_in_use_is_refused_to_others(dial: Dial, each_broker: Broker, topic: Address, client: str) -> None:
    line = dial(each_broker, client_id=client)
    consumer = line.consumer(topic, subscription="news", durable=True)
    assert refused(lambda: line.consumer(topic, subscription="news", durable=True)) is ErrorKind.IN_USE
    assert refused(lambda: line.provider.remove(line.session(), "news").result(30)) is ErrorKind.IN_USE
    line.send(topic, "still")
    assert bodies(line.receive(consumer)) == ["still"]
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "news").result(30)


def test_a_subscription_of_artemis_can_be_ended_by_who_may_not_ask_for_it(
    dial: Dial, artemis: Broker, topic: Address, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A frame that the broker answers with an ERROR, as it does to who lacks the right.
    monkeypatch.setattr(artemis_management, "stomp_question", lambda *_: [("subscription", "a SEND without a destination")])
    line = dial(artemis, client_id=client)
    line.provider.release(line.consumer(topic, subscription="news", durable=True)).result(30)
    line.send(topic, "old")
    line.provider.remove(line.session(), "news").result(30)
    line.provider.remove(line.session(), "news").result(30)
    again = line.consumer(topic, subscription="news", durable=True, prefetch=10)
    line.send(topic, "new")
    assert bodies(line.receive(again)) == ["new"]
    line.provider.release(again).result(30)


def test_ending_an_unknown_subscription_is_told_where_the_broker_can(dial: Dial, each_broker: Broker, client: str) -> None:
    line = dial(each_broker, client_id=client)
    if line.capabilities.unknown_subscription_reported:
        assert refused(lambda: line.provider.remove(line.session(), "nobody").result(30)) is ErrorKind.SUBSCRIPTION
    else:
        line.provider.remove(line.session(), "nobody").result(30)


def test_another_topic_replaces_an_idle_durable_subscription(
    dial: Dial, each_broker: Broker, topic: Address, client: str
) -> None:
    line = dial(each_broker, client_id=client)
    line.provider.release(line.consumer(topic, subscription="news", durable=True)).result(30)
    line.send(topic, "old")
    other = Address(topic.kind, topic.name + ".other")
    consumer = line.consumer(other, subscription="news", durable=True, prefetch=10)
    line.send(topic, "to the former topic")
    line.send(other, "new")
    assert bodies(line.receive(consumer)) == ["new"]
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "news").result(30)


def test_another_selector_replaces_an_idle_durable_subscription(
    dial: Dial, each_broker: Broker, topic: Address, client: str
) -> None:
    line = dial(each_broker, client_id=client)
    if not line.capabilities.topic_selector:
        return
    line.provider.release(line.consumer(topic, subscription="news", durable=True)).result(30)
    line.send(topic, "old", properties={"tag": "a"})
    consumer = line.consumer(topic, subscription="news", durable=True, selector="tag = 'a'", prefetch=10)
    line.send(topic, "a", properties={"tag": "a"})
    line.send(topic, "b", properties={"tag": "b"})
    line.send(topic, "c", properties={"tag": "a"})
    assert bodies(line.receive(consumer, 2)) == ["a", "c"]
    line.provider.release(consumer).result(30)
    line.provider.remove(line.session(), "news").result(30)


def shared_options(broker: Broker) -> dict[str, Any]:
    return (
        {"classic_virtual_topics": True, "emulate": "shared-volatile"}
        if broker.kind == "classic"
        else {"emulate": "shared-volatile"}
    )


def test_classic_refuses_shared_subscriptions_without_its_option(dial: Dial, classic: Broker) -> None:
    capabilities = dial(classic).capabilities
    assert not capabilities.shared_durable_subscription
    assert "classic.virtual_topics" in capabilities.shared_durable_subscription.note
    assert not capabilities.shared_subscription


@pytest.mark.parametrize("client_id", ["", "named-"])
@pytest.mark.parametrize("durable", [True, False])
def test_consumers_of_a_shared_subscription_divide_its_messages(
    dial: Dial, each_broker: Broker, topic: Address, client_id: str, durable: bool
) -> None:
    options = shared_options(each_broker)
    one = dial(each_broker, **options, client_id=client_id + uuid.uuid4().hex if client_id else None)
    # A connection with a client id has it alone, so its consumers share; one without shares with others.
    two = one if client_id else dial(each_broker, **options)
    name = f"s-{uuid.uuid4().hex}"
    first = one.consumer(topic, subscription=name, shared=True, durable=durable, prefetch=1, credit=20)
    second = two.consumer(topic, subscription=name, shared=True, durable=durable, prefetch=1, credit=20)
    for n in range(20):
        one.send(topic, str(n))
    got: list[list[Any]] = [[], []]
    deadline = time.monotonic() + 10
    while len(got[0]) + len(got[1]) < 20 and time.monotonic() < deadline:
        for mine, line, consumer in ((got[0], one, first), (got[1], two, second)):
            new = line.events.waiting(consumer)
            if new:
                line.accept(line.events.take(consumer, len(new)))
                mine += bodies(new)
        time.sleep(0.01)
    assert sorted(map(int, got[0] + got[1])) == list(range(20))
    assert got[0]
    assert got[1]
    one.provider.release(first).result(30)
    two.provider.release(second).result(30)
    if durable:
        one.send(topic, "kept")
        again = two.consumer(topic, subscription=name, shared=True, durable=True, prefetch=5)
        assert bodies(two.receive(again)) == ["kept"]
        two.provider.release(again).result(30)
        if each_broker.kind != "classic":
            one.provider.remove(one.session(), name).result(30)
        else:
            assert refused(lambda: one.provider.remove(one.session(), name).result(30)) is ErrorKind.UNSUPPORTED
    elif each_broker.kind != "classic":
        one.send(topic, "lost")
        again = two.consumer(topic, subscription=name, shared=True, prefetch=5)
        one.send(topic, "new")
        assert bodies(two.receive(again)) == ["new"]
        two.provider.release(again).result(30)


def test_a_shared_subscription_in_use_is_not_changed(dial: Dial, each_broker: Broker, topic: Address) -> None:
    line = dial(each_broker, **shared_options(each_broker))
    name = f"s-{uuid.uuid4().hex}"
    other = Address(topic.kind, topic.name + ".other")
    consumer = line.consumer(topic, subscription=name, shared=True, durable=True)
    assert refused(lambda: line.consumer(other, subscription=name, shared=True, durable=True)) is ErrorKind.MISMATCH
    if line.capabilities.topic_selector:  # else it is local, and not the provider's to know
        changed = {"subscription": name, "shared": True, "durable": True, "selector": "a = 1"}
        assert refused(lambda: line.consumer(topic, **changed)) is ErrorKind.MISMATCH
    line.provider.release(consumer).result(30)


def test_a_client_id_is_one_connections(dial: Dial, each_broker: Broker, client: str) -> None:
    line = dial(each_broker, client_id=client)
    assert refused(lambda: dial(each_broker, client_id=client)) is ErrorKind.CLIENT_ID
    line.close()
    dial(each_broker, client_id=client)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("is_topic", [False, True])
def test_temporary_destinations_carry_answers(
    dial: Dial, each_broker: Broker, queue: Address, client: str, is_topic: bool, named: bool
) -> None:
    asker, helper = dial(each_broker, client_id=client if named else None), dial(each_broker)
    answers = asker.provider.create_temporary(asker.session(), topic=is_topic).result(30)
    assert answers.kind is (DestinationKind.TEMPORARY_TOPIC if is_topic else DestinationKind.TEMPORARY_QUEUE)
    waiting = asker.consumer(answers, prefetch=5)
    asker.send(queue, "question", reply_to=answers)
    where = helper.receive(helper.consumer(queue))[0].envelope.reply_to
    assert where == answers
    helper.send(where, "answer")
    (answer,) = asker.receive(waiting)
    assert (answer.envelope.body, answer.envelope.destination) == ("answer", answers)
    asker.send(answers, "to myself")
    assert bodies(asker.receive(waiting)) == ["to myself"]
    asker.provider.release(waiting).result(30)
    asker.provider.remove(asker.session(), answers).result(30)
    assert refused(lambda: asker.consumer(answers)) is ErrorKind.DESTINATION
    assert refused(lambda: helper.consumer(answers)) is ErrorKind.DESTINATION


def test_a_temporary_queue_takes_messages_before_anybody_consumes(dial: Dial, each_broker: Broker) -> None:
    line = dial(each_broker)
    answers = line.provider.create_temporary(line.session(), topic=False).result(30)
    line.send(answers, "early")
    consumer = line.consumer(answers, prefetch=5)
    assert bodies(line.receive(consumer)) == ["early"]
    line.provider.release(consumer).result(30)
    line.send(answers, "between")
    assert bodies(line.receive(line.consumer(answers, prefetch=5))) == ["between"]


def test_a_delayed_message_comes_late(dial: Dial, each_broker: Broker, queue: Address, topic: Address) -> None:
    line = dial(each_broker, classic_scheduler=True, emulate="tx")
    assert line.capabilities.delivery_delay
    for address in (queue, topic):
        consumer = line.consumer(address, prefetch=10)
        began = time.time()
        due = int(began * 1000) + 700
        line.send(address, "late", delivery_time=due, timestamp=int(began * 1000))
        line.send(address, "now")
        tx = line.begin()
        line.send(address, "late too", tx, delivery_time=due)
        line.end(tx)
        first, *late = line.receive(consumer, 3)
        assert time.time() - began > 0.6
        assert first.envelope.body == "now"
        assert sorted(bodies(late)) == ["late", "late too"]
        assert late[0].envelope.destination == address
        assert abs(late[0].envelope.delivery_time - due) < 1000


def test_classic_is_tried_before_it_is_trusted_with_a_delay_unless_its_scheduler_is_said_to_be_on(
    dial: Dial, classic: Broker
) -> None:
    assert "schedulerSupport" in dial(classic).capabilities.delay_trial
    assert dial(classic, classic_scheduler=True).capabilities.delay_trial is None
    assert not dial(classic).capabilities.delay_keeps_subscribers


@pytest.mark.parametrize("durable", [True, False])
def test_a_selector_of_a_shared_subscription_leaves_nothing_behind_on_classic(
    dial: Dial, classic: Broker, topic: Address, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = dial(classic, **shared_options(classic))
    name = f"s-{uuid.uuid4().hex}"
    consumer = line.consumer(topic, subscription=name, shared=True, durable=durable, selector="n > 5.0", prefetch=10)
    for n in (7, 3, None, 8):
        line.send(topic, str(n), properties={} if n is None else {"n": n})
    assert bodies(line.receive(consumer, 2)) == ["7", "8"]
    line.provider.release(consumer).result(30)
    kind = "" if durable else "v-"
    queue = f"Consumer.{kind}-s_2d_{name[2:]}.VirtualTopic.{topic.name}"
    # An application may not name the queue behind a subscription; this test has to look into it.
    monkeypatch.setattr("jmsapi_brokers.classic.check_address", lambda address: None)
    assert line.nothing_more(line.consumer(Address(DestinationKind.QUEUE, queue), prefetch=10))


def test_a_volatile_shared_subscription_begins_empty(dial: Dial, each_broker: Broker, topic: Address) -> None:
    # On Classic what is left is waited for, and a busy machine takes its time; `other` throws nothing away and need not wait.
    line = dial(each_broker, **shared_options(each_broker), drain_ms=1000)
    other = dial(each_broker, **shared_options(each_broker))
    name = f"s-{uuid.uuid4().hex}"
    first = line.consumer(topic, subscription=name, shared=True, prefetch=10)
    line.send(topic, "0")
    assert bodies(line.receive(first)) == ["0"]
    line.provider.release(first).result(30)
    line.send(topic, "for nobody")
    again = line.consumer(topic, subscription=name, shared=True, prefetch=1)
    line.send(topic, "1")
    assert bodies(line.receive(again)) == ["1"]
    line.send(topic, "2")
    # A second consumer throws nothing away.
    second = other.consumer(topic, subscription=name, shared=True, prefetch=1, credit=1)
    line.provider.release(again).result(30)
    got = other.events.take(second, 1)
    other.accept(got)
    assert bodies(got) == ["2"]
    other.provider.release(second).result(30)


@pytest.mark.parametrize("durable", [True, False])
def test_a_shared_subscription_of_another_process_is_not_emptied_on_classic(
    dial: Dial, classic: Broker, topic: Address, durable: bool, until: Callable[..., None]
) -> None:
    # By another name of the host a line is to this process what another process is: it knows nothing of its subscriptions.
    options = {**shared_options(classic), "client_id": None}
    ours, theirs = dial(classic, **options), dial(classic, **options, host="localhost")
    spec = {"subscription": f"s-{uuid.uuid4().hex}", "shared": True, "durable": durable, "prefetch": 1}
    ours.provider.release(ours.consumer(topic, **spec, selector="n = 1")).result(30)
    live = theirs.consumer(topic, **spec, selector="n = 2")
    for number in range(5):
        ours.send(topic, str(number), properties={"n": 2})
    # It is changed as far as our line knows, and of its first consumer here nobody would be left over anything.
    joined = ours.consumer(topic, **spec, selector="n = 2")
    theirs.provider.credit(live, 10).result(30)
    ours.provider.credit(joined, 10).result(30)
    got: set[str] = set()

    def all_have_come() -> bool:
        for line, consumer in ((theirs, live), (ours, joined)):
            waiting = line.events.take(consumer, len(line.events.waiting(consumer)))
            line.accept(waiting)
            got.update(str(delivery.envelope.body) for delivery in waiting)
        return len(got) == 5

    until(all_have_come)
    # When they have gone, and we have, what is left of it is ours to throw away.
    theirs.provider.release(live).result(30)
    ours.provider.release(joined).result(30)
    ours.send(topic, "left over", properties={"n": 1})
    last = ours.consumer(topic, **spec, selector="n = 1", credit=10)
    ours.send(topic, "new", properties={"n": 1})
    assert [delivery.envelope.body for delivery in ours.events.take(last, 1)] == ["new"]


def test_classic_goes_on_taking_messages_for_a_deleted_temporary_queue(dial: Dial, classic: Broker) -> None:
    # STOMP has no frame that deletes one: it lives as long as its connection. Its owner refuses it from then on.
    owner, other = dial(classic), dial(classic)
    address = owner.provider.create_temporary(owner.session(), topic=False).result(30)
    other.send(address, "left over", delivery_mode=2)
    owner.provider.remove(owner.session(), address).result(30)
    assert refused(lambda: owner.consumer(address)) is ErrorKind.DESTINATION
    other.send(address, "into nowhere", delivery_mode=2)
    owner.close()
    assert refused(lambda: other.send(address, "too late", delivery_mode=2)) is ErrorKind.DESTINATION


def test_what_temporary_queues_hold_goes_with_their_connection_on_artemis(dial: Dial, artemis: Broker) -> None:
    # Ordinary queues to the broker, which deletes them only when they are empty.
    owner, other = dial(artemis), dial(artemis)
    held = [owner.provider.create_temporary(owner.session(), topic=False).result(30) for _ in range(3)]
    for number in range(5):
        for address in held:
            other.send(address, f"before {number}")
    owner.close()
    for address in held:
        found = other.consumer(Address(DestinationKind.QUEUE, address.name), prefetch=5)
        other.send(Address(DestinationKind.QUEUE, address.name), "after")
        assert bodies(other.receive(found)) == ["after"]


@pytest.mark.parametrize("letters", ["é", "日", "e\u0301"])
def test_a_subscription_with_any_letters_in_its_name_is_ended(
    dial: Dial, each_broker: Broker, topic: Address, client: str, letters: str
) -> None:
    line = dial(each_broker, client_id=client)
    name = f"sub-{letters}"
    line.provider.release(line.consumer(topic, subscription=name, durable=True)).result(30)
    line.provider.remove(line.session(), name).result(30)
    if each_broker.kind != "artemis":  # which confirms what it does not know
        assert refused(lambda: line.provider.remove(line.session(), name).result(30)) is ErrorKind.SUBSCRIPTION


def test_rabbitmq_would_take_a_line_end_out_of_a_subscriptions_name(dial: Dial, rabbitmq: Broker, topic: Address) -> None:
    line = dial(rabbitmq)
    assert refused(lambda: line.consumer(topic, subscription="a\nb", shared=True, durable=True)) is ErrorKind.DESTINATION
