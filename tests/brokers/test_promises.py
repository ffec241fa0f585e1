"""Promises of brokers that no other test tries: groups, dead letters, priorities, counts, limits, names of other processes.

``docs/brokers/support-matrix.md`` tells what each broker does of these by each wire; here they are asked.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

import jmsapi
from jmsapi import JMSContext, JMSRuntimeException, Message, MessageListener
from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import INFO, KINDS, Broker, BrokerKind, Wire

WAIT_S = 60.0
WAIT_MS = 60_000
QUIET_MS = 500
WIRES: tuple[Wire, ...] = ("amqp", "stomp")
DEAD: dict[BrokerKind, str] = {"artemis": "DLQ", "classic": "ActiveMQ.DLQ"}

pytestmark = pytest.mark.broker
Open = Callable[..., JMSContext]


@pytest.fixture(params=[f"{wire}-{kind}" for kind in KINDS for wire in WIRES])
def place(request: pytest.FixtureRequest, leave_out: Callable[[str], Any]) -> tuple[Broker, Wire]:
    """Give each wire of each broker."""
    wire, kind = str(request.param).split("-")
    broker: Broker = request.getfixturevalue(kind)
    if wire not in broker.wires:
        leave_out(f"{kind} was given without {wire}")
    request.node.user_properties.append(
        ("backend", f"{wire.upper()} on {INFO[broker.kind].title} {broker.version or ''}".strip())
    )
    return broker, "amqp" if wire == "amqp" else "stomp"


@pytest.fixture
def name() -> str:
    """Give a name that is nobody else's."""
    return f"promises.{uuid.uuid4().hex}"


def can(context: JMSContext, capability: str) -> bool:
    """Return whether a backend claims a capability, natively or not."""
    return bool(jmsapi.capabilities(context).of(capability))


def text(message: Message | None) -> str | None:
    """Return a message's text."""
    return None if message is None else message.get_body(str)


def test_a_group_has_one_consumer_where_groups_are_promised_and_several_elsewhere(
    place: tuple[Broker, Wire], opened: Open, name: str
) -> None:
    context = opened(*place)
    queue = context.create_queue(name)
    sessions = [context.create_context(JMSContext.AUTO_ACKNOWLEDGE) for _ in range(2)]
    consumers = [session.create_consumer(queue) for session in sessions]
    producer = context.create_producer().set_property("JMSXGroupID", "one")
    for number in range(8):
        producer.send(queue, str(number))
    got: list[list[str | None]] = [[], []]
    deadline = time.monotonic() + WAIT_S
    while sum(map(len, got)) < 8 and time.monotonic() < deadline:
        for mine, consumer in zip(got, consumers, strict=True):
            while (message := consumer.receive(20)) is not None:
                mine.append(text(message))
    promised = can(context, "message_groups")
    for session in sessions:
        session.close()
    assert sorted(map(str, got[0] + got[1])) == [str(number) for number in range(8)]
    assert (sorted(map(len, got)) == [0, 8]) is promised, got


def test_an_urgent_message_overtakes_on_rabbitmq_where_the_queue_is_declared_for_it(
    rabbitmq: Broker, opened: Open, name: str
) -> None:
    for wire in WIRES:
        context = opened(rabbitmq, wire, rabbit_queue_args="x-max-priority:9")
        queue = context.create_queue(f"{name}.{wire}")
        for priority in (1, 4, 9):
            context.create_producer().set_priority(priority).send(queue, str(priority))
        consumer = context.create_consumer(queue)
        assert [text(consumer.receive(WAIT_MS)) for _ in range(3)] == ["9", "4", "1"]


