"""ActiveMQ Classic 6 with ``transformer=jms``. Run against 6.3.1."""

from __future__ import annotations

from jmsapi.spi import NATIVE, Address, Capabilities, DestinationKind, emulated, none
from jmsapi_amqp.brokers.base import Broker

__all__ = ["Classic"]

_TEMPORARY_QUEUE = "temp-queue://"
_TEMPORARY_TOPIC = "temp-topic://"


class Classic(Broker):
    """Tells queues from topics by prefixes and does not look at capabilities."""

    product = "classic"
    # Classic 6.3.1 pages 200 messages in and looks for more only at an ack or a flow: a consumer that holds its acks and
    # was given 1000 at once gets 200 and then nothing (tests/providers/amqp/test_classic.py).
    credit_window = 100

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.queue_prefix = self.queue_prefix or "queue://"
        self.topic_prefix = self.topic_prefix or "topic://"

    def parse(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination; temporary ones keep their prefix, which is part of what the broker wants back."""
        if text.startswith(_TEMPORARY_QUEUE):
            return Address(DestinationKind.TEMPORARY_QUEUE, text)
        if text.startswith(_TEMPORARY_TOPIC):
            return Address(DestinationKind.TEMPORARY_TOPIC, text)
        return super().parse(text, kind, near)

    def capabilities(self) -> Capabilities:
        """Return what Classic can do."""
        shared = none("Classic 6.3 takes a shared link and gives every message to each consumer")
        delay = (
            NATIVE
            if self.options.classic_scheduler
            else none("works only where the broker has schedulerSupport, which it does not tell: say ?classic.scheduler=true")
        )
        return Capabilities(
            provider="amqp",
            broker=self.product,
            version=self.version,
            no_local=none("kept by the client: the broker's own filter works by connection, also where JMS has none"),
            shared_subscription=shared,
            shared_durable_subscription=shared,
            delivery_delay=delay,
            delivery_count_exact=emulated("a closed link does not count"),
            priority_order=none("needs prioritizedMessages in the broker's destination policy"),
            xa=none("AMQP 1.0 has no XA"),
            rollback_returns=True,
            release_while_open=False,
        )

    def selector(self, text: str | None) -> str | None:
        """Return the selector, converting text to numbers when asked to (messages of STOMP senders)."""
        if text is not None and self.options.amqp_selector_conversion:
            return "convert_string_expressions:" + text
        return text
