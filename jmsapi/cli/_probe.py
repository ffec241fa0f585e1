"""Which wire a port speaks, found out without logging in."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import jmsapi
from jmsapi.cli._target import settings_of
from jmsapi.config import parse_url

if TYPE_CHECKING:
    from jmsapi.spi.options import TlsOptions

__all__ = ["AMQP_0_9_1", "DEFAULT_PORTS", "BrokerAddress", "addresses_of", "wire_of", "wrong_wire"]

_TIMEOUT_S: Final = 2.0
_GREETING_S: Final = 0.3
DEFAULT_PORTS: Final = {"stomp": 61613, "stomp+ssl": 61614, "amqp": 5672, "amqps": 5671}
"""By URL scheme."""
_WIRES: Final = {"stomp": "STOMP", "stomp+ssl": "STOMP", "amqp": "AMQP", "amqps": "AMQP"}
_LINK_CODES: Final = frozenset({"connection", "timeout", "protocol", "closed", "provider-fault"})
"""Error codes behind which a wrong wire may stand."""
AMQP_0_9_1: Final = "AMQP 0-9-1"
"""The older protocol of that name, which has nothing but the first four bytes in common with AMQP 1.0."""
_URL_OPTIONS: Final = ("--url", "-u", "--to-url")


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a URL leads.

    Attributes:
        scheme: Of the URL, in small letters.
        host: Name or address.
        port: Its port, or the wire's own.
        options: All options of the connection, those of `jmsapi.toml` as well.
    """

    scheme: str
    host: str
    port: int
    options: TlsOptions

    @property
    def wire(self) -> str:
        """The wire that the URL says."""
        return _WIRES[self.scheme]

    @property
    def tls(self) -> bool:
        """Whether the URL says TLS."""
        return self.scheme in {"stomp+ssl", "amqps"}


def addresses_of(url: str) -> list[BrokerAddress]:
    """Return where a URL, or a factory of that name in ``jmsapi.toml``, leads: each server of a failover list, none for inproc.

    Raises:
        JMSException: The URL, an option or the file cannot be used.
    """
    from jmsapi.spi.options import TlsOptions  # loads pydantic

    known = [one for one in jmsapi.known_providers().values() if not isinstance(one, jmsapi.JMSException)]
    place, own = settings_of(url)
    options = parse_url(place, own, entries={scheme: one for one in known for scheme in one.schemes})
    servers = (options,) if options.failover is None else options.failover.servers
    return [
        BrokerAddress(one.scheme, one.host, one.port or DEFAULT_PORTS[one.scheme], one)
        for one in servers
        if isinstance(one, TlsOptions) and one.scheme in DEFAULT_PORTS
    ]


def wire_of(place: BrokerAddress) -> str | None:
    """Return the wire that a port speaks without TLS: AMQP, AMQP 0-9-1, STOMP, OpenWire, HTTP or TLS; None if none of them.

    A port that speaks several, as Artemis has, gives the one of the URL.
    """
    asks: dict[str, Callable[[], str | None]] = {
        "STOMP": lambda: _answer(place, b"STOMP\naccept-version:1.2\nhost:/\n\n\0"),
        "AMQP": lambda: _answer(place, b"AMQP\x00\x01\x00\x00"),
    }
    first = place.wire
    seen = [asks[first]()]
    if seen[0] != first:
        seen += [ask() for wire, ask in asks.items() if wire != first]
    for wire in (first, "AMQP", "STOMP"):
        if wire in seen:
            return wire
    return next((wire for wire in seen if wire is not None), None)


def _answer(place: BrokerAddress, opening: bytes) -> str | None:
    """Say something, and recognize the answer."""
    try:
        with socket.create_connection((place.host, place.port), _TIMEOUT_S) as link:
            link.settimeout(_GREETING_S)
            said = _read(link)
            if not said:
                link.sendall(opening)
                link.settimeout(_TIMEOUT_S)
                said = _read(link)
    except OSError:
        return None
    if said.startswith(b"AMQP"):
        return AMQP_0_9_1 if said[4:8] == b"\x00\x00\x09\x01" else "AMQP"
    if said.lstrip(b"\r\n").startswith((b"CONNECTED", b"ERROR")):
        return "STOMP"
    if b"ActiveMQ" in said:
        return "OpenWire"
    if said.startswith(b"HTTP/"):
        return "HTTP"
    return "TLS" if said.startswith((b"\x15\x03", b"\x16\x03")) else None


def _read(link: socket.socket) -> bytes:
    try:
        return link.recv(256)
    except OSError:
        return b""


def wrong_wire(error: jmsapi.JMSError, arguments: Sequence[str]) -> str:
    """Return words to put behind an error if a port of the command's URLs speaks another wire than the URL says; else nothing."""
    if error.error_code not in _LINK_CODES:
        return ""
    for url in _urls(arguments):
        try:
            addresses = addresses_of(url)
        except jmsapi.JMSError:
            continue
        for place in addresses:
            found = wire_of(place)
            if place.tls and found not in {None, "TLS"}:
                return f"; this port speaks {found} without TLS; your URL says {place.scheme}"
            if not place.tls and found == AMQP_0_9_1 and place.wire == "AMQP":
                return f"; this port speaks {found}; your URL says AMQP, which is AMQP 1.0"
            if not place.tls and found not in {None, place.wire}:
                return f"; this port speaks {found}; your URL says {place.wire}"
    return ""


def _urls(arguments: Sequence[str]) -> list[str]:
    """Return the URLs of a command line, or that of the environment."""
    apart = [value for name, value in pairwise(arguments) if name in _URL_OPTIONS]
    joined = [one.partition("=")[2] for one in arguments if one.startswith(("--url=", "--to-url="))]
    short = [one[2:] for one in arguments if one.startswith("-u") and len(one) > 2]
    found = apart + joined + short
    own = any(one.startswith(("--url", "-u")) for one in arguments)
    return found if own else [*filter(None, [os.environ.get("JMSAPI_URL")]), *found]
