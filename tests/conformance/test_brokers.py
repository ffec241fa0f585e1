"""The conformance suite on real brokers: in full on the two first-class pairs, a smoke level on the others."""

import pytest

from jmsapi_conformance.backend import Backend
from jmsapi_conformance.brokers import INFO, Broker, Wire
from jmsapi_conformance.plugin import Certify

SMOKE = ("ch04_3_3_*", "ch04_4_7_*", "ch04_4_11_*", "ch04_5_1_*", "ch04_5_2_*", "ch04_6_producers", "ch06_11_1_*")


def backend_of(broker: Broker, wire: Wire) -> Backend:
    return Backend(broker.url(wire), title=f"{wire.upper()} on {INFO[broker.kind].title} {broker.version or ''}".strip())


@pytest.fixture(scope="session")
def amqp_artemis(artemis: Broker) -> Backend:
    return backend_of(artemis, "amqp")


@pytest.fixture(scope="session")
def stomp_artemis(artemis: Broker) -> Backend:
    return backend_of(artemis, "stomp")


@pytest.fixture(scope="session")
def amqp_classic(classic: Broker) -> Backend:
    return backend_of(classic, "amqp")


@pytest.fixture(scope="session")
def stomp_classic(classic: Broker) -> Backend:
    return backend_of(classic, "stomp")


@pytest.fixture(scope="session")
def amqp_rabbitmq(rabbitmq: Broker) -> Backend:
    return backend_of(rabbitmq, "amqp")


@pytest.fixture(scope="session")
def stomp_rabbitmq(rabbitmq: Broker) -> Backend:
    return backend_of(rabbitmq, "stomp")


on_a_broker = (pytest.mark.broker,)
amqp_on_artemis = Certify(fixture="amqp_artemis", marks=on_a_broker)
stomp_on_classic = Certify(fixture="stomp_classic", marks=on_a_broker)
stomp_on_artemis = Certify(fixture="stomp_artemis", marks=on_a_broker, only=SMOKE)
amqp_on_classic = Certify(fixture="amqp_classic", marks=on_a_broker, only=SMOKE)
amqp_on_rabbitmq = Certify(fixture="amqp_rabbitmq", marks=on_a_broker, only=SMOKE)
stomp_on_rabbitmq = Certify(fixture="stomp_rabbitmq", marks=on_a_broker, only=SMOKE)
