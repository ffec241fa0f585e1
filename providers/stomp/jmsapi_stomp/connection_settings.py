"""How to make a connection to the broker, from the options."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.wire import tls_context
from jmsapi_brokers.names import check_text
from jmsapi_stomp.options import StompOptions

__all__ = ["ConnectionSettings", "connection_settings"]

_LOG: Final = logging.getLogger("jmsapi.stomp")
_PORTS: Final = {"stomp": 61613, "stomp+ssl": 61614}
_UNESCAPING: Final = frozenset({"classic", "rabbitmq"})
"""Brokers that undo escapes in CONNECT, although STOMP 1.2 has none there."""

_LONGEST: Final = 8192
"""Bytes; Classic takes a line of 10,240."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to make a connection. Times without a unit in their name are seconds."""

    address: tuple[str, int]
    tls: Callable[[], ssl.SSLContext] | None
    login: str | None
    passcode: str | None = field(repr=False)
    vhost: str
    client_id: str | None
    heartbeat_ms: int
    max_received: int
    connect_timeout: float
    request_timeout: float


def connection_settings(options: StompOptions) -> ConnectionSettings:
    """Return how to connect.

    Raises:
        ProviderError: SECURITY, CLIENT_ID or OPTION; CONNECT cannot carry one of these.
    """
    passcode = None if options.password is None else options.password.get_secret_value()
    for what, text, kind in (
        ("user", options.user, ErrorKind.SECURITY),
        ("password", passcode, ErrorKind.SECURITY),
        ("client_id", options.client_id, ErrorKind.CLIENT_ID),
        ("vhost", options.vhost, ErrorKind.OPTION),
    ):
        if text is None:
            continue
        check_text(text, f"the {what}", kind, fatal=True)
        if "\n" in text or "\r" in text:
            raise ProviderError(kind, f"the {what} has a line end, which STOMP's CONNECT cannot carry", fatal=True)
        if len(text.encode()) > _LONGEST:
            raise ProviderError(kind, f"the {what} takes more than {_LONGEST} bytes, which no line of CONNECT holds", fatal=True)
        if "\\" in text and options.broker is None:
            _LOG.warning("the %s has a backslash: set the option broker, for brokers read it differently", what)
    return ConnectionSettings(
        address=(options.host or "localhost", options.port if options.port is not None else _PORTS[options.scheme]),
        tls=(lambda: tls_context(options, _LOG)) if options.scheme == "stomp+ssl" else None,
        login=_connect_text(options, options.user),
        passcode=_connect_text(options, passcode),
        vhost=options.vhost or "/",
        client_id=_connect_text(options, options.client_id),
        heartbeat_ms=options.heartbeat_ms,
        max_received=max(options.max_received, options.max_frame or 0),
        connect_timeout=options.connect_timeout_ms / 1000,
        request_timeout=options.request_timeout_ms / 1000,
    )


def _connect_text(options: StompOptions, text: str | None) -> str | None:
    """Return text for CONNECT, escaped for a broker that undoes escapes there."""
    return text.replace("\\", "\\\\") if text is not None and options.broker in _UNESCAPING else text
