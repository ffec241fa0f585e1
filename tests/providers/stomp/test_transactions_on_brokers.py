"""Local transactions: Classic's own, and sends first on Artemis and RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jmsapi.spi import Address, DestinationKind, ErrorKind, Level, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


def bodies(deliveries: list[Any]) -> list[Any]:
    return [delivery.envelope.body for delivery in deliveries]


def test_transactions_are_native_on_classic_and_asked_for_by_name_elsewhere(dial: Dial, each_broker: Broker) -> None:
    plain = dial(each_broker).capabilities.transactions
    asked = dial(each_broker, emulate="tx").capabilities.transactions
    if each_broker.kind == "classic":
        assert (plain.level, asked.level) == (Level.NATIVE, Level.NATIVE)
    else:
        assert (plain.level, plain.emulate, asked.level) == (Level.NONE, "tx", Level.EMULATED)


def test_what_is_sent_in_a_transaction_is_there_after_commit(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, emulate="tx")
    consumer = line.consumer(queue, prefetch=10)
    tx = line.begin()
    for n in range(5):
        line.send(queue, str(n), tx)
    assert line.nothing_more(consumer)
    line.end(tx)
    assert bodies(line.receive(consumer, 5)) == ["0", "1", "2", "3", "4"]


def test_what_is_rolled_back_was_never_sent(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, emulate="tx")
    consumer = line.consumer(queue, prefetch=10)
    tx = line.begin()
    line.send(queue, "never", tx)
    line.end(tx, commit=False)
    line.send(queue, "marker")
    assert bodies(line.receive(consumer)) == ["marker"]


def test_acknowledgements_count_after_commit_only(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, emulate="tx")
    for n in range(4):
        line.send(queue, str(n))
    consumer = line.consumer(queue, prefetch=10, deferred_acks=True)
    got = line.receive(consumer, 4, accept=False)
    tx = line.begin()
    line.accept(got[:2], tx)
    line.end(tx)
    tx = line.begin()
    line.accept(got[2:], tx)
    line.end(tx, commit=False)
    line.close()
    other = dial(each_broker)
    assert bodies(other.receive(other.consumer(queue, prefetch=10), 2)) == ["2", "3"]


def test_acknowledgements_rolled_back_may_be_given_again(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, emulate="tx")
    line.send(queue, "x")
    got = line.receive(line.consumer(queue), accept=False)
    for commit in (False, False, True):
        tx = line.begin()
        line.send(queue, str(commit), tx)
        line.accept(got, tx)
        line.end(tx, commit=commit)
    line.close()
    other = dial(each_broker)
    consumer = other.consumer(queue, prefetch=10)
    assert bodies(other.receive(consumer)) == ["True"]
    assert other.nothing_more(consumer)


def test_many_transactions_of_many_sessions_do_not_mix(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, emulate="tx")
    sessions = [line.provider.open_session(transacted=True).result(30) for _ in range(4)]
    transactions = [line.provider.begin(session).result(30) for session in sessions]
    for n in range(3):
        for index, tx in enumerate(transactions):
            line.send(queue, f"{index}{n}", tx)
    for index, tx in enumerate(transactions):
        line.end(tx, commit=index % 2 == 0)
    got = bodies(line.receive(line.consumer(queue, prefetch=20), 6))
    assert sorted(got) == ["00", "01", "02", "20", "21", "22"]


def test_an_empty_transaction_ends_without_a_word(dial: Dial, each_broker: Broker) -> None:
    line = dial(each_broker, emulate="tx")
    for commit in (True, False):
        line.end(line.begin(), commit=commit)


def test_a_send_that_fails_in_a_transaction_rolls_it_back(dial: Dial, classic: Broker, queue: Address) -> None:
    line, owner = dial(classic), dial(classic)
    gone = owner.provider.create_temporary(owner.session(), topic=False).result(30)
    owner.consumer(gone)
    owner.send(queue, "x", reply_to=gone)
    address = line.receive(line.consumer(queue))[0].envelope.reply_to
    owner.close()
    tx = line.begin()
    line.send(queue, "not alone", tx)
    with pytest.raises(ProviderError):
        line.send(address, "too late", tx)
    with pytest.raises(ProviderError) as caught:
        line.end(tx)
    assert caught.value.kind is ErrorKind.ROLLED_BACK
    assert line.nothing_more(line.consumer(Address(DestinationKind.QUEUE, queue.name + ".none")))


def test_artemis_knows_a_message_by_the_property_that_its_capabilities_name(dial: Dial, artemis: Broker, queue: Address) -> None:
    line = dial(artemis)
    name = line.capabilities.duplicate_property
    assert name is not None
    consumer = line.consumer(queue, prefetch=10)
    for body in ("once", "again"):
        line.send(queue, body, properties={name: f"a:{queue.name}"})
    line.send(queue, "the next", properties={name: f"b:{queue.name}"})
    deliveries = line.receive(consumer, 2)
    assert bodies(deliveries) == ["once", "the next"]
    assert deliveries[0].envelope.properties == {name: f"a:{queue.name}"}


def test_artemis_takes_a_duplicate_id_once_and_refuses_the_transaction_that_repeats_it(
    dial: Dial, artemis: Broker, queue: Address
) -> None:
    line = dial(artemis, emulate="tx", artemis_dedup=True)
    consumer = line.consumer(queue, prefetch=10)
    line.send(queue, "once", message_id=f"ID:{queue.name}.1")
    line.send(queue, "again", message_id=f"ID:{queue.name}.1")
    assert bodies(line.receive(consumer)) == ["once"]
    tx = line.begin()
    line.send(queue, "another", tx, message_id=f"ID:{queue.name}.2")
    line.send(queue, "once more", tx, message_id=f"ID:{queue.name}.1")
    with pytest.raises(ProviderError, match=r"artemis\.dedup") as caught:
        line.end(tx)
    # Artemis 2.56 ends the connection after the ERROR; of the transaction nothing is there, not even what was no duplicate.
    assert caught.value.kind is ErrorKind.ROLLED_BACK
    other = dial(artemis)
    assert other.nothing_more(other.consumer(queue, prefetch=10))
