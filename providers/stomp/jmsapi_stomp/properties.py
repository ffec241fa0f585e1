"""Typed properties in headers: each value as Java would write it, and one list of their types.

``n:7`` with ``JMS_PY_props:n=i`` is an int for us and a usable string for everybody else. A name that a broker or STOMP
itself would take for its own travels as ``JMS_PY_p_<name>``. A string with a NUL, which no header can hold, travels in
base64 as type ``e``. Names longer than a broker's limit for headers travel with their texts in one header, as JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from typing import Final, cast

from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.values import INT_RANGE, Byte, Char, Double, Float, Int, Long, Short, Value
from jmsapi_stomp.frames import escape

__all__ = ["TYPE_LIST", "code_of", "java_text", "property_lines", "pushable_name", "read_properties", "typed"]

TYPE_LIST: Final = "JMS_PY_props"
_MANGLED: Final = "JMS_PY_p_"
_LONG_NAMES: Final = "JMS_PY_long"
_LIST_LIMIT: Final = 8192
_TAKEN: Final = frozenset(
    re.findall(
        r"\w+",
        "destination receipt transaction id ack subscription message priority expires expiration persistent type timestamp "
        "redelivered selector session host login passcode version server browser durable exclusive transformation requeue",
    )
)
_TAKEN_STARTS: Final = ("AMQ_", "_AMQ_", "__AMQ_", "JMS_AMQP_", "NATIVE_", "JMS_PY_")
_NAME: Final = re.compile(r"(?:[^\W\d]|\$)[\w$]*\Z")
_SEPARATE: Final = frozenset({"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"})
_NEVER: Final = (
    _TAKEN
    | _SEPARATE
    | {"message-id", "content-length", "content-type", "correlation-id", "reply-to", "delivery-count", "JMS_PY_id", "JMS_PY_type"}
)
_INT_LOW: Final = -(2**31)
_INT_HIGH: Final = 2**31 - 1
_INTEGERS: Final[dict[str, type[Byte] | type[Short] | type[Int] | type[Long]]] = {"b": Byte, "h": Short, "i": Int, "l": Long}
_WRAPPERS: Final[dict[str, str]] = {"byte": "b", "short": "h", "int": "i", "long": "l", "float": "f", "double": "d", "char": "c"}


def pushable_name(name: str) -> bool:
    """Return whether a property of this name is a header of the same name, so that a broker's selector sees it."""
    return name not in _TAKEN and not name.startswith(_TAKEN_STARTS)


def code_of(value: Value) -> str:
    """Return the letter of a value's Java type; ``0`` for null, ``s`` for a string."""
    if value is None:
        return "0"
    kind = type(value)
    if kind is str:
        return "s"
    if kind is bool:
        return "z"
    if kind is int:
        low, high = INT_RANGE["int"]
        return "i" if low <= value <= high else "l"  # type: ignore[operator]
    if kind is float:
        return "d"
    return _WRAPPERS[value.jms_type] if isinstance(value, Byte | Short | Int | Long | Float | Double | Char) else _plain(value)


def _plain(value: Value) -> str:
    """Return the letter for a subclass that is none of ours, such as an enum."""
    for kind, code in ((bool, "z"), (int, "i"), (float, "d"), (str, "s")):
        if isinstance(value, kind):
            return code_of(int(value)) if code == "i" and isinstance(value, int) else code
    raise ProviderError(ErrorKind.FORMAT, f"a value of type {type(value).__name__} has no JMS type")


