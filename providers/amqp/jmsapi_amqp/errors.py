"""AMQP error conditions and library errors as the SPI's one exception.

Each row was seen on a broker. Where a condition says nothing, the words of its description decide, by the tables of the brokers.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers import artemis, classic
from jmsapi_brokers.error_words import ANY_BROKER, kind_of

__all__ = ["Cause", "Redirected", "from_end", "to_error"]


class Cause(NamedTuple):
    """A peer's reason for refusing or ending something."""

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
        port: Its port; None when the broker did not give it.
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
_BY_WORDS: Final = frozenset({"amqp:internal-error", "failed", "amqp:illegal-state"})
"""Conditions that say nothing: what has happened is in the broker's words."""
_WORDS: Final = (artemis.ERRORS, classic.ERRORS, ANY_BROKER)


def to_error(cause: Cause, asked: str, *, selector: bool = False, fatal: bool = False) -> ProviderError:
    """Return the error for a peer's refusal.

    Args:
        cause: The peer's reason.
        asked: What was asked for, as the beginning of a sentence.
        selector: Whether the refused link carried a selector.
        fatal: Whether the whole connection is of no more use.
    """
    text = f"{asked}: the broker answered {cause}"
    elsewhere = _elsewhere(text, cause.info) if cause.name == _REDIRECT else None
    if elsewhere is not None:
        return elsewhere
    kind = _KINDS.get(cause.name, ErrorKind.PROTOCOL)
    words = cause.description
    if cause.name == "amqp:invalid-field":
        if "container-id" in f"{cause.info} {words}" or kind_of(words, _WORDS, kind) is ErrorKind.CLIENT_ID:
            kind = ErrorKind.CLIENT_ID
        else:
            kind = ErrorKind.SELECTOR if selector else ErrorKind.DESTINATION
    elif cause.name in _BY_WORDS or cause.name not in _KINDS:
        # An illegal state that is nothing else is a durable subscription that is active with other terms (Artemis).
        kind = kind_of(words, _WORDS, ErrorKind.MISMATCH if cause.name == "amqp:illegal-state" else kind)
    return ProviderError(kind, text, fatal=fatal)


def _elsewhere(text: str, info: object) -> Redirected | None:
    entries = cast("dict[object, object]", info) if isinstance(info, dict) else {}
    place = {str(name): value for name, value in entries.items()}
    host, port, hostname = place.get("network-host"), place.get("port"), place.get("hostname")
    if not isinstance(host, str) or not host:
        return None
    number = int(port) if isinstance(port, int) and 0 < port < 1 << 16 else None
    return Redirected(text, str(host), number, str(hostname) if isinstance(hostname, str) and hostname else None)


def from_end(
    cause: Cause | None, where: str, *, was_open: bool, vhost: str | None = None, login_may_work_later: bool = False
) -> ProviderError:
    """Return the error for the end of a connection that we did not ask for.

    Args:
        cause: The engine's condition; None when the peer just closed.
        where: Host and port.
        was_open: Whether the connection had been opened.
        vhost: The virtual host that was asked for. RabbitMQ closes without a word when there is none of that name (4.0.5).
        login_may_work_later: SASL's outcome was a fault of the broker's, not a refusal.
    """
    if cause is None:
        hint = "" if was_open or vhost is None else f"; is there a virtual host {vhost!r} (option vhost) that the user may use?"
        return ProviderError(ErrorKind.CONNECTION, f"the broker at {where} closed the connection{hint}", fatal=True)
    if cause.name == "amqp:unauthorized-access":
        if login_may_work_later:
            text = f"log in to {where}: the broker cannot check the credentials at the moment ({cause.description})"
            return ProviderError(ErrorKind.CONNECTION, text, fatal=True)
        text = f"log in to {where}: the broker refused the credentials ({cause.description})"
        return ProviderError(ErrorKind.SECURITY, text, fatal=True)
    # proton's word for a peer that fell silent past the idle time-out is the resource limit.
    broken = was_open and cause.name != "amqp:resource-limit-exceeded"
    kind = ErrorKind.PROTOCOL if broken else ErrorKind.CONNECTION
    return ProviderError(kind, f"the link to {where} failed: {cause}", fatal=True)
