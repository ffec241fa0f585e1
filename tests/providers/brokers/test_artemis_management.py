"""What Artemis's management answers, from a recorded answer of 2.56.0."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from pathlib import Path

import pytest

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers import artemis, artemis_management
from jmsapi_brokers.artemis_management import ListedMessage
from jmsapi_brokers.java_serialization import SerializedObject, read_serialized

ANSWER = (Path(__file__).parents[2] / "data" / "artemis-browse-answer.json").read_text()
"""To ``browse(1, 100, null)`` of a queue with a message of priority 7 that expires and one of priority 4 that does not."""


def stream() -> bytes:
    return base64.b64decode(json.loads(ANSWER)[0]["javax.management.openmbean.CompositeData"][0])


def test_a_page_of_messages_tells_number_expiration_and_priority_of_each() -> None:
    assert artemis_management.messages_of(artemis_management.answer_of(ANSWER)) == [
        ListedMessage(35, 1796001136684, redelivered=False, priority=7),
        ListedMessage(33, 0, redelivered=False, priority=4),
    ]


def test_objects_are_read_as_classes_with_fields_and_what_they_wrote_beside() -> None:
    found = read_serialized(stream())
    assert isinstance(found, SerializedObject)
    assert found.class_name == "javax.management.openmbean.CompositeDataSupport"
    contents = found.fields["contents"]
    assert isinstance(contents, SerializedObject)
    assert contents.class_name == "java.util.TreeMap"
    assert "text" in contents.more
    assert "world" in contents.more


def test_a_stream_that_is_cut_or_damaged_is_a_fault_and_nothing_else() -> None:
    whole = stream()
    chance = random.Random(7)
    for length in range(0, len(whole), 97):
        with pytest.raises(ValueError, match="Java"):
            read_serialized(whole[:length])
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[chance.randrange(4, len(whole))] = chance.randrange(256)
        with contextlib.suppress(ValueError):
            read_serialized(bytes(damaged))


def test_values_that_go_deeper_than_anybody_reads_are_a_fault() -> None:
    array = b"\x75\x72\x00\x13[Ljava.lang.Object;" + bytes(8) + b"\x02\x00\x00\x78\x70\x00\x00\x00\x01"
    again = b"\x75\x71\x00\x7e\x00\x00\x00\x00\x00\x01"
    with pytest.raises(ValueError, match="Java"):
        read_serialized(b"\xac\xed\x00\x05" + array + again * 5000 + b"\x70")


@pytest.mark.parametrize("answer", [None, "text", 3, [], {}, {"javax.management.openmbean.CompositeData": ["no base64!"]}])
def test_what_is_no_page_of_messages_is_a_fault_of_the_broker(answer: object) -> None:
    with pytest.raises(ProviderError) as caught:
        artemis_management.messages_of(answer)
    assert caught.value.kind is ErrorKind.PROTOCOL


def test_the_queue_of_an_address_is_the_one_that_is_no_subscriptions() -> None:
    queues = [{"name": "sub", "routingType": "MULTICAST"}, {"name": "q", "routingType": "ANYCAST"}]
    assert artemis_management.queue_in(json.dumps({"data": queues, "count": 2})) == "q"
    assert artemis_management.queue_in(json.dumps({"data": queues[:1]})) is None
    assert artemis_management.queue_in("AMQ229213: not allowed") is None
    assert artemis_management.queue_in(None) is None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, "AMQPriority < 4"),
        ("a = 1 OR b = 2", "(a = 1 OR b = 2) AND AMQPriority < 4"),
        ("convert_string_expressions:n > 2", "convert_string_expressions:(n > 2) AND AMQPriority < 4"),
    ],
)
def test_a_selector_is_narrowed_to_what_is_less_urgent(selector: str | None, expected: str) -> None:
    assert artemis.less_urgent(selector, 4) == expected
