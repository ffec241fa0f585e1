"""AMQP error conditions and library errors as the seam's one exception.

Each row was seen on a broker; where one condition means several things, the words of its description decide, and the row
says whose words they are.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final, NamedTuple, cast

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["Cause", "Redirected", "from_end", "from_os_error", "to_error"]


class Cause(NamedTuple):
    """What a peer said when it refused or ended something."""

    name: str
    description: str = ""
    info: object = None

    def __str__(self) -> str:
        return f"{self.description} ({self.name})" if self.description else self.name


_REDIRECT: Final = "amqp:connection:redirect"


class Redirected(ProviderError):
    """The broker says that somebody else serves us.

    Args:
        message: As for any error.
        host: Where the other one is.
        port: Its port; None when it was not told.
        hostname: What to call it when the connection opens; None for its host.
    """

    def __init__(self, message: str, host: str, port: int | None, hostname: str | None) -> None:
        super().__init__(ErrorKind.CONNECTION, message, fatal=True)
        self.host = host
        self.port = port
        self.hostname = hostname

    def __reduce__(self) -> tuple[object, ...]:
        return Redirected, (self.message, self.host, self.port, self.hostname)


_KINDS: Final[dict[str, ErrorKind]] = {
    "amqp:unauthorized-access": ErrorKind.SECURITY,
    "amqp:not-found": ErrorKind.DESTINATION,
    "amqp:resource-deleted": ErrorKind.DESTINATION,
    "amqp:resource-locked": ErrorKind.IN_USE,
    "amqp:resource-limit-exceeded": ErrorKind.RESOURCE,
    "amqp:link:message-size-exceeded": ErrorKind.FORMAT,
    "amqp:not-implemented": ErrorKind.UNSUPPORTED,
    "amqp:precondition-failed": ErrorKind.MISMATCH,
    "amqp:decode-error": ErrorKind.PROTOCOL,
    "amqp:framing-error": ErrorKind.PROTOCOL,
    "amqp:connection:framing-error": ErrorKind.PROTOCOL,
    "amqp:connection:forced": ErrorKind.CONNECTION,
    _REDIRECT: ErrorKind.CONNECTION,
    "amqp:link:stolen": ErrorKind.IN_USE,
    "amqp:transaction:rollback": ErrorKind.ROLLED_BACK,
    "amqp:transaction:timeout": ErrorKind.ROLLED_BACK,
    "amqp:transaction:unknown-id": ErrorKind.ROLLED_BACK,
}
_IN_USE: Final = (
    "AMQ229200",  # Artemis: maximum number of consumers on a durable subscription's queue
    "Durable consumer is in use",  # Classic
    "already has an active",  # Classic
    "in use",
)
_NO_RIGHT: Final = ("AMQ229031", "AMQ229032", "not authorized", "username/password", "User name", "password is invalid")


def to_error(cause: Cause, asked: str, *, selector: bool = False, fatal: bool = False) -> ProviderError:
    """Return the error for a peer's refusal.

    Args:
        cause: What the peer said.
        asked: What was asked for, as the beginning of a sentence.
        selector: Whether the refused link carried a selector.
        fatal: Whether the whole connection is of no more use.
    """
    text = f"{asked}: the broker answered {cause}"
    elsewhere = _elsewhere(text, cause.info) if cause.name == _REDIRECT else None
    if elsewhere is not None:
        return elsewhere
    kind = _KINDS.get(cause.name)
    words = cause.description
    if any(word in words for word in _NO_RIGHT):
        kind = ErrorKind.SECURITY
    elif cause.name == "amqp:invalid-field":
        info = str(cause.info)
        if "container-id" in info or "container-id" in words or "already connected" in words:
            kind = ErrorKind.CLIENT_ID
        else:
            kind = ErrorKind.SELECTOR if selector else ErrorKind.DESTINATION
    elif cause.name == "amqp:illegal-state":
        # Artemis: an address of the other routing type, or a durable subscription that is active with other terms.
        kind = ErrorKind.DESTINATION if "not configured for" in words else ErrorKind.MISMATCH
    elif cause.name in ("amqp:internal-error", "failed"):
        if "temporary" in words.lower() or words.startswith(("temp-queue://", "temp-topic://")):
            # Classic: a temporary destination of another connection, or one that is gone (its name is all it says).
            kind = ErrorKind.DESTINATION
        elif any(word in words for word in _IN_USE):
            kind = ErrorKind.IN_USE
    return ProviderError(kind or ErrorKind.PROTOCOL, text, fatal=fatal)


def _elsewhere(text: str, info: object) -> Redirected | None:
    entries = cast("dict[object, object]", info) if isinstance(info, dict) else {}
    place = {str(name): value for name, value in entries.items()}
    host, port, hostname = place.get("network-host"), place.get("port"), place.get("hostname")
    if not isinstance(host, str) or not host:
        return None
    number = int(port) if isinstance(port, int) and 0 < port < 1 << 16 else None
    return Redirected(text, str(host), number, str(hostname) if isinstance(hostname, str) and hostname else None)


def from_os_error(error: OSError, asked: str) -> ProviderError:
    """Return the error for a failure of a socket or of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"{asked}: the broker's certificate is not trusted ({error.verify_message}); give its authority by tls_ca"
        return ProviderError(ErrorKind.SECURITY, text, fatal=True)
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        kind = ErrorKind.SECURITY if "ALERT" in reason or "CERT" in reason else ErrorKind.CONNECTION
        return ProviderError(kind, f"{asked}: TLS failed ({reason})", fatal=True)
    if isinstance(error, socket.gaierror):
        return ProviderError(ErrorKind.CONNECTION, f"{asked}: the host name is not known ({error.strerror})", fatal=True)
    if isinstance(error, TimeoutError):
        return ProviderError(ErrorKind.TIMEOUT, f"{asked}: no answer in time", fatal=True)
    return ProviderError(ErrorKind.CONNECTION, f"{asked}: {error.strerror or error}", fatal=True)


def from_end(cause: Cause | None, where: str, *, was_open: bool) -> ProviderError:
    """Return the error for the end of a connection that we did not ask for.

    Args:
        cause: What the engine says of it; None when the peer just closed.
        where: Host and port.
        was_open: Whether the connection had been opened.
    """
    if cause is None:
        return ProviderError(ErrorKind.CONNECTION, f"the broker at {where} closed the connection", fatal=True)
    if "unauthorized" in cause.name:
        text = f"log in to {where}: the broker refused the credentials ({cause.description})"
        return ProviderError(ErrorKind.SECURITY, text, fatal=True)
    # proton's word for a peer that fell silent past the idle time-out is the resource limit.
    broken = was_open and cause.name != "amqp:resource-limit-exceeded"
    kind = ErrorKind.PROTOCOL if broken else ErrorKind.CONNECTION
    return ProviderError(kind, f"the link to {where} failed: {cause}", fatal=True)
