"""Messages of other STOMP and AMQP programs on real brokers: all of them is seen, and none of them costs the connection."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

import pytest

from jmsapi.spi import Address
from jmsapi_conformance.brokers import Broker
from jmsapi_stomp.frames import command_frame, header_lines

from .conftest import Line

Dial = Callable[..., Line]
RawSend = Callable[[Broker, Address, Iterable[tuple[str, str]], bytes], None]
NAMES = ("traceparent", "x-request-id", "my.key", "Accept-Encoding", "id", "version", "host", "server", "session", "message")


@pytest.fixture
def raw_send() -> Iterator[RawSend]:
    """Give a function that sends one message by a socket, as any other program may."""
    sockets: list[socket.socket] = []

    def send(broker: Broker, address: Address, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        where = urlsplit(broker.url("stomp"))
        sock = socket.create_connection((where.hostname or "", where.port or 0), 30)
        sockets.append(sock)
        login = [("accept-version", "1.2"), ("host", "/"), ("login", broker.user), ("passcode", broker.password)]
        sock.sendall(command_frame("CONNECT", login))
        assert sock.recv(4096).startswith(b"CONNECTED")
        destination = address.name if broker.kind == "artemis" else f"/queue/{address.name}"
        lines = header_lines([("destination", destination), *headers, ("content-length", str(len(body))), ("receipt", "r")])
        sock.sendall(b"SEND\n" + lines.encode() + b"\n" + body + b"\0")
        assert b"RECEIPT" in sock.recv(4096)

    yield send
    for sock in sockets:
        sock.close()


def test_headers_of_another_program_are_properties_and_are_passed_on(
    dial: Dial, each_broker: Broker, queue: Address, raw_send: RawSend
) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    raw_send(each_broker, queue, [(name, "v") for name in NAMES], b"x")
    (first,) = line.receive(consumer)
    assert {name: first.envelope.properties.get(name) for name in NAMES} == dict.fromkeys(NAMES, "v")
    line.send(queue, "again", properties=first.envelope.properties)
    (second,) = line.receive(consumer)
    assert second.envelope.properties == first.envelope.properties


def test_a_header_ack_of_the_sender_is_not_what_is_acknowledged(
    dial: Dial, each_broker: Broker, queue: Address, raw_send: RawSend
) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue, prefetch=10)
    raw_send(each_broker, queue, [("ack", "12,3"), ("redelivered", "true"), ("subscription", "other")], b"moved")
    raw_send(each_broker, queue, [], b"good")
    got = line.receive(consumer, 2)
    assert [delivery.delivery_count for delivery in got] == [1, 1]
    assert line.nothing_more(consumer)
    assert not line.events.lost
    line.close()
    again = dial(each_broker)
    assert again.nothing_more(again.consumer(queue))


@pytest.mark.parametrize("charset", ["windows-1252", "utf-16"])
def test_a_text_arrives_in_its_charset(dial: Dial, each_broker: Broker, queue: Address, raw_send: RawSend, charset: str) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    text = "Gr\u00fc\u00dfe \u20ac"
    raw_send(each_broker, queue, [("content-type", f"text/plain;charset={charset}")], text.encode(charset))
    (got,) = line.receive(consumer)
    # Classic takes what has a length for bytes, whatever its type.
    expected = text.encode(charset) if each_broker.kind == "classic" else text
    assert got.envelope.body == expected


def test_fields_longer_than_amqp_0_9_1_takes_arrive(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    long = "\u00e9" * 200
    line.send(queue, "x", correlation_id=long, jms_type=long, message_id=f"ID:{long}")
    (got,) = line.receive(consumer)
    envelope = got.envelope
    assert (envelope.correlation_id, envelope.jms_type, envelope.message_id) == (long, long, f"ID:{long}")


@pytest.mark.parametrize("properties", [{"content-length": "2"}, {"content-length": "200"}, {"ack": "1", "nul\0": "a\0b"}])
def test_a_property_of_an_amqp_program_does_not_end_the_connection(
    dial: Dial, each_broker: Broker, queue: Address, properties: dict[str, str]
) -> None:
    proton = pytest.importorskip("proton", reason="the other program speaks AMQP")
    blocking = pytest.importorskip("proton.utils", reason="the other program speaks AMQP").BlockingConnection
    line = dial(each_broker)
    consumer = line.consumer(queue, credit=10)
    where = urlsplit(each_broker.url("amqp"))
    far = blocking(f"{where.hostname}:{where.port}", user=each_broker.user, password=each_broker.password, allowed_mechs="PLAIN")
    name = f"/queues/{queue.name}" if each_broker.kind == "rabbitmq" else queue.name
    far.create_sender(name).send(proton.Message(body="text", properties=properties))
    far.close()
    (got,) = line.events.take(consumer, 1)
    line.accept([got])
    # Artemis takes a text with a property of that name for bytes, and shows how it stores texts.
    if not (each_broker.kind == "artemis" and "content-length" in properties):
        assert got.envelope.body in ("text", b"text")
    if "nul\0" in properties:
        assert got.envelope.properties["nul\0"] == "a\0b"
    line.send(Address(queue.kind, queue.name + ".other"), "still there")
    assert not line.events.lost
