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
from jmsapi_stomp.artemis import Artemis
from jmsapi_stomp.classic import Classic
from jmsapi_stomp.codec import StompEnvelope, encode
from jmsapi_stomp.dialect import Dialect
from jmsapi_stomp.frames import Frame, FrameCutter
from jmsapi_stomp.loopback import Loopback
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitMQ

NOW = 1_700_000_000_000
QUEUE = Address(DestinationKind.QUEUE, "orders")
TOPIC = Address(DestinationKind.TOPIC, "news")
KINDS: list[type[Dialect]] = [Artemis, Classic, Loopback, RabbitMQ]
# A machine that does other things as well is no fault of the codec.
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def dialect(kind: type[Dialect], **options: Any) -> Dialect:
    return kind(StompOptions.model_validate({"scheme": "stomp", "host": "h"} | options), "1")


def frame_of(envelope: Envelope, kind: type[Dialect] = Artemis, **options: Any) -> Frame:
    words = dialect(kind, **options)
    (frame,) = FrameCutter(1 << 24).feed(encode(envelope, words, NOW, words.start_of_send(envelope.destination)))
    return frame


def there_and_back(envelope: PlainEnvelope, kind: type[Dialect]) -> StompEnvelope:
    return StompEnvelope(frame_of(envelope, kind), dialect(kind), envelope.destination)


def received(head: bytes, body: bytes = b"", kind: type[Dialect] = Artemis, **options: Any) -> StompEnvelope:
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
def test_properties_keep_value_and_type(properties: dict[str, Any], kind: type[Dialect]) -> None:
    for name in ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"):
        properties.pop(name, None)
    got = there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties), kind).properties
    assert got == properties
    assert {name: java_type(value) for name, value in got.items()} == {
        name: java_type(value) for name, value in properties.items()
    }


@steady
@given(st.dictionaries(TEXT, ENTRY), st.lists(ENTRY), st.sampled_from(KINDS))
def test_maps_and_streams_keep_value_and_type(entries: dict[str, Any], items: list[Any], kind: type[Dialect]) -> None:
    for message_kind, body in ((MessageKind.MAP, entries), (MessageKind.STREAM, items)):
        got: Any = there_and_back(PlainEnvelope(message_kind, QUEUE, body), kind).body
        assert got == body
        values = (
            zip(got.values(), entries.values(), strict=True) if message_kind is MessageKind.MAP else zip(got, items, strict=True)
        )
        assert all(java_type(one) == java_type(other) for one, other in values)


@steady
@given(st.one_of(TEXT, st.none()), st.one_of(st.binary(), st.none()), st.sampled_from(KINDS))
def test_texts_bytes_and_objects_are_what_they_were(text: str | None, data: bytes | None, kind: type[Dialect]) -> None:
    assert there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, text), kind).body == text
    assert there_and_back(PlainEnvelope(MessageKind.BYTES, QUEUE, data or b""), kind).body == (data or b"")
    assert there_and_back(PlainEnvelope(MessageKind.OBJECT, QUEUE, data), kind).body == data


@steady
@given(TEXT.filter(lambda text: "\0" not in text and text != ""), st.binary(), st.sampled_from(KINDS))
def test_ids_and_types_are_unlimited_by_the_wire(text: str, raw: bytes, kind: type[Dialect]) -> None:
    got = there_and_back(
        PlainEnvelope(MessageKind.TEXT, QUEUE, "x", correlation_id=text, jms_type=text, message_id="ID:" + text), kind
    )
    assert (got.correlation_id, got.jms_type, got.message_id) == (text, text, "ID:" + text)
    assert there_and_back(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", correlation_id=raw), kind).correlation_id == raw


def test_many_types_are_listed_over_several_headers() -> None:
    properties = {f"a_property_with_a_rather_long_name_{n}": n for n in range(900)}
    frame = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties), Classic)
    lists = [name for name in frame.headers if name.startswith("JMS_PY_props")]
    assert len(lists) > 3
    assert max(len(line) for line in frame.head.split(b"\n")) < 10_240
    assert StompEnvelope(frame, dialect(Classic), QUEUE).properties == properties


# What each broker must and must not be sent


def test_artemis_is_told_the_routing_type_and_the_mode() -> None:
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, TOPIC, "x", delivery_mode=1)).headers
    assert (headers["destination"], headers["destination-type"], headers["persistent"]) == ("news", "MULTICAST", "false")
    assert "content-length" not in headers  # Java would see a BytesMessage
    assert frame_of(PlainEnvelope(MessageKind.BYTES, QUEUE, b"")).headers["content-length"] == "0"


def test_rabbitmq_is_never_told_what_would_declare_another_queue() -> None:
    properties = {"durable": True, "exclusive": True, "persistent": "no", "auto_delete": True}
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", properties, delivery_mode=1), RabbitMQ).headers
    assert not {"persistent", "durable", "exclusive", "auto-delete", "message-id"} & set(headers)
    assert headers["priority"] == "4"  # absent would be 0


def test_rabbitmq_gets_a_relative_expiration_that_is_not_0() -> None:
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", expiration=NOW + 5000), RabbitMQ).headers
    assert headers["expiration"] == "5000"
    assert frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", expiration=NOW - 5), RabbitMQ).headers["expiration"] == "1"