def test_without_being_told_to_brokers_but_artemis_give_urgent_messages_as_they_were_sent(
    place: tuple[Broker, Wire], opened: Open, name: str
) -> None:
    context = opened(*place)
    queue = context.create_queue(name)
    for priority in (1, 4, 9):
        context.create_producer().set_priority(priority).send(queue, str(priority))
    consumer = context.create_consumer(queue)
    got = [text(consumer.receive(WAIT_MS)) for _ in range(3)]
    assert got == (["9", "4", "1"] if can(context, "priority_order") else ["1", "4", "9"])


@pytest.mark.parametrize(("kind", "destination"), [("artemis", "{}"), ("rabbitmq", "/queue/{}")])
def test_the_header_browser_of_stomp_consumes_but_on_classic(
    request: pytest.FixtureRequest, opened: Open, name: str, kind: BrokerKind, destination: str
) -> None:
    broker: Broker = request.getfixturevalue(kind)
    context = opened(broker, "stomp")
    queue = context.create_queue(name)
    context.create_producer().send(queue, "looked at")
    at = urlsplit(broker.url("stomp"))
    with socket.create_connection((at.hostname, at.port), WAIT_S) as raw:
        came = b""

        def until(end: bytes) -> None:
            nonlocal came
            while end not in came:
                more = raw.recv(65_536)
                assert more, came
                came += more

        login = f"login:{at.username}\npasscode:{at.password}"
        raw.sendall(f"CONNECT\naccept-version:1.2\nhost:/\n{login}\n\n\0".encode())
        asked = f"id:1\ndestination:{destination.format(name)}\nsubscription-type:ANYCAST\nbrowser:true\nack:auto"
        raw.sendall(f"SUBSCRIBE\n{asked}\n\n\0".encode())
        until(b"looked at")
        # When the next has come the broker has done with the one before.
        context.create_producer().send(queue, "and another")
        until(b"and another")
    consumer = context.create_consumer(queue)
    left = [text(message) for message in iter(lambda: consumer.receive(QUIET_MS * 4), None)]
    assert "looked at" not in left
    # On Artemis a browser is made of copies (test_browsing_artemis_over_stomp.py).
    assert can(context, "browser") is (kind == "artemis")


@pytest.mark.parametrize("wire", WIRES)
def test_who_only_looks_at_messages_on_rabbitmq_hides_them_and_leaves_his_mark(
    rabbitmq: Broker, opened: Open, name: str, wire: Wire
) -> None:
    # So a browser made of scanning, holding and releasing would not be one: a browser changes nothing (5.9-1).
    looking, other = opened(rabbitmq, wire, JMSContext.CLIENT_ACKNOWLEDGE), opened(rabbitmq, wire)
    queue = looking.create_queue(name)
    looking.create_producer().send(queue, "looked at")
    assert text(looking.create_consumer(queue).receive(WAIT_MS)) == "looked at"
    consumer = other.create_consumer(queue)
    assert consumer.receive(QUIET_MS) is None
    looking.close()
    message = consumer.receive(WAIT_MS)
    assert text(message) == "looked at"
    assert message is not None
    assert (message.jms_redelivered, message.get_int_property("JMSXDeliveryCount")) == (True, 2)


def test_a_quorum_queue_of_rabbitmq_counts_deliveries_over_consumers(rabbitmq: Broker, opened: Open, name: str) -> None:
    for wire in WIRES:
        options = {"rabbit_queue_args": "x-queue-type:quorum"}
        counts: list[int] = []
        for number in range(3):
            context = opened(rabbitmq, wire, JMSContext.CLIENT_ACKNOWLEDGE, **options)
            queue = context.create_queue(f"{name}.{wire}")
            if number == 0:
                context.create_producer().send(queue, "again")
            message = context.create_consumer(queue).receive(WAIT_MS)
            assert message is not None
            counts.append(message.get_int_property("JMSXDeliveryCount"))
            context.close()
        assert counts == [1, 2, 3], wire


