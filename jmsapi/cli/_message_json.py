"""A message as one line of JSON and back: header fields, typed properties and all five bodies.

``body`` and ``properties`` hold plain JSON, for people and other programs. JSON knows fewer types than JMS, so ``types`` names
those that cannot be seen from the value: an integer without a type is an int, or a long if it is too large for one; any other
number is a double. Bytes are ``{"base64": ...}``. An object travels as its encoded bytes, which nothing here decodes.
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

import typer

import jmsapi
from jmsapi import (
    Byte,
    BytesMessage,
    Char,
    Destination,
    Double,
    Float,
    Int,
    JMSContext,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsapi._core.message import encoded_object, set_encoded_object
from jmsapi._showing import Unreadable, body_of, part, properties_of

__all__ = ["SET_BY_BROKER", "NotAMessage", "Sending", "as_json", "json_line", "read_line", "sending_of", "sending_of_line"]

_HEADERS: Final[dict[str, Callable[[Message], Any]]] = {
    "JMSMessageID": lambda message: message.jms_message_id,
    "JMSTimestamp": lambda message: message.jms_timestamp,
    "JMSCorrelationID": lambda message: _correlation(message),
    "JMSReplyTo": lambda message: None if message.jms_reply_to is None else str(message.jms_reply_to),
    "JMSDestination": lambda message: str(message.jms_destination),
    "JMSDeliveryMode": lambda message: message.jms_delivery_mode,
    "JMSRedelivered": lambda message: message.jms_redelivered,
    "JMSType": lambda message: message.jms_type,
    "JMSExpiration": lambda message: message.jms_expiration,
    "JMSPriority": lambda message: message.jms_priority,
}
SET_BY_BROKER: Final = frozenset({"JMSXDeliveryCount", "JMSXUserID", "JMSXRcvTimestamp", "JMSXState", "JMSXAppID"})
"""Properties that a receiver sees and no sender may set, or that speak of one delivery."""
_KINDS: Final[tuple[tuple[type[Message], str], ...]] = (
    (TextMessage, "text"),
    (BytesMessage, "bytes"),
    (MapMessage, "map"),
    (StreamMessage, "stream"),
    (ObjectMessage, "object"),
)
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "byte": Byte,
    "short": Short,
    "int": Int,
    "long": Long,
    "float": lambda value: Float(float(value)),
    "double": lambda value: Double(float(value)),
    "char": Char,
}


class NotAMessage(ValueError):
    """Say that a line is no message in JSON, and why."""


def _correlation(message: Message) -> str | bytes | None:
    found = part(lambda: message.jms_correlation_id)
    if found is None or isinstance(found, Unreadable):
        return message.jms_correlation_id_as_bytes
    return found


# ---- to JSON ----


def _tagged(value: object) -> tuple[Any, str | None]:
    """Return what JSON can say, and the type if that does not say it."""
    declared = cast("str | None", getattr(type(value), "jms_type", None))
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}, None
    if isinstance(value, bool) or value is None:
        return value, None
    if isinstance(value, int):
        return int(value), None if declared in {None, "int"} else declared
    if isinstance(value, float):
        kind = "float" if declared == "float" else None
        return (float(value), kind) if math.isfinite(value) else (repr(float(value)), kind or "double")
    return str(value), declared if declared == "char" else None


def _tagged_all(values: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, str]]:
    tagged = {name: _tagged(value) for name, value in values.items()}
    return {name: one for name, (one, _) in tagged.items()}, {name: kind for name, (_, kind) in tagged.items() if kind}


def as_json(message: Message) -> dict[str, Any]:
    """Return a message as JSON has it; what cannot be read is null, and ``unreadable`` says why."""
    unreadable: dict[str, str] = {}
    types: dict[str, Any] = {}

    def read(name: str, value: Any) -> Any:
        if isinstance(value, Unreadable):
            unreadable[name] = value.why
            return None
        return value

    headers = {name: _tagged(read(name, part(partial(get, message))))[0] for name, get in _HEADERS.items()}
    reply_to = part(lambda: message.jms_reply_to)
    if isinstance(reply_to, Destination):
        if isinstance(reply_to, jmsapi.TemporaryQueue | jmsapi.TemporaryTopic):
            types["JMSReplyTo"] = "temporary"
        elif isinstance(reply_to, Topic):
            types["JMSReplyTo"] = "topic"
    properties, property_types = _tagged_all(read("properties", part(lambda: properties_of(message))) or {})
    if property_types:
        types["properties"] = property_types
    kind = next((word for cls, word in _KINDS if isinstance(message, cls)), "message")
    body = read("body", part(lambda: _body(message, types)))
    found = {"kind": kind, "headers": headers, "properties": None if "properties" in unreadable else properties, "body": body}
    return found | ({"types": types} if types else {}) | ({"unreadable": unreadable} if unreadable else {})


def _body(message: Message, types: dict[str, Any]) -> Any:
    if isinstance(message, ObjectMessage):
        data, content_type = encoded_object(message)
        return None if data is None else {"encoded": base64.b64encode(data).decode(), "content_type": content_type}
    body = body_of(message)
    if isinstance(body, dict):
        plain, kinds = _tagged_all(cast("dict[str, object]", body))
        if kinds:
            types["body"] = kinds
        return plain
    if isinstance(body, list):
        tagged = [_tagged(one) for one in cast("list[object]", body)]
        if any(kind for _, kind in tagged):
            types["body"] = [kind for _, kind in tagged]
        return [one for one, _ in tagged]
    return _tagged(body)[0]


def json_line(message: Message, *, ascii_only: bool = False) -> str:
    """Return a message as one line of JSON."""
    return json.dumps(as_json(message), ensure_ascii=ascii_only)


# ---- from JSON ----


def read_line(line: str) -> dict[str, Any]:
    """Read one line.

    Raises:
        NotAMessage: It is no message, or one that could not be read when it was written.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotAMessage(f"it is no JSON: {error}") from None
    if not isinstance(found, dict) or "body" not in found:
        raise NotAMessage("it is no object with a member 'body'")
    record = cast("dict[str, Any]", found)
    if record.get("unreadable"):
        raise NotAMessage(f"it could not be read when it was written: {record['unreadable']}")
    for name in ("headers", "properties", "types"):
        if not isinstance(record.get(name), dict | None):
            raise NotAMessage(f"{name!r} is no object")
    return record


