"""Envelopes to frames and back, for each dialect, without a broker."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jmsapi._core.message import received as made
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.spi import Address, Delivery, DestinationKind, Envelope, ErrorKind, MessageKind, PlainEnvelope, ProviderError, Tag
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short
from jmsapi_stomp.artemis import ArtemisStomp
from jmsapi_stomp.behaviour import StompBehaviour
from jmsapi_stomp.classic import ClassicStomp
from jmsapi_stomp.codec import StompEnvelope, encode
from jmsapi_stomp.frames import Frame, FrameCutter, header_lines
from jmsapi_stomp.loopback import LoopbackStomp
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitStomp

NOW = 1_700_000_000_000
QUEUE = Address(DestinationKind.QUEUE, "orders")
TOPIC = Address(DestinationKind.TOPIC, "news")
KINDS: list[type[StompBehaviour]] = [ArtemisStomp, ClassicStomp, LoopbackStomp, RabbitStomp]
# A machine that does other things as well is no fault of the codec.
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def dialect(kind: type[StompBehaviour], **options: Any) -> StompBehaviour:
    return kind(StompOptions.model_validate({"scheme": "stomp", "host": "h"} | options), "1")


def frame_of(envelope: Envelope, kind: type[StompBehaviour] = ArtemisStomp, **options: Any) -> Frame:
    words = dialect(kind, **options)
    (frame,) = FrameCutter(1 << 24).feed(encode(envelope, words, NOW, words.start_of_send(envelope.destination)))
    return frame


def there_and_back(envelope: PlainEnvelope, kind: type[StompBehaviour]) -> StompEnvelope:
    return StompEnvelope(frame_of(envelope, kind), dialect(kind), envelope.destination)


def received(head: bytes, body: bytes = b"", kind: type[StompBehaviour] = ArtemisStomp, **options: Any) -> StompEnvelope:
    (frame,) = FrameCutter(1 << 20).feed(b"MESSAGE\n" + head + b"\n\n" + body + b"\0")
    return StompEnvelope(frame, dialect(kind, **options), QUEUE)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUE: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False).map(Float),
    st.floats(allow_nan=False).map(Double),
    TEXT,
)
NAME = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,12}", fullmatch=True)
ENTRY = st.one_of(VALUE, st.binary(), st.characters(max_codepoint=0xFFFF).map(Char))


def java_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    named = getattr(value, "jms_type", None)
    if named is not None:
        return str(named)
    if isinstance(value, int):
        return "int" if -(2**31) <= value < 2**31 else "long"
    return type(value).__name__.replace("float", "double")


@steady
@given(st.dictionaries(NAME, VALUE), st.sampled_from(KINDS))
def test_properties_keep_value_and_type(properties: dict[str, Any], kind: type[StompBehaviour]) -> None:
    for name in ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"):
        properties.pop(name, None)
    got = there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties), kind).properties
    assert got == properties
    assert {name: java_type(value) for name, value in got.items()} == {
        name: java_type(value) for name, value in properties.items()
    }


@steady
@given(st.dictionaries(TEXT, ENTRY), st.lists(ENTRY), st.sampled_from(KINDS))
def test_maps_and_streams_keep_value_and_type(entries: dict[str, Any], items: list[Any], kind: type[StompBehaviour]) -> None:
    for message_kind, body in ((MessageKind.MAP, entries), (MessageKind.STREAM, items)):
        got: Any = there_and_back(PlainEnvelope(message_kind, QUEUE, body), kind).body
        assert got == body
        values = (
            zip(got.values(), entries.values(), strict=True) if message_kind is MessageKind.MAP else zip(got, items, strict=True)
        )
        assert all(java_type(one) == java_type(other) for one, other in values)


@steady
@given(st.one_of(TEXT, st.none()), st.one_of(st.binary(), st.none()), st.sampled_from(KINDS))
def test_texts_bytes_and_objects_are_what_they_were(text: str | None, data: bytes | None, kind: type[StompBehaviour]) -> None:
    assert there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, text), kind).body == text
    assert there_and_back(PlainEnvelope(MessageKind.BYTES, QUEUE, data or b""), kind).body == (data or b"")
    assert there_and_back(PlainEnvelope(MessageKind.OBJECT, QUEUE, data), kind).body == data


@steady
@given(TEXT.filter(lambda text: "\0" not in text and text != ""), st.binary(), st.sampled_from(KINDS))
def test_ids_and_types_are_unlimited_by_the_wire(text: str, raw: bytes, kind: type[StompBehaviour]) -> None:
    got = there_and_back(
        PlainEnvelope(MessageKind.TEXT, QUEUE, "x", correlation_id=text, jms_type=text, message_id="ID:" + text), kind
    )
    assert (got.correlation_id, got.jms_type, got.message_id) == (text, text, "ID:" + text)
    assert there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", correlation_id=raw), kind).correlation_id == raw


def test_many_types_are_listed_over_several_headers() -> None:
    properties = {f"a_property_with_a_rather_long_name_{n}": n for n in range(900)}
    frame = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties), ClassicStomp)
    lists = [name for name in frame.headers if name.startswith("JMS_PY_props")]
    assert len(lists) > 3
    assert max(len(line) for line in frame.head.split(b"\n")) < 10_240
    assert StompEnvelope(frame, dialect(ClassicStomp), QUEUE).properties == properties


# What each broker must and must not be sent


def test_artemis_is_told_the_routing_type_and_the_mode() -> None:
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, TOPIC, "x", delivery_mode=1)).headers
    assert (headers["destination"], headers["destination-type"], headers["persistent"]) == ("news", "MULTICAST", "false")
    assert "content-length" not in headers  # Java would see a BytesMessage
    assert frame_of(PlainEnvelope(MessageKind.BYTES, QUEUE, b"")).headers["content-length"] == "0"


def test_rabbitmq_is_never_told_what_would_declare_another_queue() -> None:
    properties = {"durable": True, "exclusive": True, "persistent": "no", "auto_delete": True}
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties, delivery_mode=1), RabbitStomp).headers
    assert not {"persistent", "durable", "exclusive", "auto-delete", "message-id"} & set(headers)
    assert headers["priority"] == "4"  # absent would be 0


def test_rabbitmq_gets_a_relative_expiration_that_is_not_0() -> None:
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", expiration=NOW + 5000), RabbitStomp).headers
    assert headers["expiration"] == "5000"
    assert frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", expiration=NOW - 5), RabbitStomp).headers["expiration"] == "1"


def test_rabbitmq_is_not_told_of_a_life_longer_than_it_takes() -> None:
    for left, told in ((2**32 - 1, str(2**32 - 1)), (2**32, None), (2**40, None)):
        envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, expiration=NOW + left)
        headers = frame_of(envelope, RabbitStomp).read()
        assert headers.get("expiration") == told
        assert there_and_back(envelope, RabbitStomp).expiration == NOW + left


def test_properties_with_names_that_rabbitmq_does_not_take_travel_in_one_header() -> None:
    properties: dict[str, Any] = {
        "a" * 255: Short(1),
        "a" * 256: Short(2),
        "ä" * 128: "x\0:\n",
        "b" * 3000: None,
        "c" * 300: "text",
        "JMS_PY_" + "d" * 248: 1.5,
    }
    envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, properties=properties)
    assert max(len(name.encode()) for name in frame_of(envelope, RabbitStomp).read()) == 255
    assert {name: (java_type(value), value) for name, value in there_and_back(envelope, RabbitStomp).properties.items()} == {
        name: (java_type(value), value) for name, value in properties.items()
    }


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[" * 5000])
def test_long_names_that_cannot_be_read_are_an_error(text: str) -> None:
    with pytest.raises(ProviderError) as caught:
        _ = received(f"JMS_PY_type:Text\nJMS_PY_long:{text}".encode().replace(b": ", b"\\c "), kind=RabbitStomp).properties
    assert caught.value.kind is ErrorKind.FORMAT


def test_a_delay_on_rabbitmq_goes_through_a_queue_of_its_own() -> None:
    envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, "x", delivery_time=NOW + 12_345)
    start = dialect(RabbitStomp).reroute(envelope, NOW) or ""
    assert "destination:/queue/jmsapi.delay.12400.q.orders\n" in start
    assert "x-message-ttl:12400\n" in start
    assert "x-dead-letter-routing-key:orders\n" in start


def test_names_of_brokers_headers_are_not_taken_by_properties() -> None:
    properties = {"selector": "mine", "AMQ_SCHEDULED_DELAY": 9, "content-type": "a/b", "x-queue-type": "stream"}
    for kind in (RabbitStomp, LoopbackStomp):
        headers = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties), kind).headers
        assert not {"selector", "AMQ_SCHEDULED_DELAY", "x-queue-type"} & set(headers)
        assert headers.get("content-type") != "a/b"
        assert there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties), kind).properties == properties


def test_what_is_asked_of_a_brokers_scheduler_travels_under_its_own_name() -> None:
    asked = {"AMQ_SCHEDULED_DELAY": 2000, "AMQ_SCHEDULED_PERIOD": 5, "AMQ_SCHEDULED_REPEAT": 1, "AMQ_SCHEDULED_CRON": "* * * * *"}
    envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, "x", asked)
    headers = frame_of(envelope, ClassicStomp).headers
    assert {name: headers[name] for name in asked} == {name: str(value) for name, value in asked.items()}
    assert there_and_back(envelope, ClassicStomp).properties == asked
    headers = frame_of(envelope, ArtemisStomp).headers
    assert headers["AMQ_SCHEDULED_DELAY"] == "2000"
    assert "AMQ_SCHEDULED_PERIOD" not in headers
    # What is no number would end the connection.
    assert (
        "AMQ_SCHEDULED_DELAY"
        not in frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", {"AMQ_SCHEDULED_DELAY": "soon"}), ArtemisStomp).headers
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_header_of_another_client_is_a_property_and_is_passed_on(kind: type[StompBehaviour]) -> None:
    sent = {
        **dict.fromkeys(("traceparent", "x-request-id", "my.key", "Accept-Encoding", "id", "version", "host", "server"), "v"),
        **dict.fromkeys(("session", "message", "selector", "login", "browser", "durable", "requeue", "a b", "c:d", ""), "v"),
        "content-type": "text/plain",
    }
    lines = header_lines(sent.items()).encode().removesuffix(b"\n")
    got = received(b"message-id:1\nsubscription:c1\ndestination:/queue/orders\n" + lines, b"x", kind)
    assert got.properties == sent
    again = there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", got.properties), kind)
    assert again.properties == sent


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        # As Artemis 2.56.0 and RabbitMQ 4.0.5 write what an AMQP client called so, too.
        (ArtemisStomp, b"%b\nmessage-id:mine\nredelivered:true\nack:12,3\nsubscription:other\nack:7"),
        (RabbitStomp, b"%b\nack:7\nack:12,3\nmessage-id:mine\nredelivered:true\nsubscription:other"),
    ],
)
def test_a_senders_header_is_not_taken_for_the_brokers_word(kind: type[StompBehaviour], head: bytes) -> None:
    behaviour = dialect(kind)
    cutter = FrameCutter(1 << 20)
    cutter.last_counts = behaviour.last_counts
    start = b"MESSAGE\nsubscription:c1\nmessage-id:1\ndestination:orders\nredelivered:false"
    (frame,) = cutter.feed(head % start + b"\ncontent-length:4\n\nbody\0")
    assert (frame.raw(b"\nack:"), frame.raw(b"\nsubscription:")) == (b"7", b"c1")
    assert behaviour.delivery_count(frame) == 1
    envelope = StompEnvelope(frame, behaviour, QUEUE)
    assert envelope.message_id == "ID:1"
    assert envelope.properties == {"ack": "12,3", "subscription": "other", "message-id": "mine", "redelivered": "true"}


def test_what_rabbitmq_writes_behind_a_senders_headers_counts() -> None:
    cutter = FrameCutter(1 << 20)
    cutter.last_counts = RabbitStomp.last_counts
    (frame,) = cutter.feed(b"MESSAGE\npriority:9\ntype:theirs\npriority:3\ntype:its\ncontent-length:0\n\n\0")
    envelope = StompEnvelope(frame, dialect(RabbitStomp), QUEUE)
    assert (envelope.priority, envelope.jms_type) == (3, "its")
    assert envelope.properties == {"priority": "9", "type": "theirs"}


@pytest.mark.parametrize(
    ("charset", "text"), [("windows-1252", "Gr\u00fc\u00dfe \u20ac"), ("utf-16", "Gr\u00fc\u00dfe"), ('"ISO-8859-1"', "\u00e9")]
)
def test_a_text_is_read_in_the_charset_that_its_content_type_names(charset: str, text: str) -> None:
    head = f"\ncontent-type:text/plain; charset={charset}".encode()
    frame = Frame(b"MESSAGE", head, text.encode(charset.strip('"')))
    envelope = StompEnvelope(frame, dialect(RabbitStomp), QUEUE)
    assert (envelope.kind, envelope.body) == (MessageKind.TEXT, text)


@pytest.mark.parametrize(
    "head",
    [
        b"content-type:text/plain",
        b"content-type:text/plain;charset=utf-16",
        b"JMS_PY_type:Text",
        b"content-type:text/x;charset=no",
    ],
)
def test_a_text_that_cannot_be_decoded_is_reachable_as_bytes(head: bytes) -> None:
    envelope = received(head, b"a\xff{")
    assert (envelope.kind, envelope.body) == (MessageKind.BYTES, b"a\xff{")


def test_what_is_too_long_for_a_field_of_rabbitmq_travels_in_a_header_of_our_own() -> None:
    long = "\u00e9" * 128
    envelope = PlainEnvelope(
        MessageKind.OBJECT, QUEUE, b"x", message_id="ID:" + long, correlation_id=long, jms_type=long, content_type=long
    )
    headers = frame_of(envelope, RabbitStomp).headers
    fields = ("correlation-id", "type", "content-type", "amqp-message-id", "reply-to")
    assert all(len(headers.get(name, "").encode()) <= 255 for name in fields)
    got = there_and_back(envelope, RabbitStomp)
    assert (got.message_id, got.correlation_id, got.jms_type, got.content_type) == ("ID:" + long, long, long, long)
    assert frame_of(envelope, ArtemisStomp).headers["correlation-id"] == long


def test_a_type_that_is_rabbitmqs_mark_of_amqp_values_is_kept() -> None:
    assert there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", jms_type="amqp-1.0"), RabbitStomp).jms_type == "amqp-1.0"
    foreign = received(b"type:amqp-1.0", b"x", RabbitStomp)
    assert (foreign.kind, foreign.body) == (MessageKind.TEXT, "x")


@pytest.mark.parametrize(("kind", "open_", "close"), [("Map", b'{"a":["s","', b'"]}'), ("Stream", b"[", b"]")])
def test_a_body_of_too_many_entries_is_refused_before_it_is_read(kind: str, open_: bytes, close: bytes) -> None:
    body = open_ + b'["0"],' * (1 << 20) + b'["0"]' + close
    with pytest.raises(ProviderError, match="entries") as caught:
        _ = StompEnvelope(Frame(b"MESSAGE", b"\nJMS_PY_type:" + kind.encode(), body), dialect(ArtemisStomp), QUEUE).body
    assert caught.value.kind is ErrorKind.FORMAT


def test_queue_arguments_of_rabbitmq_are_the_same_on_send_and_subscribe() -> None:
    from jmsapi.spi import ConsumerSpec

    options = {"rabbit.queue_args": "x-queue-type:quorum; x-max-length:9"}
    rabbit = dialect(RabbitStomp, **options)
    arguments = {("x-queue-type", "quorum"), ("x-max-length", "9")}
    assert arguments <= set(frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x"), RabbitStomp, **options).headers.items())
    assert arguments <= set(rabbit.plan(ConsumerSpec(QUEUE), None).headers)
    undeclared = dialect(RabbitStomp, **options, **{"rabbit.declare": False})
    assert undeclared.destination(QUEUE) == "/amq/queue/orders"
    assert undeclared.plan(ConsumerSpec(QUEUE), None).headers == []


# What others send


def test_types_of_foreign_messages_are_told_by_what_there_is() -> None:
    assert received(b"a:1", b"text").kind is MessageKind.TEXT
    assert received(b"content-length:3", b"\xff\xfe\0").kind is MessageKind.BYTES
    assert received(b"content-type:text/plain", b"\xff").kind is MessageKind.BYTES
    assert received(b"content-type:application/octet-stream", b"x").kind is MessageKind.BYTES
    assert received(b"a:1", b"text", foreign="bytes").kind is MessageKind.BYTES
    assert received(b"a:1", b"\xc3\xa9", foreign="text").kind is MessageKind.TEXT
    assert received(b"JMS_AMQP_MA_x-opt-jms-msg-type:3\ncontent-length:1", b"x").kind is MessageKind.BYTES
    assert received(b"content-length:1", b"x", ClassicStomp).kind is MessageKind.BYTES
    assert received(b"a:1", b"x", ClassicStomp).kind is MessageKind.TEXT


def test_a_foreign_object_or_map_whose_content_artemis_does_not_show_cannot_be_read() -> None:
    # As Artemis 2.56.0 shows objects, maps and streams of AMQP clients: the type, and an empty body.
    for mark, kind in ((b"1", MessageKind.OBJECT), (b"2", MessageKind.MAP), (b"4", MessageKind.STREAM)):
        envelope = received(b"JMS_AMQP_MA_x-opt-jms-msg-type:" + mark)
        assert envelope.kind is kind
        with pytest.raises(ProviderError, match="does not show the content") as caught:
            _ = envelope.body
        assert caught.value.kind is ErrorKind.FORMAT
    assert received(b"JMS_AMQP_MA_x-opt-jms-msg-type:1\ncontent-length:1", b"x").body == b"x"
    assert received(b"JMS_PY_type:Object\nJMS_PY_null:1").body is None


def test_a_received_text_takes_little_more_than_its_bytes_unread_and_read() -> None:
    # 1 KiB and five properties, as the message object holds it; 2 KiB over the body is the most.
    properties: dict[str, Any] = {"region": "EU", "number": 42, "total": Long(2**40), "price": 1.5, "paid": True}
    stamps: dict[str, Any] = {"message_id": "ID:1234567890:1:1", "timestamp": 1_700_000_000_000, "origin": "me"}
    words, codec = dialect(ArtemisStomp), ObjectCodec()
    envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, "x" * 1024, properties, **stamps)
    wire = bytearray(encode(envelope, words, NOW, words.start_of_send(QUEUE)))
    kept: list[Any] = []

    def fill(look: Callable[[Any], object]) -> float:
        kept.clear()
        tracemalloc.start()
        try:
            for _ in range(1000):
                (frame,) = FrameCutter(1 << 20).feed(bytes(wire))
                kept.append(made(Delivery(Tag(), StompEnvelope(frame, words, QUEUE), 1), 0, None, codec, None))
                look(kept[-1])
            return tracemalloc.get_traced_memory()[0] / 1000 - 1024
        finally:
            tracemalloc.stop()

    def read(message: Any) -> None:
        assert [message.get_object_property(name) for name in properties] == list(properties.values())
        assert message.text == "x" * 1024

    assert fill(lambda _: None) < 1024
    assert fill(read) < 2048
    # It can be handed out again.
    assert made(kept[0].delivery, 1, None, codec, None).get_body(str) == "x" * 1024


def test_a_foreign_message_has_an_id_and_string_properties() -> None:
    envelope = received(b"message-id:17\nn:7\nmy-header:x\nx y:1\nJMS_AMQP_NATIVE:true\ntimestamp:5", b"x")
    assert envelope.message_id == "ID:17"
    assert envelope.properties == {"n": "7", "my-header": "x", "x y": "1"}
    assert envelope.timestamp == 5
    assert envelope.origin is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("queue://a", QUEUE._replace(name="a")),
        ("topic://a", TOPIC._replace(name="a")),
        ("temp-queue://a", Address(DestinationKind.TEMPORARY_QUEUE, "a")),
        ("a", QUEUE._replace(name="a")),
    ],
)
def test_answers_addresses_of_artemis_are_read(text: str, address: Address) -> None:
    assert received(b"reply-to:" + text.replace(":", "\\c").encode()).reply_to == address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("/queue/a", QUEUE._replace(name="a")),
        ("/topic/a", TOPIC._replace(name="a")),
        ("/remote-temp-queue/ID:x:1", Address(DestinationKind.TEMPORARY_QUEUE, "ID:x:1")),
        ("a", QUEUE._replace(name="a")),
    ],
)
def test_answers_addresses_of_classic_are_read(text: str, address: Address) -> None:
    got = received(b"reply-to:" + text.replace(":", "\\c").encode(), kind=ClassicStomp).reply_to
    assert got == address
    if "remote" in text:
        assert dialect(ClassicStomp).destination(address) == text


def test_answers_addresses_of_rabbitmq_are_read() -> None:
    assert received(b"reply-to:/reply-queue/a", kind=RabbitStomp).reply_to == QUEUE._replace(name="a")
    assert received(b"reply-to:/reply-queue/a\nJMS_PY_reply:2\\ca", kind=RabbitStomp).reply_to == Address(
        DestinationKind.TEMPORARY_QUEUE, "a"
    )


def test_a_wildcard_subscription_learns_the_name_from_the_frame() -> None:
    (frame,) = FrameCutter(1000).feed(b"MESSAGE\ndestination:/topic/a.b\n\n\0")
    assert StompEnvelope(frame, dialect(RabbitStomp), TOPIC._replace(name="a.*")).destination == TOPIC._replace(name="a.b")
    assert StompEnvelope(frame, dialect(ClassicStomp), TOPIC._replace(name="a.>")).destination == TOPIC._replace(name="a.b")


def test_counts_are_as_much_as_the_broker_tells() -> None:
    def count(head: bytes, kind: type[StompBehaviour]) -> int:
        (frame,) = FrameCutter(1000).feed(b"MESSAGE\n" + head + b"\n\n\0")
        return dialect(kind).delivery_count(frame)

    assert count(b"redelivered:false", ArtemisStomp) == 1
    assert count(b"redelivered:true", ArtemisStomp) == 2
    assert count(b"a:1", ClassicStomp) == 1
    assert count(b"redelivered:true\nx-delivery-count:4", RabbitStomp) == 5
    # On a first delivery it can only be what the sender has written.
    assert count(b"redelivered:false\nx-delivery-count:4", RabbitStomp) == 1
    assert count(b"x-delivery-count:4", RabbitStomp) == 1
    assert count(b"redelivered:true\nx-delivery-count:" + b"9" * 5000, RabbitStomp) == 2


def test_a_header_that_is_no_text_leaves_the_others_readable() -> None:
    envelope = received(b"n:gr\xfcn\ncorrelation-id:c-1\ntype:kind\n\xfe:1\nother:gr\xc3\xbcn", b"text")
    assert envelope.properties == {"n": "gr\\xfcn", "\\xfe": "1", "other": "grün"}
    assert (envelope.correlation_id, envelope.jms_type, envelope.body) == ("c-1", "kind", "text")


BROKEN = [
    (b"JMS_PY_props:n=i\nn:x", "properties"),
    (b"JMS_PY_props:n=b\nn:300", "properties"),
    (b"JMS_PY_props:n=z\nn:yes", "properties"),
    (b"JMS_PY_props:n=q\nn:1", "properties"),
    (b"JMS_PY_props:rubbish", "properties"),
    (b"JMS_PY_props:n=e\nn:***", "properties"),
    (b"JMS_PY_corr:***", "correlation_id"),
    (b"JMS_PY_type:Map", "body"),
    (b"JMS_PY_type:Stream", "body"),
    (b"expires:soon", "expiration"),
    (b"priority:high", "priority"),
    (b"timestamp:" + b"9" * 30, "timestamp"),
]


@pytest.mark.parametrize(("head", "part"), BROKEN)
def test_a_part_that_cannot_be_read_is_an_error_of_that_part_each_time(head: bytes, part: str) -> None:
    envelope = received(head, b"{\xff")
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            getattr(envelope, part)
        assert caught.value.kind is ErrorKind.FORMAT


@pytest.mark.parametrize(
    "body", [b"[]", b"1", b'{"a":1}', b'{"a":["i","x"]}', b'{"a":["i",true]}', b'{"a":["x","*"]}', b'{"a":["b",999]}']
)
def test_a_map_that_is_none_is_an_error(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        _ = received(b"JMS_PY_type:Map", body).body
    assert caught.value.kind is ErrorKind.FORMAT


@pytest.mark.parametrize(
    ("kind", "body"), [(MessageKind.TEXT, b"x"), (MessageKind.BYTES, "x"), (MessageKind.MAP, [1]), (MessageKind.STREAM, "x")]
)
def test_a_body_of_another_kind_is_refused(kind: MessageKind, body: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        frame_of(PlainEnvelope(kind, QUEUE, body))
    assert caught.value.kind is ErrorKind.FORMAT


def test_random_bytes_as_a_message_raise_nothing_but_errors_of_the_SPI() -> None:
    dice = random.Random(20_261_129)
    heads = (
        b"JMS_PY_type:Map JMS_PY_type:Stream JMS_PY_type:Text JMS_PY_type:x JMS_PY_props:a=i,b=z a:1 b:\xff expires:x "
        b"priority:99 reply-to:a\\cb JMS_PY_reply:9:x JMS_PY_corr:= JMS_PY_dest:1 persistent:1 JMSXGroupSeq:x JMS_PY_gseq:x "
        b"transformation:jms-map-xml timestamp:1e3 JMS_PY_null:1 content-type:text/x"
    ).split(b" ")
    bodies = [b"{", b"}", b"[", b"]", b'"a"', b":", b"1", b"\xff", b"null", b",", b'["i",1]', b'["x","AA=="]']
    parts = [name for name in vars(StompEnvelope) if not name.startswith("_")]
    errors = 0
    for _ in range(10_000):
        head = b"\n".join(dice.sample(heads, k=dice.randint(0, 5)))
        body = b"".join(dice.choices(bodies, k=dice.randint(0, 6)))
        envelope = StompEnvelope(Frame(b"MESSAGE", b"\n" + head, body), dialect(dice.choice(KINDS)), QUEUE)
        for part in parts:
            try:
                getattr(envelope, part)
            except ProviderError as error:
                assert error.kind is ErrorKind.FORMAT
                errors += 1
    assert errors > 1000


def test_what_rabbitmq_refuses_to_declare_anew_is_explained() -> None:
    rabbit = dialect(RabbitStomp)
    text = "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '%s' in vhost '/': received none"
    assert rabbit.refused_declaration("PRECONDITION_FAILED - invalid expiration") is None
    start, why = rabbit.refused_declaration(text % "orders") or ("", "")
    assert rabbit.start_of_send(QUEUE).startswith(start)
    assert "rabbit.declare=false" in why
    assert "other wire" in (rabbit.refused_declaration(text % "jms.d.me.news") or ("", ""))[1]


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_header_line_may_be_as_long_as_the_broker_takes_and_no_longer(letter: str) -> None:
    words = dialect(ClassicStomp)
    limit, start = words.line_limit, words.start_of_send(QUEUE)
    assert limit is not None
    before = len(max(encode(PlainEnvelope(MessageKind.TEXT, QUEUE, "", {"p": ""}), words, NOW, start).split(b"\n"), key=_of_p))
    room = limit - 1 - before
    longest = letter * (room // len(letter.encode())) + "x" * (room % len(letter.encode()))
    data = encode(PlainEnvelope(MessageKind.TEXT, QUEUE, "", {"p": longest}), words, NOW, start)
    assert max(map(len, data.split(b"\n"))) == limit - 1
    with pytest.raises(ProviderError, match="takes more than"):
        encode(PlainEnvelope(MessageKind.TEXT, QUEUE, "", {"p": longest + "x"}), words, NOW, start)


def _of_p(line: bytes) -> bool:
    return line.startswith(b"p:")