@pytest.mark.parametrize("wire", WIRES)
def test_a_quorum_queue_of_rabbitmq_without_a_limit_counts_on_but_stomp_cannot_lift_it(
    rabbitmq: Broker, opened: Open, name: str, wire: Wire
) -> None:
    options = {"rabbit_queue_args": "x-queue-type:quorum;x-delivery-limit:-1"}
    opened(rabbitmq, wire, **options).create_producer().send(opened(rabbitmq, wire).create_queue(name), "again")
    counts: list[int] = []
    for number in range(22):
        context = opened(rabbitmq, wire, JMSContext.CLIENT_ACKNOWLEDGE, **options)
        consumer = context.create_consumer(context.create_queue(name))
        # Who has been given a message 21 times is sure that it is there; then only its absence can be waited for.
        message = consumer.receive(WAIT_MS if number < 21 or wire == "amqp" else QUIET_MS)
        if message is None:
            break
        counts.append(message.get_int_property("JMSXDeliveryCount"))
        if number % 2:
            consumer.close()
        context.close()
    # The STOMP plug-in does not hand x-delivery-limit on, so the broker's 20 returns are the limit.
    assert counts == list(range(1, 23 if wire == "amqp" else 22))


@pytest.mark.parametrize("arguments", ["x-max-priority:9", "x-queue-type:quorum;x-delivery-limit:-1"])
def test_a_queue_with_arguments_shuts_out_on_rabbitmq_who_declares_it_without(
    rabbitmq: Broker, opened: Open, name: str, arguments: str
) -> None:
    # So no arguments are the default: over STOMP, and in AMQP 0-9-1, whoever sends or consumes declares.
    made = opened(rabbitmq, "amqp", rabbit_queue_args=arguments)
    made.create_producer().send(made.create_queue(name), "1")
    plain = opened(rabbitmq, "stomp")
    with pytest.raises(JMSRuntimeException, match="was declared otherwise"):
        plain.create_producer().send(plain.create_queue(name), "2")
    # AMQP 1.0 declares apart from using: what is there is used as it is.
    other = opened(rabbitmq, "amqp")
    other.create_producer().send(other.create_queue(name), "3")
    consumer = other.create_consumer(other.create_queue(name))
    assert [text(consumer.receive(WAIT_MS)) for _ in range(2)] == ["1", "3"]


def test_exact_counts_and_ten_priorities_exclude_one_another_on_rabbitmq(rabbitmq: Broker, opened: Open, name: str) -> None:
    context = opened(rabbitmq, "amqp", rabbit_queue_args="x-queue-type:quorum;x-max-priority:9")
    with pytest.raises(JMSRuntimeException, match="x-max-priority"):
        context.create_consumer(context.create_queue(name))


def test_a_copy_of_a_known_message_is_dropped_where_that_is_promised_and_arrives_elsewhere(
    place: tuple[Broker, Wire], opened: Open, name: str
) -> None:
    context = opened(*place)
    queue = context.create_queue(name)
    known_by = jmsapi.capabilities(context).duplicate_property
    producer = context.create_producer().set_property(known_by or "_AMQ_DUPL_ID", name)
    for body in ("first", "again"):
        producer.send(queue, body)
    context.create_producer().send(queue, "last")
    consumer = context.create_consumer(queue)
    expected = ["first", "last"] if can(context, "duplicate_detection") else ["first", "again", "last"]
    assert [text(consumer.receive(WAIT_MS)) for _ in expected] == expected


class Failing(MessageListener):
    """Takes nothing."""

    def on_message(self, message: Message) -> None:
        raise RuntimeError("not this one")


