"""The ends of consumers: released, closed by the broker or by us, or refused although the broker may have them.

All of it runs on the I/O thread. RELEASED and FAILED take effect when a consumer is released, by what the broker's behaviour
does to end a subscription.

A SUBSCRIBE that got no answer in time may be answered later, and the broker then has a subscription that takes messages for
nobody. An UNSUBSCRIBE right behind it would be an ERROR where the SUBSCRIBE is refused after all, and end the connection with
it (Artemis). So the first sign that the subscription exists, an answer or a message, makes us end it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError, fail, resolve
from jmsapi_stomp.answers import Done, after_all, perform
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.consumer_table import ConsumerTable
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.settlement import StompSettlement

__all__ = ["ConsumerRelease", "end_drains"]

_UNSURE: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.PROTOCOL})
"""What was asked may have been done: no answer came, or one that may have been another frame's."""


class ConsumerRelease:
    """Ends the consumers of a connection.

    Attributes:
        on_gone: Called with a consumer that ended by itself.
    """

    def __init__(self, context: StompContext, table: ConsumerTable, settlement: StompSettlement) -> None:
        self._context = context
        self._table = table
        self._settlement = settlement
        self.on_gone: Callable[[StompConsumer], object] = lambda _: None

    def release(self, consumer: StompConsumer, done: Done) -> None:
        """End a consumer; its unsettled deliveries go back to the broker."""
        if consumer.closing or consumer.handle.serial not in self._table.by_serial:
            done(None)
            return
        if consumer.rejecting:
            # Copies are on their way: their messages are acknowledged first, for afterwards they cannot be.
            consumer.when_settled.append(lambda: self.release(consumer, done))
            return
        self._stop(consumer)
        after_all([partial(self._end, consumer, name) for name in consumer.names], done)

    def close(self, consumer: StompConsumer, cause: ProviderError) -> None:
        """End a consumer that cannot go on, and report it; its deliveries go back to the broker."""
        self._report(consumer, cause)
        self.release(consumer, lambda _: self.on_gone(consumer))

    def cancelled(self, name: str, text: str) -> None:
        """Take the end of a subscription by the broker: its queue is gone."""
        consumer = self._table.by_name.get(name.encode())
        if consumer is None:
            return
        # Marked first: an acknowledgement that another thread is about to write is not waited for in vain.
        was_closing, consumer.closing = consumer.closing, True
        for one in list(consumer.awaiting):
            one(self._settlement.too_late())
        self._table.drop(consumer, name)
        if not was_closing:
            cause = f"the broker ended the consumer of {consumer.spec.address.name!r}: {text}"
            self._report(consumer, ProviderError(ErrorKind.DESTINATION, cause))
            consumer.abandoned = True
            self.on_gone(consumer)

    def abandon(self, consumer: StompConsumer, cause: ProviderError) -> None:
        """Give up a consumer whose last subscription failed; none of its other subscriptions may be left behind."""
        self._stop(consumer)
        consumer.abandoned = True
        *had, last = consumer.names
        if consumer.connection.dead is not None or cause.kind not in _UNSURE:
            self._table.drop(consumer, last)
        for name in had:
            self._end(consumer, name, lambda _: None)

    def seen(self, consumer: StompConsumer, name: str) -> None:
        """Record that the broker has a subscription: it is ended if nobody has the consumer."""
        if consumer.abandoned and name in consumer.names and name not in consumer.ending:
            self._end(consumer, name, lambda _: self.on_gone(consumer))

    def all_lost(self, connection: StompConnection | None, cause: ProviderError) -> list[StompConsumer]:
        """Forget the consumers of a connection that is gone, or of all, and return those that the core has."""
        gone = self._table.of_connection(connection)
        for consumer in gone:
            consumer.closing = True
            consumer.buffer.clear()
            _fail_drains(consumer, cause)
            if consumer.collector is not None:
                consumer.collector.lost(cause)
            for name in list(consumer.names):
                self._table.drop(consumer, name)
        return [consumer for consumer in gone if not consumer.abandoned]

    def _report(self, consumer: StompConsumer, cause: ProviderError) -> None:
        consumer.credit = 0
        consumer.buffer.clear()
        _fail_drains(consumer, cause)
        self._context.events.on_closed(consumer.handle, cause)

    def _stop(self, consumer: StompConsumer) -> None:
        consumer.closing = True
        consumer.credit = 0
        consumer.buffer.clear()
        end_drains(consumer)
        if consumer.collector is not None:
            consumer.collector.lost(ProviderError(ErrorKind.CLOSED, "the consumer is closed"))

    def _end(self, consumer: StompConsumer, name: str, done: Done) -> None:
        """End a subscription. One whose end is not sure stays in the table: what it still brings must go back."""
        consumer.ending.add(name)
        behaviour = self._context.behaviour
        returns = behaviour.closing_returns or consumer.plan.browse

        def ended(cause: ProviderError | None) -> None:
            if returns or cause is None or cause.kind not in _UNSURE or consumer.connection.dead is not None:
                self._table.drop(consumer, name)
            done(cause)

        if returns:
            self.unsubscribe(consumer, name, ended)
        else:
            perform(behaviour.return_and_unsubscribe(self, consumer, name), ended)

    # for a behaviour whose UNSUBSCRIBE returns nothing

    def unsubscribe(self, consumer: StompConsumer, name: str, done: Done) -> None:
        """Send UNSUBSCRIBE for one subscription of a consumer."""
        asked = f"cannot end the consumer of {consumer.spec.address.name!r}"
        late = partial(self._table.drop, consumer, name)
        consumer.connection.request(asked, "UNSUBSCRIBE", [("id", name)], done, late=late)

    def requeue(self, consumer: StompConsumer) -> None:
        """Return a consumer's unsettled deliveries by NACK."""
        self._settlement.requeue(list(consumer.unsettled), ending=True)

    def forget(self, consumer: StompConsumer, name: str) -> None:
        """Forget a subscription that has ended after all."""
        self._table.drop(consumer, name)


def end_drains(consumer: StompConsumer) -> None:
    """Answer the drains of a consumer that has no credit left, or whose browser has shown everything."""
    if consumer.browsed and not consumer.buffer:
        consumer.credit = 0
    if consumer.drains and consumer.credit == 0:
        drains, consumer.drains = consumer.drains, []
        for future in drains:
            resolve(future, None)


def _fail_drains(consumer: StompConsumer, cause: ProviderError) -> None:
    drains, consumer.drains = consumer.drains, []
    for future in drains:
        fail(future, cause)
