"""What a stranger sends costs its reader no more than a multiple of what it cost him, and ends in a documented error."""

from __future__ import annotations

import encodings
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jmsapi
from jmsapi.spi import Address, DestinationKind, ErrorKind, MessageKind, ProviderError
from jmsapi_amqp.codec import ReceivedEnvelope, decode_value, quick_delivery_count, sections

from ...data.colliding_numbers import colliding_numbers
from ...peers.amqp_peer import AmqpPeer

NEAR = Address(DestinationKind.QUEUE, "q")


def array(count: int, entry: bytes) -> bytes:
    inner = struct.pack(">I", count) + entry
    return b"\xf0" + struct.pack(">I", len(inner)) + inner


def compound(code: int, count: int, entries: bytes) -> bytes:
    return bytes([code]) + struct.pack(">II", len(entries) + 4, count) + entries


@pytest.mark.parametrize("entry", [b"\x40", b"\x41", b"\x43", b"\x45", b"\x00\x40\x40"])
@pytest.mark.parametrize("count", [65_536, 1 << 31])
def test_an_array_of_entries_without_bytes_is_no_longer_than_its_message(entry: bytes, count: int) -> None:
    with pytest.raises(ProviderError) as refused:
        decode_value(array(count, entry))
    assert refused.value.kind is ErrorKind.FORMAT


def test_a_short_array_of_such_entries_is_read() -> None:
    assert decode_value(array(5, b"\x41"))[0] == [True] * 5


@pytest.mark.parametrize("entry", [array(8, b"\x00\x40\x40"), b"\x00\x40\x40", b"\xc1\x01\x00", b"\xc0\x01\x00"])
def test_what_a_message_becomes_is_bounded_by_a_multiple_of_its_size(entry: bytes) -> None:
    number = 200_000 // len(entry)
    raw = compound(0xD0, number, entry * number)
    tracemalloc.start()
    try:
        decode_value(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(raw)


MANY = 2_000_000
LARGE = {
    "array": b"\xf0" + struct.pack(">II", 5 + MANY, MANY) + b"\x50" + b"a" * MANY,
    "described": b"\xf0" + struct.pack(">II", 8 + MANY, MANY) + b"\x00\x53\x05\x50" + b"a" * MANY,
    "list": compound(0xD0, MANY, b"\x40" * MANY),
    "lists": compound(0xD0, MANY // 3, b"\xc0\x01\x00" * (MANY // 3)) + compound(0xD0, MANY // 3, b"\x40\x40\x40" * (MANY // 3)),
}
BINARY = b"\xb0" + MANY.to_bytes(4) + bytes(MANY)


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize(
    "head", [b"\x00\x53\x77", b"\x00\x53\x70", b"\x00\x53\x76" + compound(0xD0, 1, b"\x40") + b"\x00\x53\x76"]
)
def test_a_message_of_millions_of_values_is_refused_before_they_are_made(value: str, head: bytes) -> None:
    found = ReceivedEnvelope(head + LARGE[value] + b"\x00\x53\x77\x40", Addresses(), NEAR, 0)
    for _ in range(2):
        with pytest.raises(ProviderError, match="more than 1048576 values") as refused:
            found.body  # noqa: B018
        assert refused.value.kind is ErrorKind.FORMAT
    assert found.wire()[0].startswith(head)
    assert quick_delivery_count(head + LARGE[value], acquirer_tells=True) == 1


@pytest.mark.parametrize("value", LARGE)
def test_a_header_that_is_no_list_is_not_read_for_its_count(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sections, "decode_value")
    assert quick_delivery_count(b"\x00\x53\x70" + LARGE[value], acquirer_tells=True) == 1


def test_a_large_message_of_few_values_is_read() -> None:
    found = ReceivedEnvelope(b"\x00\x53\x77" + compound(0xD0, 2, BINARY + b"\x41"), Addresses(), NEAR, 0)
    assert found.body == [bytes(MANY), True]


def seconds(raw: bytes) -> float:
    begin = time.process_time()
    try:
        decode_value(raw)
    except ProviderError as error:
        assert error.kind is ErrorKind.FORMAT
    return time.process_time() - begin


def keys(kind: str, number: int) -> bytes:
    prime = 2**61 - 1
    if kind == "uuid":
        return b"".join(b"\x98" + (i * prime).to_bytes(16) + b"\x40" for i in range(1, number))
    if kind == "double":
        return b"".join(
            b"\x82" + struct.pack(">d", (2 * (i // 15) + 1) * 2.0 ** (61 * (i % 15))) + b"\x40" for i in range(1, number)
        )
    return b"".join(b"\x80" + struct.pack(">Q", i * prime % 2**64) + b"\x40" for i in range(1, number))


@pytest.mark.parametrize("kind", ["uuid", "double", "ulong"])
def test_keys_of_one_hash_cost_no_more_time_than_others(kind: str) -> None:
    number = 40_000
    raw = compound(0xD1, 2 * (number - 1), keys(kind, number))
    plain = compound(0xD1, 2 * (number - 1), b"".join(b"\x80" + struct.pack(">Q", i * 7919) + b"\x40" for i in range(1, number)))
    assert seconds(raw) < 20 * seconds(plain) + 0.05


def test_keys_that_stand_in_each_others_way_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsapi.spi.hashing._SPARE_S", 0.0)
    numbers = colliding_numbers()
    entries = b"".join(b"\x80" + number.to_bytes(8) + b"\x40" for number in numbers)
    with pytest.raises(ProviderError, match="in each other's way") as refused:
        decode_value(compound(0xD1, 2 * len(numbers), entries))
    assert refused.value.kind is ErrorKind.FORMAT


@pytest.fixture
def peer() -> Iterator[AmqpPeer]:
    """Give a broker that does as it is told."""
    made = AmqpPeer()
    yield made
    made.close()


def test_a_message_that_never_ends_ends_the_connection_and_is_not_kept(peer: AmqpPeer, dial: Callable[..., Any]) -> None:
    line = dial(peer.url, max_message=100_000)
    line.consumer(NEAR, credit=10)

    def pour() -> None:
        [link] = peer.consumers
        link.delivery("endless")
        for _ in range(20):
            link.send(b"a" * 10_000)

    peer.do(pour)
    line.events.wait(lambda: bool(line.events.lost), "end of the connection")
    [cause] = line.events.lost
    assert (cause.kind, cause.fatal) == (ErrorKind.PROTOCOL, True)
    assert "max_message" in cause.message


def envelope(content_type: str, body: bytes) -> ReceivedEnvelope:
    name = content_type.encode()
    fields = b"\x40" * 6 + b"\xa3" + bytes([len(name)]) + name
    head = b"\x00\x53\x73" + b"\xc0" + bytes([len(fields) + 1, 7]) + fields
    return ReceivedEnvelope(head + b"\x00\x53\x75\xb0" + len(body).to_bytes(4) + body, Addresses(), NEAR, 0)


class Addresses:
    """The names of a broker without prefixes."""

    null_body = b""
    sends_user_id = True

    def to_wire(self, address: Address) -> str:
        return address.name

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        return near


@pytest.mark.parametrize("charset", ["windows-1252", "utf-16", '"utf-8"', "ISO-8859-15"])
def test_a_text_is_read_by_the_character_set_that_it_names(charset: str) -> None:
    text = "Grüße – 5 €" if charset != "ISO-8859-15" else "Grüße, 5 €"
    found = envelope(f"text/plain; Charset={charset}", text.encode(charset.strip('"')))
    assert (found.kind, found.body) == (MessageKind.TEXT, text)


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/plain;charset=klingon",
        "text/plain;charset=punycode",
        "text/plain;charset=idna",
        "text/plain;charset=utf-8",
    ],
)
def test_what_is_no_text_in_its_character_set_is_had_as_bytes(content_type: str) -> None:
    found = envelope(content_type, b"Gr\xfc\xdfe")
    assert (found.kind, found.body) == (MessageKind.BYTES, b"Gr\xfc\xdfe")


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "aliases"])
def test_a_codec_of_python_that_is_no_character_set_is_not_asked(charset: str) -> None:
    begun = time.process_time()
    found = envelope(f"text/plain;charset={charset}", b"-" + b"b" * 200_000)
    assert found.kind is MessageKind.BYTES
    assert time.process_time() - begun < 1


def test_names_of_character_sets_are_not_kept() -> None:
    before = dict(encodings._cache)  # type: ignore[attr-defined]
    assert envelope("text/plain;charset=no-such-set", b"x").kind is MessageKind.BYTES
    assert encodings._cache == before  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"password": "pass\0word", "user": "me"}, jmsapi.JMSSecurityException),
        ({"password": "x", "user": "me\0you"}, jmsapi.JMSSecurityException),
        ({"client_id": "me\0you"}, jmsapi.InvalidClientIDException),
        ({"vhost": "a\0b"}, jmsapi.JMSException),
    ],
)
def test_what_the_engine_would_cut_at_a_nul_is_refused_before_anything_is_sent(
    peer: AmqpPeer, options: dict[str, str], error: type[jmsapi.JMSException]
) -> None:
    with pytest.raises(error) as refused:
        jmsapi.connection_factory(peer.url, **options).create_connection()
    assert "word" not in str(refused.value).replace("password", "")
    assert peer.told() == []


