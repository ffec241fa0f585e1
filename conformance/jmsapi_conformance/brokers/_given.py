"""Brokers that somebody else runs, named by URL in the environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from ._broker import Broker, version_of
from ._handshake import check_amqp, stomp_server
from ._kinds import INFO, BrokerKind, LauncherError, Wire

_WIRES: dict[str, Wire] = {"stomp": "stomp", "stomp+ssl": "stomp", "amqp": "amqp", "amqps": "amqp", "tcp": "openwire"}
_PORTS = {"stomp": 61613, "stomp+ssl": 61614, "amqp": 5672, "amqps": 5671, "tcp": 61616}
_LISTENS_S = 5.0


def given(kind: BrokerKind, environ: Mapping[str, str] = os.environ) -> Broker | None:
    """Find a broker's URLs in the environment and see that it answers.

    Args:
        kind: Its URLs are in ``JMSAPI_ARTEMIS_URLS`` and so on: separated by commas, one a wire, credentials in them;
            ``tcp`` is the wire of Java's own clients.
    Returns:
        The broker, or None when the variable is not set or empty.
    Raises:
        LauncherError: A URL is not of a wire we know, two disagree about the credentials, or the broker does not answer.
    """
    name = INFO[kind].urls_env
    addresses: dict[Wire, str] = {}
    logins: set[tuple[str | None, str | None]] = set()
    version: str | None = None
    for text in filter(None, (part.strip() for part in environ.get(name, "").split(","))):
        parts = urlsplit(text)
        wire = _WIRES.get(parts.scheme)
        if wire is None or parts.hostname is None:
            raise LauncherError(f"{name}: a URL must be one of {', '.join(_WIRES)}://host:port, not {parts.scheme}://...")
        port = parts.port or _PORTS[parts.scheme]
        user, password = (None if word is None else unquote(word) for word in (parts.username, parts.password))
        place = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        addresses[wire] = f"{parts.scheme}://{place}:{port}"
        logins.add((user, password))
        try:
            # The TLS forms are left to the provider under test, which knows the certificates.
            if parts.scheme == "stomp":
                version = version_of(stomp_server(parts.hostname, port, user, password))
            elif parts.scheme == "amqp":
                check_amqp(parts.hostname, port)
            elif wire == "openwire":
                # Not spoken here: it must only listen.
                socket.create_connection((parts.hostname, port), timeout=_LISTENS_S).close()
        except OSError as error:
            raise LauncherError(f"{name}: {addresses[wire]} does not answer: {error}") from error
    if not addresses:
        return None
    if len(logins) > 1:
        raise LauncherError(f"{name}: the URLs of one broker must carry the same user and password")
    ((user, password),) = logins
    return Broker(kind, addresses, user=user, password=password, version=version)