def test_a_message_that_a_listener_never_takes_is_in_the_dead_letter_queue(
    place: tuple[Broker, Wire], opened: Open, name: str
) -> None:
    broker, wire = place
    options: dict[str, Any] = {"max_redeliveries": 1}
    dead = DEAD.get(broker.kind, f"{name}.dead")
    if broker.kind == "rabbitmq":
        opened(*place).create_producer().send(opened(*place).create_queue(dead), "made")
        options["rabbit_queue_args"] = f"x-dead-letter-exchange:;x-dead-letter-routing-key:{dead}"
    context = opened(broker, wire, **options)
    assert can(context, "dead_letter")
    queue = context.create_queue(name)
    context.create_producer().set_property("label", name).send(queue, "poison")
    context.create_consumer(queue).message_listener = Failing()
    other = opened(*place)
    # The dead letter queues of Artemis and Classic are everybody's.
    dead_letters = other.create_consumer(other.create_queue(dead), None if dead.startswith(name) else f"label = '{name}'")
    found = text(dead_letters.receive(WAIT_MS))
    if found == "made":
        found = text(dead_letters.receive(WAIT_MS))
    assert found == "poison"


def test_rabbitmq_drops_a_rejected_message_without_a_dead_letter_exchange(rabbitmq: Broker, opened: Open, name: str) -> None:
    for wire in WIRES:
        context = opened(rabbitmq, wire, max_redeliveries=0)
        queue = context.create_queue(f"{name}.{wire}")
        context.create_producer().send(queue, "poison")
        context.create_producer().send(queue, "last")
        listener = Once("last")
        context.create_consumer(queue).message_listener = listener
        assert listener.done.wait(WAIT_S)
        context.close()
        other = opened(rabbitmq, wire)
        assert other.create_consumer(other.create_queue(f"{name}.{wire}")).receive(QUIET_MS) is None