@pytest.mark.parametrize(
    ("product", "name"),
    [
        *(("apache-activemq-artemis", name) for name in ("a\0rest", "a\nb", "a::b")),
        *(("ActiveMQ", name) for name in ("a\0rest", "a,b", "a.>", "a.*", "a?consumer.exclusive=true")),
    ],
)
def test_a_name_that_is_cut_or_interpreted_on_its_way_is_refused_for_sending_and_receiving(product: str, name: str) -> None:
    peer = AmqpPeer(product)
    try:
        with jmsapi.connection_factory(peer.url).create_connection() as connection:
            session = connection.create_session()
            queue = session.create_queue(name)
            message = session.create_text_message("x")
            for call in (
                lambda: session.create_consumer(queue),
                lambda: session.create_browser(queue).enumeration.__next__(),
                lambda: session.create_producer(queue),
                lambda: session.create_producer(None).send(queue, message),
            ):
                with pytest.raises(jmsapi.InvalidDestinationException):
                    call()
        assert peer.do(lambda: list(peer.queue)) == []
    finally:
        peer.close()


def test_a_subscription_is_not_ended_by_a_name_that_is_cut_to_its_own(peer: AmqpPeer) -> None:
    with jmsapi.connection_factory(peer.url, client_id="me").create_connection() as connection:
        session = connection.create_session()
        with pytest.raises(jmsapi.JMSException):
            session.unsubscribe("news\0rest")
        with pytest.raises(jmsapi.JMSException):
            session.create_durable_subscriber(session.create_topic("t"), "news\0rest")
    assert not [line for line in peer.told() if "news" in line]
