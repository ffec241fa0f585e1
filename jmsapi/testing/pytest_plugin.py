"""The pytest plug-in. Loaded by name: ``-p jmsapi.testing.pytest_plugin``, or in a conftest ``pytest_plugins = [that name]``.

A test that takes ``jms_broker`` has a fresh broker in its own process. If it fails, the report shows what was sent; a fault
that it planned and that never came fails it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from jmsapi.api import JMSContext
from jmsapi.errors import JMSError
from jmsapi.testing.clock import HandClock
from jmsapi.testing.embedded import EmbeddedBroker

__all__ = ["jms_broker", "jms_clock", "jms_context"]


@pytest.fixture
def jms_clock() -> HandClock:
    """Give the clock of ``jms_broker``: it stands still until ``jms_clock.advance(seconds)``."""
    return HandClock()


@pytest.fixture
def jms_broker(jms_clock: HandClock) -> Iterator[EmbeddedBroker]:
    """Give a fresh broker of this test: ``jms_broker.url`` for the application, and assertions."""
    with EmbeddedBroker(clock=jms_clock) as broker:
        yield broker


@pytest.fixture
def jms_context(jms_broker: EmbeddedBroker) -> Iterator[JMSContext]:
    """Give a context on ``jms_broker``, as the application would make one: planned faults meet it."""
    with jms_broker.connection_factory().create_context() as context:
        yield context


def _broker_of(item: pytest.Item) -> EmbeddedBroker | None:
    found = getattr(item, "funcargs", {}).get("jms_broker")
    return found if isinstance(found, EmbeddedBroker) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test whose fault never came."""
    yield
    broker = _broker_of(item)
    if broker is not None:
        broker.faults.assert_all_came()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test what its broker was sent."""
    report = yield
    broker = _broker_of(item)
    if broker is not None and report.when == "call" and report.failed:
        try:
            report.sections.append(("jms_broker", broker.summary()))
        except JMSError as error:
            report.sections.append(("jms_broker", f"cannot be shown: {error}"))
    return report
