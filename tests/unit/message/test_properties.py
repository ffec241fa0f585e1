"""Properties: existence, iteration, clearing, and who may write when."""

from __future__ import annotations

from typing import Any

import pytest

from jmsapi.errors import MessageNotWriteableException
from jmsapi.spi import EMPTY_PROPERTIES, MessageKind

SETTERS: dict[str, Any] = {
    "boolean": True,
    "byte": 1,
    "short": 1,
    "int": 1,
    "long": 1,
    "float": 1.0,
    "double": 1.0,
    "string": "1",
    "object": "1",
}


@pytest.fixture
def message(bench: Any, any_kind: MessageKind) -> Any:
    return bench.new(any_kind)


def test_a_new_message_has_no_properties(message: Any) -> None:
    assert list(message.property_names) == []
    assert not message.property_exists("JMSXDeliveryCount")


def test_a_name_that_was_never_set_reads_as_null(message: Any) -> None:
    assert message.get_object_property("nothing") is None
    assert message.get_string_property("nothing") is None
    assert message.get_boolean_property("nothing") is False
    assert not message.property_exists("nothing")


def test_a_null_property_exists(message: Any) -> None:
    message.set_string_property("x", None)
    assert message.property_exists("x")


def test_names_can_be_listed_while_properties_change(message: Any) -> None:
    message.set_int_property("a", 1)
    for name in message.property_names:
        message.set_int_property(name + "b", 2)
    assert set(message.property_names) == {"a", "ab"}


def test_clearing_removes_all_and_nothing_else(bench: Any) -> None:
    message = bench.new(MessageKind.TEXT)
    message.text = "stays"
    message.jms_type = "stays"
    message.set_int_property("a", 1)
    message.clear_properties()
    assert list(message.property_names) == []
    assert (message.text, message.jms_type) == ("stays", "stays")


def test_a_received_message_shows_the_delivery_count(bench: Any, message: Any) -> None:
    message.set_int_property("a", 1)
    incoming = bench.deliver(bench.freeze(message), count=2, extra_count=3)
    assert incoming.get_int_property("JMSXDeliveryCount") == 5
    assert incoming.property_exists("JMSXDeliveryCount")
    assert sorted(incoming.property_names) == ["JMSXDeliveryCount", "a"]


def test_the_count_is_listed_once_even_if_the_wire_has_one(bench: Any, message: Any) -> None:
    envelope = bench.freeze(message)
    envelope.properties = {"JMSXDeliveryCount": 77}
    incoming = bench.deliver(envelope)
    assert list(incoming.property_names) == ["JMSXDeliveryCount"]
    assert incoming.get_int_property("JMSXDeliveryCount") == 1


@pytest.mark.parametrize("setter", SETTERS)
def test_received_properties_are_read_only(bench: Any, message: Any, setter: str) -> None:
    message.set_int_property("old", 1)
    incoming = bench.pass_on(message)
    with pytest.raises(MessageNotWriteableException):
        getattr(incoming, f"set_{setter}_property")("x", SETTERS[setter])
    assert sorted(incoming.property_names) == ["JMSXDeliveryCount", "old"]


def test_after_clearing_received_properties_can_be_written(bench: Any, message: Any) -> None:
    message.set_int_property("old", 1)
    incoming = bench.pass_on(message)
    incoming.clear_properties()
    assert list(incoming.property_names) == []
    incoming.set_string_property("x", "y")
    assert {name: incoming.get_object_property(name) for name in incoming.property_names} == {"x": "y"}


def test_the_shared_empty_mapping_stays_empty(message: Any) -> None:
    message.set_int_property("a", 1)
    message.clear_properties()
    message.set_int_property("b", 1)
    assert not EMPTY_PROPERTIES
