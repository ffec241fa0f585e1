"""What the broker is told of deliveries: ACK, NACK, or nothing until the consumer ends.

All of it runs on the I/O thread, but ``acknowledge_now``. RELEASED and FAILED take effect by NACK on RabbitMQ, elsewhere when
the consumer is released. The deliveries of a consumer that has ended, or is about to end, go back to the broker: nobody can
settle them any more, and an attempt fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import Envelope, ErrorKind, Outcome, ProviderError
from jmsapi_stomp.answers import Done, finish
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.consumer_table import ConsumerTable
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.errors import lost
from jmsapi_stomp.handles import StompTag

__all__ = ["StompSettlement"]

_REQUEUE_S: Final = 0.01
_REQUEUE: Final = b"requeue:true\n"


class StompSettlement:
    """Settles deliveries of the consumers of a connection."""

    def __init__(self, context: StompContext, table: ConsumerTable) -> None:
        self._context = context
        self._by_serial = table.by_serial

    def settle(self, tags: Sequence[StompTag], outcome: Outcome, done: Done | None, failures: Sequence[int] = ()) -> None:
        """Settle outside a transaction. ``done``, if given, is called when the broker has answered.

        Where a rejection needs a copy to be sent first (``rejects_by_copy``), REJECTED is ``StompSender.reject``'s.
        """
        behaviour = self._context.behaviour
        if outcome is Outcome.ACCEPTED:
            self.acknowledge(tags, done)
            return
        if behaviour.names_outcomes:
            self._name_outcomes(tags, outcome, done, failures)
            return
        if outcome is Outcome.REJECTED:
            self._write(tags, b"NACK", b"requeue:false\n" if behaviour.negative_ack_returns else b"", done)
            return
        if behaviour.negative_ack_returns:
            for tag in tags:
                consumer = self._by_serial.get(tag.consumer)
                if consumer is not None and tag in consumer.unsettled:
                    if not consumer.requeued:
                        self._requeue_soon(consumer)
                    consumer.requeued.append(tag)
        if done is not None:
            done(None)

    def _name_outcomes(self, tags: Sequence[StompTag], outcome: Outcome, done: Done | None, failures: Sequence[int]) -> None:
        """Write a NACK for each tag that names the outcome; only a rejection waits for an answer."""
        named = b"outcome:%b\n" % outcome.value.encode()
        if outcome is Outcome.REJECTED:
            self._write(tags, b"NACK", named, done)
            return
        if failures and outcome is Outcome.FAILED:
            for tag, count in zip(tags, failures, strict=True):
                self._write([tag], b"NACK", b"%bfailures:%d\n" % (named, count), None)
        else:
            self._write(tags, b"NACK", named, None)
        if done is not None:
            done(None)

    def acknowledge_now(self, tag: StompTag) -> Future[None] | None:
        """Write one ACK from the thread that settles, while the I/O thread sleeps.

        Returns:
            A future, done when all of it has left, or with the broker's answer where that is awaited; None when the I/O thread
            has to write it.
        """
        consumer = self._by_serial.get(tag.consumer)
        if consumer is None or consumer.closing:
            return None
        # Whoever takes it out settles it: the I/O thread may be about to requeue everything.
        envelope = consumer.unsettled.pop(tag, None)
        if envelope is None:
            return None
        frame = b"ACK\nid:%b\n\n\0" % tag.ack
        written = self._confirmed_now(consumer, frame) if tag.confirmed else consumer.connection.write_now(frame)
        if written is not None:
            consumer.settled_elsewhere.append(self._context.behaviour.window_cost(tag.size))
        else:
            consumer.unsettled[tag] = envelope
        return written

    def _confirmed_now(self, consumer: StompConsumer, frame: bytes) -> Future[None] | None:
        answered: Future[None] = Future()
        done = self._awaited({consumer}, 1, finish(answered))
        # Looked at again: what ends the consumer marks it first and then tells those that wait, of whom this is one by now.
        if not consumer.closing and consumer.connection.confirmed_now(frame, done):
            return answered
        consumer.awaiting.discard(done)
        return None

    def acknowledge_one(self, tag: StompTag, written: Done) -> None:
        """Write one ACK that is not settled yet; ``written`` is called when it has been written."""
        consumer = self._by_serial.get(tag.consumer)
        if consumer is None or consumer.closing or not consumer.settled(tag, self._context.behaviour.window_cost(tag.size)):
            written(self.too_late())
            return
        consumer.connection.write(b"ACK\nid:%b\n\n\0" % tag.ack, written)

    def acknowledge(self, tags: Sequence[StompTag], done: Done | None, transaction: str | None = None) -> None:
        """Write an ACK for each tag that is not settled yet."""
        more = b"transaction:%b\n" % transaction.encode() if transaction is not None else b""
        self._write(tags, b"ACK", more, done, keep=transaction is not None)

    def requeue(self, tags: Sequence[StompTag], *, ending: bool = False) -> None:
        """Write a NACK by which RabbitMQ puts each tag that is not settled yet back into its queue.

        Args:
            tags: Of the deliveries.
            ending: Also those of consumers that are about to end.
        """
        self._write(tags, b"NACK", _REQUEUE, None, ending=ending)

    def _write(
        self,
        tags: Sequence[StompTag],
        command: bytes,
        more: bytes,
        done: Done | None,
        *,
        keep: bool = False,
        ending: bool = False,
    ) -> None:
        """Write a frame for each tag that is not settled yet.

        Args:
            tags: Of the deliveries.
            command: ACK or NACK.
            more: Further header lines.
            done: Called when the broker has answered for all, or with the reason why it was not told of all.
            keep: They stay unsettled: their transaction may be rolled back.
            ending: Also those of consumers that are about to end.
        """
        frames: dict[StompConnection, list[bytes]] = {}
        consumers: set[StompConsumer] = set()
        gone = False
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            cost = self._context.behaviour.window_cost(tag.size)
            if consumer is None or (consumer.closing and not ending):
                gone = True
            elif tag in consumer.unsettled if keep else consumer.settled(tag, cost):
                consumers.add(consumer)
                frames.setdefault(consumer.connection, []).append(b"%b\nid:%b\n%b\n\0" % (command, tag.ack, more))
            else:
                gone = True
        if done is not None:
            done = self._awaited(consumers, len(frames) + gone, done)
        for connection, written in frames.items():
            last = None if done is None else written.pop()
            if written:
                connection.write(b"".join(written))
            if done is not None and last is not None:
                connection.confirmed(last, done)
        if done is not None and gone:
            done(self.too_late())

    def _awaited(self, consumers: set[StompConsumer], answers: int, done: Done) -> Done:
        """Return what takes the answers and calls ``done`` once: after the last, or with the first error.

        RabbitMQ answers nothing to an acknowledgement that its end of the consumer overtakes, so that end is an answer.
        """
        left, called = answers, False

        def one(cause: ProviderError | None) -> None:
            nonlocal left, called
            left -= 1
            if called or (left > 0 and cause is None):
                return
            called = True
            for consumer in consumers:
                consumer.awaiting.discard(one)
            done(cause)

        for consumer in consumers:
            consumer.awaiting.add(one)
        if not answers:
            one(None)
        return one

    def any_ended(self, tags: Iterable[StompTag]) -> bool:
        """Return whether a delivery among them can no longer be settled."""
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            if consumer is None or consumer.closing or tag not in consumer.unsettled:
                return True
        return False

    def too_late(self) -> ProviderError:
        """Return the error of settling a delivery that can no longer be settled."""
        dead = self._context.connection.dead
        return (
            lost(dead) if dead is not None else ProviderError(ErrorKind.CONNECTION, "its consumer has ended, so it comes again")
        )

    def count_rejecting(self, tag: StompTag, change: int) -> None:
        """Count deliveries whose copies are on their way to the dead letter queue."""
        consumer = self._by_serial.get(tag.consumer)
        if consumer is None:
            return
        consumer.rejecting += change
        if consumer.rejecting == 0:
            waiting, consumer.when_settled = consumer.when_settled, []
            for call in waiting:
                call()

    def held(self, tags: Sequence[StompTag]) -> list[tuple[StompTag, Envelope]]:
        """Return those of the tags that are not settled and can be, with their messages."""
        found: list[tuple[StompTag, Envelope]] = []
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            envelope = None if consumer is None or consumer.closing else consumer.unsettled.get(tag)
            if envelope is not None:
                found.append((tag, envelope))
        return found

    def forget(self, tags: Iterable[StompTag]) -> None:
        """Take deliveries as settled: their transaction is committed."""
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            if consumer is not None:
                consumer.settled(tag, self._context.behaviour.window_cost(tag.size))

    def _requeue_soon(self, consumer: StompConsumer) -> None:
        """Wait a moment before NACK: at once, the message would come again to a consumer that is about to be released."""

        def requeue() -> None:
            tags, consumer.requeued = consumer.requeued, []
            if not consumer.closing:
                self.requeue(tags)

        self._context.loop.later(_REQUEUE_S, requeue)
