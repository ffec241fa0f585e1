"""The in-process broker used by our own client over the loopback server: from other threads, programs and libraries."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import JMSContext, Message
from jmsapi.testing import LoopbackServer
from jmsapi.values import Byte, Char, Float, Long, Short

from .conftest import texts, until

WAIT_MS = 30_000
PROPERTIES: dict[str, Any] = {
    "flag": True,
    "count": 7,
    "big": Long(2**40),
    "tiny": Byte(-1),
    "short": Short(300),
    "long": Long(1),
    "ratio": 0.5,
    "single": Float(0.25),
    "text": "ä:\n\\",
    "nothing": None,
    "receipt": "a header of STOMP's own",
    "JMSXGroupID": "g",
    "JMSXGroupSeq": 3,
}
BODIES: dict[str, Any] = {
    "text": "ä\0\n",
    "empty": "",
    "bytes": bytes(range(256)),
    "map": {"n": 1, "c": Char("x"), "raw": b"\0\xff", "f": Float(1.5), "none": None},
    "stream": [1, "two", b"3", 4.0, True],
}


def take(context: JMSContext, queue: str, selector: str | None = None) -> Message:
    with context.create_consumer(context.create_queue(queue), selector) as consumer:
        message = consumer.receive(WAIT_MS)
        assert message is not None
        return message


@pytest.mark.parametrize("ways", ["out and in", "in and out", "out and out"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_message_is_the_same_on_both_sides_of_the_wire(over: JMSContext, inside: JMSContext, body: Any, ways: str) -> None:
    sender = inside if ways.startswith("in") else over
    receiver = inside if ways.endswith("in") else over
    message: Message
    if isinstance(body, list):
        message = sender.create_stream_message()
        for value in body:
            message.write_object(value)
    elif isinstance(body, dict):
        message = sender.create_map_message()
        for name, value in body.items():
            message.set_object(name, value)
    elif isinstance(body, bytes):
        message = sender.create_bytes_message()
        message.write_bytes(body)
    else:
        message = sender.create_text_message(body)
    for name, value in PROPERTIES.items():
        message.set_object_property(name, value)
    message.jms_correlation_id = "c:1"
    message.jms_type = "t"
    message.jms_reply_to = sender.create_topic("answers")
    producer = sender.create_producer()
    producer.priority, producer.time_to_live, producer.delivery_mode = 7, 100_000, jmsapi.DeliveryMode.NON_PERSISTENT
    producer.send(sender.create_queue("mixed"), message)
    got = take(receiver, "mixed")
    assert {name: got.get_object_property(name) for name in PROPERTIES} == PROPERTIES
    assert [type(got.get_object_property(name)) for name in PROPERTIES] == [type(value) for value in PROPERTIES.values()]
    for name in ("message_id", "timestamp", "correlation_id", "type", "priority", "expiration", "delivery_mode", "delivery_time"):
        assert getattr(got, f"jms_{name}") == getattr(message, f"jms_{name}"), name
    assert str(got.jms_reply_to) == "answers" and isinstance(got.jms_reply_to, jmsapi.Topic)
    assert str(got.jms_destination) == "mixed" and got.get_int_property("JMSXDeliveryCount") == 1
    if isinstance(got, jmsapi.StreamMessage):
        assert [got.read_object() for _ in body] == body
    else:
        assert got.get_body(type(body)) == body


def test_a_topic_gives_each_side_its_own_copy_of_the_same_text(over: JMSContext, inside: JMSContext) -> None:
    consumers = [context.create_consumer(context.create_topic("news")) for context in (over, inside, over)]
    over.create_producer().send(over.create_topic("news"), "one text")
    for consumer in (consumers[1], consumers[0], consumers[2]):  # who reads first must not take it from the others
        message = consumer.receive(WAIT_MS)
        assert message is not None and message.get_body(str) == "one text"


def test_a_selector_sees_the_types_that_were_sent(over: JMSContext, inside: JMSContext) -> None:
    queue = over.create_queue("picked")
    for number in range(10):
        producer = over.create_producer().set_property("n", number).set_property("even", number % 2 == 0)
        producer.set_property("name", f"it's {number}").send(queue, str(number))
    assert take(over, "picked", "n > 5 AND even = TRUE AND name LIKE 'it''s %' AND JMSPriority = 4").get_body(str) == "6"
    assert texts(inside, "picked") == list("012345789")


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (lambda context: context.create_consumer(context.create_queue("q"), "k = 'x\0y'"), "InvalidSelectorRuntimeException"),
        (lambda context: context.create_browser(context.create_queue("q"), "k = 'x\0y'"), "InvalidSelectorException"),
        (
            lambda context: context.create_durable_consumer(context.create_topic("t"), "a\0b"),
            "InvalidDestinationRuntimeException",
        ),
        (lambda context: context.create_shared_consumer(context.create_topic("t"), "a\0b"), "InvalidDestinationRuntimeException"),
        (lambda context: context.unsubscribe("a\0b"), "InvalidDestinationRuntimeException"),
    ],
    ids=["selector", "browser", "durable", "shared", "unsubscribe"],
)
def test_a_nul_in_a_name_or_a_selector_is_refused_and_the_connection_stays(
    server: LoopbackServer, asked: Callable[[JMSContext], Any], error: str
) -> None:
    with jmsapi.connection_factory(f"{server.url}?client_id=me").create_context() as context:
        with pytest.raises((jmsapi.JMSException, jmsapi.JMSRuntimeException)) as raised:
            made = asked(context)
            next(iter(made), None)
        assert type(raised.value).__name__ == error
        queue = context.create_queue("q")
        context.create_producer().send(queue, "after")
        assert context.create_consumer(queue).receive_body(str, 30_000) == "after"


def test_no_local_keeps_a_connection_from_hearing_itself(over: JMSContext, inside: JMSContext) -> None:
    topic = over.create_topic("chat")
    consumer = over.create_consumer(topic, None, True)
    over.create_producer().send(topic, "mine")
    inside.create_producer().send(inside.create_topic("chat"), "theirs")
    message = consumer.receive(WAIT_MS)
    assert message is not None and message.get_body(str) == "theirs"


def test_a_durable_subscription_is_exclusive_replaced_when_changed_and_ended(server: LoopbackServer) -> None:
    factory = jmsapi.connection_factory(server.url, client_id="c")
    with factory.create_context() as context:
        topic = context.create_topic("news")
        with context.create_durable_consumer(topic, "s"):
            with pytest.raises(jmsapi.JMSRuntimeException):
                context.create_durable_consumer(topic, "s")
            with pytest.raises(jmsapi.JMSRuntimeException):
                context.unsubscribe("s")
        context.create_producer().send(topic, "kept")
    with factory.create_context() as context:
        topic = context.create_topic("news")
        with context.create_durable_consumer(topic, "s") as consumer:
            assert consumer.receive(WAIT_MS) is not None
        context.create_producer().send(topic, "lost by the change")
        with context.create_durable_consumer(topic, "s", "n = 1") as consumer:
            context.create_producer().set_property("n", 1).send(topic, "new")
            message = consumer.receive(WAIT_MS)
            assert message is not None and message.get_body(str) == "new"
        context.unsubscribe("s")
        with pytest.raises(jmsapi.InvalidDestinationRuntimeException):
            context.unsubscribe("s")


@pytest.mark.parametrize("durable", [True, False])
def test_a_shared_subscription_is_shared_by_connections(server: LoopbackServer, durable: bool) -> None:
    factory = jmsapi.connection_factory(server.url, prefetch=1)
    with factory.create_context() as one, factory.create_context() as two:
        make = "create_shared_durable_consumer" if durable else "create_shared_consumer"
        consumers = [getattr(context, make)(context.create_topic("news"), "s") for context in (one, two)]
        with pytest.raises(jmsapi.JMSRuntimeException):
            getattr(two, make)(two.create_topic("other"), "s")
        for number in range(20):
            one.create_producer().send(one.create_topic("news"), str(number))
        found = [message.get_body(str) for consumer in consumers for message in iter(lambda c=consumer: c.receive(300), None)]
        assert sorted(map(int, found)) == list(range(20))


def test_a_temporary_queue_is_its_connections_own_until_that_ends(server: LoopbackServer, over: JMSContext) -> None:
    with jmsapi.connection_factory(server.url).create_context() as other:
        mine = other.create_temporary_queue()
        over.create_producer().send(mine, "an answer")
        with pytest.raises(jmsapi.InvalidDestinationRuntimeException):
            over.create_consumer(mine)
        with other.create_consumer(mine) as consumer:
            assert consumer.receive(WAIT_MS) is not None
            with pytest.raises(jmsapi.JMSError):
                mine.delete()
        mine.delete()
        with pytest.raises(jmsapi.InvalidDestinationRuntimeException):
            over.create_producer().send(mine, "too late")
        gone = other.create_temporary_topic()
    producer = over.create_producer()
    with pytest.raises(jmsapi.InvalidDestinationRuntimeException):
        producer.send(gone, "too late")
    producer.delivery_mode = jmsapi.DeliveryMode.NON_PERSISTENT
    producer.send(gone, "nobody waits for an answer to this")
    over.create_producer().send(over.create_queue("q"), "and the connection lives")


@pytest.mark.parametrize("group", [None, "one group"])
@pytest.mark.parametrize("prefetch", [1, 10])
def test_a_transaction_takes_more_than_its_consumer_prefetches(server: LoopbackServer, prefetch: int, group: str | None) -> None:
    factory = jmsapi.connection_factory(server.url, prefetch=prefetch)
    with factory.create_context(session_mode=JMSContext.SESSION_TRANSACTED) as context:
        queue = context.create_queue("many")
        producer = context.create_producer()
        if group is not None:
            producer.set_property("JMSXGroupID", group)
        for number in range(100):
            producer.send(queue, str(number))
        context.commit()
        with context.create_consumer(queue) as consumer:
            for again in (True, False):
                found = [consumer.receive(WAIT_MS) for _ in range(100)]
                assert [message and message.get_body(str) for message in found] == [str(number) for number in range(100)]
                assert consumer.receive_no_wait() is None
                if again:
                    context.rollback()
            context.commit()
    with factory.create_context() as context:
        assert texts(context, "many") == []


def test_delivery_counts_are_exact_across_connections(server: LoopbackServer, inside: JMSContext) -> None:
    inside.create_producer().send(inside.create_queue("counted"), "a")
    counts: list[int] = []
    for _ in range(3):
        with jmsapi.connection_factory(server.url).create_context(session_mode=JMSContext.CLIENT_ACKNOWLEDGE) as context:
            consumer = context.create_consumer(context.create_queue("counted"))
            for again in (True, True, False):
                message = consumer.receive(WAIT_MS)
                assert message is not None
                counts.append(message.get_int_property("JMSXDeliveryCount"))
                assert message.jms_redelivered == (counts[-1] > 1)
                if again:
                    context.recover()
    assert counts == list(range(1, 10))


@pytest.mark.parametrize("ways", ["out and in", "in and out", "out and out"])
def test_a_message_that_is_to_have_no_id_and_no_time_has_none(over: JMSContext, inside: JMSContext, ways: str) -> None:
    sender = inside if ways.startswith("in") else over
    producer = sender.create_producer()
    producer.disable_message_id = producer.disable_message_timestamp = True
    producer.send(sender.create_queue("bare"), "a")
    message = take(inside if ways.endswith("in") else over, "bare")
    assert (message.jms_message_id, message.jms_timestamp) == (None, 0)


def test_a_message_that_stomp_cannot_carry_goes_to_the_dead_letter_queue(
    over: JMSContext, inside: JMSContext, caplog: pytest.LogCaptureFixture
) -> None:
    producer = inside.create_producer()
    producer.jms_correlation_id = "a\0b"
    queue = inside.create_queue("carried")
    producer.send(queue, "cannot")
    inside.create_producer().send(queue, "can")
    with caplog.at_level(logging.WARNING, "jmsapi.testing"):
        assert take(over, "carried").get_body(str) == "can"
    until(lambda: texts(inside, "DLQ.carried") == ["cannot"])
    assert "dead letter" in caplog.text


def test_a_broker_that_is_discarded_ends_the_connections_to_it(server: LoopbackServer) -> None:
    lost = threading.Event()

    class Listener(jmsapi.ExceptionListener):
        def on_exception(self, exception: jmsapi.JMSException) -> None:
            lost.set()

    with jmsapi.connection_factory(server.url).create_connection() as connection:
        connection.exception_listener = Listener()
        connection.start()
        jmsapi_inproc.discard(server.inproc_url.partition("://")[2])
        assert lost.wait(WAIT_MS / 1000)


# ---------------------------------------------------------------- other programs

HOLDER = """
import sys, time, jmsapi
context = jmsapi.connection_factory(sys.argv[1]).create_context(session_mode=jmsapi.JMSContext.SESSION_TRANSACTED)
consumer = context.create_consumer(context.create_queue("held"))
for _ in range(3):
    assert consumer.receive(10_000) is not None
