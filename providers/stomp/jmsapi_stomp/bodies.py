"""Bodies of the six message types as bytes.

Map and Stream travel as JSON in which each value names its Java type by the letter the properties use, and ``x`` for bytes:
``{"n": ["i", 7], "raw": ["x", "AAE="]}`` and ``[["s", "a"], ["f", "NaN"]]``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from jmsapi.spi import Body, BodyValue, ErrorKind, MessageKind, ProviderError
from jmsapi.values import Char
from jmsapi_brokers.charsets import charset_named
from jmsapi_brokers.typed_texts import code_of, java_text, typed
from jmsapi_stomp.frames import text_of
from jmsapi_stomp.properties import encoded

__all__ = ["MAP_TYPE", "STREAM_TYPE", "charset_of", "read_body", "write_body"]

MAP_TYPE: Final = "application/vnd.jmsapi.map+json"
STREAM_TYPE: Final = "application/vnd.jmsapi.stream+json"
_MOST_ENTRIES: Final = 1 << 20
"""Entries of the largest map or stream that is read."""
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*([^\s;]+)", re.IGNORECASE)


def charset_of(content_type: str | None) -> str | None:
    """Return the charset that a content type names, if it is known.

    Returns:
        None for none or an unknown one, and for UTF-8, which is read as such anyway.
    """
    found = None if content_type is None else _CHARSET.search(content_type)
    if found is None:
        return None
    name = charset_named(found[1])
    return None if name in ("utf_8", "ascii") else name


def write_body(kind: MessageKind, body: Body) -> bytes:
    """Return a body as bytes; None is as empty as an empty one.

    Raises:
        ProviderError: FORMAT; it is no body of that kind.
    """
    if kind is MessageKind.TEXT and isinstance(body, str):
        return encoded(body, "the text")
    if kind in (MessageKind.BYTES, MessageKind.OBJECT) and isinstance(body, bytes):
        return body
    if kind is MessageKind.MAP and isinstance(body, Mapping):
        return _json({name: _pair(value) for name, value in body.items()})
    if kind is MessageKind.STREAM and isinstance(body, Sequence) and not isinstance(body, str | bytes):
        return _json([_pair(value) for value in body])
    if body is None:
        return b""
    raise ProviderError(ErrorKind.FORMAT, f"a {kind.name.lower()} message cannot hold a {type(body).__name__}")


def _json(value: object) -> bytes:
    # ASCII, since ActiveMQ Classic hands this to AMQP clients as a text and writes what is outside the basic plane as no UTF-8.
    text = json.dumps(value, separators=(",", ":"))
    if "\\ud" in text:
        encoded(json.dumps(value, ensure_ascii=False), "the body")  # half of a pair raises
    return text.encode()


def _pair(value: BodyValue) -> list[object]:
    if isinstance(value, bytes | bytearray | memoryview):
        return ["x", base64.b64encode(value).decode()]
    code = code_of(value)
    if code == "0":
        return ["0"]
    if code in "bhil":
        return [code, int(cast(int, value))]
    if code == "z":
        return [code, bool(value)]
    if code == "c":
        return [code, ord(cast(str, value))]  # a number: a char may be half a surrogate pair
    return [code, java_text(value)]


def read_body(kind: MessageKind, data: bytes, *, null: bool) -> Body:
    """Return what ``data`` is as a body of that kind.

    Raises:
        ProviderError: FORMAT; it is none.
    """
    if kind is MessageKind.MESSAGE or (null and not data):
        return None
    if kind is MessageKind.TEXT:
        return text_of(data)
    if kind in (MessageKind.BYTES, MessageKind.OBJECT):
        return data
    _check_budget(data)
    try:
        value: object = json.loads(data) if data else None
    except (ValueError, RecursionError) as cause:
        raise ProviderError(ErrorKind.FORMAT, f"the {kind.name.lower()} body received is not our JSON") from cause
    if kind is MessageKind.MAP and isinstance(value, dict | None):
        return {name: _value(pair) for name, pair in cast("dict[str, object]", value or {}).items()}
    if kind is MessageKind.STREAM and isinstance(value, list | None):
        return [_value(pair) for pair in cast("list[object]", value or [])]
    raise ProviderError(ErrorKind.FORMAT, f"the {kind.name.lower()} body received is not our JSON")


def _check_budget(data: bytes) -> None:
    """Refuse a body with so many brackets that the objects made of it would take many times its size.

    Raises:
        ProviderError: FORMAT.
    """
    if len(data) > _MOST_ENTRIES and data.count(b"[") > _MOST_ENTRIES:
        raise ProviderError(ErrorKind.FORMAT, f"the body received has more than {_MOST_ENTRIES} entries")


def _value(pair: object) -> BodyValue:
    match pair:
        case ["0"]:
            return None
        case ["x", str(text)]:
            try:
                return base64.b64decode(text, validate=True)
            except (ValueError, binascii.Error) as cause:
                raise ProviderError(ErrorKind.FORMAT, "bytes in the body received are not base64") from cause
        case ["z", bool(flag)]:
            return flag
        case [str(code), int(number)] if code in "bhil" and not isinstance(number, bool):
            return typed(code, str(number))
        case ["c", int(number)] if 0 <= number <= 0xFFFF:
            return Char(chr(number))
        case [str(code), str(text)] if code in "fds":
            return typed(code, text)
        case _:
            raise ProviderError(ErrorKind.FORMAT, "the body received has a value without a type")
