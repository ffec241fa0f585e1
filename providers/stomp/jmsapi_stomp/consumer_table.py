"""The consumers of a connection, by number and by the ids of their subscriptions."""

from __future__ import annotations

from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.handles import ConsumerHandle

__all__ = ["ConsumerTable"]


class ConsumerTable:
    """The consumers that the broker has, or may have. I/O thread only, but ``by_serial`` is read by any thread."""

    def __init__(self) -> None:
        self.by_serial: dict[int, StompConsumer] = {}
        self.by_name: dict[bytes, StompConsumer] = {}
        self.misses: dict[bytes, StompConsumer] = {}
        """By the id of the subscription that takes what the consumer's selector refuses."""

    def find(self, handle: ConsumerHandle) -> StompConsumer | None:
        """Return the consumer of a handle, None when it is released."""
        return self.by_serial.get(handle.serial)

    def of_session(self, session: int) -> list[StompConsumer]:
        """Return the consumers of a session."""
        return [consumer for consumer in self.by_serial.values() if consumer.handle.session == session]

    def of_connection(self, connection: StompConnection | None) -> list[StompConsumer]:
        """Return the consumers of a connection; None for all."""
        return [one for one in self.by_serial.values() if connection is None or one.connection is connection]

    def drop(self, consumer: StompConsumer, name: str) -> None:
        """Forget a subscription, and with the last one the consumer."""
        if name in consumer.names:
            consumer.names.remove(name)
        self.by_name.pop(name.encode(), None)
        self.misses.pop(name.encode(), None)
        if not consumer.names:
            self.by_serial.pop(consumer.handle.serial, None)