context.create_producer().send(context.create_queue("made"), "never committed")
print("holding", flush=True)
time.sleep(60)
"""


@pytest.mark.program
def test_what_a_killed_process_held_comes_back_once_and_marked(server: LoopbackServer, inside: JMSContext) -> None:
    for number in range(5):
        inside.create_producer().send(inside.create_queue("held"), str(number))
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, server.url], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"holding\n"
        assert texts(inside, "held") == []
        holder.send_signal(signal.SIGKILL)
    finally:
        holder.kill()
        holder.communicate(timeout=WAIT_MS / 1000)
    until(lambda: server.connections == 0)
    assert texts(inside, "made") == []
    consumer = inside.create_consumer(inside.create_queue("held"))
    found = [consumer.receive(WAIT_MS) for _ in range(5)]
    assert [message and message.get_body(str) for message in found] == list("01234")
    assert all(message is not None and message.jms_redelivered for message in found[:3])
    assert consumer.receive_no_wait() is None


@pytest.fixture
def command() -> Iterator[subprocess.Popen[str]]:
    """Start the command; it is ended with the test."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen([sys.executable, "-m", "jmsapi.testing"], stdout=subprocess.PIPE, text=True, env=environment)
    yield run
    run.kill()
    run.communicate(timeout=WAIT_MS / 1000)


