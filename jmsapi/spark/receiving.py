"""Consumers for claims, over the public API: one connection, a session for each consumer.

A slot is confirmed only when the broker has said that it has the acknowledgement, so a session acknowledges in one of three ways:

- in CLIENT_ACKNOWLEDGE, where the broker answers an acknowledgement;
- by committing a transaction, where it does not but has transactions;
- else in CLIENT_ACKNOWLEDGE, and then by subscribing once more in the same session: brokers work through a session in order, so
  the answer to the subscription means that what was said before it has arrived.

A connection has one link. With a ``failover:`` URL it would be made again within a round, whose messages would then come twice.
"""

from __future__ import annotations

import time
from contextlib import suppress

import jmsapi
from jmsapi import Connection, MessageConsumer, Session
from jmsapi.errors import JMSError
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.rows import Taken, taken_of

__all__ = ["ClaimReceiver", "Receivers", "consumer_of"]


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

    def connect(self, limit: int) -> ClaimReceiver:
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
            return ClaimReceiver(self, self._connection, self._options)
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


class ClaimReceiver:
    """A consumer of a claim; see ``ClaimConsumer``."""

    def __init__(self, owner: Receivers, connection: Connection, options: SourceOptions) -> None:
        self._owner = owner
        self._options = options
        self._broken = False
        can = jmsapi.capabilities(connection)
        self._answered = can.settle_answered
        self._transacted = not can.settle_answered and can.transactions.level.name == "NATIVE"
        self._session = connection.create_session(Session.SESSION_TRANSACTED if self._transacted else Session.CLIENT_ACKNOWLEDGE)
        try:
            self._open()
        except JMSError:
            with suppress(JMSError):
                self._session.close()
            raise

    def _open(self) -> None:
        self._consumer = consumer_of(self._session, self._options)
        self._receiver = jmsapi.wire_receiver(self._consumer)

    def receive(self, most: int, most_bytes: int, timeout_ms: float) -> list[Taken]:
        """Take the next messages; see ClaimConsumer."""
        try:
            # Zero would wait for ever. Nothing in that time is not the end of a queue: the way to the broker may be slower.
            found = self._receiver.receive(most, most_bytes, max(1.0, timeout_ms))
            if not found:
                found = self._receiver.receive_no_wait(most, most_bytes)
        except JMSError:
            self._broken = True
            raise
        now_us = time.time_ns() // 1000
        return [taken_of(one, now_us) for one in found]

    def acknowledge(self) -> None:
        """Acknowledge all received and wait for the broker's word; see ClaimConsumer."""
        try:
            if self._transacted:
                self._session.commit()
                return
            self._receiver.acknowledge()
            if not self._answered:
                self._consumer.close()
                self._open()
        except JMSError:
            self._broken = True
            raise

    def close(self) -> None:
        """Give back what is not acknowledged; see ClaimConsumer."""
        try:
            self._session.close()
        except JMSError:
            self._broken = True
            raise
        finally:
            self._owner.done(broken=self._broken)
