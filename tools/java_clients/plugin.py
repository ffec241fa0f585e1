"""The pytest plug-in that puts a Java client in the place of a provider; it comes behind the suite's own."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from java_clients.clients import JavaBackend
from java_clients.reasons import left_out
from java_clients.throwing import NotInJava

__all__ = ["backend", "interceptor", "put"]

_backends: dict[str, JavaBackend] = {}
_NO_SPI = "looks at the SPI between library and provider, and a Java client has none"


def put(backend: JavaBackend) -> None:
    """Have the tests of a URL use a backend."""
    _backends[backend.url] = backend


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> JavaBackend:
    """Give the Java client that this test is about."""
    return _backends[str(request.config.getoption("--jms-url"))]


@pytest.fixture
def interceptor() -> Any:
    """Skip: there is none."""
    pytest.skip(_NO_SPI)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave a test that can say nothing about this client."""
    scheme = str(item.config.getoption("--jms-url")).partition("://")[0]
    if (why := left_out(scheme, item.nodeid)) is not None:
        pytest.skip(why)


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Leave a test that makes a call which Java's compiler refuses."""
    try:
        return (yield)
    except NotInJava as refused:
        pytest.skip(str(refused))