@pytest.mark.program
def test_the_command_serves_until_it_is_told_to_end(command: subprocess.Popen[str]) -> None:
    assert command.stdout is not None
    url = command.stdout.readline().strip()
    with jmsapi.connection_factory(url).create_context() as context:
        context.create_producer().send(context.create_queue("q"), "a")
        assert texts(context, "q") == ["a"]
    command.send_signal(signal.SIGTERM)
    assert command.wait(WAIT_MS / 1000) == 0


@pytest.mark.program
def test_the_command_says_that_a_port_is_taken(server: LoopbackServer) -> None:
    run = [sys.executable, "-m", "jmsapi.testing", "--port", str(server.port)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=WAIT_MS / 1000, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 2 and str(server.port) in done.stderr


class Noted:
    """A listener of stomp.py that files away what comes."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.receipts: list[str] = []
        self.errors: list[str] = []

    def on_message(self, frame: Any) -> None:
        self.messages.append(frame)

    def on_receipt(self, frame: Any) -> None:
        self.receipts.append(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        self.errors.append(frame.headers["message"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_client_that_is_not_ours_sends_receives_and_rolls_back(server: LoopbackServer, over: JMSContext) -> None:
    stomp = pytest.importorskip("stomp")
    noted = Noted()
    client = stomp.Connection12([("127.0.0.1", server.port)], heartbeats=(1000, 1000))
    client.set_listener("", noted)
    client.connect(wait=True)
    try:
        transaction = client.begin()
        client.send("/queue/theirs", "dropped", transaction=transaction)
        client.abort(transaction)
        client.send("/queue/theirs", "ä text", headers={"region": "EU"}, receipt="1")
        until(lambda: noted.receipts == ["1"])
        message = take(over, "theirs", "region = 'EU'")
        assert message.get_body(str) == "ä text"
        assert (message.jms_message_id or "").startswith("ID:") and message.jms_timestamp
        over.create_producer().set_property("n", 7).send(over.create_queue("ours"), "for them")
        client.subscribe("/queue/ours", id="s", ack="client-individual")
        until(lambda: len(noted.messages) == 1)
        assert noted.messages[0].body == "for them" and noted.messages[0].headers["n"] == "7"
        client.ack(noted.messages[0].headers["ack"], receipt="2")
        until(lambda: "2" in noted.receipts)
        client.unsubscribe("s")
        client.unsubscribe("s", receipt="3")
        until(lambda: len(noted.errors) == 1)
    finally:
        client.disconnect()
        until(lambda: not any(thread.name.startswith("Stomp") for thread in threading.enumerate()) or not client.is_connected())


def test_the_server_listens_on_one_address_of_loopback_only(server: LoopbackServer) -> None:
    # Whoever listens on all addresses is met on this one as well.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), 2).close()


def test_a_file_is_open_as_long_as_it_is_served(tmp_path: Path) -> None:
    path = tmp_path / "broker.db"
    with LoopbackServer(f"inproc://{path}") as server:
        for text in ("a", "b"):
            with jmsapi.connection_factory(server.url).create_context() as context:
                context.create_producer().send(context.create_queue("q"), text)
        until(lambda: server.connections == 0)
        assert jmsapi_inproc.discard(path), "it is open though nobody is connected"
        with jmsapi.connection_factory(server.url).create_context() as context:
            consumer = context.create_consumer(context.create_queue("q"))
            assert [consumer.receive_body(str, 20_000) for _ in range(2)] == ["a", "b"]
    assert not jmsapi_inproc.discard(path)


def test_a_file_that_cannot_be_served_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "broker.db"
    path.write_bytes(b"something else" * 100)
    with pytest.raises(jmsapi.JMSException, match="a file of something else") as error:
        LoopbackServer(f"inproc://{path}")
    assert error.value.error_code == "connection"
