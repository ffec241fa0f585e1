"""ObjectMessage: copies, and bytes that nobody executes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from jmsapi._core.object_codec import DATA_TYPE, JAVA_TYPE, PICKLE_TYPE, ObjectCodec
from jmsapi.errors import JMSException, MessageFormatException, MessageNotWriteableException
from jmsapi.spi import MessageKind, PlainEnvelope

JAVA_OBJECT = b"\xac\xed\x00\x05t\x00\x01a"


class Weapon:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.fixture
def message(bench: Any) -> Any:
    return bench.new(MessageKind.OBJECT)


def received_as(bench: Any, data: bytes | None, content_type: str | None) -> Any:
    return bench.deliver(PlainEnvelope(MessageKind.OBJECT, ("q", "q"), data, content_type=content_type))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{"a": [1, (2, 3)]}, 0, "", False, [], b"raw", None])
def test_an_object_passes_equal(bench: Any, message: Any, value: Any) -> None:
    message.object = value
    assert message.object == value
    assert bench.pass_on(message).object == value


def test_setting_and_getting_copies(bench: Any, message: Any) -> None:
    value = {"a": [1]}
    message.object = value
    value["a"].append(2)
    message.object["a"].append(3)
    assert message.object == {"a": [1]}
    envelope = bench.freeze(message)
    one, other = bench.deliver(envelope), bench.deliver(envelope)
    one.object["a"].append(4)
    assert other.object == one.object == {"a": [1]}


def test_an_object_that_cannot_travel_is_refused_when_set(message: Any) -> None:
    message.object = "old"
    with pytest.raises(MessageFormatException):
        message.object = object()
    assert message.object == "old"


@pytest.mark.parametrize("wanted", [dict, object])
def test_the_body_can_be_had_as_its_type_and_bases(bench: Any, message: Any, wanted: Any) -> None:
    message.object = {"a": 1}
    for it in (message, bench.pass_on(message)):
        assert it.is_body_assignable_to(wanted)
        assert it.get_body(wanted) == {"a": 1}


@pytest.mark.parametrize("wanted", [list, str, bytes])
def test_the_body_cannot_be_had_as_something_else(message: Any, wanted: Any) -> None:
    message.object = {"a": 1}
    assert not message.is_body_assignable_to(wanted)
    with pytest.raises(MessageFormatException, match="ObjectMessage"):
        message.get_body(wanted)


def test_a_received_object_is_read_only_until_cleared(bench: Any, message: Any) -> None:
    message.object = 1
    incoming = bench.pass_on(message)
    for value in (2, None, object()):
        with pytest.raises(MessageNotWriteableException):
            incoming.object = value
    assert incoming.object == 1
    incoming.clear_body()
    assert incoming.object is None
    incoming.object = 2
    assert bench.pass_on(incoming).object == 2


@pytest.mark.parametrize("content_type", [PICKLE_TYPE, DATA_TYPE, JAVA_TYPE, None])
def test_a_hostile_pickle_is_never_loaded(bench: Any, tmp_path: Path, content_type: str | None) -> None:
    target = tmp_path / "written"
    acknowledged: list[bool] = []
    envelope = PlainEnvelope(MessageKind.OBJECT, ("q", "q"), pickle.dumps(Weapon(target)), content_type=content_type)  # type: ignore[arg-type]
    incoming = bench.deliver(envelope, acknowledge=lambda: acknowledged.append(True))
    with pytest.raises(JMSException):
        _ = incoming.object
    with pytest.raises(JMSException):
        incoming.get_body(object)
    assert not incoming.is_body_assignable_to(object)
    incoming.acknowledge()
    assert acknowledged == [True]
    assert not target.exists()


@pytest.mark.parametrize("content_type", [JAVA_TYPE, None, "application/octet-stream"])
def test_foreign_bytes_can_be_had_as_bytes(bench: Any, content_type: str | None) -> None:
    incoming = received_as(bench, JAVA_OBJECT, content_type)
    with pytest.raises(MessageFormatException):
        _ = incoming.object
    assert incoming.is_body_assignable_to(bytes)
    assert incoming.get_body(bytes) == JAVA_OBJECT
    assert not incoming.is_body_assignable_to(str)


def test_foreign_bytes_pass_on_as_they_are(bench: Any) -> None:
    envelope = bench.freeze(received_as(bench, JAVA_OBJECT, JAVA_TYPE))
    assert (envelope.body, envelope.content_type) == (JAVA_OBJECT, JAVA_TYPE)


def test_a_pickle_with_a_forbidden_class_does_not_pass_as_bytes(bench: Any, tmp_path: Path) -> None:
    bench.codec = ObjectCodec(frozenset(("some.Class",)))
    incoming = received_as(bench, pickle.dumps(Weapon(tmp_path / "written")), PICKLE_TYPE)
    with pytest.raises(MessageFormatException, match="not in the list"):
        incoming.get_body(bytes)
    assert not incoming.is_body_assignable_to(bytes)
    assert not (tmp_path / "written").exists()


def test_an_empty_wire_body_of_no_object_is_none(bench: Any) -> None:
    assert received_as(bench, None, None).object is None
