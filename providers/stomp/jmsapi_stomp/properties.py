"""Typed properties in headers: each value as Java would write it, and one list of their types.

``n:7`` with ``JMS_PY_props:n=i`` is an int for us and a usable string for everybody else. A name that a broker or STOMP
itself would take for its own travels as ``JMS_PY_p_<name>``. Headers of other clients are string properties under their own
names, whatever these look like. A string with a NUL, which no header can hold, travels in
base64 as type ``e``. Names longer than a broker's limit for headers travel with their texts in one header, as JSON.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Final, cast

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.values import Value
from jmsapi_brokers import rabbitmq
from jmsapi_brokers.dead_letters import ANNOTATIONS, came_by_delay
from jmsapi_brokers.typed_texts import code_of, java_text, typed
from jmsapi_stomp.frames import escape

__all__ = ["TYPE_LIST", "encoded", "property_lines", "pushable_name", "read_properties"]

TYPE_LIST: Final = "JMS_PY_props"
_MANGLED: Final = "JMS_PY_p_"
_LONG_NAMES: Final = "JMS_PY_long"
_LIST_LIMIT: Final = 8192
_REMEMBERED: Final = 64
"""Characters of the longest name of a header of which it is remembered whether it is a property; of a message, the most names."""
_REMEMBERED_TOGETHER: Final = 1024
"""Characters of the names of a message's headers of which it is remembered which are properties."""
_DUE: Final = "JMS_PY_due"
_TAKEN: Final = frozenset(
    {
        *("destination", "receipt", "transaction", "ack", "subscription", "priority", "expires", "expiration", "persistent"),
        *("type", "timestamp", "redelivered", "selector", "login", "passcode", "browser", "durable", "exclusive"),
        *("transformation", "requeue", "auto-delete", "message-id", "content-length", "content-type", "content-encoding"),
        *("correlation-id", "reply-to", "receipt-id", "delivery-count", "amqp-message-id", "app-id", "user-id", "cluster-id"),
        *("amq-msg-type", "destination-type", "subscription-type", "client-id", "no-local", "prefetch-count", "heart-beat"),
    }
)
"""Headers that a broker or STOMP itself takes for its own."""
_TAKEN_STARTS: Final = (
    *("AMQ_", "_AMQ_", "__AMQ_", "JMS_AMQP_", "NATIVE_", "JMS_PY_", "activemq."),
    *rabbitmq.ARGUMENT_PREFIXES,
)
"""How the names begin that brokers take for their own, the arguments of RabbitMQ's queues among them."""
_HIDDEN_STARTS: Final = ("_AMQ_", "__AMQ_", "JMS_AMQP_", "NATIVE_", "JMS_PY_")
"""How the headers begin that brokers and this library add to a message."""
_OF_A_DEAD_LETTER: Final = frozenset(ANNOTATIONS.values())
"""Headers of a broker that are properties all the same: where a dead letter was."""
_OF_A_DELAY: Final = ("AMQ_SCHEDULED_", "x-death", "x-first-death-", "x-last-death-")
"""How the headers begin by which a delivery delay is asked for, or that it leaves behind."""
_SEPARATE: Final = frozenset({"JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXDeliveryCount"})
_INT_LOW: Final = -(2**31)
_INT_HIGH: Final = 2**31 - 1


def pushable_name(name: str) -> bool:
    """Return whether a property of this name is a header of the same name, so that a broker's selector may see it."""
    return name not in _TAKEN and not name.startswith(_TAKEN_STARTS) and name == name.strip()


def property_lines(
    properties: Mapping[str, Value], name_limit: int | None = None, scheduling: frozenset[str] = frozenset()
) -> str:
    """Return the header lines that carry properties; JMSXGroupID and JMSXGroupSeq are the behaviour's.

    Args:
        properties: What to carry.
        name_limit: The longest name of a header that the broker takes, in bytes; None for any.
        scheduling: Properties for the broker's scheduler, which are sent under their own names.
    """
    lines: list[str] = []
    long_names: dict[str, str] = {}
    codes: list[str] = []
    scheduled = not scheduling.isdisjoint(properties)
    for name, value in properties.items():
        if name in _SEPARATE:
            continue
        if type(value) is str:
            code, text = "s", value
        elif type(value) is int and _INT_LOW <= value <= _INT_HIGH:
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
        elif scheduled and name in scheduling and (code in "bhil" or text.isdigit() or name.endswith("_CRON")):
            lines.append(f"{name}:{escape(text)}\n")
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


def read_properties(
    headers: Mapping[str, str],
    others: Sequence[tuple[str, str]] = (),
    hidden: frozenset[str] = frozenset(),
    *,
    ours: bool = True,
) -> dict[str, Value]:
    """Return the properties that headers carry: whatever is not the broker's own and is no header field of JMS.

    Args:
        headers: All headers, of a repeated one that which counts.
        others: Repeated headers that do not count. Of those that are ``hidden`` they are another client's own, so they are
            properties unless they repeat the broker's word.
        hidden: Headers that are no properties.
        ours: A client of this library sent them, so that a header which a broker or STOMP would interpret is no property.
    Raises:
        ProviderError: FORMAT; a value is not of the type it claims.
    """
    properties: dict[str, Value] = {}
    if not others and headers.keys() <= hidden:
        return properties
    codes = _read_types(headers)
    # What died after its delay says so of its last death.
    delayed = _DUE in headers and came_by_delay(headers)
    names = tuple(headers)
    remembered = len(names) <= _REMEMBERED and sum(map(len, names)) <= _REMEMBERED_TOGETHER
    for header, name in (_known_names if remembered else _property_names)(names, hidden, ours, delayed):
        text = headers[header]
        properties[name] = typed(codes[name], text) if name in codes else text
    for name, text in others:
        if name in hidden and not ours and text != headers[name]:
            properties.setdefault(name, text)
    for name, text in _read_long_names(headers.get(_LONG_NAMES)).items():
        properties[name] = typed(codes.get(name, "s"), text)
    for name, code in codes.items():
        if code == "0":
            properties[name] = None
    return properties


def _property_names(headers: tuple[str, ...], hidden: frozenset[str], ours: bool, delayed: bool) -> list[tuple[str, str]]:
    """Return the headers that are properties, each with the property's name."""
    found: list[tuple[str, str]] = []
    for header in headers:
        name = header
        if header in hidden:
            continue
        if header.startswith(_HIDDEN_STARTS):
            if header.startswith(_MANGLED):
                name = header[len(_MANGLED) :]
                if name in _OF_A_DEAD_LETTER and name in headers:
                    continue  # the broker's word counts, not what a sender wrote under the same name
            elif header not in _OF_A_DEAD_LETTER:
                continue
        elif not (_is_property if len(header) > _REMEMBERED else _known_property)(header, ours, delayed):
            continue
        found.append((header, name))
    return found


def _is_property(header: str, ours: bool, delayed: bool) -> bool:
    """Return whether a header that is neither the broker's nor this library's is a property."""
    if header in _SEPARATE or (delayed and header.startswith(_OF_A_DELAY)):
        return False
    return not ours or header.startswith(_OF_A_DELAY) or pushable_name(header)


_known_property: Final = lru_cache(maxsize=4096)(_is_property)
_known_names: Final = lru_cache(maxsize=256)(_property_names)
"""The headers of a sender are mostly the same in message after message."""


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
