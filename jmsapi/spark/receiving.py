"""Consumers for claims, over the public API: one connection, a session in CLIENT_ACKNOWLEDGE for each consumer."""

from __future__ import annotations

from contextlib import suppress

from jmsapi import Connection, Message, MessageConsumer, Session
from jmsapi.errors import JMSError
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.rows import Row, row_of

__all__ = ["Receiver", "Receivers", "consumer_of"]


def consumer_of(session: Session, options: SourceOptions) -> MessageConsumer:
    """Open the consumer that the options ask for."""
    if options.topic is None:
        return session.create_consumer(session.create_queue(options.queue or ""), options.selector)
    topic, name = session.create_topic(options.topic), options.subscription or ""
    if options.subscription_type == "durable":
        return session.create_durable_consumer(topic, name, options.selector)
    return session.create_shared_durable_consumer(topic, name, options.selector)


class Receivers:
    """Opens consumers; between two of them the connection stays open, if nobody else must have its client id.

    Args:
        options: Of the source.
    Threads: one.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._connection: Connection | None = None
        self._limit = 0
        self._stays = options.client_id is None

    def connect(self, limit: int) -> Receiver:
        """Open a consumer that holds at most ``limit`` unacknowledged messages.

        Raises:
            JMSError: The broker is away, or refuses.
        """
        if self._connection is None or limit > self._limit:
            self.close()
            self._connection = self._options.factory(prefetch=limit, max_unacknowledged=limit).create_connection()
            self._limit = limit
            try:
                self._connection.start()
            except JMSError:
                self.close()
                raise
        try:
            return Receiver(self, self._connection, self._options)
        except JMSError:
            # A connection that broke while it was idle is not the broker's last word.
            self.close()
            raise

    def done(self, *, broken: bool) -> None:
        """A receiver was closed."""
        if broken or not self._stays:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(JMSError):
                connection.close()


class Receiver:
    """A consumer of a claim; see ``claim.Consumer``."""

    def __init__(self, owner: Receivers, connection: Connection, options: SourceOptions) -> None:
        self._owner = owner
        self._last: Message | None = None
        self._broken = False
        self._session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        try:
            self._consumer = consumer_of(self._session, options)
        except JMSError:
            with suppress(JMSError):
                self._session.close()
            raise

    def receive(self, timeout_ms: float) -> Row | None:
        """Take the next message as a row; see Consumer."""
        try:
            # Zero would wait for ever.
            message = self._consumer.receive(max(1.0, timeout_ms))
        except JMSError:
            self._broken = True
            raise
        if message is None:
            return None
        self._last = message
        return row_of(message)

    def acknowledge(self) -> None:
        """Acknowledge all received and wait for the broker's word; see Consumer."""
        message, self._last = self._last, None
        if message is None:
            return
        try:
            message.acknowledge()
        except JMSError:
            self._broken = True
            raise

    def close(self) -> None:
        """Give back what is not acknowledged; see Consumer."""
        try:
            self._session.close()
        except JMSError:
            self._broken = True
            raise
        finally:
            self._owner.done(broken=self._broken)
