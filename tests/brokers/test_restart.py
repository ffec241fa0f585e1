"""The suite's tests that restart the broker, on brokers that nobody else uses; on the shared ones they are not applicable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsapi_conformance.backend import Backend, restart_of
from jmsapi_conformance.brokers import INFO, Broker, BrokerKind, Wire
from jmsapi_conformance.plugin import Certify

Restartable = Callable[[BrokerKind], Broker]


def backend_of(broker: Broker, wire: Wire) -> Backend:
    title = f"{wire.upper()} on {INFO[broker.kind].title} {broker.version or ''}".strip()
    return Backend(broker.url(wire), title=title, restart=restart_of(broker))


def marks(kind: BrokerKind) -> tuple[pytest.MarkDecorator, ...]:
    # One worker has the broker for itself.
    return pytest.mark.broker, pytest.mark.timeout(1200), pytest.mark.xdist_group(f"restarts of {kind}")


@pytest.fixture(scope="session")
def restarted_amqp_artemis(restartable: Restartable) -> Backend:
    return backend_of(restartable("artemis"), "amqp")


@pytest.fixture(scope="session")
def restarted_stomp_classic(restartable: Restartable) -> Backend:
    return backend_of(restartable("classic"), "stomp")


@pytest.fixture(scope="session")
def restarted_amqp_rabbitmq(restartable: Restartable) -> Backend:
    return backend_of(restartable("rabbitmq"), "amqp")


amqp_on_artemis = Certify(fixture="restarted_amqp_artemis", marks=marks("artemis"), only=("ch04_10_restarts", "shs_restarts"))
stomp_on_classic = Certify(fixture="restarted_stomp_classic", marks=marks("classic"), only=("ch04_10_restarts",))
amqp_on_rabbitmq = Certify(fixture="restarted_amqp_rabbitmq", marks=marks("rabbitmq"), only=("ch04_10_restarts",))
