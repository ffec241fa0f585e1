"""``jmsapi doctor``: what stands between a URL and a working connection, step by step, each fault with a code of its own."""

from __future__ import annotations

import logging
import platform
import re
import secrets
import socket
import ssl
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

import typer

import jmsapi
from jmsapi import JMSContext, JMSSecurityException, JMSSecurityRuntimeException
from jmsapi._showing import one_line
from jmsapi.cli._directory import JsonOption
from jmsapi.cli._probe import AMQP_0_9_1, DEFAULT_PORTS, BrokerAddress, addresses_of, wire_of
from jmsapi.cli._providers import version_of
from jmsapi.cli._target import UrlOption, factory_for
from jmsapi.cli._terminal import Styled, say_json, show_table
from jmsapi.spi import Level, ProviderError
from jmsapi.wire.tls import tls_context

__all__ = ["CODES", "doctor"]

CODES: Final[dict[str, int]] = {
    "ok": 0,
    "url": 9,
    "host-unknown": 10,
    "broker-down": 11,
    "wrong-port": 12,
    "wrong-wire": 13,
    "certificate-expired": 14,
    "certificate-host": 15,
    "tls": 16,
    "login": 17,
    "rights": 18,
    "broker-too-old": 19,
    "broker": 20,
}
"""Exit code of the command by the fault that it found."""
_TIMEOUT_S: Final = 5.0
_SOON_DAYS: Final = 30
_SKEW_MS: Final = 2_000
_EXPIRED: Final = 10
_WRONG_HOST: Final = frozenset({62, 64})
"""OpenSSL's numbers for a certificate that is out of date, and one for another name or address."""
_REFUSED: Final = re.compile("not authori[sz]ed|unauthori[sz]ed|access.refused|refused for user|permission", re.IGNORECASE)
"""How brokers word a missing right in an error that ends a link or a connection."""
_TO_CREATE: Final = re.compile("CREATE_|configure access|authorized to create")
"""The same of the right to create, which a consumer needs where it makes its queue."""
_LIBRARIES: Final = ("jmsapi", "stomp.py", "python-qpid-proton", "pydantic")


class _Fault(Exception):
    """The first thing that is wrong.

    Args:
        code: A word of CODES.
        step: What was being looked at.
        text: What is wrong, and what to do.
    """

    def __init__(self, code: str, step: str, text: str) -> None:
        super().__init__(text)
        self.code: Final = code
        self.step: Final = step


@dataclass(slots=True)
class _Findings:
    """The findings, in the order of the checks."""

    lines: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def good(self, step: str, text: str) -> None:
        self.lines.append(("ok", step, text))

    def note(self, step: str, text: str) -> None:
        self.lines.append(("note", step, text))


def doctor(url: UrlOption, as_json: JsonOption = False) -> None:
    """Look at everything between a URL and a working connection, and name the first fault.

    Exit codes: 0 all is well; 9 the URL, an option or jmsapi.toml is wrong; 10 host unknown; 11 broker down; 12 wrong port; 13
    the port speaks another wire; 14 certificate expired; 15 certificate of another host; 16 other faults of TLS; 17 login
    refused; 18 a right is missing; 19 broker too old; 20 another fault of the broker.
    """
    found = _Findings()
    code = "ok"
    try:
        _find_server(_read(url), found)
        _use(url, found)
    except _Fault as fault:
        code = fault.code
        found.lines.append(("FAULT", fault.step, str(fault)))
    for name, version in _versions():
        found.note("version", f"{name} {version}")
    if as_json:
        for state, step, text in found.lines:
            say_json({"state": state, "step": step, "text": text} | ({"code": code} if state == "FAULT" else {}))
    else:
        styles = {"ok": "green", "note": "dim", "FAULT": "bold red"}
        show_table(["", "", ""], [[Styled(state, styles[state]), step, text] for state, step, text in found.lines], wide=True)
    if code != "ok":
        raise typer.Exit(CODES[code])


def _read(url: str) -> list[BrokerAddress]:
    try:
        factory_for(url)
        return addresses_of(url)
    except jmsapi.JMSError as error:
        raise _Fault("url", "URL", one_line(error)) from None


def _find_server(addresses: list[BrokerAddress], found: _Findings) -> None:
    """Look at each server of a list; the first fault counts if none of them can be used, as one is enough to connect."""
    faults: list[_Fault] = []
    for place in addresses:
        try:
            _reach(place, found)
            (_handshake if place.tls else _wire)(place, found)
        except _Fault as fault:
            faults.append(fault)
            if len(addresses) > 1:
                found.note(fault.step, f"{place.host}:{place.port} cannot be used: {fault}")
    if faults and len(faults) == len(addresses):
        raise faults[0]


def _reach(place: BrokerAddress, found: _Findings) -> None:
    try:
        addresses = {str(one[4][0]) for one in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no name of a host"
        text = f"{place.host!r} is no known host: {why}; check the name in the URL"
        raise _Fault("host-unknown", "host", text) from None
    found.good("host", f"{place.host} is {', '.join(sorted(addresses))}")
    try:
        socket.create_connection((place.host, place.port), _TIMEOUT_S).close()
    except OSError as error:
        others = [
            f"{port} ({scheme})" for scheme, port in DEFAULT_PORTS.items() if port != place.port and _listens(place.host, port)
        ]
        why = error.strerror or "no answer"
        if others:
            text = f"nothing listens on port {place.port} ({why}), but something does on {', '.join(others)}"
            raise _Fault("wrong-port", "port", text) from None
        text = f"nothing listens on {place.host}:{place.port} ({why}): the broker is down, or the port is another"
        raise _Fault("broker-down", "port", text) from None
    found.good("port", f"{place.host}:{place.port} takes connections")


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1.0).close()
    except OSError:
        return False
    return True


