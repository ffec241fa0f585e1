"""What goes in comes out: message types, properties, headers, on each broker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi.spi import NON_PERSISTENT, PERSISTENT, Address, DestinationKind, ErrorKind, MessageKind, ProviderError
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]

BODIES: list[tuple[MessageKind, Any]] = [
    (MessageKind.TEXT, "grüß €"),
    (MessageKind.TEXT, ""),
    (MessageKind.TEXT, "a\0b"),
    (MessageKind.TEXT, None),
    (MessageKind.TEXT, "\U0001f600 beyond the basic plane"),
    (MessageKind.TEXT, "line\nline\r\n: \\n"),
    (MessageKind.BYTES, b""),
    (MessageKind.BYTES, b"text"),
    (MessageKind.BYTES, b"\xf0\x01\x41\x63\xff\x00\x1f\x8b"),
    (MessageKind.MAP, {}),
    (MessageKind.MAP, {"i": 7, "l": 2**40, "s": "ü:\n", "d": 0.1, "z": True, "n": None, "x": b"\0\xff"}),
    (MessageKind.STREAM, [Byte(1), Short(2), Int(3), Long(4), Float(0.5), Double(1.5), Char("ß"), "s", None, b"b", False]),
    (MessageKind.OBJECT, b"\xac\xed\0\5"),
    (MessageKind.OBJECT, None),
    (MessageKind.MESSAGE, None),
]


def test_every_type_of_message_arrives_as_it_was_sent(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue, prefetch=50)
    for kind, body in BODIES:
        line.post(queue, body, kind=kind)
    received = line.receive(consumer, len(BODIES))
    for (kind, body), delivery in zip(BODIES, received, strict=True):
        envelope = delivery.envelope
        assert (envelope.kind, envelope.body) == (kind, body)
        if isinstance(body, list):
            assert [type(value) for value in envelope.body][:2] == [Byte, Short]
            assert [getattr(value, "jms_type", None) for value in envelope.body][6] == "char"


PROPERTIES: dict[str, Any] = {
    "z": True,
    "b": Byte(-128),
    "h": Short(32767),
    "i": 7,
    "l": Long(7),
    "big": 2**62,
    "f": Float(0.1),
    "d": 1e300,
    "inf": -math.inf,
    "text": "7",
    "empty": "",
    "blank": " lead and trail ",
    "colon": "a:b",
    "back": "c\\d",
    "feed": "e\nf",
    "return_": "g\rh",
    "umlaut": "ü",
    "nul": "a\0b",
    "none": None,
    "$dollar_1": "names may be so",
    "type": "a word of the wire",
    "durable": True,
    "AMQ_x": 1,
    "JMS_PY_type": "ours",
}


def test_properties_keep_value_and_type(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, "x", properties=PROPERTIES)
    (delivery,) = line.receive(consumer)
    got = dict(delivery.envelope.properties)
    assert got == PROPERTIES
    assert {name: type(got[name]) for name in ("b", "h", "i", "l", "f", "d", "z")} == {
        "b": Byte,
        "h": Short,
        "i": int,
        "l": Long,
        "f": Float,
        "d": float,
        "z": bool,
    }


def test_headers_arrive_as_they_were_sent(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    now = time.time_ns() // 1_000_000
    answers = Address(DestinationKind.QUEUE, queue.name + ".answers")
    line.send(
        queue,
        "x",
        message_id="ID:7f-ü",
        timestamp=now,
        correlation_id="x:y\\z",
        jms_type="t:u\\v",
        reply_to=answers,
        expiration=now + 600_000,
        priority=9,
        delivery_mode=PERSISTENT,
        origin="me",
        properties={"JMSXGroupID": "g:1", "JMSXGroupSeq": 3},
    )
    envelope = line.receive(consumer)[0].envelope
    assert envelope.message_id == "ID:7f-ü"
    assert envelope.timestamp == now
    assert envelope.correlation_id == "x:y\\z"
    assert envelope.jms_type == "t:u\\v"
    assert envelope.reply_to == answers
    assert envelope.expiration == now + 600_000
    assert envelope.priority == 9
    assert envelope.delivery_mode == PERSISTENT
    assert envelope.destination == queue
    assert envelope.origin == "me"
    assert dict(envelope.properties) == {"JMSXGroupID": "g:1", "JMSXGroupSeq": 3}


def test_a_message_with_nothing_set_arrives_with_nothing_set(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, "x", delivery_mode=NON_PERSISTENT)
    delivery = line.receive(consumer)[0]
    envelope = delivery.envelope
    assert envelope.correlation_id is None
    assert envelope.jms_type is None
    assert envelope.reply_to is None
    assert envelope.expiration == 0
    assert envelope.delivery_time == 0
    assert envelope.priority == 4
    assert envelope.delivery_mode == NON_PERSISTENT
    assert dict(envelope.properties) == {}
    assert delivery.delivery_count == 1


def test_a_correlation_id_of_bytes_stays_bytes(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, "x", correlation_id=b"\0\xff")
    assert line.receive(consumer)[0].envelope.correlation_id == b"\0\xff"


def test_an_answers_address_that_is_a_topic_stays_one(dial: Dial, each_broker: Broker, queue: Address, topic: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, "x", reply_to=topic)
    assert line.receive(consumer)[0].envelope.reply_to == topic


def test_a_large_message_arrives_whole(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    body = bytes(range(256)) * 4096 * 3
    line.send(queue, body)
    assert line.receive(consumer)[0].envelope.body == body


def test_what_is_too_large_is_refused_before_it_is_sent(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, max_frame=10_000)
    with pytest.raises(ProviderError, match="max_frame") as caught:
        line.post(queue, bytes(10_000))
    assert caught.value.kind is ErrorKind.FORMAT
    line.send(queue, "still alive")


def test_a_property_too_long_for_classic_is_refused_before_it_is_sent(dial: Dial, classic: Broker, queue: Address) -> None:
    line = dial(classic)
    with pytest.raises(ProviderError, match="long") as caught:
        line.post(queue, "x", properties={"long": "ü" * 6000})
    assert caught.value.kind is ErrorKind.FORMAT
    line.send(queue, "still alive", properties={"long": "x" * 10_000})


def test_half_a_surrogate_pair_is_refused(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    for fields in ({"body": "\ud800"}, {"properties": {"p": "\udc00"}}, {"jms_type": "\ud800"}):
        with pytest.raises(ProviderError) as caught:
            line.post(queue, **fields)
        assert caught.value.kind is ErrorKind.FORMAT


def test_a_message_that_was_too_late_is_not_delivered(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    line.send(queue, "late", expiration=time.time_ns() // 1_000_000 + 1)
    time.sleep(0.05)  # the broker's own clock has to pass it
    line.send(queue, "in time")
    consumer = line.consumer(queue)
    assert line.receive(consumer)[0].envelope.body == "in time"
