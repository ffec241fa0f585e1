"""Lines of each client to each broker, and the matrix at the end of the run.

The Java clients (Apache Qpid JMS over AMQP, ActiveMQ's own over OpenWire) are built with Maven and a JDK, once, in the cache
folder of the brokers. Without these tools their tests are left out, or fail where brokers are required.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest

from jmsapi_conformance.brokers import INFO, Broker, Wire


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"interop_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"interop_{name}"] = module
    spec.loader.exec_module(module)
    return module


clients = _load("clients")
_FREED_S = 20.0
Client = Literal["amqp", "stomp", "qpid-jms", "openwire"]


@pytest.fixture(scope="session")
def java_peer(leave_out: Callable[[str], NoReturn]) -> Iterator[Any]:
    """Give the process of the Java clients."""
    if absent := [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]:
        leave_out(f"the Java clients cannot be built without {', '.join(absent)}")
    peer = clients.JavaPeer(clients.build())
    yield peer
    peer.close()


# ---------------------------------------------------------------- either


OpenLine = Callable[..., Any]


@pytest.fixture(scope="session")
def open_line(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> OpenLine:
    """Give a function that opens a line of a client to a broker; the caller closes it."""

    def opened(broker: Broker, client: Client, client_id: str | None = None) -> Any:
        deadline = time.monotonic() + _FREED_S
        while True:
            try:
                return open_now(broker, client, client_id)
            except Exception as error:
                # A broker with much to do frees the id of a connection a moment after it has said that it is closed.
                held = client_id is not None and "InvalidClientID" in f"{type(error).__name__}: {error}"
                if not held or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def open_now(broker: Broker, client: Client, client_id: str | None) -> Any:
        wire: Wire = "amqp" if client == "qpid-jms" else client
        if wire not in broker.wires:
            leave_out(f"{INFO[broker.kind].title} was given without {wire}")
        if client in ("qpid-jms", "openwire"):
            return clients.JavaLine(request.getfixturevalue("java_peer"), broker, wire, client_id)
        # Both our clients are told that our launcher's Classic has its scheduler on.
        scheduler = "&classic.scheduler=true" if broker.kind == "classic" else ""
        return clients.OurLine(f"{broker.url(wire)}?checked=true{scheduler}", client_id)

    return opened