def _wire(place: BrokerAddress, found: _Findings) -> None:
    speaks = wire_of(place)
    if speaks == "TLS":
        secure = {"STOMP": "stomp+ssl", "AMQP": "amqps"}[place.wire]
        raise _Fault("wrong-wire", "wire", f"this port speaks TLS; your URL says {place.scheme} without it: use {secure}://")
    if speaks == AMQP_0_9_1 and place.wire == "AMQP":
        text = f"this port speaks {speaks}, not AMQP 1.0, which RabbitMQ has from version 4 on; its STOMP is another way"
        raise _Fault("broker-too-old", "wire", text)
    if speaks not in {None, place.wire}:
        raise _Fault("wrong-wire", "wire", f"this port speaks {speaks}; your URL says {place.wire}")
    if speaks is None:
        raise _Fault("wrong-wire", "wire", f"this port does not answer as {place.wire}, nor as any wire that is known here")
    found.good("wire", speaks)


def _handshake(place: BrokerAddress, found: _Findings) -> None:
    try:
        context = tls_context(place.options, logging.getLogger(f"jmsapi.{place.wire.lower()}"))
    except ProviderError as error:
        raise _Fault("tls", "TLS", error.message) from None
    try:
        with (
            socket.create_connection((place.host, place.port), _TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=place.host) as secure,
        ):
            seen = secure.getpeercert() or {}
            version = secure.version()
    except ssl.SSLCertVerificationError as error:
        raise _certificate_fault(place, error) from None
    except OSError as error:
        speaks = wire_of(place)
        if speaks in {"STOMP", "AMQP", AMQP_0_9_1, "OpenWire", "HTTP"}:
            text = f"this port speaks {speaks} without TLS; your URL says {place.scheme}"
            raise _Fault("wrong-wire", "TLS", text) from None
        raise _Fault("tls", "TLS", f"the handshake failed: {one_line(error)}") from None
    found.good("TLS", f"{version}, the certificate is trusted" if seen else f"{version}, the certificate was not checked")
    until = seen.get("notAfter")
    if isinstance(until, str):
        days = (ssl.cert_time_to_seconds(until) - time.time()) / 86_400
        (found.note if days < _SOON_DAYS else found.good)(
            "TLS", f"the certificate is good for {days:.0f} more days, until {until}"
        )


def _certificate_fault(place: BrokerAddress, error: ssl.SSLCertVerificationError) -> _Fault:
    if error.verify_code == _EXPIRED:
        return _Fault("certificate-expired", "TLS", "the broker's certificate, or one that signed it, has expired")
    if error.verify_code in _WRONG_HOST:
        text = f"the certificate is not for {place.host!r}: {error.verify_message}"
        return _Fault("certificate-host", "TLS", text)
    text = f"the certificate is not trusted: {error.verify_message}; ?tls_ca=FILE names the authority that signed it"
    return _Fault("tls", "TLS", text)


def _use(url: str, found: _Findings) -> None:
    """Log in, then send and receive on a queue of its own."""
    try:
        with factory_for(url).create_context() as context:
            has = jmsapi.capabilities(context)
            found.good("login", f"{has.provider} on {has.broker} {has.version}".rstrip())
            _rights(context, found)
            for name, text in _missing(context):
                found.note(name, text)
    except (JMSSecurityException, JMSSecurityRuntimeException) as error:
        raise _Fault("login", "login", f"user name or password is refused: {one_line(error)}") from None
    except jmsapi.JMSError as error:
        code = {"unsupported": "broker-too-old", "unsupported-feature": "broker-too-old", "bad-option": "url"}
        raise _Fault(code.get(error.error_code or "", "broker"), "connect", one_line(error)) from None


def _rights(context: JMSContext, found: _Findings) -> None:
    queue = context.create_queue(f"jmsapi.doctor.{secrets.token_hex(4)}")
    step = "send"
    try:
        if jmsapi.capabilities(context).temporary_queue:
            step = "create a temporary queue"
            queue = context.create_temporary_queue()
        step = "receive"
        with context.create_consumer(queue) as consumer:
            step = "send"
            context.create_producer().send(queue, "jmsapi doctor")
            step = "receive"
            begun = time.time() * 1000
            message = consumer.receive(10_000)
    except jmsapi.JMSError as error:
        if isinstance(error, JMSSecurityException | JMSSecurityRuntimeException) or _REFUSED.search(str(error)):
            asked = "create a temporary queue" if _TO_CREATE.search(str(error)) else step
            raise _Fault("rights", "rights", f"this user has no right to {asked}: {one_line(error)}") from None
        raise
    if message is None:
        raise _Fault("broker", "receive", "a message that was sent did not come back within 10 s")
    found.good("rights", "this user may create, send and receive")
    skew = message.jms_timestamp - begun
    if abs(skew) > _SKEW_MS:
        found.note(
            "clock", f"the broker's clock is {abs(skew) / 1000:.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
        )


def _missing(context: JMSContext) -> Generator[tuple[str, str]]:
    for name, support in jmsapi.capabilities(context).supports().items():
        if support.level is Level.NONE:
            way = f"; ?emulate={support.emulate} gives a weaker one" if support.emulate else ""
            yield "missing", f"{name.replace('_', ' ')}: {support.note or 'not offered'}{way}"


def _versions() -> Generator[tuple[str, str]]:
    yield "Python", platform.python_version()
    for name in _LIBRARIES:
        yield name, version_of(name) or "not installed"
