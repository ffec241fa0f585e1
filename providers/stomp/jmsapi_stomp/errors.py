"""What went wrong, from an exception of the socket or from a broker's words."""

from __future__ import annotations

import re
import ssl
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["broker_error", "connect_error", "kind_of", "lost", "unknown"]

_KINDS: Final[tuple[tuple[str, ErrorKind], ...]] = (
    # Classic
    ("already connected from", ErrorKind.CLIENT_ID),
    ("durable consumer is in use", ErrorKind.IN_USE),
    ("no durable subscription exists", ErrorKind.SUBSCRIPTION),
    ("invalidselectorexception", ErrorKind.SELECTOR),
    ("couldn't create topicsubscription", ErrorKind.SELECTOR),
    ("poison ack cannot be transacted", ErrorKind.PROTOCOL),
    ("cannot consume from temporary destination", ErrorKind.DESTINATION),
    ("created by another connection", ErrorKind.DESTINATION),
    ("destinationdoesnotexist", ErrorKind.DESTINATION),
    ("invaliddestinationexception", ErrorKind.DESTINATION),
    ("the destination", ErrorKind.DESTINATION),
    # Artemis
    ("amq229020", ErrorKind.SELECTOR),
    ("security error", ErrorKind.SECURITY),
    ("amq229031", ErrorKind.SECURITY),
    ("amq229032", ErrorKind.SECURITY),
    ("amq229213", ErrorKind.SECURITY),
    ("amq229017", ErrorKind.DESTINATION),
    ("amq229200", ErrorKind.IN_USE),
    ("amq229025", ErrorKind.IN_USE),
    ("maximum consumer limit", ErrorKind.IN_USE),
    ("amq229102", ErrorKind.RESOURCE),
    ("address is full", ErrorKind.RESOURCE),
    # RabbitMQ
    ("bad connect", ErrorKind.SECURITY),
    ("access refused", ErrorKind.SECURITY),
    ("access_refused", ErrorKind.SECURITY),
    ("access denied", ErrorKind.SECURITY),
    ("not_allowed", ErrorKind.SECURITY),
    ("resource_locked", ErrorKind.IN_USE),
    ("not_found", ErrorKind.DESTINATION),
    ("precondition_failed", ErrorKind.MISMATCH),
    ("subscription not found", ErrorKind.SUBSCRIPTION),
    ("server cancelled subscription", ErrorKind.DESTINATION),
    # any
    ("selector", ErrorKind.SELECTOR),
    ("password", ErrorKind.SECURITY),
    ("not authorized", ErrorKind.SECURITY),
    ("not authenticated", ErrorKind.SECURITY),
    ("authentication", ErrorKind.SECURITY),
    ("securityexception", ErrorKind.SECURITY),
    ("resourceallocationexception", ErrorKind.RESOURCE),
    ("memory limit", ErrorKind.RESOURCE),
)
_ENDS: Final = frozenset({ErrorKind.CONNECTION, ErrorKind.CLOSED, ErrorKind.TIMEOUT, ErrorKind.PROTOCOL})
"""Kinds that speak of a link; all others speak of what was asked."""
_NAMED: Final = re.compile(r"\[([a-z-]+)\] ")
_NAMES: Final = {kind.value: kind for kind in ErrorKind}


def kind_of(text: str, default: ErrorKind) -> ErrorKind:
    """Return the kind that a broker's error text speaks of; the loopback server names it."""
    named = _NAMED.match(text)
    if named is not None and named[1] in _NAMES:
        return _NAMES[named[1]]
    words = text.lower()
    return next((kind for sign, kind in _KINDS if sign in words), default)


def broker_error(
    text: str, detail: str = "", *, asked: str = "", default: ErrorKind = ErrorKind.PROTOCOL, fatal: bool = False
) -> ProviderError:
    """Return the error for an ERROR frame.

    Args:
        text: Its message.
        detail: Its body, often a stack trace; tells the kind, and is not shown.
        asked: What was asked.
        default: The kind, when the words tell none.
        fatal: Whether the connection ends.
    """
    kind = kind_of(text, kind_of(detail, default))
    answered = f"the broker answered: {_first_line(text)}"
    return ProviderError(kind, f"{asked}: {answered}" if asked else answered, fatal=fatal)


def connect_error(address: tuple[str, int], cause: Exception) -> ProviderError:
    """Return the error for a connection that could not be made."""
    where = f"{address[0]}:{address[1]}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        text = f"the certificate of {where} is not trusted: {cause.verify_message}; give its CA as tls_ca"
        return ProviderError(ErrorKind.SECURITY, text, fatal=True)
    if isinstance(cause, ssl.SSLError):
        return ProviderError(ErrorKind.SECURITY, f"no TLS with {where}: {cause.reason or cause}", fatal=True)
    if isinstance(cause, TimeoutError):
        return ProviderError(ErrorKind.CONNECTION, f"{where} did not answer in time", fatal=True)
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return ProviderError(ErrorKind.CONNECTION, f"cannot connect to {where}: {reason}; is the broker up?", fatal=True)


def lost(cause: ProviderError) -> ProviderError:
    """Return the error of what was asked on a link that is lost now: why it ended is no answer to what else was asked."""
    return ProviderError(cause.kind if cause.kind in _ENDS else ErrorKind.CONNECTION, cause.message, fatal=True)


def unknown(cause: ProviderError) -> ProviderError:
    """Return the error of a send that was written, or was about to be, when its link was lost."""
    return ProviderError(ErrorKind.IN_DOUBT, f"{cause.message}; whether the broker took the message is not known", fatal=True)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "no reason given")[:500]
