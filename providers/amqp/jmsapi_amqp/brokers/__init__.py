"""What differs from broker to broker, a module each; chosen by what the broker says of itself when the connection opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi_amqp.brokers.artemis import Artemis
from jmsapi_amqp.brokers.base import AmqpBroker
from jmsapi_amqp.brokers.broker_j import BrokerJ
from jmsapi_amqp.brokers.classic import Classic

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["AmqpBroker", "choose"]

_PRODUCTS = {
    "apache-activemq-artemis": "artemis",
    "ActiveMQ": "classic",
    "RabbitMQ": "rabbitmq",
    "Apache Qpid Broker-J Core": "broker-j",
}


def choose(options: AmqpOptions, properties: dict[str, object], offered: tuple[str, ...]) -> AmqpBroker:
    """Return the broker that a connection leads to.

    Args:
        options: Of the connection; may name the product.
        properties: The properties that the broker opened the connection with.
        offered: The capabilities it offers.
    """
    product = options.broker or _PRODUCTS.get(str(properties.get("product", "")), "")
    if product == "artemis":
        return Artemis(options, properties, offered)
    if product == "classic":
        return Classic(options, properties, offered)
    if product == "broker-j":
        return BrokerJ(options, properties, offered)
    if product == "rabbitmq":
        from jmsapi_amqp.brokers.rabbit import Rabbit

        return Rabbit(options, properties, offered)
    return AmqpBroker(options, properties, offered)