def java_text(value: Value) -> str:
    """Return a value as Java's ``String.valueOf`` would, floats by their shortest form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value):
            return float.__repr__(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int):
        return int.__repr__(value)
    return "" if value is None else str.__str__(value)


def typed(code: str, text: str) -> Value:
    """Return the value that ``text`` is of the type ``code``.

    Raises:
        ProviderError: FORMAT; it is none.
    """
    try:
        if code == "s":
            return text
        if code == "i":
            return int(Int(int(text)))
        if code in _INTEGERS:
            return _INTEGERS[code](int(text))
        if code == "z":
            return {"true": True, "false": False}[text]
        if code == "d":
            return float(text)
        if code == "f":
            return Float(float(text))
        if code == "c":
            return Char(text)
        if code == "0":
            return None
        if code == "e":
            return base64.b64decode(text, validate=True).decode()
    except (ValueError, KeyError, binascii.Error, IllegalArgumentException) as cause:
        raise ProviderError(ErrorKind.FORMAT, f"a received value is not of the type {code!r} it claims") from cause
    raise ProviderError(ErrorKind.FORMAT, f"a received value has the unknown type {code!r}")


def property_lines(properties: Mapping[str, Value], name_limit: int | None = None) -> str:
    """Return the header lines that carry properties; JMSXGroupID and JMSXGroupSeq are the dialect's.

    Args:
        properties: What to carry.
        name_limit: The longest name of a header that the broker takes, in bytes; None for any.
    """
    lines: list[str] = []
    long_names: dict[str, str] = {}
    codes: list[str] = []
    for name, value in properties.items():
        if name in _SEPARATE:
            continue
        kind = type(value)
        if kind is str:
            code, text = "s", cast(str, value)
        elif kind is int and _INT_LOW <= cast(int, value) <= _INT_HIGH:
            code, text = "i", str(value)
        else:
            code, text = code_of(value), java_text(value)
        if "\0" in text:
            code, text = "e", base64.b64encode(encoded(text, name)).decode()
        if code != "s":
            codes.append(f"{name}={code}")
        if code == "0":
            continue
        if (
            name_limit is not None
            and 4 * (len(name) + len(_MANGLED)) > name_limit
            and len(encoded(_header(name), name)) > name_limit
        ):
            encoded(text, name)
            long_names[name] = text
        else:
            lines.append(f"{_line_start(name)}{escape(text)}\n")
    if long_names:
        lines.append(f"{_LONG_NAMES}:{escape(json.dumps(long_names))}\n")
    if codes:
        lines += [f"{name}:{escape(text)}\n" for name, text in _type_list(codes)]
    return "".join(lines)


def _header(name: str) -> str:
    """Return the name of the header that carries a property."""
    return name if pushable_name(name) else _MANGLED + name


@lru_cache(maxsize=1024)
def _line_start(name: str) -> str:
    return f"{escape(_header(name))}:"


def encoded(text: str, what: str) -> bytes:
    """Return text as UTF-8.

    Raises:
        ProviderError: FORMAT; it has a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as cause:
        raise ProviderError(ErrorKind.FORMAT, f"{what} has half a surrogate pair at {cause.start}: not text") from cause


def _type_list(codes: list[str]) -> list[tuple[str, str]]:
    whole = ",".join(codes)
    if 4 * len(whole) <= _LIST_LIMIT:
        return [(TYPE_LIST, whole)]
    lists: list[list[str]] = [[]]
    size = 0
    for code in codes:
        if size + len(code) + 1 > _LIST_LIMIT and lists[-1]:
            lists.append([])
            size = 0
        lists[-1].append(code)
        size += 4 * len(code) + 1  # in bytes, at most
    return [(f"{TYPE_LIST}{index or ''}", ",".join(part)) for index, part in enumerate(lists)]


def read_properties(headers: Mapping[str, str]) -> dict[str, Value]:
    """Return the properties that headers carry.

    Raises:
        ProviderError: FORMAT; a value is not of the type it claims.
    """
    properties: dict[str, Value] = {}
    if headers.keys() <= _NEVER:
        return properties
    codes = _read_types(headers)
    for header, text in headers.items():
        name = header
        if header.startswith(_MANGLED):
            name = header[len(_MANGLED) :]
        elif header in _TAKEN or header in _SEPARATE or header.startswith(_TAKEN_STARTS) or not _NAME.match(header):
            continue
        properties[name] = typed(codes.get(name, "s"), text)
    for name, text in _read_long_names(headers.get(_LONG_NAMES)).items():
        properties[name] = typed(codes.get(name, "s"), text)
    for name, code in codes.items():
        if code == "0":
            properties[name] = None
    return properties


def _read_long_names(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise ProviderError(ErrorKind.FORMAT, "the properties with long names are not JSON") from cause
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in cast("dict[str, object]", found).values()):
        raise ProviderError(ErrorKind.FORMAT, "the properties with long names are not texts by name")
    return cast("dict[str, str]", found)


def _read_types(headers: Mapping[str, str]) -> dict[str, str]:
    codes: dict[str, str] = {}
    for index in count():
        text = headers.get(f"{TYPE_LIST}{index or ''}")
        if text is None:
            return codes
        for item in text.split(","):
            name, equals, code = item.rpartition("=")
            if not equals:
                raise ProviderError(ErrorKind.FORMAT, f"the list of property types has {item!r}")
            codes[name] = code
    return codes
