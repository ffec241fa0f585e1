"""The sections of an AMQP message: which there are, where they end, and those that repeat from message to message.

Spec: AMQP 1.0 part 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from jmsapi.spi import ProviderError
from jmsapi_amqp.codec.reading import decode_value
from jmsapi_amqp.codec.types import AmqpValue, bad_format

__all__ = [
    "APPLICATION",
    "BODIES",
    "DATA",
    "HEADER",
    "MESSAGE_ANNOTATIONS",
    "PROPERTIES",
    "SEQUENCE",
    "VALUE",
    "quick_delivery_count",
    "repeated_list",
    "repeated_map",
    "section",
    "skip",
]

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78
_NAMES: Final[Mapping[str, int]] = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}
_EXPIRED_ELSEWHERE: Final = b"x-first-death-reason\xa1\x07expired"
"""RabbitMQ's note on what came through a delay queue: its ``first-acquirer=false`` is the delay's, not a consumer's."""
BODIES: Final = frozenset({DATA, SEQUENCE, VALUE})


_LONGEST_HEADER: Final = 1024
"""Bytes of the longest header that is read before anybody asks for it: it has five small fields."""


def quick_delivery_count(raw: bytes, acquirer_tells: bool) -> int:
    """Return how often a message was handed out, this time included, from its first bytes.

    Args:
        raw: The message.
        acquirer_tells: Whether ``first-acquirer=false`` means that somebody had it before (RabbitMQ).
    Returns:
        1 and up; 1 when the header cannot be read, which its properties will then say.
    """
    if raw[:4] != b"\x00\x53\x70\xc0":
        # An array, say, would be read in full to find its end, here on the thread that reads what comes.
        if raw[:4] != b"\x00\x53\x70\xd0":
            return 1
    elif raw[5:6] < b"\x04":
        return 1
    try:
        end = skip(raw, 3)
        if end > _LONGEST_HEADER:
            return 1
        fields = repeated_list(raw[3:end])
    except ProviderError:  # the envelope's own properties say so, in the thread that reads them
        return 1
    count = fields[4] if len(fields) > 4 else 0
    handed = (int(count) if isinstance(count, int) else 0) + 1
    if handed == 1 and acquirer_tells and len(fields) > 3 and fields[3] is False and _EXPIRED_ELSEWHERE not in raw[:2048]:
        return 2
    return handed


def section(raw: bytes, position: int) -> tuple[int, int]:
    """Return the code of the section at ``position`` and where its value begins."""
    if raw[position : position + 2] == b"\x00\x53" and position + 2 < len(raw):
        return raw[position + 2], position + 3
    if raw[position : position + 1] != b"\x00":
        raise bad_format(f"byte {position} of the message begins no section")
    descriptor, at = decode_value(raw, position + 1)
    if isinstance(descriptor, str):
        descriptor = _NAMES.get(descriptor)
    if not isinstance(descriptor, int):
        raise bad_format("the message has a section of no known kind")
    return int(descriptor), at


_LONGEST_KEPT: Final = 1024
"""Bytes of the longest section that is remembered."""


def repeated_map(section: bytes) -> Mapping[AmqpValue, AmqpValue]:
    """Read message annotations: they are the same in message after message, and nobody writes to them."""
    return _kept_map(section) if len(section) <= _LONGEST_KEPT else _read_map(section)


def repeated_list(section: bytes) -> Sequence[AmqpValue]:
    """Read a header: they are the same in message after message."""
    return _kept_list(section) if len(section) <= _LONGEST_KEPT else _read_list(section)


def _read_map(section: bytes) -> Mapping[AmqpValue, AmqpValue]:
    value, _ = decode_value(section)
    if not isinstance(value, dict):
        raise bad_format("the message annotations are not a map")
    return value


def _read_list(section: bytes) -> Sequence[AmqpValue]:
    value, _ = decode_value(section)
    if not isinstance(value, list):
        raise bad_format("the header is not a list")
    return value


_kept_map: Final = lru_cache(maxsize=256)(_read_map)
_kept_list: Final = lru_cache(maxsize=256)(_read_list)


def skip(raw: bytes, at: int) -> int:
    """Return the position behind a section's value without reading it, if it is a list or map."""
    code = raw[at] if at < len(raw) else 0
    if code in (0xC0, 0xC1) and at + 1 < len(raw):
        end = at + 2 + raw[at + 1]
    elif code in (0xD0, 0xD1) and at + 5 <= len(raw):
        end = at + 5 + int.from_bytes(raw[at + 1 : at + 5])
    else:
        return decode_value(raw, at)[1]
    if end > len(raw):
        raise bad_format("the message ends inside a section before its body")
    return end