class Sending:
    """A message to be sent, and what its producer must be told.

    Attributes:
        message: It has properties and body.
        delivery_mode: 1 or 2.
        priority: 0 to 9.
        time_to_live_ms: What is left of its life; 0 for ever, less than 0 when it has expired.
        left_out: What could not be kept, for people.
    """

    def __init__(self, message: Message, delivery_mode: int, priority: int, time_to_live_ms: int, left_out: list[str]) -> None:
        self.message = message
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.time_to_live_ms = time_to_live_ms
        self.left_out = left_out


def time_left_ms(expiration: int) -> int:
    """Return how long a message with this JMSExpiration lives from now on; 0 for ever, less than 0 when it has expired."""
    return 0 if not expiration else (expiration - int(time.time() * 1000)) or -1


def sending_of(context: JMSContext, record: Mapping[str, Any]) -> Sending:
    """Make a message of a record.

    Raises:
        NotAMessage: A value is not of its type.
    """
    try:
        return _sending(context, record)
    except KeyError as error:
        raise NotAMessage(f"a member {error} is missing") from error
    except (TypeError, AttributeError, ValueError, ArithmeticError, jmsapi.JMSError) as error:
        raise NotAMessage(" ".join(str(error).split()) or type(error).__name__) from error


def sending_of_line(context: JMSContext, line: bytes, number: int) -> Sending:
    """Make a message of a line of a file.

    Raises:
        typer.BadParameter: It is none; the error names the line by its number.
    """
    try:
        # Editors on Windows begin a file with a mark.
        return sending_of(context, read_line(line.decode("utf-8-sig" if number == 1 else "utf-8")))
    except (NotAMessage, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"line {number}: {error}") from None


