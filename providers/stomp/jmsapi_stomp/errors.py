"""Errors from a broker's words, and those of requests on a connection that is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers import artemis, classic, rabbitmq
from jmsapi_brokers.error_words import ANY_BROKER, kind_of

__all__ = ["broker_error", "lost", "named_kind", "shown", "unknown", "unknown_broker_kind", "without"]

_TABLES: Final = (classic.ERRORS, artemis.ERRORS, rabbitmq.ERRORS, ANY_BROKER)
_OF_THE_CONNECTION: Final = frozenset({ErrorKind.CONNECTION, ErrorKind.CLOSED, ErrorKind.TIMEOUT, ErrorKind.PROTOCOL})
"""Kinds that concern a connection; all others concern what was asked."""
_NAMED: Final = re.compile(r"\[([a-z-]+)\] ")
_KINDS: Final = {kind.value: kind for kind in ErrorKind}
_SHOWN: Final = 500
_WORD: Final = 3
"""Characters of the shortest name that is taken out: ``true`` or a number says nothing to mistake."""


def unknown_broker_kind(text: str, detail: str, default: ErrorKind) -> ErrorKind:
    """Return the kind of an ERROR that comes before it is known which broker the peer is; see ``kind_of_error``."""
    return named_kind(text) or kind_of(text, _TABLES, kind_of(detail, _TABLES, default))


def named_kind(text: str) -> ErrorKind | None:
    """Return the kind that an ERROR names at its beginning, as those of the loopback server do: ``[in-use] ...``."""
    named = _NAMED.match(text)
    return None if named is None else _KINDS.get(named[1])


def without(text: str, ours: Iterable[str | None]) -> str:
    """Return a broker's text without our own words in it, as whole words: a name of ours is no evidence of what is wrong."""
    for value in ours:
        for word in {value, value.rpartition("/")[2], value.rpartition(":")[2]} if value else ():
            if len(word) >= _WORD and word in text:
                text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "_", text)
    return text


def broker_error(text: str, kind: ErrorKind, *, asked: str = "", fatal: bool = False) -> ProviderError:
    """Return the error for an ERROR frame.

    Args:
        text: Its message.
        kind: Its kind.
        asked: What was asked.
        fatal: Whether the connection ends.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    answered = f"the broker answered: {shown(lines[0]) if lines else 'no reason given'}"
    return ProviderError(kind, f"{asked}: {answered}" if asked else answered, fatal=fatal)


def shown(text: str) -> str:
    """Return a peer's text as an error may quote it: at most 500 characters, what is not printable escaped."""
    return "".join([char if char.isprintable() else ascii(char)[1:-1] for char in text[:_SHOWN]])


def lost(cause: ProviderError) -> ProviderError:
    """Return the error of a request on a connection that is lost: why it ended is no answer to what else was asked."""
    kind = cause.kind if cause.kind in _OF_THE_CONNECTION else ErrorKind.CONNECTION
    return ProviderError(kind, cause.message, fatal=True)


def unknown(cause: ProviderError) -> ProviderError:
    """Return the error of a send that was written, or was about to be, when its connection was lost."""
    return ProviderError(ErrorKind.IN_DOUBT, f"{cause.message}; whether the broker took the message is not known", fatal=True)
