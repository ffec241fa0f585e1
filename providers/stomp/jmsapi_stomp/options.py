"""The options of a STOMP connection."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, PositiveInt

from jmsapi.spi.options import Milliseconds, TlsOptions

__all__ = ["StompOptions"]


class StompOptions(TlsOptions):
    """The options of a STOMP connection. Names with a dot are for one broker; in code the dot is an underscore."""

    model_config = ConfigDict(populate_by_name=True)

    broker: Literal["artemis", "classic", "rabbitmq"] | None = Field(
        default=None, description="Which broker it is, when the broker hides its server header"
    )
    heartbeat_ms: int = Field(default=10_000, ge=0, le=3_600_000, description="Heart-beats, both ways; 0 for none")
    drain_ms: Milliseconds = Field(default=25, description="How long receive_no_wait waits for what may be on its way")
    max_frame: PositiveInt | None = Field(default=None, description="Largest frame in bytes; the broker's default when left out")
    max_received: int = Field(
        default=1 << 27, ge=1 << 16, description="Largest frame taken from the broker in bytes; a larger one ends the connection"
    )
    sync: Literal["persistent", "all"] = Field(default="persistent", description="Which sends the broker must confirm")
    foreign: Literal["auto", "text", "bytes"] = Field(
        default="auto", description="What a message without a sign of its type is, on Artemis and RabbitMQ"
    )
    dlq: str = Field(default="DLQ", min_length=1, description="Artemis: the queue for copies of rejected messages")
    resubscribe: bool = Field(
        default=False, description="Delete a durable subscription before it is opened, where a change cannot be detected"
    )
    artemis_prefix: str = Field(default="", alias="artemis.prefix", description="Prefix of every address")
    artemis_lock: bool = Field(
        default=False, alias="artemis.lock", description="Lock client ids by queues that the operator lets have one consumer each"
    )
    artemis_tx_window: int = Field(
        default=1 << 20, ge=1024, alias="artemis.tx_window", description="First window in bytes of consumers whose acks come late"
    )
    artemis_dedup: bool = Field(default=False, alias="artemis.dedup", description="Send a duplicate id with each message")
    classic_scheduler: bool = Field(
        default=False,
        alias="classic.scheduler",
        description="Classic has schedulerSupport: believed, not tried at the first delayed send",
    )
    classic_virtual_topics: bool = Field(
        default=False, alias="classic.virtual_topics", description="Share durable subscriptions through virtual topics"
    )
    classic_subscription_queue: str | None = Field(
        default=None,
        alias="classic.subscription_queue",
        description="Queue behind a shared subscription, with {name} and {topic}, when the operator forwards topics himself",
    )
    rabbit_declare: bool = Field(default=True, alias="rabbit.declare", description="Declare queues; else they must exist")
    rabbit_queue_args: str = Field(
        default="", alias="rabbit.queue_args", description="Arguments of declared queues, as name:value;name:value"
    )

    @property
    def silence_ms(self) -> int:
        """How long the broker may be silent before it is taken for dead."""
        return self.heartbeat_ms