def _sending(context: JMSContext, record: Mapping[str, Any]) -> Sending:
    types: Mapping[str, Any] = record.get("types") or {}
    headers: Mapping[str, Any] = record.get("headers") or {}
    left_out: list[str] = []
    message = _with_body(context, record, types.get("body"))
    kinds: Mapping[str, str] = types.get("properties") or {}
    properties: Mapping[str, Any] = record.get("properties") or {}
    for name, value in properties.items():
        if name not in SET_BY_BROKER:
            message.set_object_property(name, _untagged(value, kinds.get(name)))
    correlation = _untagged(headers.get("JMSCorrelationID"), None)
    if isinstance(correlation, bytes):
        message.jms_correlation_id_as_bytes = correlation
    elif correlation is not None:
        message.jms_correlation_id = correlation
    if headers.get("JMSType") is not None:
        message.jms_type = headers["JMSType"]
    if headers.get("JMSReplyTo") is not None:
        if types.get("JMSReplyTo") == "temporary":
            left_out.append("a temporary destination as JMSReplyTo")
        else:
            make = context.create_topic if types.get("JMSReplyTo") == "topic" else context.create_queue
            message.jms_reply_to = make(headers["JMSReplyTo"])
    return Sending(
        message,
        _whole(headers, "JMSDeliveryMode", 2, (1, 2)),
        _whole(headers, "JMSPriority", 4, (0, 9)),
        time_left_ms(_whole(headers, "JMSExpiration", 0, (0, 2**63 - 1))),
        left_out,
    )


def _whole(headers: Mapping[str, Any], name: str, default: int, bounds: tuple[int, int]) -> int:
    value = headers.get(name)
    if value is None:
        return default
    if type(value) is not int or not bounds[0] <= value <= bounds[1]:
        raise NotAMessage(f"{name} is a whole number from {bounds[0]} to {bounds[1]}, not {value!r}")
    return value


def _untagged(value: Any, kind: str | None) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(cast("dict[str, str]", value)["base64"], validate=True)
    if value is None or kind is None:
        return Long(value) if isinstance(value, int) and not -(2**31) <= value < 2**31 else value
    if kind not in _READ:
        raise NotAMessage(f"{kind!r} is no type; there are {', '.join(_READ)}")
    return _READ[kind](value)


def _with_body(context: JMSContext, record: Mapping[str, Any], kinds: Any) -> Message:
    body = record["body"]
    kind = record.get("kind") or _kind_of(body)
    match kind:
        case "text":
            if not isinstance(body, str | None):
                raise NotAMessage("the body of a text message is a string or null")
            return context.create_text_message(body)
        case "bytes":
            message = context.create_bytes_message()
            message.write_bytes(_untagged(body, None) if body is not None else b"")
            return message
        case "map":
            filled = context.create_map_message()
            entries: Mapping[str, Any] = body or {}
            entry_kinds: Mapping[str, str] = kinds or {}
            for name, value in entries.items():
                filled.set_object(name, _untagged(value, entry_kinds.get(name)))
            return filled
        case "stream":
            stream = context.create_stream_message()
            for value, one in zip(body or [], kinds or [None] * len(body or []), strict=True):
                stream.write_object(_untagged(value, one))
            return stream
        case "object":
            holder = context.create_object_message()
            if body is not None:
                set_encoded_object(holder, base64.b64decode(body["encoded"], validate=True), body.get("content_type"))
            return holder
        case "message":
            return context.create_message()
        case _:
            raise NotAMessage(f"{kind!r} is no kind of message")


def _kind_of(body: Any) -> str:
    """Guess for a record that names no kind."""
    if isinstance(body, dict):
        return "bytes" if set(cast("dict[str, Any]", body)) == {"base64"} else "map"
    return "stream" if isinstance(body, list) else "message" if body is None else "text"
