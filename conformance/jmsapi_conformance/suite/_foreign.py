"""Messages as another library might implement them: with nothing of ours but the interface, and no more than a send needs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jmsapi import (
    BytesMessage,
    Destination,
    MapMessage,
    Message,
    MessageEOFException,
    ObjectMessage,
    StreamMessage,
    TextMessage,
)

__all__ = ["foreign_message", "set_by_others"]

_FIELDS: Final = {
    "jms_type": "their type",
    "jms_correlation_id": "their correlation",
    "jms_correlation_id_as_bytes": None,
    "jms_redelivered": False,
    "jms_destination": None,
    "jms_delivery_mode": 2,
    "jms_message_id": None,
    "jms_timestamp": 0,
    "jms_expiration": 0,
    "jms_delivery_time": 0,
    "jms_priority": 4,
}


def foreign_message(
    kind: str, body: Any = None, properties: Mapping[str, object] | None = None, reply_to: Destination | None = None
) -> Any:
    """Make a message that somebody else implements.

    Args:
        kind: Which of the six.
        body: Its body: text, bytes, a mapping, a sequence or an object.
        properties: Its properties.
        reply_to: Its reply destination.
    Returns:
        An object of the interface. What a send does not need raises an AssertionError.
    """
    interface, members = _KINDS[kind](body)
    unused = {name: _unused(name) for name in interface.__abstractmethods__}
    kept: dict[str, object] = {**_FIELDS, "jms_reply_to": reply_to, "properties": dict(properties or {}), "set_by_others": {}}
    return type(f"Foreign{interface.__name__}", (_Foreign, interface), {**unused, **members, "kept": kept, **_SHARED})()


def set_by_others(message: Any) -> dict[str, object]:
    """Return the fields that were set from outside, each with its last value."""
    found: dict[str, object] = message.kept["set_by_others"]
    return found


class _Foreign:
    """Header fields that note who sets them, and properties."""

    kept: dict[str, Any]

    def __getattribute__(self, name: str) -> Any:
        kept = object.__getattribute__(self, "kept")
        return kept[name] if name.startswith("jms_") else object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("jms_"):
            self.kept["set_by_others"][name] = value
        self.kept[name] = value


def _names(message: Any) -> Iterator[str]:
    return iter(tuple(message.kept["properties"]))


def _value(message: Any, name: str) -> object:
    return message.kept["properties"].get(name)


_SHARED: Final = {"property_names": property(_names), "get_object_property": _value}


def _unused(name: str) -> Any:
    def fail(*_: object) -> None:
        raise AssertionError(f"a send has no business with {name}")

    return fail


def _bytes(body: bytes) -> tuple[type[Message], dict[str, object]]:
    reader = io.BytesIO(body)

    def read_bytes(_: object, value: Any, length: int | None = None) -> int:
        part = reader.read(len(value) if length is None else length)
        value[: len(part)] = part
        return len(part) or -1

    def read_byte(_: object) -> int:
        if not (part := reader.read(1)):
            raise MessageEOFException("that was all")
        return int.from_bytes(part, signed=True)

    def reset(_: object) -> None:
        reader.seek(0)

    # A provider may take the body in one piece or byte by byte.
    return BytesMessage, {"reset": reset, "body_length": len(body), "read_bytes": read_bytes, "read_byte": read_byte}


def _map(body: Mapping[str, object]) -> tuple[type[Message], dict[str, object]]:
    def map_names(_: object) -> Iterator[str]:
        return iter(body)

    def get_object(_: object, name: str) -> object:
        return body[name]

    return MapMessage, {"map_names": property(map_names), "get_object": get_object}


def _stream(body: Sequence[object]) -> tuple[type[Message], dict[str, object]]:
    left: list[object] = []

    def reset(_: object) -> None:
        left[:] = body

    def read_object(_: object) -> object:
        if not left:
            raise MessageEOFException("that was all")
        return left.pop(0)

    return StreamMessage, {"reset": reset, "read_object": read_object}


def _text(body: str | None) -> tuple[type[Message], dict[str, object]]:
    return TextMessage, {"text": body}


def _object(body: object) -> tuple[type[Message], dict[str, object]]:
    return ObjectMessage, {"object": body}


def _plain(_: None) -> tuple[type[Message], dict[str, object]]:
    return Message, {}


_KINDS: Final[dict[str, Any]] = {
    "plain": _plain,
    "text": _text,
    "bytes": _bytes,
    "map": _map,
    "stream": _stream,
    "object": _object,
}
