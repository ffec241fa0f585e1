"""Backends for the field reports: in process, and each wire of each broker, with the options that the reports need there."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import pytest

import jmsapi
from jmsapi_conformance.brokers import INFO, KINDS, Broker, BrokerKind, Wire

AMQP: tuple[str, ...] = tuple(f"amqp-{kind}" for kind in KINDS)
STOMP: tuple[str, ...] = tuple(f"stomp-{kind}" for kind in KINDS)
# What these refuse by name; a report that needs it ends there.
REFUSES: dict[str, set[str]] = {
    "amqp-rabbitmq": {"transactions", "browser"},
    "stomp-artemis": {"browser"},
    "stomp-rabbitmq": {"browser"},
}
# What a backend has only when asked for, or when told that the broker is set up for it.
OPTIONS: dict[str, dict[str, Any]] = {
    "amqp-classic": {"classic_scheduler": True},
    "stomp-artemis": {"emulate": "tx"},
    "stomp-classic": {"classic_scheduler": True},
    "stomp-rabbitmq": {"emulate": "tx"},
}


class Backend:
    """One backend, and the connections a test opened to it."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.refuses = REFUSES.get(name, set())
        self.label = f"field.{uuid.uuid4().hex}"
        self.topic = self.label
        self.connections: list[jmsapi.Connection] = []

    def factory(self, **options: Any) -> jmsapi.ConnectionFactory:
        """Give a factory with the backend's options and those of the test."""
        return jmsapi.connection_factory(self.url, **{"checked": True, **OPTIONS.get(self.name, {}), **options})

    def connect(self, client_id: str | None = None, **options: Any) -> jmsapi.Connection:
        """Open a connection and start it; it is closed after the test."""
        connection = self.factory(**options).create_connection()
        self.connections.append(connection)
        if client_id is not None:
            connection.client_id = client_id
        connection.start()
        return connection


def _params(*backends: str) -> list[Any]:
    return ["inproc", *(pytest.param(backend, marks=pytest.mark.broker) for backend in backends)]


@pytest.fixture(params=_params(*AMQP, *STOMP))
def backend(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Iterator[Backend]:
    """Give each backend in turn."""
    yield from _backend(request, leave_out)


@pytest.fixture(params=_params(*AMQP))
def amqp_backend(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Iterator[Backend]:
    """Give each backend but those over STOMP, where the report is tested with the provider."""
    yield from _backend(request, leave_out)


@pytest.fixture(params=_params(*STOMP))
def stomp_backend(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Iterator[Backend]:
    """Give each backend but those over AMQP, where the report is tested with the provider."""
    yield from _backend(request, leave_out)


def _backend(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Iterator[Backend]:
    if request.param == "inproc":
        found = Backend("inproc", f"inproc://field-{uuid.uuid4()}")
        request.node.user_properties.append(("backend", "inproc on jmsapi in-process"))
    else:
        wire, kind = cast("tuple[Wire, BrokerKind]", request.param.split("-"))
        broker: Broker = request.getfixturevalue(kind)
        if wire not in broker.wires:
            leave_out(f"{INFO[kind].title} was given without {wire}")
        request.node.user_properties.append(("backend", f"{wire.upper()} on {INFO[kind].title} {broker.version or ''}".strip()))
        found = Backend(request.param, broker.url(wire))
    yield found
    for connection in found.connections:
        connection.close()