class Once(MessageListener):
    """Takes one text and nothing before it."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self.done = threading.Event()

    def on_message(self, message: Message) -> None:
        if text(message) != self._wanted:
            raise RuntimeError("not this one")
        self.done.set()


@pytest.mark.parametrize("kind", ["artemis", "rabbitmq"])
def test_a_broker_with_a_limit_gives_a_message_up_by_itself(
    kind: BrokerKind, request: pytest.FixtureRequest, opened: Open, name: str
) -> None:
    broker: Broker = request.getfixturevalue(kind)
    options = {"rabbit_queue_args": "x-queue-type:quorum;x-delivery-limit:9"} if kind == "rabbitmq" else {}
    context = opened(broker, "amqp", **options)
    queue = context.create_queue(name)
    context.create_producer().send(queue, "poison")
    counts: list[int] = []
    while True:
        session = context.create_context(JMSContext.CLIENT_ACKNOWLEDGE)
        message = session.create_consumer(queue).receive(WAIT_MS if len(counts) < 10 else QUIET_MS)
        if message is None:
            break
        counts.append(message.get_int_property("JMSXDeliveryCount"))
        session.close()
    session.close()
    assert counts == list(range(1, 11))


def test_what_a_closed_session_gives_back_to_a_quorum_queue_comes_again_in_order(
    rabbitmq: Broker, opened: Open, name: str
) -> None:
    """Given back to a consumer that still has credit it would come to it once more, be counted twice and change places."""
    context = opened(rabbitmq, "amqp", rabbit_queue_args="x-queue-type:quorum")
    queue = context.create_queue(name)
    for body in ("1", "2", "3"):
        context.create_producer().send(queue, body)
    for _ in range(3):
        session = context.create_context(JMSContext.CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer(queue)
        assert [text(consumer.receive(WAIT_MS)) for _ in range(2)] == ["1", "2"]
        session.close()


@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
def test_a_consumer_that_closes_before_anything_is_received_leaves_the_queue_in_order(
    place: tuple[Broker, Wire], opened: Open, name: str, closed: str
) -> None:
    broker, wire = place
    count = 300
    context = opened(broker, wire)
    queue = context.create_queue(name)
    producer = context.create_producer()
    for number in range(count):
        producer.send(queue, str(number))
    # The first one has been sent all of it, the others end while it is still on its way to them.
    for pause in (0.5, 0.0, 0.01, 0.0):
        connection = jmsapi.connection_factory(broker.url(wire), checked=True).create_connection()
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(name))
        time.sleep(pause)
        if closed == "consumer":
            consumer.close()
        elif closed == "session":
            session.close()
        connection.close()
    consumer_of_all = context.create_consumer(queue)
    received = [consumer_of_all.receive_body(str, timeout_ms=WAIT_MS) for _ in range(count)]
    assert received == [str(number) for number in range(count)]


def test_a_send_to_a_queue_that_is_not_there_is_told_or_makes_it_but_for_rabbitmq_over_stomp(
    place: tuple[Broker, Wire], opened: Open, name: str
) -> None:
    broker, wire = place
    options: dict[str, Any] = {"rabbit_declare": False} if broker.kind == "rabbitmq" else {}
    context = opened(broker, wire, **options)
    queue = context.create_queue(name)
    if broker.kind == "rabbitmq" and wire == "amqp":
        with pytest.raises(jmsapi.InvalidDestinationRuntimeException):
            context.create_producer().send(queue, "kept")
    else:
        context.create_producer().send(queue, "kept")
    other = opened(broker, wire)
    arrived = text(other.create_consumer(other.create_queue(name)).receive(QUIET_MS if broker.kind == "rabbitmq" else WAIT_MS))
    assert arrived == (None if broker.kind == "rabbitmq" else "kept")
    assert can(context, "missing_queue_reported") is not (place == (broker, "stomp") and broker.kind == "rabbitmq")


def test_more_messages_than_a_broker_gives_credit_for_are_sent_in_order(each_broker: Broker, opened: Open, name: str) -> None:
    """RabbitMQ gives a sender 170 at a time, the others 1000."""
    context = opened(each_broker, "amqp")
    queue = context.create_queue(name)
    producer = context.create_producer().set_delivery_mode(1)
    for number in range(2500):
        producer.send(queue, str(number))
    consumer = context.create_consumer(queue)
    assert [text(consumer.receive(WAIT_MS)) for _ in range(2500)] == [str(number) for number in range(2500)]


def test_a_consumer_that_holds_its_acknowledgements_gets_more_than_any_broker_sends_ahead(
    each_broker: Broker, opened: Open, name: str
) -> None:
    """Classic that is given much credit at once sends 200 messages and then none before it hears of one."""
    context = opened(each_broker, "amqp", JMSContext.CLIENT_ACKNOWLEDGE)
    queue = context.create_queue(name)
    producer = context.create_producer().set_delivery_mode(1)
    for number in range(600):
        producer.send(queue, str(number))
    consumer = context.create_consumer(queue)
    assert [text(consumer.receive(WAIT_MS)) for _ in range(600)] == [str(number) for number in range(600)]
    context.acknowledge()
    assert consumer.receive_no_wait() is None


def _more_than(proxy: FaultProxy, before: int) -> bool:
    return proxy.accepted > before


def test_a_consumer_and_a_producer_on_rabbitmq_go_on_after_a_cut(rabbitmq: Broker, name: str) -> None:
    for wire in WIRES:
        with FaultProxy(rabbitmq.url(wire)) as proxy:
            factory = jmsapi.connection_factory(f"failover:({proxy.url})", checked=True, max_reconnect_delay_ms=200)
            with factory.create_context() as context:
                queue = context.create_queue(f"{name}.{wire}")
                consumer, producer = context.create_consumer(queue), context.create_producer()
                for number in range(3):
                    producer.send(queue, str(number))
                    # The cut may overtake the acknowledgement of the one before; that one then comes again.
                    while text(consumer.receive(WAIT_MS)) != str(number):
                        pass
                    before = proxy.accepted
                    proxy.cut()
                    # A send that the cut meets on its way is in doubt and raises; this one comes after.
                    assert proxy.wait_for(functools.partial(_more_than, proxy, before), WAIT_S)


HOLD = """
import sys, jmsapi
context = jmsapi.connection_factory(sys.argv[1], client_id=sys.argv[2]).create_context()
consumer = context.create_durable_consumer(context.create_topic(sys.argv[3]), "s")
print("held", flush=True)
sys.stdin.read()
consumer.close()
context.close()
"""
"""Holds a durable subscription until its standard input ends."""
MAKE = """
import sys, jmsapi
with jmsapi.connection_factory(sys.argv[1], client_id=sys.argv[2]).create_context() as context:
    context.create_durable_consumer(context.create_topic(sys.argv[2]), "s", "n = 1", False).close()
