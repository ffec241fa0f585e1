"""The three Java clients: how each is made from a URL, what its options are called, and what it does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import pytest

from java_clients import jvm
from java_clients.jvm import java_class
from java_clients.objects import wrap
from java_clients.throwing import guarded
from jmsapi import ConnectionFactory
from jmsapi.spi import Capabilities, Support
from jmsapi.spi.capabilities import none
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.brokers import BrokerKind, Wire

__all__ = ["CLIENTS", "Client", "JavaBackend"]

_OF_BROKERS: Final[dict[BrokerKind, dict[str, Support]]] = {
    "classic": {"priority_order": none("needs prioritizedMessages in the broker's destination policy")},
}
"""What holds for every client of a broker."""


@dataclass(frozen=True, slots=True)
class Client:
    """One Java client."""

    name: str
    version: str
    broker: BrokerKind
    """What it is run against."""
    wire: Wire
    """The launcher's word for it."""
    make: Callable[[str, str, str, str], Any]
    """Makes a factory of host:port, user and password, and options of the URL as a query."""
    prefetch: str
    """The option of the URL for it."""
    timeout: str
    lacks: dict[str, Support] = field(default_factory=dict[str, Support])


def _qpid(at: str, user: str, password: str, query: str) -> Any:
    return java_class("org.apache.qpid.jms.JmsConnectionFactory")(user, password, f"amqp://{at}{query}")


def _core(at: str, user: str, password: str, query: str) -> Any:
    made = java_class("org.apache.activemq.artemis.jms.client.ActiveMQJMSConnectionFactory")(f"tcp://{at}{query}")
    made.setUser(user)
    made.setPassword(password)
    return made


def _openwire(at: str, user: str, password: str, query: str) -> Any:
    return java_class("org.apache.activemq.ActiveMQConnectionFactory")(user, password, f"tcp://{at}{query}")


_NO_SHARING: Final = none("ActiveMQ's client has no shared subscriptions: UnsupportedOperationException")
CLIENTS: Final[dict[str, Client]] = {
    "java+qpid": Client("qpid-jms", "2.8.0", "artemis", "amqp", _qpid, "jms.prefetchPolicy.all", "amqp.idleTimeout"),
    "java+core": Client("artemis-jakarta-client", "2.56.0", "artemis", "openwire", _core, "consumerWindowSize", "callTimeout"),
    "java+openwire": Client(
        "activemq-client",
        "6.3.1",
        "classic",
        "openwire",
        _openwire,
        "jms.prefetchPolicy.all",
        "connectResponseTimeout",
        {
            "shared_subscription": _NO_SHARING,
            "shared_durable_subscription": _NO_SHARING,
            "shared_unsubscribe": _NO_SHARING,
            "delivery_delay": none("ActiveMQ's client has no delivery delay: UnsupportedOperationException"),
        },
    ),
}


class JavaBackend(Backend):
    """A Java client on a broker.

    Args:
        url: Such as ``java+core://user:password@host:port``.
        version: The broker's version.
    """

    def __init__(self, url: str, version: str = "") -> None:
        super().__init__(url)
        self._parts: SplitResult = urlsplit(url)
        self.client = CLIENTS[self._parts.scheme]
        # Programs of a second process, and foreign clients on the wire, are made for providers of ours.
        self.environment = frozenset[str]()
        self._version = version
        jvm.start()

    @cached_property
    def capabilities(self) -> Capabilities:
        """Everything, but for what the client is known not to have."""
        bare = Capabilities(f"{self.client.name} {self.client.version}", self.client.broker, self._version)
        return bare.with_(**_OF_BROKERS.get(self.client.broker, {}), **self.client.lacks)

    def factory(self, **options: object) -> ConnectionFactory:
        """Return a new factory; of the options those that every client has."""
        given: dict[str, object] = {"host": self._parts.hostname, "port": self._parts.port}
        user, password = options.pop("user", self._parts.username), options.pop("password", self._parts.password)
        given |= {key: options.pop(key) for key in ("host", "port") if key in options}
        options.pop("checked", None)
        query: list[str] = []
        if (prefetch := options.pop("prefetch", None)) is not None:
            query.append(f"{self.client.prefetch}={0 if self.client.prefetch == 'consumerWindowSize' else prefetch}")
        if (timeout := options.pop("connect_timeout_ms", None)) is not None:
            query.append(f"{self.client.timeout}={timeout}")
        client_id = options.pop("client_id", None)
        if options:
            pytest.skip(f"an option of our providers: {', '.join(options)}")
        made = guarded(
            self.client.make,
            f"{given['host']}:{given['port']}",
            unquote(str(user or "")),
            unquote(str(password or "")),
            "?" + "&".join(query) if query else "",
        )
        if client_id is not None:
            made.setClientID(client_id)
        factory: ConnectionFactory = wrap(made, "ConnectionFactory")
        return factory
