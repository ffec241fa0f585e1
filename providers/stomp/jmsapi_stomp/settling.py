"""What the broker is told of deliveries: ACK, NACK, or nothing until the consumer ends.

All on the I/O thread, but ``acknowledge_now``. RELEASED and FAILED take effect by NACK on RabbitMQ and when the consumer is
released elsewhere. What a consumer held that has ended, or is about to, goes back to the broker: nobody can settle it any
more, and whoever tries is told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jmsapi.spi import ErrorKind, Outcome, ProviderError
from jmsapi_stomp.codec import StompEnvelope
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.control import Done
from jmsapi_stomp.errors import lost
from jmsapi_stomp.link import Link
from jmsapi_stomp.wiring import StompTag, Wiring

__all__ = ["REQUEUE", "Settling"]

_GIVE_BACK: Final = 0.01
REQUEUE: Final = b"requeue:true\n"


class Settling:
    """Settles deliveries of the consumers it knows."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._by_serial: dict[int, Consumer] = {}

    def settle(self, tags: Sequence[StompTag], outcome: Outcome, done: Done | None, failures: Sequence[int] = ()) -> None:
        """Settle outside a transaction. ``done``, if given, is called when the broker has answered.

        Artemis' REJECTED is not for here: it needs a copy to be sent first.
        """
        if outcome is Outcome.ACCEPTED:
            self.acknowledge(tags, done)
            return
        if self._wiring.dialect.names_outcomes:
            self._name_outcomes(tags, outcome, done, failures)
            return
        if outcome is Outcome.REJECTED:
            self.write(tags, b"NACK", b"requeue:false\n" if self._wiring.dialect.negative_ack_returns else b"", done)
            return
        if self._wiring.dialect.negative_ack_returns:
            for tag in tags:
                consumer = self._by_serial.get(tag.consumer)
                if consumer is not None and tag in consumer.unsettled:
                    if not consumer.given_back:
                        self._later_give_back(consumer)
                    consumer.given_back.append(tag)
        if done is not None:
            done(None)

    def _name_outcomes(self, tags: Sequence[StompTag], outcome: Outcome, done: Done | None, failures: Sequence[int]) -> None:
        """Write a NACK for each tag that says all; only what is rejected waits for an answer."""
        said = b"outcome:%b\n" % outcome.value.encode()
        if outcome is Outcome.REJECTED:
            self.write(tags, b"NACK", said, done)
            return
        if failures and outcome is Outcome.FAILED:
            for tag, count in zip(tags, failures, strict=True):
                self.write([tag], b"NACK", b"%bfailures:%d\n" % (said, count), None)
        else:
            self.write(tags, b"NACK", said, None)
        if done is not None:
            done(None)

    def acknowledge_now(self, tag: StompTag) -> bool:
        """Write one ACK from the thread that settles, while the I/O thread sleeps; False when that is for the I/O thread."""
        consumer = self._by_serial.get(tag.consumer)
        if consumer is None or consumer.closing:
            return False
        # Whoever takes it out settles it: the other thread may be about to give everything back.
        envelope = consumer.unsettled.pop(tag, None)
        if envelope is None:
            return False
        if consumer.link.write_now(b"ACK\nid:%b\n\n\0" % tag.ack):
            consumer.settled_aside.append(self._wiring.dialect.window_cost(tag.size))
            return True
        consumer.unsettled[tag] = envelope
        return False

    def acknowledge_one(self, tag: StompTag, written: Done) -> None:
        """Write one ACK that is not settled yet; ``written`` is called when it has left."""
        consumer = self._by_serial.get(tag.consumer)
        if consumer is None or consumer.closing or not consumer.settled(tag, self._wiring.dialect.window_cost(tag.size)):
            written(self.too_late())
            return
        consumer.link.write(b"ACK\nid:%b\n\n\0" % tag.ack, written)

    def acknowledge(self, tags: Sequence[StompTag], done: Done | None, transaction: str | None = None) -> None:
        """Write an ACK for each tag that is not settled yet."""
        more = b"transaction:%b\n" % transaction.encode() if transaction is not None else b""
        self.write(tags, b"ACK", more, done, keep=transaction is not None)

    def write(
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
            done: Called when the broker has answered for all, or with why it was not told of all.
            keep: They stay unsettled: their transaction may be rolled back.
            ending: Also those of consumers that are about to end.
        """
        frames: dict[Link, list[bytes]] = {}
        consumers: set[Consumer] = set()
        gone = False
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            cost = self._wiring.dialect.window_cost(tag.size)
            if consumer is None or (consumer.closing and not ending):
                gone = True
            elif tag in consumer.unsettled if keep else consumer.settled(tag, cost):
                consumers.add(consumer)
                frames.setdefault(consumer.link, []).append(b"%b\nid:%b\n%b\n\0" % (command, tag.ack, more))
            else:
                gone = True
        if done is not None:
            done = self._awaited(consumers, len(frames) + gone, done)
        for link, written in frames.items():
            last = None if done is None else written.pop()
            if written:
                link.write(b"".join(written))
            if done is not None and last is not None:
                link.confirmed(last, done)
        if done is not None and gone:
            done(self.too_late())

    def _awaited(self, consumers: set[Consumer], answers: int, done: Done) -> Done:
        """Return what takes the answers and calls ``done`` once: after the last, or with the first that is none.

        RabbitMQ answers nothing to an acknowledgement that its end of the consumer overtakes, so that end is an answer.
        """
        left, told = answers, False

        def one(cause: ProviderError | None) -> None:
            nonlocal left, told
            left -= 1
            if told or (left > 0 and cause is None):
                return
            told = True
            for consumer in consumers:
                consumer.awaiting.discard(one)
            done(cause)

        for consumer in consumers:
            consumer.awaiting.add(one)
        if not answers:
            one(None)
        return one

    def ended(self, tags: Iterable[StompTag]) -> bool:
        """Return whether a delivery among them can no longer be settled."""
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            if consumer is None or consumer.closing or tag not in consumer.unsettled:
                return True
        return False

    def too_late(self) -> ProviderError:
        """Return what is said of a delivery that can no longer be settled."""
        dead = self._wiring.link.dead
        return (
            lost(dead) if dead is not None else ProviderError(ErrorKind.CONNECTION, "its consumer has ended, so it comes again")
        )

    def rejecting(self, tag: StompTag, change: int) -> None:
        """Count deliveries whose copies are on their way to the dead letter queue."""
        consumer = self._by_serial.get(tag.consumer)
        if consumer is None:
            return
        consumer.rejecting += change
        if consumer.rejecting == 0:
            waiting, consumer.when_settled = consumer.when_settled, []
            for call in waiting:
                call()

    def held(self, tags: Sequence[StompTag]) -> list[tuple[StompTag, StompEnvelope]]:
        """Return those of the tags that are not settled and can be, with their messages."""
        found: list[tuple[StompTag, StompEnvelope]] = []
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
                consumer.settled(tag, self._wiring.dialect.window_cost(tag.size))

    def _later_give_back(self, consumer: Consumer) -> None:
        """Wait a moment before NACK: at once the message would come again to a consumer that is about to be released."""

        def give_back() -> None:
            tags, consumer.given_back = consumer.given_back, []
            if not consumer.closing:
                self.write(tags, b"NACK", REQUEUE, None)

        self._wiring.loop.later(_GIVE_BACK, give_back)
