"""Rules for the texts that leave for a wire, and the escaping that keeps joined names apart."""

from __future__ import annotations

import re
from typing import Final
from uuid import uuid4

from jmsapi.spi import Address, ErrorKind, ProviderError

__all__ = ["TEMPORARY_PREFIX", "check_destination", "check_text", "escaped", "temporary_name", "without_tildes", "word"]

TEMPORARY_PREFIX: Final = "jmsapi.temp."
_CONTROL: Final = re.compile(r"[\x00-\x1f\x85\u2028\u2029]")
"""With the ends of lines of Unicode, for which Artemis takes a name apart."""
_LONGEST: Final = 4096
"""Bytes. By a name of 65,536 ActiveMQ Classic 6.3.1 stops: its store cannot write it; a line of STOMP has 10,240 there."""


def escaped(text: str) -> str:
    """Return text without dots, so that it can stand before one: ``!`` becomes ``!0``, ``.`` ``!1`` and ``~`` ``!2``.

    No two texts become the same. A text without these characters stays as it is. A tilde is replaced since RabbitMQ 4.0 takes the
    text of an error for a format: where a name with ``~1`` is refused its management node answers nothing but ``badarg``.
    """
    return without_tildes(text).replace(".", "!1")


def without_tildes(text: str) -> str:
    """Return text in which ``!`` becomes ``!0`` and ``~`` ``!2``; no two texts become the same."""
    return text.replace("!", "!0").replace("~", "!2")


def word(text: str) -> str:
    """Return text as letters, digits and underscores only: every other character becomes its code between underscores.

    No two texts become the same.
    """
    return "".join([char if char.isalnum() else f"_{ord(char):x}_" for char in text])


def temporary_name() -> str:
    """Return a new name for a temporary queue or topic of a broker that does not name them itself."""
    return f"{TEMPORARY_PREFIX}{uuid4()}"


def check_text(text: str, what: str, kind: ErrorKind, *, fatal: bool = False) -> None:
    """Refuse a text that no wire carries whole: a NUL ends it in C, a lone surrogate has no UTF-8.

    Args:
        text: A name, client id, credential or selector.
        what: What it is, for the error. The text itself is not quoted, since it may be a password.
        kind: The kind of the error.
        fatal: Whether the connection is of no use without it.
    Raises:
        ProviderError: Of the kind given.
    """
    if "\0" in text:
        raise ProviderError(kind, f"{what} must not contain the character NUL", fatal=fatal)
    if not text.isascii() and not _encodable(text):
        raise ProviderError(kind, f"{what} contains half of a surrogate pair, which has no encoding", fatal=fatal)


def check_destination(address: Address) -> None:
    """Refuse a name that no broker takes: an empty one, one that is too long, or one with control characters.

    Raises:
        ProviderError: DESTINATION.
    """
    name = address.name
    if not name or _CONTROL.search(name) is not None or not (name.isascii() or _encodable(name)):
        raise ProviderError(ErrorKind.DESTINATION, f"{name!r} is no name for a destination")
    if len(name) * 4 > _LONGEST and (size := len(name.encode())) > _LONGEST:
        text = f"{name[:80]!r}... is no name for a destination: it takes {size} bytes of at most {_LONGEST}"
        raise ProviderError(ErrorKind.DESTINATION, text)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
