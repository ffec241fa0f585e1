"""What is peculiar to each kind of broker: its image, its ports inside, its settings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

BrokerKind = Literal["artemis", "classic", "rabbitmq"]
How = Literal["container", "process", "url"]
Wire = Literal["stomp", "amqp", "openwire"]

KINDS: tuple[BrokerKind, ...] = get_args(BrokerKind)
HERE = Path(__file__).resolve().parent
USER = "admin"
# Every broker that is started here listens on 127.0.0.1 only, so a well-known password is no door.
PASSWORD = "admin"


class LauncherError(Exception):
    """A broker did not start, did not end, or cannot be had."""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """The facts of one kind of broker.

    Args:
        title: The name people know it by.
        default_image: Official name and tag; the environment variable ``image_env`` overrides it.
        inner_ports: Port inside the container, by wire.
        environment: Variables of the official image.
        mounts: Paths below this package, and where the container expects them.
    """

    kind: BrokerKind
    title: str
    image_env: str
    default_image: str
    urls_env: str
    inner_ports: dict[Wire, int]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    mounts: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def image(self) -> str:
        """Name the image to start."""
        return os.environ.get(self.image_env) or self.default_image


INFO: dict[BrokerKind, KindInfo] = {
    "artemis": KindInfo(
        kind="artemis",
        title="Artemis",
        image_env="ARTEMIS_IMAGE",
        default_image="apache/artemis:2.56.0",
        urls_env="JMSAPI_ARTEMIS_URLS",
        # 61616 also speaks Artemis's own Core protocol.
        inner_ports={"stomp": 61613, "amqp": 5672, "openwire": 61616},
        environment={
            "ARTEMIS_USER": USER,
            "ARTEMIS_PASSWORD": PASSWORD,
            "ANONYMOUS_LOGIN": "false",
            # Without the web console, half of its start.
            "EXTRA_ARGS": "--no-web --no-mqtt-acceptor --no-hornetq-acceptor",
        },
        mounts={"images/artemis/etc-override": "/var/lib/artemis-instance/etc-override"},
    ),
    "classic": KindInfo(
        kind="classic",
        title="ActiveMQ Classic",
        image_env="CLASSIC_IMAGE",
        default_image="apache/activemq:6.3.1",
        urls_env="JMSAPI_CLASSIC_URLS",
        inner_ports={"stomp": 61613, "amqp": 5672, "openwire": 61616},
        # No ACTIVEMQ_CONNECTION_*: the official entry point would edit the mounted file.
        mounts={"images/classic/activemq.xml": "/opt/apache-activemq/conf/activemq.xml"},
    ),
    "rabbitmq": KindInfo(
        kind="rabbitmq",
        title="RabbitMQ",
        image_env="RABBITMQ_IMAGE",
        default_image="rabbitmq:4.0",
        urls_env="JMSAPI_RABBITMQ_URLS",
        inner_ports={"stomp": 61613, "amqp": 5672},
        environment={"RABBITMQ_DEFAULT_USER": USER, "RABBITMQ_DEFAULT_PASS": PASSWORD},
        mounts={
            "images/rabbitmq/enabled_plugins": "/etc/rabbitmq/enabled_plugins",
            "images/rabbitmq/rabbitmq.conf": "/etc/rabbitmq/rabbitmq.conf",
        },
    ),
}
