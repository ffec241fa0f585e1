"""Which names a property may have."""

from __future__ import annotations

from typing import Any

import pytest

from jmsapi.errors import IllegalArgumentException, MessageFormatException
from jmsapi.spi import MessageKind
from jmsapi.values import Byte, Long

GOOD = [
    "abc",
    "_x",
    "$y1",
    "größe",
    "x",
    "été",
    "中文",
    "€",
    "a\u0301",
    "a\u200cb",
    "a٣",
    "ⅷ",
    *(f"a{chr(code)}b" for code in (0x00, 0x08, 0x0E, 0x1B, 0x7F, 0x9F)),
    "JMS_Vendor_x",
    "JMS_x",
    "jmsx",
    "JM",
    "ands",
    "a" * 5000,
]
BAD = [
    *(f"a{chr(code)}" for code in (0x09, 0x0D, 0x1C, 0x20, 0xA0)),
    "\x00",
    "",
    "1a",
    "a-b",
    "a.b",
    "a b",
    "a#b",
    "-",
    "\u0301a",
    "٣a",
    "a\u00a0b",
    "a\tb",
    "a'",
    "😀",
    "a\ud800",
]
WORDS = ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE", "Between", "null", "or", "iS"]
KEPT_BY_JMS = ["JMSPriority", "JMSMessageID", "JMSfoo", "JMS", "JMSXFoo", "JMSX", "JMSXgroupid"]
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
def message(bench: Any) -> Any:
    return bench.new(MessageKind.MESSAGE)


@pytest.mark.parametrize("name", GOOD, ids=lambda name: ascii(name[:20]))
def test_an_identifier_is_a_name(message: Any, name: str) -> None:
    message.set_int_property(name, 1)
    assert message.get_int_property(name) == 1
    assert list(message.property_names) == [name]


@pytest.mark.parametrize("name", [None, 5, b"abc", *BAD, *WORDS, *KEPT_BY_JMS], ids=ascii)
@pytest.mark.parametrize("setter", SETTERS)
def test_every_setter_refuses_what_is_no_name(message: Any, setter: str, name: Any) -> None:
    with pytest.raises(IllegalArgumentException):
        getattr(message, f"set_{setter}_property")(name, SETTERS[setter])
    assert list(message.property_names) == []


def test_names_differ_by_letter_case(message: Any) -> None:
    message.set_int_property("Size", 1)
    message.set_int_property("size", 2)
    assert (message.get_int_property("Size"), message.get_int_property("size"), message.get_object_property("SIZE")) == (
        1,
        2,
        None,
    )


def test_the_group_properties_have_the_types_of_table_3_3(message: Any) -> None:
    message.set_string_property("JMSXGroupID", "g")
    message.set_object_property("JMSXGroupSeq", Byte(3))
    assert message.get_object_property("JMSXGroupID") == "g"
    assert type(message.get_object_property("JMSXGroupSeq")) is int
    for name, value in [
        ("JMSXGroupID", 1),
        ("JMSXGroupSeq", "1"),
        ("JMSXGroupSeq", Long(1)),
        ("JMSXGroupSeq", 1.0),
        ("JMSXGroupSeq", True),
    ]:
        with pytest.raises(MessageFormatException, match=name):
            message.set_object_property(name, value)
    message.set_object_property("JMSXGroupID", None)
    assert message.get_string_property("JMSXGroupID") is None


@pytest.mark.parametrize(
    "name",
    ["JMSXUserID", "JMSXAppID", "JMSXDeliveryCount", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState"],
)
def test_what_the_provider_sets_may_be_set_without_effect(message: Any, name: str) -> None:
    message.set_object_property(name, 5)
    assert not message.property_exists(name)


def test_all_properties_of_a_received_message_can_be_copied_to_a_new_one(bench: Any, message: Any) -> None:
    message.set_string_property("JMSXGroupID", "g")
    message.set_int_property("n", 1)
    incoming, outgoing = bench.pass_on(message), bench.new(MessageKind.TEXT)
    for name in incoming.property_names:
        outgoing.set_object_property(name, incoming.get_object_property(name))
    assert bench.freeze(outgoing).properties == {"JMSXGroupID": "g", "n": 1}
