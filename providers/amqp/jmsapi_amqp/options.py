"""Options of the AMQP provider, as a pydantic model. Imported only when a factory is configured."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from jmsapi.spi.options import PositiveMilliseconds, TlsOptions, Words
from jmsapi_brokers import rabbitmq

__all__ = ["AmqpOptions"]


class AmqpOptions(TlsOptions):
    """The options of an AMQP connection, beside those of any connection."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    sasl_mechanisms: Words = Field(
        default=frozenset(),
        description="SASL mechanisms to choose from; empty: PLAIN with a user, EXTERNAL with a certificate, else ANONYMOUS",
    )
    idle_timeout_ms: int = Field(
        default=60_000, ge=0, le=(1 << 32) - 1, description="Longest silence of the broker; 0 trusts it for ever"
    )
    max_frame: int = Field(default=65_536, ge=512, le=16_777_216, description="Largest AMQP frame we take, in bytes")
    max_message: int = Field(
        default=1 << 28, ge=1024, description="Largest message we take, in bytes; a broker that sends more loses the connection"
    )
    broker: Literal["artemis", "classic", "rabbitmq"] | None = Field(
        default=None, description="The broker's product, when it does not say so itself"
    )
    amqp_selector_conversion: bool = Field(
        default=False,
        alias="amqp.selector_conversion",
        description="Let Artemis and Classic convert text to numbers in selectors, for messages sent over STOMP",
    )
    classic_scheduler: bool = Field(
        default=False,
        alias="classic.scheduler",
        description="Classic has schedulerSupport: believed, not tried at the first delayed send",
    )
    classic_virtual_topics: bool = Field(
        default=False,
        alias="classic.virtual_topics",
        description="Share durable subscriptions of the Classic broker through virtual topics",
    )
    rabbit_declare: bool = Field(default=True, alias="rabbit.declare", description="Make a RabbitMQ queue that does not exist")
    rabbit_queue_args: str = Field(
        default="",
        alias="rabbit.queue_args",
        description="Arguments of queues we make: name:value pairs, separated by semicolons",
    )
    rabbit_exchange: str = Field(
        default=rabbitmq.TOPIC_EXCHANGE, min_length=1, alias="rabbit.exchange", description="RabbitMQ's exchange for topics"
    )
    rabbit_max_shared_consumers: int = Field(
        default=-1,
        ge=-1,
        alias="rabbit.max_shared_consumers",
        description="Most consumers of one shared subscription of RabbitMQ that a connection joins; -1 no limit",
    )
    rabbit_delay_expiry_ms: PositiveMilliseconds = Field(
        default=60_000, alias="rabbit.delay_expiry_ms", description="An idle delay queue of RabbitMQ is dropped after this"
    )

    @property
    def silence_ms(self) -> int:
        """How long the broker may be silent before it is taken for dead."""
        return self.idle_timeout_ms
