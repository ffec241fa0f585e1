"""TextMessage and the plain Message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jmsapi.errors import MessageFormatException, MessageNotWriteableException
from jmsapi.spi import MessageKind

TEXTS = [None, "", "a", "a\0b", "\r\n", "grüß €", "😀", "\uffff", "\ufeff", "x" * 2**20]


@pytest.fixture
def message(bench: Any) -> Any:
    return bench.new(MessageKind.TEXT)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:12])
def test_text_passes_unchanged(bench: Any, message: Any, text: str | None) -> None:
    message.text = text
    assert message.text == text
    assert bench.pass_on(message).text == text


@pytest.mark.parametrize("text", [5, b"a", ["a"], "\ud800", "a\udc00"])
def test_what_is_no_text_is_refused(message: Any, text: Any) -> None:
    message.text = "old"
    with pytest.raises(MessageFormatException):
        message.text = text
    assert message.text == "old"


@pytest.mark.parametrize("wanted", [str, object, Sequence])
def test_the_body_can_be_had_as_text(bench: Any, message: Any, wanted: Any) -> None:
    message.text = "a"
    for it in (message, bench.pass_on(message)):
        assert it.is_body_assignable_to(wanted)
        assert it.get_body(wanted) == "a"


@pytest.mark.parametrize("wanted", [bytes, dict, int, list[str]])
def test_the_body_cannot_be_had_as_something_else(message: Any, wanted: Any) -> None:
    message.text = ""
    assert not message.is_body_assignable_to(wanted)
    with pytest.raises(MessageFormatException, match="TextMessage"):
        message.get_body(wanted)


@pytest.mark.parametrize("kind", [MessageKind.TEXT, MessageKind.MESSAGE, MessageKind.OBJECT])
def test_without_a_body_any_type_gives_none(bench: Any, kind: MessageKind) -> None:
    for it in (bench.new(kind), bench.pass_on(bench.new(kind))):
        for wanted in (int, str, object, dict):
            assert it.is_body_assignable_to(wanted)
            assert it.get_body(wanted) is None


@pytest.mark.parametrize("kind", list(MessageKind), ids=lambda kind: kind.name)
@pytest.mark.parametrize("wanted", [None, "str", 5])
def test_a_type_that_is_no_class_is_refused(bench: Any, kind: MessageKind, wanted: Any) -> None:
    with pytest.raises(MessageFormatException):
        bench.new(kind).get_body(wanted)
    with pytest.raises(MessageFormatException):
        bench.new(kind).is_body_assignable_to(wanted)


def test_a_received_text_is_read_only_until_cleared(bench: Any, message: Any) -> None:
    message.text = "old"
    incoming = bench.pass_on(message)
    with pytest.raises(MessageNotWriteableException):
        incoming.text = "new"
    assert incoming.text == "old"
    incoming.clear_properties()
    with pytest.raises(MessageNotWriteableException):
        incoming.text = "new"
    incoming.clear_body()
    assert incoming.text is None
    incoming.text = "new"
    assert incoming.text == "new"


def test_clearing_leaves_the_properties(bench: Any, any_kind: MessageKind) -> None:
    message = bench.new(any_kind)
    message.set_int_property("a", 1)
    message.clear_body()
    assert message.get_int_property("a") == 1
    incoming = bench.pass_on(message)
    incoming.clear_body()
    assert incoming.get_int_property("a") == 1
    with pytest.raises(MessageNotWriteableException):
        incoming.set_int_property("b", 1)


def test_acknowledge_calls_what_it_was_given(bench: Any, any_kind: MessageKind) -> None:
    calls: list[str] = []
    envelope = bench.freeze(bench.new(any_kind))
    incoming = bench.deliver(envelope, acknowledge=lambda: calls.append("ack"))
    incoming.acknowledge()
    incoming.acknowledge()
    assert calls == ["ack", "ack"]


def test_acknowledge_does_nothing_without(bench: Any, any_kind: MessageKind) -> None:
    message = bench.new(any_kind)
    assert message.acknowledge() is None
    assert bench.pass_on(message).acknowledge() is None
