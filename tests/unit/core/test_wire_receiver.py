"""Messages are received as they came, many at a time, by the rules of ``receive``."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

import jmsapi
from jmsapi import Connection, JMSContext, MessageConsumer, Session
from jmsapi._core.wire_receiver import WireReceiver
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.errors import IllegalArgumentException, IllegalStateException, JMSException
from jmsapi.spi import Handle, Provider
from jmsapi.testing import LoopbackServer

WAIT_MS = 20_000


@pytest.fixture
def url() -> Iterator[str]:
    with LoopbackServer() as server:
        yield server.url


@contextmanager
def consuming(url: str, mode: int = Session.CLIENT_ACKNOWLEDGE) -> Generator[tuple[Connection, Session, MessageConsumer]]:
    with jmsapi.connection_factory(url).create_connection() as connection:
        session = connection.create_session(mode)
        consumer = session.create_consumer(session.create_queue("q"))
        connection.start()
        yield connection, session, consumer


def send(url: str, texts: list[str], change: Callable[[jmsapi.JMSProducer], object] = lambda producer: None) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        producer = context.create_producer()
        change(producer)
        for text in texts:
            producer.send(context.create_queue("q"), text)


def left(url: str) -> list[str]:
    with jmsapi.connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        return list(iter(lambda: consumer.receive_body(str, 500), None))


def taken(receiver: WireReceiver, count: int, most: int = 1000, most_bytes: int = 1 << 30) -> list[jmsapi.WireMessage]:
    found: list[jmsapi.WireMessage] = []
    while len(found) < count:
        some = receiver.receive(most, most_bytes, WAIT_MS)
        assert some, f"{len(found)} of {count}"
        found += some
    return found


def texts_of(found: list[jmsapi.WireMessage]) -> list[str | None]:
    return [jmsapi.wire_reader(one.how)(one.data, one.delivery_count, 0).get_body(str) for one in found]


@pytest.mark.parametrize("mode", [Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED])
def test_they_come_in_order_and_are_gone_when_they_are_acknowledged(url: str, mode: int) -> None:
    texts = [f"m{number}" for number in range(250)]
    send(url, texts)
    with consuming(url, mode) as (_, session, consumer):
        receiver = jmsapi.wire_receiver(consumer)
        found = taken(receiver, 250)
        assert texts_of(found) == texts
        assert len({one.message_id for one in found}) == 250
        assert all(abs(one.timestamp / 1000 - time.time()) < 600 and one.delivery_count == 1 for one in found)
        assert receiver.receive(1, 1, 1) == []
        if mode == Session.SESSION_TRANSACTED:
            session.commit()
        else:
            receiver.acknowledge()
    assert left(url) == []


def test_what_is_not_acknowledged_comes_again(url: str) -> None:
    send(url, ["a", "b", "c"])
    with consuming(url) as (_, session, consumer):
        receiver = jmsapi.wire_receiver(consumer)
        taken(receiver, 2, most=1)
        receiver.acknowledge()
        [third] = taken(receiver, 1)
        session.recover()
        [again] = taken(receiver, 1)
        assert (again.message_id, again.delivery_count) == (third.message_id, third.delivery_count + 1)
    assert left(url) == ["c"]


def test_it_takes_no_more_messages_and_bytes_than_it_may(url: str) -> None:
    send(url, ["x" * 1000] * 20)
    with consuming(url) as (_, _, consumer):
        receiver = jmsapi.wire_receiver(consumer)
        assert len(taken(receiver, 1, most=1)) == 1
        deadline = time.monotonic() + 30
        sizes: list[int] = []
        while len(sizes) < 19 and time.monotonic() < deadline:
            some = receiver.receive(100, 2500, WAIT_MS)
            sizes += map(len, (one.data for one in some))
            # Each has some more than 1000 bytes: the third is the one that may exceed the bytes.
            assert len(some) <= 3
        assert len(sizes) == 19


class Slow(Forwarding):
    """A broker far away: what it is allowed to send comes when somebody has asked and waited for the answer."""

    def __init__(self, below: Provider) -> None:
        super().__init__(below)
        self.asked = 0
        self._allowed: list[tuple[Handle, int]] = []

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        self._allowed.append((consumer, n))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def drain(self, consumer: Handle) -> Future[None]:
        self.asked += 1
        allowed, self._allowed = self._allowed, []
        for one, n in allowed:
            super().credit(one, n)
        return super().drain(consumer)


def test_only_the_broker_says_that_it_has_nothing_at_hand() -> None:
    with jmsapi.connection_factory("inproc://far-away", prefetch=2).create_connection() as connection:
        link = connection.link  # type: ignore[attr-defined]
        link.provider = slow = Slow(link.provider)
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        queue = session.create_queue("q")
        producer = session.create_producer(queue)
        for text in ("dies", "a", "b", "c"):
            producer.send(session.create_text_message(text), time_to_live_ms=50 if text == "dies" else 0)
        time.sleep(0.1)
        receiver = jmsapi.wire_receiver(session.create_consumer(queue))
        connection.start()
        assert receiver.receive(10, 1 << 20, 20) == [], "it is on its way"
        found: list[str] = []
        while some := receiver.receive_no_wait(10, 1 << 20):
            found += [one.message.get_body(str) for one in some if one.message is not None]
        assert found == ["a", "b", "c"]
        asked = slow.asked
        producer.send(session.create_text_message("d"))
        assert len(receiver.receive_no_wait(10, 1 << 20)) == 1 and slow.asked > asked
        receiver.acknowledge()
        assert receiver.receive_no_wait(10, 1 << 20) == []


def test_messages_that_have_expired_are_discarded(url: str) -> None:
    send(url, ["dies"] * 3, lambda producer: producer.set_time_to_live(300))
    send(url, ["lives"])
    with consuming(f"{url}?local_expiry=true") as (_, _, consumer):
        time.sleep(0.5)
        found = taken(jmsapi.wire_receiver(consumer), 1)
        assert texts_of(found) == ["lives"]


def test_a_message_that_came_by_no_wire_is_given_as_it_is() -> None:
    with consuming("inproc://wire-receiver") as (_, session, consumer):
        session.create_producer(session.create_queue("q")).send(session.create_text_message("plain"))
        [one] = taken(jmsapi.wire_receiver(consumer), 1)
        assert (one.how, one.data) == ("", b"")
        assert one.message is not None and one.message.get_body(str) == "plain"
        assert one.message_id == one.message.jms_message_id


def test_it_is_refused_where_it_would_acknowledge_by_itself(url: str) -> None:
    with consuming(url, Session.AUTO_ACKNOWLEDGE) as (_, _, consumer), pytest.raises(IllegalStateException):
        jmsapi.wire_receiver(consumer)
    with jmsapi.connection_factory(url).create_context(session_mode=JMSContext.CLIENT_ACKNOWLEDGE) as context:
        simple: MessageConsumer = context.create_consumer(context.create_queue("q"))  # type: ignore[assignment]
        with pytest.raises(IllegalArgumentException):
            jmsapi.wire_receiver(simple)


def test_a_consumer_that_is_closed_or_has_a_listener_gives_nothing(url: str) -> None:
    with consuming(url) as (_, _, consumer):
        receiver = jmsapi.wire_receiver(consumer)
        consumer.message_listener = lambda message: None
        with pytest.raises(IllegalStateException):
            receiver.receive(1, 1, 1)
        consumer.message_listener = None
        consumer.close()
        with pytest.raises(IllegalStateException):
            receiver.receive(1, 1, 1)


def test_what_was_taken_when_it_fails_waits_again_in_its_order(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"m{number}" for number in range(5)]
    send(url, texts)
    with consuming(url) as (_, _, consumer):
        receiver = jmsapi.wire_receiver(consumer)
        [first] = taken(receiver, 1, most=1)

        def fails(entry: object) -> bool:
            calls.append(entry)
            if len(calls) == 3:
                raise JMSException("no")
            return True

        calls: list[object] = []
        deadline = time.monotonic() + 30
        while len(calls) < 3 and time.monotonic() < deadline:
            calls.clear()
            with pytest.raises(JMSException):
                consumer.pull_many(10, 1.0, fails)  # type: ignore[attr-defined]
                raise JMSException("too few were here")
        assert texts_of([first, *taken(receiver, 4)]) == texts
