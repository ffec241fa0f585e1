"""Sending: the envelope is frozen, cheaply."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi._core.destination import QueueImpl
from jmsapi.spi import Address, DestinationKind, MessageKind, PlainEnvelope
from jmsapi.values import Long

FILL: dict[MessageKind, Any] = {
    MessageKind.MESSAGE: lambda it: None,
    MessageKind.TEXT: lambda it: setattr(it, "text", "body"),
    MessageKind.BYTES: lambda it: it.write_bytes(b"body"),
    MessageKind.MAP: lambda it: it.set_string("a", "body"),
    MessageKind.STREAM: lambda it: it.write_string("body"),
    MessageKind.OBJECT: lambda it: setattr(it, "object", "body"),
}
CHANGE: dict[MessageKind, Any] = {
    MessageKind.MESSAGE: lambda it: None,
    MessageKind.TEXT: lambda it: setattr(it, "text", "changed"),
    MessageKind.BYTES: lambda it: it.write_bytes(b"changed"),
    MessageKind.MAP: lambda it: it.set_string("a", "changed"),
    MessageKind.STREAM: lambda it: it.write_string("changed"),
    MessageKind.OBJECT: lambda it: setattr(it, "object", "changed"),
}
BODY: dict[MessageKind, Any] = {
    MessageKind.MESSAGE: None,
    MessageKind.TEXT: "body",
    MessageKind.BYTES: b"body",
    MessageKind.MAP: {"a": "body"},
    MessageKind.STREAM: ["body"],
    MessageKind.OBJECT: b'"body"',
}


@pytest.fixture
def message(bench: Any, any_kind: MessageKind) -> Any:
    message = bench.new(any_kind)
    FILL[any_kind](message)
    message.set_string_property("s", "x")
    message.set_long_property("l", 5)
    message.jms_type = "t"
    message.jms_correlation_id = "c"
    message.jms_reply_to = QueueImpl("answers")
    return message


def test_the_envelope_holds_everything(bench: Any, message: Any, any_kind: MessageKind) -> None:
    there = Address(DestinationKind.TOPIC, "there")
    envelope = bench.freeze(
        message,
        destination=there,
        message_id="ID:x",
        timestamp=1,
        delivery_mode=1,
        priority=2,
        expiration=3,
        delivery_time=4,
        origin="me",
    )
    content_type = "application/vnd.jmsapi.object+json" if any_kind is MessageKind.OBJECT else None
    assert envelope == PlainEnvelope(
        kind=any_kind,
        destination=there,
        body=BODY[any_kind],
        properties={"s": "x", "l": Long(5)},
        message_id="ID:x",
        timestamp=1,
        correlation_id="c",
        reply_to=Address(DestinationKind.QUEUE, "answers"),
        delivery_mode=1,
        jms_type="t",
        expiration=3,
        delivery_time=4,
        priority=2,
        content_type=content_type,
        origin="me",
    )
    assert type(envelope.properties["l"]) is Long


def test_later_changes_do_not_reach_the_envelope(bench: Any, message: Any, any_kind: MessageKind) -> None:
    first, second = bench.freeze(message), bench.freeze(message)
    CHANGE[any_kind](message)
    message.set_string_property("s", "changed")
    message.set_string_property("new", "changed")
    message.jms_type = "changed"
    message.clear_body()
    CHANGE[any_kind](message)
    message.clear_properties()
    for envelope in (first, second):
        assert envelope.body == BODY[any_kind]
        assert envelope.properties == {"s": "x", "l": 5}
        assert envelope.jms_type == "t"


def test_the_message_still_has_what_it_had(bench: Any, message: Any, any_kind: MessageKind) -> None:
    bench.freeze(message)
    message.set_string_property("new", "y")
    assert set(message.property_names) == {"s", "l", "new"}
    assert bench.freeze(message).body == BODY[any_kind]


def test_an_unchanged_message_is_frozen_without_a_copy(bench: Any, message: Any) -> None:
    first, second = bench.freeze(message), bench.freeze(message)
    assert first.properties is second.properties
    assert first.body is second.body


def test_each_change_between_sends_makes_one_copy(bench: Any) -> None:
    message = bench.new(MessageKind.MAP)
    envelopes: list[Any] = []
    for n in range(3):
        message.set_int("n", n)
        message.set_int_property("n", n)
        message.set_int_property("m", n)
        envelopes.append(bench.freeze(message))
    assert [it.body for it in envelopes] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [it.properties for it in envelopes] == [{"n": n, "m": n} for n in range(3)]


def test_the_user_that_a_send_names_shows_in_its_own_envelope_and_in_no_other(bench: Any) -> None:
    message = bench.new(MessageKind.TEXT)
    message.set_int_property("n", 0)
    envelopes: list[Any] = [bench.freeze(message, user="a"), bench.freeze(message, user="b")]
    message.set_int_property("n", 1)
    envelopes += [bench.freeze(message, user="c"), bench.freeze(message)]
    expected: list[dict[str, Any]] = [
        {"n": 0, "JMSXUserID": "a"},
        {"n": 0, "JMSXUserID": "b"},
        {"n": 1, "JMSXUserID": "c"},
        {"n": 1},
    ]
    assert [it.properties for it in envelopes] == expected


@pytest.mark.parametrize("sent_before", [False, True])
@pytest.mark.parametrize("the_copy_changes", [False, True])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_message_and_the_message_go_their_own_ways(
    bench: Any, message: Any, any_kind: MessageKind, how: Callable[[Any], Any], the_copy_changes: bool, sent_before: bool
) -> None:
    message.jms_priority = 1
    if sent_before:
        bench.freeze(message)
    copied = how(message)
    changing, kept = (copied, message) if the_copy_changes else (message, copied)
    CHANGE[any_kind](changing)
    changing.set_string_property("s", "changed")
    changing.set_string_property("new", "changed")
    changing.jms_priority = 2
    changing.jms_type = "changed"
    assert bench.freeze(kept).body == BODY[any_kind]
    assert set(kept.property_names) == {"s", "l"}
    assert (kept.get_string_property("s"), kept.jms_priority, kept.jms_type) == ("x", 1, "t")
    assert (changing.get_string_property("s"), changing.jms_priority, changing.jms_type) == ("changed", 2, "changed")
    if any_kind is not MessageKind.MESSAGE:
        assert bench.freeze(changing).body != BODY[any_kind]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_received_message_can_be_copied_and_changed(bench: Any, any_kind: MessageKind, how: Callable[[Any], Any]) -> None:
    message = bench.new(any_kind)
    FILL[any_kind](message)
    message.set_string_property("p", "old")
    acknowledged: list[str] = []
    came = bench.deliver(bench.freeze(message), acknowledge=lambda: acknowledged.append("yes"), owner=threading.Lock())
    copied = how(came)
    copied.clear_body()
    copied.clear_properties()
    CHANGE[any_kind](copied)
    copied.acknowledge()
    assert bench.freeze(came).body == BODY[any_kind]
    assert came.get_string_property("p") == "old"
    assert acknowledged == ["yes"]
