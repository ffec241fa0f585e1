"""Opening, closing, client ids, temporary destinations, discarding, options."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

import jmsapi.xa
import jmsapi_inproc
from jmsapi.spi import DONE, Address, BranchId, ConsumerSpec, DestinationKind, ErrorKind, Outcome, ProviderError, SystemClock
from jmsapi.spi.options import ProviderOptions
from jmsapi_inproc.connection import InprocProvider
from jmsapi_inproc.options import InprocOptions
from jmsapi_inproc.xa.provider import InprocXAProvider


def refused(call, kind):
    with pytest.raises(ProviderError) as caught:
        call()
    assert caught.value.kind is kind


def temporary(line, *, topic=False):
    return line.provider.create_temporary(line.session, topic=topic).result(0)


def test_the_entry_point_makes_providers_of_the_inproc_scheme():
    entry = jmsapi_inproc.entry
    assert (entry.name, entry.schemes, entry.extra) == ("inproc", ("inproc",), None)
    made = entry.create(entry.options()(scheme="inproc", host="x"), SystemClock())
    assert isinstance(made, InprocProvider)


def test_foreign_options_are_refused():
    with pytest.raises(TypeError, match="InprocOptions"):
        jmsapi_inproc.entry.create(ProviderOptions(scheme="inproc"), SystemClock())


@pytest.mark.parametrize(
    "wrong", [{"port": 61613}, {"host": "name", "path": "file.db"}, {"max_shared_consumers": -2}, {"dead_leter": "x"}]
)
def test_options_that_mean_nothing_here_are_refused(wrong):
    with pytest.raises(ValidationError):
        InprocOptions(**wrong)


def test_brokers_of_other_names_are_apart(bench, line):
    line.send("q", "a")
    other = bench.connect()
    elsewhere = InprocProvider(InprocOptions(host=bench.name + "-elsewhere"), bench.clock)
    elsewhere.open(other.events).result(0)
    assert elsewhere._broker is not line.provider._broker
    elsewhere.close()
    assert jmsapi_inproc.discard(bench.name + "-elsewhere")


def test_a_client_id_belongs_to_one_connection_at_a_time(bench):
    first = bench.connect(client_id="c1")
    refused(lambda: bench.connect(client_id="c1"), ErrorKind.CLIENT_ID)
    bench.connect(client_id="c2")
    first.close()
    bench.connect(client_id="c1")


def test_a_provider_opens_once_and_never_after_closing(bench, line):
    refused(lambda: line.provider.open(line.events).result(0), ErrorKind.PROTOCOL)
    closed = InprocProvider(InprocOptions(host=bench.name), bench.clock)
    closed.close().result(0)
    refused(lambda: closed.open(line.events).result(0), ErrorKind.PROTOCOL)


def test_before_opening_and_after_closing_every_call_says_so(bench):
    never = InprocProvider(InprocOptions(host=bench.name), bench.clock)
    refused(lambda: never.open_session(transacted=False).result(0), ErrorKind.CLOSED)
    line = bench.connect()
    tap = line.tap("q")
    producer = line.provider.open_producer(line.session, bench.queue("q")).result(0)
    tx = line.begin()
    line.close()
    line.close()
    provider = line.provider
    for call in (
        lambda: provider.open_session(transacted=True).result(0),
        lambda: line.tap("q"),
        lambda: provider.open_producer(line.session, None).result(0),
        lambda: provider.credit(tap.handle, 1).result(0),
        lambda: provider.drain(tap.handle).result(0),
        lambda: provider.settle([], Outcome.ACCEPTED).result(0),
        lambda: provider.begin(line.transacted).result(0),
        lambda: provider.end(tx, commit=True).result(0),
        lambda: temporary(line),
        lambda: provider.remove(line.session, "s").result(0),
        lambda: line.send("q", "a", producer=producer),
    ):
        refused(call, ErrorKind.CLOSED)
    assert provider.release(tap.handle) is DONE


def test_a_released_session_takes_its_consumers_and_producers_with_it(bench, line):
    session = line.provider.open_session(transacted=False).result(0)
    tap = line.tap("q", session=session)
    producer = line.provider.open_producer(session, bench.queue("q")).result(0)
    line.send("q", "a")
    tap.take()
    line.provider.release(session).result(0)
    refused(lambda: line.send("q", "b", producer=producer), ErrorKind.CLOSED)
    refused(lambda: line.tap("q", session=session), ErrorKind.CLOSED)
    assert bench.queued("q") == ["a"]


def test_closing_returns_what_was_held_and_leaves_nothing_behind(bench):
    line, other = bench.connect(), bench.connect()
    line.send("q", "a", "b")
    line.tap("q").take()
    line.close()
    assert other.tap("q").take_texts() == ["a", "b"]
    broker = other.provider._broker
    assert len(broker.consumers) == 1
    other.close()
    assert not broker.consumers


def test_hot_calls_share_one_finished_future(bench, line):
    tap = line.tap("q")
    assert line.provider.credit(tap.handle, 1) is DONE
    assert line.provider.drain(tap.handle) is DONE
    assert line.provider.settle([], Outcome.ACCEPTED) is DONE


@pytest.mark.parametrize("topic", [False, True])
def test_a_temporary_destination_is_consumed_by_its_connection_and_sent_to_by_any(bench, topic):
    line, other = bench.connect(), bench.connect()
    address = temporary(line, topic=topic)
    assert address.kind is (DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE)
    tap = line.tap(address)
    other.send(address, "a")
    assert tap.take_texts() == ["a"]
    plain = Address(DestinationKind.TOPIC if topic else DestinationKind.QUEUE, address.name)
    for where in (address, plain):
        refused(lambda w=where: other.tap(w), ErrorKind.DESTINATION)


def test_temporary_destinations_have_names_of_their_own(bench):
    lines = [bench.connect() for _ in range(3)]
    names = {temporary(line, topic=topic).name for line in lines for topic in (False, True) for _ in range(50)}
    assert len(names) == 300


@pytest.mark.parametrize("topic", [False, True])
def test_a_deleted_temporary_destination_is_no_destination_any_more(line, topic):
    address = temporary(line, topic=topic)
    producer = line.provider.open_producer(line.session, address).result(0)
    line.send(address, "a", producer=producer)
    line.provider.remove(line.session, address).result(0)
    refused(lambda: line.send(address, "b", producer=producer), ErrorKind.DESTINATION)
    refused(lambda: line.send(address, "b"), ErrorKind.DESTINATION)
    refused(lambda: line.tap(address), ErrorKind.DESTINATION)
    refused(lambda: line.provider.remove(line.session, address).result(0), ErrorKind.DESTINATION)
    plain = Address(DestinationKind.TOPIC if topic else DestinationKind.QUEUE, address.name)
    refused(lambda: line.provider.open_producer(line.session, plain).result(0), ErrorKind.DESTINATION)


@pytest.mark.parametrize("topic", [False, True])
def test_a_temporary_destination_with_consumers_is_not_deleted(line, topic):
    address = temporary(line, topic=topic)
    tap = line.tap(address)
    refused(lambda: line.provider.remove(line.session, address).result(0), ErrorKind.IN_USE)
    line.send(address, "a")
    assert tap.take_texts() == ["a"]
    tap.release()
    line.provider.remove(line.session, address).result(0)


def test_only_the_owner_deletes_a_temporary_destination_and_nobody_another(bench, line):
    other = bench.connect()
    address = temporary(line)
    refused(lambda: other.provider.remove(other.session, address).result(0), ErrorKind.DESTINATION)
    line.send("q", "a")
    refused(lambda: line.provider.remove(line.session, bench.queue("q")).result(0), ErrorKind.DESTINATION)
    line.send(address, "a")


@pytest.mark.parametrize("topic", [False, True])
def test_a_temporary_destination_outlives_its_session_and_ends_with_its_connection(bench, topic):
    line, other = bench.connect(), bench.connect()
    session = line.provider.open_session(transacted=False).result(0)
    address = line.provider.create_temporary(session, topic=topic).result(0)
    line.provider.release(session).result(0)
    other.send(address, "a")
    line.tap(address)
    line.close()
    refused(lambda: other.send(address, "b"), ErrorKind.DESTINATION)


def test_a_temporary_topic_has_no_durable_subscription(bench):
    line = bench.connect(client_id="c1")
    refused(lambda: line.tap(temporary(line, topic=True), subscription="s", durable=True), ErrorKind.DESTINATION)


def test_discarding_a_broker_cuts_its_connections_and_the_next_meets_an_empty_one(bench):
    line = bench.connect(client_id="c1")
    tap = line.tap("q")
    tap.credit(5)
    producer = line.provider.open_producer(line.session, bench.queue("q")).result(0)
    line.send("kept", "a")
    assert jmsapi_inproc.discard(bench.name)
    assert [(error.kind, error.fatal) for error in line.events.lost] == [(ErrorKind.CONNECTION, True)]
    refused(lambda: line.send("q", "b", producer=producer), ErrorKind.CLOSED)
    refused(lambda: tap.credit(1), ErrorKind.CLOSED)
    line.close()
    assert len(line.events.lost) == 1
    bench.connect(client_id="c1")
    assert bench.queued("kept") == []


def test_discarding_an_unknown_name_does_nothing():
    assert not jmsapi_inproc.discard("nobody ever opened this")


def test_a_handle_of_the_wrong_kind_is_refused(line):
    tap = line.tap("q")
    for call in (
        lambda: line.provider.credit(line.session, 1).result(0),
        lambda: line.provider.drain(line.session).result(0),
        lambda: line.provider.begin(tap.handle).result(0),
        lambda: line.provider.end(tap.handle, commit=True).result(0),
        lambda: line.send("q", "a", producer=tap.handle),
    ):
        refused(call, ErrorKind.CLOSED)


def test_a_connection_can_be_closed_amid_a_call_of_the_same_thread(bench):
    """As a signal handler or finaliser would; what its consumers were to get goes to nobody or back, and nothing hangs."""
    line, closing, last = bench.connect(), bench.connect(), bench.connect()
    topic = bench.topic("t")
    taps = [one.tap(topic) for one in (line, closing, last)]
    queue = closing.tap("q")
    for tap in (*taps, queue):
        tap.credit(5)
    line.send("q", "held")
    deliver = line.events.on_deliveries

    def interrupted(consumer, deliveries):
        deliver(consumer, deliveries)
        closing.close()

    line.events.on_deliveries = interrupted
    line.send(topic, "a")
    assert [tap.texts() for tap in taps] == [["a"], [], ["a"]]
    assert line.tap("q").take_texts() == ["held"]


def test_an_error_says_whether_the_connection_was_never_opened_or_is_closed(bench):
    provider = InprocProvider(InprocOptions(host=bench.name), bench.clock)

    def said():
        with pytest.raises(ProviderError) as caught:
            provider.open_session(transacted=False).result(0)
        return caught.value.kind, caught.value.message

    assert said() == (ErrorKind.CLOSED, "the connection has not been opened")
    provider.open(bench.connect().events).result(0)
    provider.open_session(transacted=False).result(0)
    provider.close().result(0)
    assert said() == (ErrorKind.CLOSED, "the connection, session, producer or consumer is closed")


class Discarding:
    """The lock of a broker that is discarded just before the next call has it.

    Args:
        name: The broker's.
        lock: Its own.
    """

    def __init__(self, name, lock):
        self._name = name
        self._lock = lock

    def __enter__(self):
        name, self._name = self._name, ""
        if name:
            assert jmsapi_inproc.discard(name)
        self._lock.__enter__()

    def __exit__(self, *raised):
        self._lock.__exit__(*raised)


@pytest.mark.parametrize("call", ["credit", "drain", "start_branch"])
def test_a_call_that_waits_for_its_turn_while_the_broker_is_discarded_is_told_so(bench, call):
    provider = InprocXAProvider(InprocOptions(host=bench.name), bench.clock)
    provider.open(bench.connect().events).result(0)
    session = provider.open_session(transacted=True).result(0)
    consumer = provider.open_consumer(session, ConsumerSpec(bench.queue("q"))).result(0)
    broker = provider._broker
    broker.lock = Discarding(bench.name, broker.lock)
    calls = {
        "credit": lambda: provider.credit(consumer, 1),
        "drain": lambda: provider.drain(consumer),
        "start_branch": lambda: provider.start_branch(session, BranchId(1, b"g", b"b"), jmsapi.xa.TMNOFLAGS),
    }
    with pytest.raises(ProviderError, match="closed") as caught:
        calls[call]().result(0)
    if call == "start_branch":
        assert caught.value.code == jmsapi.xa.XAER_PROTO
    else:
        assert caught.value.kind is ErrorKind.CLOSED
