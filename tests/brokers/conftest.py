"""What the tests against brokers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSContext
from jmsapi_conformance.brokers import Broker, Wire


@pytest.fixture
def opened() -> Iterator[Callable[..., JMSContext]]:
    """Give a function that opens a context, which is closed after the test."""
    contexts: list[JMSContext] = []

    def opened(broker: Broker, wire: Wire, mode: int = JMSContext.AUTO_ACKNOWLEDGE, **options: Any) -> JMSContext:
        contexts.append(jmsapi.connection_factory(broker.url(wire), checked=True, **options).create_context(mode))
        return contexts[-1]

    yield opened
    for context in contexts:
        context.close()