"""
"""Makes a durable subscription with a selector, and leaves it."""


def identified(url: str, name: str) -> JMSContext:
    """Open a context of a client id that a process which has ended had: brokers let go of it a moment later."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return jmsapi.connection_factory(url, client_id=name).create_context()
        except (jmsapi.InvalidClientIDException, jmsapi.InvalidClientIDRuntimeException):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_a_durable_subscription_of_another_process_is_refused_but_for_artemis_over_stomp(
    place: tuple[Broker, Wire], name: str
) -> None:
    broker, wire = place
    # Classic and Artemis over AMQP have one connection a client id; there it is that which is refused.
    url, shares = broker.url(wire), (broker.kind, wire) == ("artemis", "stomp")
    arguments = [sys.executable, "-c", HOLD, url, name, name]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        refused = (jmsapi.InvalidClientIDException, jmsapi.InvalidClientIDRuntimeException)
        try:
            with jmsapi.connection_factory(url, client_id=name).create_context() as context:
                context.create_durable_consumer(context.create_topic(name), "s").close()
                taken = True
        except refused:
            taken = False
        other.stdin.close()
        assert other.wait(WAIT_S) == 0
    assert taken is shares
    with identified(url, name) as context:
        context.unsubscribe("s")


def test_another_selector_from_another_process_begins_anew_but_over_stomp_on_artemis_and_rabbitmq(
    place: tuple[Broker, Wire], name: str
) -> None:
    broker, wire = place
    url = broker.url(wire)
    old = {"artemis": ["for the first selector"], "rabbitmq": ["for the first selector", "for the second"]}
    anew = ["for the second"]
    expected = old.get(broker.kind, anew) if wire == "stomp" else anew
    done = subprocess.run([sys.executable, "-c", MAKE, url, name], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    with identified(url, name) as context:
        topic = context.create_topic(name)
        context.create_producer().set_property("n", 1).send(topic, "for the first selector")
        consumer = context.create_durable_consumer(topic, "s", "n = 1 OR n = 2", False)
        context.create_producer().set_property("n", 2).send(topic, "for the second")
        got = [text(consumer.receive(WAIT_MS)) for _ in expected]
        assert consumer.receive(QUIET_MS) is None
        consumer.close()
        context.unsubscribe("s")
    assert got == expected


def test_a_request_gets_its_reply_and_a_late_one_is_left_nowhere(place: tuple[Broker, Wire], opened: Open, name: str) -> None:
    context, other = opened(*place), opened(*place)
    queue = context.create_queue(name)

    def answer(message: Message) -> None:
        reply = other.create_text_message(f"re: {text(message)}")
        reply.jms_correlation_id = message.jms_correlation_id
        assert message.jms_reply_to is not None
        other.create_producer().send(message.jms_reply_to, reply)

    assert context.request(queue, "nobody is there", timeout_ms=50) is None
    with other.create_consumer(queue) as late:
        request = late.receive(WAIT_MS)
    assert request is not None and request.jms_reply_to is not None
    assert text(request) == "nobody is there"
    with contextlib.suppress(JMSRuntimeException):
        other.create_producer().send(request.jms_reply_to, "late")
    other.create_consumer(queue).message_listener = answer
    assert [text(context.request(queue, body, timeout_ms=WAIT_MS)) for body in ("one", "two")] == ["re: one", "re: two"]
