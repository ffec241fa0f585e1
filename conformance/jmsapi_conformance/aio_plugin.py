"""The pytest plug-in that runs the suite through ``jmsapi.aio``; it comes behind the suite's own."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import pytest

from jmsapi import IllegalArgumentException
from jmsapi_conformance.aio_face import AioBackend, AioInterceptor, NotInAio, calls_made, end_calls
from jmsapi_conformance.backend import Backend

__all__ = ["backend", "interceptor"]

_UNTOUCHED: Final = "makes no call of a context, session or connection, so it says the same of every face"
_CONTAINER: Final = "a listener container receives by connections of this library"
_backends: dict[str, AioBackend] = {}


@pytest.fixture(name="backend")
def backend(backend: Backend) -> AioBackend:
    """Give the backend with its asyncio face."""
    return _backends.setdefault(backend.url, AioBackend(backend))


@pytest.fixture
def interceptor(backend: Backend) -> Iterator[AioInterceptor]:
    """Give a hand on the provider of further connections of the asyncio face."""
    made = AioInterceptor(backend)
    yield made
    made.close()


def pytest_sessionfinish() -> None:
    """End the face's thread."""
    end_calls()


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Leave a test that asks for what the face does not have, or that does not touch it."""
    before = calls_made()
    try:
        outcome = yield
    except NotInAio as refused:
        pytest.skip(str(refused))
    except IllegalArgumentException as refused:
        if _CONTAINER in str(refused):
            pytest.skip("deploys a listener, which receives by connections of its own: no part of jmsapi.aio")
        raise
    if calls_made() == before:
        pytest.skip(_UNTOUCHED)
    return outcome
