"""Both wires as the fault tests use them, and TLS before a broker."""

from __future__ import annotations

import contextlib
import shutil
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

from ..peers.tls_front import Certificates, TlsFront, server_context

WIRES: dict[str, BrokerKind] = {"amqp": "artemis", "stomp": "classic"}
SECURE = {"amqp": "amqps", "stomp": "stomp+ssl"}


@dataclass(frozen=True)
class Place:
    """One wire of one broker."""

    wire: Wire
    broker: Broker

    @property
    def url(self) -> str:
        return self.broker.url(self.wire)

    def at(self, port: int, *, tls: bool, host: str = "localhost") -> str:
        """Form the URL of the same wire at another port."""
        scheme = SECURE[self.wire] if tls else self.wire
        credentials = urlsplit(self.url).netloc.rpartition("@")[0]
        return f"{scheme}://{credentials}@{host}:{port}"


@pytest.fixture(params=[pytest.param(wire, marks=pytest.mark.broker) for wire in WIRES])
def place(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Place:
    """Give each wire in turn, on a shared broker."""
    kind = WIRES[request.param]
    broker: Broker = request.getfixturevalue(kind)
    if request.param not in broker.wires:
        leave_out(f"{kind} was given without {request.param}")
    return Place(request.param, broker)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory, leave_out: Callable[[str], NoReturn]) -> Certificates:
    """Give an authority."""
    if shutil.which("openssl") is None:
        leave_out("certificates are made by the openssl command, which is not here")
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def front(place: Place) -> Iterator[Callable[..., TlsFront]]:
    """Give a function that puts TLS before the broker."""
    with contextlib.ExitStack() as stack:

        def start(certificate: Path, client_ca: Path | None = None) -> TlsFront:
            url = urlsplit(place.url)
            context: ssl.SSLContext = server_context(certificate, client_ca)
            return stack.enter_context(TlsFront(url.hostname or "127.0.0.1", url.port or 0, context))

        yield start
