"""Message and correlation ids: AMQP has four kinds, JMS has text.

The text forms are those of the Apache Qpid JMS client, so that an id goes through either client and back unchanged.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from jmsapi_amqp.codec.types import ULong, bad_format
from jmsapi_amqp.codec.writing import encode_binary, encode_text, encode_ulong

__all__ = ["correlation_to_text", "correlation_to_wire", "id_to_text", "id_to_wire"]

_ID: Final = "ID:"
_UUID: Final = "ID:AMQP_UUID:"
_ULONG: Final = "ID:AMQP_ULONG:"
_BINARY: Final = "ID:AMQP_BINARY:"
_STRING: Final = "ID:AMQP_STRING:"
_NO_PREFIX: Final = "ID:AMQP_NO_PREFIX:"
_SPECIAL: Final = "ID:AMQP_"
_KINDS: Final = (_UUID, _ULONG, _BINARY, _STRING, _NO_PREFIX)


def id_to_text(value: object) -> str | None:
    """Return a message id as JMS text, or None.

    Spec: 3.4.3-1 (a message id begins with ``ID:``).
    """
    if value is None:
        return None
    if isinstance(value, str):
        if not value.startswith(_ID):
            return _NO_PREFIX + value
        return _STRING + value if value.startswith(_KINDS) else value
    return _typed(value)


def correlation_to_text(value: object) -> str | bytes | None:
    """Return a correlation id as JMS text, or as bytes when it is binary on the wire."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _STRING + value if value.startswith(_KINDS) else value
    return _typed(value)


def _typed(value: object) -> str:
    if isinstance(value, UUID):
        return f"{_UUID}{value}"
    if isinstance(value, bytes):
        return _BINARY + value.hex().upper()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{_ULONG}{int(value)}"
    # No sender may send anything else. It is shown all the same, so that the message can be passed on.
    return f"{_STRING}{value}"


def id_to_wire(text: str) -> bytes:
    """Return the AMQP bytes of an id, in the kind its prefix names."""
    if not text.startswith(_SPECIAL):
        return encode_text(text)
    try:
        if text.startswith(_UUID):
            return b"\x98" + UUID(text[len(_UUID) :]).bytes
        if text.startswith(_ULONG):
            return encode_ulong(ULong(text[len(_ULONG) :]))
        if text.startswith(_BINARY):
            return encode_binary(bytes.fromhex(text[len(_BINARY) :]))
    except ValueError:
        raise bad_format(f"{text!r} names a kind of AMQP id and does not hold one") from None
    for prefix in (_STRING, _NO_PREFIX):
        if text.startswith(prefix):
            return encode_text(text[len(prefix) :])
    return encode_text(text)


def correlation_to_wire(value: str | bytes) -> bytes:
    """Return the AMQP bytes of a correlation id."""
    if isinstance(value, bytes):
        return encode_binary(value)
    return id_to_wire(value) if value.startswith(_SPECIAL) else encode_text(value)
