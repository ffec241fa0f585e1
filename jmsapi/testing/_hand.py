"""The test's own hand in a broker: it sends, looks and takes by a connection that no fault meets."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import cast

from jmsapi._core.message import received
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.api import ConnectionFactory, Destination, JMSContext, Message, Queue, Topic
from jmsapi.spi import Address, Clock, Delivery, Envelope, Tag
from jmsapi.values import Value

__all__ = ["Hand"]


class Hand:
    """One context, used by one thread at a time.

    Args:
        factory: Of the broker.
        clock: Of the broker.
    """

    def __init__(self, factory: ConnectionFactory, clock: Clock) -> None:
        self._lock = threading.RLock()
        self._context: JMSContext = factory.create_context()
        self._clock = clock
        self._codec = ObjectCodec()

    def now_ms(self) -> int:
        """Return the time of the broker."""
        return self._clock.now_ms()

    def message(self, envelope: Envelope) -> Message:
        """Return an envelope as the message that a receiver gets."""
        return received(Delivery(Tag(), envelope, 1), 0, None, self._codec, None)

    def send(
        self,
        address: Address,
        body: object,
        *,
        jms_type: str | None,
        correlation_id: str | None,
        reply_to: str | None,
        properties: Mapping[str, Value] | None,
        priority: int,
        time_to_live_ms: int,
        delay_ms: int,
    ) -> None:
        """Send one message; see ``DestinationProbe.send``."""
        with self._lock:
            producer = self._context.create_producer().set_priority(priority).set_time_to_live(time_to_live_ms)
            producer.set_delivery_delay(delay_ms)
            producer.set_jms_type(jms_type)
            producer.set_jms_correlation_id(correlation_id)
            if reply_to is not None:
                producer.set_jms_reply_to(self._context.create_queue(reply_to))
            for name, value in (properties or {}).items():
                producer.set_property(name, value)
            producer.send(self.destination(address), self._message(body))

    def _message(self, body: object) -> object:
        """Return what a producer does not make of a value by itself."""
        if body is None:
            return self._context.create_message()
        if not isinstance(body, list):
            return body
        message = self._context.create_stream_message()
        for entry in cast("list[object]", body):
            message.write_object(entry)
        return message

    def waiting(self, address: Address) -> list[Message]:
        """Return what waits on a queue."""
        with self._lock, self._context.create_browser(self._queue(address)) as browser:
            return list(browser.enumeration)

    def take(self, address: Address, within: float) -> Message | None:
        """Take the first message off a queue, waiting for one."""
        with self._lock, self._context.create_consumer(self._queue(address)) as consumer:
            return consumer.receive(timeout_ms=max(1.0, within * 1000))

    def destination(self, address: Address) -> Destination:
        """Return a queue or topic as the application gets it."""
        topic: Topic | None = self._context.create_topic(address.name) if address.kind.is_topic else None
        return topic or self._queue(address)

    def close(self) -> None:
        """End the connection."""
        self._context.close()

    def _queue(self, address: Address) -> Queue:
        return self._context.create_queue(address.name)
