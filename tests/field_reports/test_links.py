"""Field reports about links that break, and closing them: B02, B04, B08, B13, B14, B16; B25 is in ``tests/faults/test_tls``.

B16 is of listener containers, which do not exist yet; its kind is tried at the connection: one back-off for one trouble, its
ceiling and its end, and no flood of log lines.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import quote

import pytest

import jmsapi
from jmsapi import CompletionListener, DeliveryMode, Message
from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

KINDS: dict[Wire, BrokerKind] = {"amqp": "artemis", "stomp": "classic"}
BEAT_MS = 500
BEATS: dict[Wire, dict[str, Any]] = {"amqp": {"idle_timeout_ms": 2 * BEAT_MS}, "stomp": {"heartbeat_ms": BEAT_MS}}


@dataclass(frozen=True)
class Place:
    """One wire of one broker, and a queue nobody else uses."""

    wire: Wire
    broker: Broker
    queue: str

    @property
    def url(self) -> str:
        return self.broker.url(self.wire)

    def received(self, n: int) -> list[str]:
        """Receive so many messages, and see that there are no more."""
        with jmsapi.connection_factory(self.url).create_context() as context:
            queue = context.create_queue(self.queue)
            consumer = context.create_consumer(queue)
            context.create_producer().send(queue, "marker")
            bodies = [consumer.receive_body(str, 10_000) for _ in range(n + 1)]
            assert bodies.pop() == "marker"
            return [body for body in bodies if body is not None]


@pytest.fixture(params=[pytest.param(wire, marks=pytest.mark.broker) for wire in KINDS])
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def place(wire: Wire, request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Place:
    broker: Broker = request.getfixturevalue(KINDS[wire])
    if wire not in broker.wires:
        leave_out(f"{broker.kind} was given without {wire}")
    return Place(wire, broker, f"field.{uuid.uuid4().hex}")


@pytest.fixture
def proxy(place: Place) -> Iterator[FaultProxy]:
    with FaultProxy(place.url) as proxy:
        yield proxy


class Completions(CompletionListener):
    """Collects the answers to asynchronous sends."""

    def __init__(self) -> None:
        self.good: list[Message] = []
        self.bad: list[Exception] = []

    def on_completion(self, message: Message) -> None:
        self.good.append(message)

    def on_exception(self, message: Message, exception: Exception) -> None:
        self.bad.append(exception)


def test_b02_heartbeats_go_on_after_a_reconnect(place: Place, proxy: FaultProxy) -> None:
    factory = jmsapi.connection_factory(f"failover:({proxy.url})", **BEATS[place.wire])
    with factory.create_connection() as connection:
        troubles: list[Exception] = []
        connection.exception_listener = troubles.append
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(place.queue))
        proxy.cut()
        assert proxy.wait_for(lambda: proxy.accepted == 2 and proxy.open_connections == 1)
        settled = proxy.accepted
        sent = proxy.passed("to_broker")
        # Eight beats: who sends none is ended by the broker, who hears none ends it himself.
        quiet_until = time.monotonic() + 8 * BEAT_MS / 1000
        while time.monotonic() < quiet_until:
            assert proxy.accepted == settled
            time.sleep(0.05)
        assert proxy.passed("to_broker") > sent
        session.create_producer(session.create_queue(place.queue)).send(session.create_text_message("still here"))
        message = consumer.receive(10_000)
        assert message is not None
        assert message.get_body(str) == "still here"
        assert (proxy.accepted, troubles) == (settled, [])


def test_b04_close_right_after_a_send_returns_and_loses_nothing(place: Place) -> None:
    factory = jmsapi.connection_factory(place.url)
    before = set(threading.enumerate())  # whatever other tests have left
    for n in range(200):
        connection = factory.create_connection()
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(place.queue))
        producer.delivery_mode = DeliveryMode.PERSISTENT
        producer.send(session.create_text_message(str(n)))
        began = time.monotonic()
        connection.close()
        assert time.monotonic() - began < 20
    for thread in set(threading.enumerate()) - before:
        thread.join(10)  # it has said that it is done, and may have some instructions left
        assert not thread.is_alive(), thread.name
    assert sorted(map(int, place.received(200))) == list(range(200))


@pytest.mark.parametrize(
    "wire", [pytest.param(wire, marks=pytest.mark.xdist_group(f"restarts of {kind}")) for wire, kind in KINDS.items()]
)
def test_b08_a_listener_goes_on_when_the_broker_is_back(wire: Wire, restarted_broker: Callable[[BrokerKind], Broker]) -> None:
    broker = restarted_broker(KINDS[wire])
    place = Place(wire, broker, "field.b08")
    with jmsapi.connection_factory(f"failover:({place.url})?maxReconnectDelay=500").create_connection() as connection:
        bodies: list[str] = []
        all_here = threading.Event()

        def listen(message: Message) -> None:
            bodies.append(message.get_body(str))
            if len(bodies) == 10:
                all_here.set()

        session = connection.create_session()
        session.create_consumer(session.create_queue(place.queue)).message_listener = listen
        connection.start()
        broker.kill()
        broker.restart(ready_s=300)
        with jmsapi.connection_factory(place.url).create_context() as context:
            for n in range(10):
                context.create_producer().send(context.create_queue(place.queue), str(n))
        assert all_here.wait(30)
        assert bodies == [str(n) for n in range(10)]


def test_b08_the_end_of_the_attempts_is_told_once_and_later_calls_raise(place: Place, proxy: FaultProxy) -> None:
    factory = jmsapi.connection_factory(f"failover:({proxy.url})?maxReconnectAttempts=2&reconnectDelay=50")
    with factory.create_connection() as connection:
        told: list[Exception] = []
        heard = threading.Event()

        def listen(error: Exception) -> None:
            told.append(error)
            heard.set()

        connection.exception_listener = listen
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(place.queue))
        proxy.refuse_new()
        proxy.cut()
        assert heard.wait(30)
        for call in (connection.create_session, lambda: consumer.receive(1000)):
            with pytest.raises(jmsapi.JMSException):
                call()
        assert len(told) == 1


@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
def test_b13_close_waits_for_the_answers_to_asynchronous_sends(place: Place, proxy: FaultProxy, failover: bool) -> None:
    factory = jmsapi.connection_factory(f"failover:({proxy.url})" if failover else proxy.url)
    with factory.create_connection() as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(place.queue))
        completions = Completions()
        proxy.delay(0.5, "to_client")
        for n in range(20):
            producer.send(session.create_text_message(str(n)), completion_listener=completions)
        session.close()
        assert (len(completions.good), completions.bad) == (20, [])
        proxy.heal()
    assert place.received(20) == [str(n) for n in range(20)]


@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
def test_b13_close_fails_what_is_never_answered_when_time_is_up(place: Place, proxy: FaultProxy, failover: bool) -> None:
    url = f"failover:({proxy.url})" if failover else proxy.url
    with jmsapi.connection_factory(url, close_timeout_ms=1000).create_connection() as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(place.queue))
        # The first send may ask for credit; the link is good for it.
        producer.send(session.create_text_message("before"))
        completions = Completions()
        proxy.stall("to_client")
        for n in range(20):
            producer.send(session.create_text_message(str(n)), completion_listener=completions)
        began = time.monotonic()
        session.close()
        assert 0.5 < time.monotonic() - began < 10
        assert (completions.good, len(completions.bad)) == ([], 20)
        connection.close()
        assert (completions.good, len(completions.bad)) == ([], 20)


def test_b14_a_wrong_password_ends_the_attempts_at_once(place: Place, proxy: FaultProxy) -> None:
    wrong = f"{place.wire}://{quote(place.broker.user or '')}:not-it-1234@127.0.0.1:{proxy.port}"
    began = time.monotonic()
    with pytest.raises(jmsapi.JMSSecurityException) as caught:
        jmsapi.connection_factory(f"failover:({wrong})").create_connection()
    assert time.monotonic() - began < 20
    assert "not-it-1234" not in str(caught.value)
    assert proxy.accepted <= 2


def test_b16_one_back_off_for_one_trouble_and_no_flood_of_log_lines(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jmsapi")
    options = "reconnectDelay=100&initialReconnectDelay=0&maxReconnectAttempts=5&maxReconnectDelay=10000&jitter=0"
    # Who connects to the front is taken, and hung up on while the one behind refuses.
    with FaultProxy(place.url) as behind, FaultProxy(("127.0.0.1", behind.port)) as front:
        url = place.url.rpartition(":")[0] + f":{front.port}"
        with jmsapi.connection_factory(f"failover:({url})?{options}").create_connection() as connection:
            given_up = threading.Event()
            told: list[Exception] = []

            def listen(error: Exception) -> None:
                told.append(error)
                given_up.set()

            connection.exception_listener = listen
            # A link that breaks within a second goes on with the back-off that made it.
            time.sleep(1.2)
            caplog.clear()
            behind.refuse_new()
            behind.cut()
            times: list[float] = []
            while front.wait_for(lambda: front.accepted > 1 + len(times), 5):
                times.append(time.monotonic())
            assert given_up.wait(30)
            assert (len(told), len(times), front.accepted) == (1, 5, 6)
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    for wait, expected in zip(waits, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert expected * 0.7 < wait < expected + 2, waits
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("jmsapi")]
    assert len(lines) <= len(times) + 3, lines