def test_rabbitmq_is_not_told_of_a_life_longer_than_it_takes() -> None:
    for left, told in ((2**32 - 1, str(2**32 - 1)), (2**32, None), (2**40, None)):
        envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, expiration=NOW + left)
        headers = frame_of(envelope, RabbitMQ).read()
        assert headers.get("expiration") == told
        assert there_and_back(envelope, RabbitMQ).expiration == NOW + left


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
    assert max(len(name.encode()) for name in frame_of(envelope, RabbitMQ).read()) == 255
    assert {name: (java_type(value), value) for name, value in there_and_back(envelope, RabbitMQ).properties.items()} == {
        name: (java_type(value), value) for name, value in properties.items()
    }


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[" * 5000])
def test_long_names_that_cannot_be_read_are_an_error(text: str) -> None:
    with pytest.raises(ProviderError) as caught:
        _ = received(f"JMS_PY_type:Text\nJMS_PY_long:{text}".encode().replace(b": ", b"\\c "), kind=RabbitMQ).properties
    assert caught.value.kind is ErrorKind.FORMAT


def test_a_delay_on_rabbitmq_goes_through_a_queue_of_its_own() -> None:
    envelope = PlainEnvelope(MessageKind.TEXT, QUEUE, "x", delivery_time=NOW + 12_345)
    start = dialect(RabbitMQ).reroute(envelope, NOW) or ""
    assert "destination:/queue/jmsapi.delay.12400.q.orders\n" in start
    assert "x-message-ttl:12400\n" in start
    assert "x-dead-letter-routing-key:orders\n" in start


def test_names_of_brokers_headers_are_not_taken_by_properties() -> None:
    headers = frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x", {"selector": "mine", "AMQ_SCHEDULED_DELAY": 9})).headers
    assert not {"selector", "AMQ_SCHEDULED_DELAY"} & set(headers)


def test_queue_arguments_of_rabbitmq_are_the_same_on_send_and_subscribe() -> None:
    from jmsapi.spi import ConsumerSpec

    options = {"rabbit.queue_args": "x-queue-type:quorum; x-max-length:9"}
    rabbit = dialect(RabbitMQ, **options)
    arguments = {("x-queue-type", "quorum"), ("x-max-length", "9")}
    assert arguments <= set(frame_of(PlainEnvelope(MessageKind.TEXT, QUEUE, "x"), RabbitMQ, **options).headers.items())
    assert arguments <= set(rabbit.plan(ConsumerSpec(QUEUE), None).headers)
    undeclared = dialect(RabbitMQ, **options, **{"rabbit.declare": False})
    assert undeclared.destination(QUEUE) == "/amq/queue/orders"
    assert undeclared.plan(ConsumerSpec(QUEUE), None).headers == []


# What others send


def test_types_of_foreign_messages_are_told_by_what_there_is() -> None:
    assert received(b"a:1", b"text").kind is MessageKind.TEXT
    assert received(b"content-length:3", b"\xff\xfe\0").kind is MessageKind.BYTES
    assert received(b"content-type:text/plain", b"\xff").kind is MessageKind.TEXT
    assert received(b"content-type:application/octet-stream", b"x").kind is MessageKind.BYTES
    assert received(b"a:1", b"text", foreign="bytes").kind is MessageKind.BYTES
    assert received(b"a:1", b"\xff", foreign="text").kind is MessageKind.TEXT
    assert received(b"JMS_AMQP_MA_x-opt-jms-msg-type:3\ncontent-length:1", b"x").kind is MessageKind.BYTES
    assert received(b"content-length:1", b"x", Classic).kind is MessageKind.BYTES
    assert received(b"a:1", b"x", Classic).kind is MessageKind.TEXT


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
    words, codec = dialect(Artemis), ObjectCodec()
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
    assert envelope.properties == {"n": "7"}
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
    got = received(b"reply-to:" + text.replace(":", "\\c").encode(), kind=Classic).reply_to
    assert got == address
    if "remote" in text:
        assert dialect(Classic).destination(address) == text


def test_answers_addresses_of_rabbitmq_are_read() -> None:
    assert received(b"reply-to:/reply-queue/a", kind=RabbitMQ).reply_to == QUEUE._replace(name="a")
    assert received(b"reply-to:/reply-queue/a\nJMS_PY_reply:2\\ca", kind=RabbitMQ).reply_to == Address(
        DestinationKind.TEMPORARY_QUEUE, "a"
    )


def test_a_wildcard_subscription_learns_the_name_from_the_frame() -> None:
    (frame,) = FrameCutter(1000).feed(b"MESSAGE\ndestination:/topic/a.b\n\n\0")
    assert StompEnvelope(frame, dialect(RabbitMQ), TOPIC._replace(name="a.*")).destination == TOPIC._replace(name="a.b")
    assert StompEnvelope(frame, dialect(Classic), TOPIC._replace(name="a.>")).destination == TOPIC._replace(name="a.b")


def test_counts_are_as_much_as_the_broker_tells() -> None:
    def count(head: bytes, kind: type[Dialect]) -> int:
        (frame,) = FrameCutter(1000).feed(b"MESSAGE\n" + head + b"\n\n\0")
        return dialect(kind).delivery_count(frame)

    assert count(b"redelivered:false", Artemis) == 1
    assert count(b"redelivered:true", Artemis) == 2
    assert count(b"a:1", Classic) == 1
    assert count(b"redelivered:true\nx-delivery-count:4", RabbitMQ) == 5


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
    (b"JMS_PY_type:Text", "body"),
    (b"expires:soon", "expiration"),
    (b"priority:high", "priority"),
    (b"n:\xff", "properties"),
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


def test_random_bytes_as_a_message_raise_nothing_but_errors_of_the_seam() -> None:
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
