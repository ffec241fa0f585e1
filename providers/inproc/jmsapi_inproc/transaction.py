"""A local transaction: what it sends and acknowledges takes effect at its commit, all at once.

Every method is called under the broker's lock.

Spec: 4.4.7-1 to 4.4.7-8.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from jmsapi.spi import DONE, Envelope, ErrorKind, Handle, ProviderError, answered
from jmsapi_inproc.messages import InprocTag, QueuedMessage, SendingConnection
from jmsapi_inproc.queue import BrokerQueue, DeliveryContext, QueueConsumer
from jmsapi_inproc.subscriptions import BrokerTopic
from jmsapi_inproc.write_batch import BatchWriter, WriteBatch

__all__ = ["Accepted", "InProcessTransaction"]


class Accepted(NamedTuple):
    """A delivery that its consumer acknowledged in the transaction."""

    consumer: QueueConsumer
    tag: InprocTag
    message: QueuedMessage


class InProcessTransaction(Handle):
    """What one session did since its last commit or rollback.

    Args:
        sender: The session's connection.
        keep: Told when the first thing is done, for the session to hold the transaction from then on.
    """

    __slots__ = ("_accepted", "_keep", "_sent", "open", "sender")

    def __init__(self, sender: SendingConnection, keep: Callable[[InProcessTransaction], None]) -> None:
        self.sender = sender
        self._keep: Callable[[InProcessTransaction], None] | None = keep
        self.open = True
        self._sent: list[tuple[BrokerQueue | BrokerTopic, Envelope]] = []
        self._accepted: list[Accepted] = []

    def send(self, target: BrokerQueue | BrokerTopic, envelope: Envelope) -> None:
        """Keep a message for the commit."""
        if self._keep is not None:
            self._use(self._keep)
        self._sent.append((target, envelope))

    def accept(self, accepted: Accepted) -> None:
        """Keep an acknowledgement for the commit."""
        if self._keep is not None:
            self._use(self._keep)
        accepted.consumer.queue.enlisted += 1
        self._accepted.append(accepted)

    def _use(self, keep: Callable[[InProcessTransaction], None]) -> None:
        keep(self)
        self._keep = None

    def hand_over(self) -> tuple[list[tuple[BrokerQueue | BrokerTopic, Envelope]], list[Accepted]]:
        """End, and return what was sent and acknowledged, for the transaction branch it belongs to."""
        self.open = False
        return self._sent, self._accepted

    def commit(self, context: DeliveryContext, writer: BatchWriter | None) -> Future[None]:
        """Add what was sent, in its order, and forget what was acknowledged. What went to a deleted destination is lost with it.

        Args:
            context: Of the broker.
            writer: Of a stored broker.
        Returns:
            Done when it is on disk, if it has to be. It fails when there is no room: then it is rolled back.
        """
        if writer is not None:
            return self._write(writer)
        self._end()
        with context.batched():
            for target, envelope in self._sent:
                if not target.gone:
                    target.publish(envelope, self.sender)
        return DONE

    def roll_back(self) -> None:
        """Drop what was sent; what was acknowledged is in flight to its consumer again, or in the queue if that closed."""
        self._end()
        self._return()

    def _write(self, writer: BatchWriter) -> Future[None]:
        self.open = False
        batch = WriteBatch()
        for target, envelope in self._sent:
            if not target.gone:
                target.stage(envelope, self.sender, batch)
        for consumer, _, message in self._accepted:
            consumer.queue.forget(message, batch)
        batch.on_written(self._count_down)
        batch.on_failed(self._count_down)
        batch.on_failed(self._return)
        written = batch.completion()
        if not writer.submit(batch):
            return DONE
        return answered(written, lambda _: None, _refused)

    def _return(self) -> None:
        returned: dict[BrokerQueue, list[QueuedMessage]] = {}
        for consumer, tag, message in self._accepted:
            if consumer.closed:
                message.count += 1
                consumer.queue.recount(message)
                returned.setdefault(consumer.queue, []).append(message)
            else:
                consumer.in_flight[tag] = message
        for queue, messages in returned.items():
            queue.return_messages(messages)
            queue.dispatch()

    def _end(self) -> None:
        self.open = False
        self._count_down()

    def _count_down(self) -> None:
        for accepted in self._accepted:
            accepted.consumer.queue.enlisted -= 1


def _refused(error: BaseException) -> BaseException:
    if not isinstance(error, ProviderError) or error.kind is not ErrorKind.RESOURCE:
        return error
    rolled_back = ProviderError(ErrorKind.ROLLED_BACK, f"{error.message}; all of it is rolled back")
    rolled_back.__cause__ = error
    return rolled_back
