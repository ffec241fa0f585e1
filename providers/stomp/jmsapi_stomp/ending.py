"""Consumers that end: released, closed by the broker or by us, or never had although the broker may have them.

All on the I/O thread. RELEASED and FAILED take effect when a consumer is released: by UNSUBSCRIBE on Artemis and Classic; on
RabbitMQ, where UNSUBSCRIBE locks what is unsettled until the connection closes, by the void trick (``_void``).

A SUBSCRIBE that got no answer in time may be answered later, and the broker then has a subscription that takes messages for
nobody. An UNSUBSCRIBE behind it at once would be an ERROR where the SUBSCRIBE is refused after all, and end the connection
with it (Artemis). So the first sign of life, an answer or a message, ends it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.link import Link
from jmsapi_stomp.settling import REQUEUE, Settling
from jmsapi_stomp.steps import Steps, run
from jmsapi_stomp.wiring import Wiring, fail, resolve

__all__ = ["Ending"]

_UNSURE: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.PROTOCOL})
"""What was asked may have been done: no answer came, or one that may have been another frame's."""


class Ending(Settling):
    """Ends the consumers of a connection."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring)
        self._by_name: dict[bytes, Consumer] = {}
        self._misses: dict[bytes, Consumer] = {}
        self.on_gone: Callable[[Consumer], object] = lambda _: None
        """Told of a consumer that ended by itself."""

    def release(self, consumer: Consumer, done: Done) -> None:
        """End a consumer; what it holds unsettled goes back to the broker."""
        if consumer.closing or consumer.handle.serial not in self._by_serial:
            done(None)
            return
        if consumer.rejecting:
            # Copies are on their way: their messages are acknowledged first, for afterwards they cannot be.
            consumer.when_settled.append(lambda: self.release(consumer, done))
            return
        self._stop(consumer)
        left = len(consumer.names)

        def gone(_: ProviderError | None) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done(None)

        for name in list(consumer.names):
            self._end(consumer, name, gone)

    def close(self, consumer: Consumer, cause: ProviderError) -> None:
        """End a consumer that cannot go on, and say so; what it holds goes back."""
        self._say(consumer, cause)
        self.release(consumer, lambda _: self.on_gone(consumer))

    def cancelled(self, name: str, text: str) -> None:
        """Take note that the broker has ended a subscription: its queue is gone."""
        consumer = self._by_name.get(name.encode())
        if consumer is None:
            return
        for one in list(consumer.awaiting):
            one(self.too_late())
        self._drop(consumer, name)
        if not consumer.closing:
            cause = f"the broker ended the consumer of {consumer.spec.address.name!r}: {text}"
            self._say(consumer, ProviderError(ErrorKind.DESTINATION, cause))
            consumer.closing = consumer.abandoned = True
            self.on_gone(consumer)

    def abandon(self, consumer: Consumer, cause: ProviderError) -> None:
        """Take note that a consumer cannot be had, the last of its subscriptions failed; no other may be left behind."""
        self._stop(consumer)
        consumer.abandoned = True
        *had, last = consumer.names
        if consumer.link.dead is not None or cause.kind not in _UNSURE:
            self._drop(consumer, last)
        for name in had:
            self._end(consumer, name, lambda _: None)

    def seen(self, consumer: Consumer, name: str) -> None:
        """Take note that the broker has a subscription: it is ended if nobody has the consumer."""
        if consumer.abandoned and name in consumer.names and name not in consumer.ending:
            self._end(consumer, name, lambda _: self.on_gone(consumer))

    def all_lost(self, link: Link | None, cause: ProviderError) -> list[Consumer]:
        """Forget the consumers of a link that is gone, or of all, and return those that the core has."""
        gone = [consumer for consumer in self._by_serial.values() if link is None or consumer.link is link]
        for consumer in gone:
            consumer.closing = True
            consumer.buffer.clear()
            _fail_drains(consumer, cause)
            for name in list(consumer.names):
                self._drop(consumer, name)
        return [consumer for consumer in gone if not consumer.abandoned]

    def _say(self, consumer: Consumer, cause: ProviderError) -> None:
        consumer.credit = 0
        consumer.buffer.clear()
        _fail_drains(consumer, cause)
        self._wiring.events.on_closed(consumer.handle, cause)

    def _stop(self, consumer: Consumer) -> None:
        consumer.closing = True
        consumer.credit = 0
        consumer.buffer.clear()
        self._end_drains(consumer)

    def _end_drains(self, consumer: Consumer) -> None:
        if consumer.shown and not consumer.buffer:
            consumer.credit = 0
        if consumer.drains and consumer.credit == 0:
            drains, consumer.drains = consumer.drains, []
            for future in drains:
                resolve(future, None)

    def _drop(self, consumer: Consumer, name: str) -> None:
        """Forget a subscription, and with the last one the consumer."""
        if name in consumer.names:
            consumer.names.remove(name)
        self._by_name.pop(name.encode(), None)
        self._misses.pop(name.encode(), None)
        if not consumer.names:
            self._by_serial.pop(consumer.handle.serial, None)

    def _end(self, consumer: Consumer, name: str, done: Done) -> None:
        """End a subscription. One whose end is not sure is kept in mind: what it still brings must go back."""
        consumer.ending.add(name)
        returns = self._wiring.dialect.closing_returns or consumer.plan.browse

        def ended(cause: ProviderError | None) -> None:
            if returns or cause is None or cause.kind not in _UNSURE or consumer.link.dead is not None:
                self._drop(consumer, name)
            done(cause)

        if returns:
            self._leave(consumer, name, ended)
        else:
            run(self._void(consumer, name), ended)

    def _leave(self, consumer: Consumer, name: str, done: Done) -> None:
        asked = f"cannot end the consumer of {consumer.spec.address.name!r}"
        consumer.link.request(asked, "UNSUBSCRIBE", [("id", name)], done, late=lambda: self._drop(consumer, name))

    def _void(self, consumer: Consumer, name: str) -> Steps[None]:
        """Move a subscription's id to an empty private queue, give back what it held, then leave.

        RabbitMQ 4.0 takes ACK and NACK only while the id is subscribed to something. UNSUBSCRIBE and SUBSCRIBE go in one
        write: it then handles both before the deliveries that are still in its hands, and sends us those as well, instead
        of an ERROR "Subscription not found" that would leave them locked until the connection closes. They come before
        the answer to whatever we send next, so one more exchange lets us see them all
        (``test_releasing_a_consumer_gives_everything_back``).
        """
        turn = f"void-{uuid.uuid4()}"
        headers = [
            ("id", name),
            ("destination", f"/queue/jmsapi.{turn}"),
            ("ack", "client-individual"),
            *self._wiring.dialect.lock_headers(),
        ]
        first = command_frame("UNSUBSCRIBE", [("id", name)])

        def late() -> None:
            run(self._give_back(consumer, name, turn), lambda _: self._drop(consumer, name))

        asked = "cannot end a consumer"
        yield lambda done: consumer.link.request(asked, "SUBSCRIBE", headers, done, first=first, late=late)
        yield from self._give_back(consumer, name, turn)

    def _give_back(self, consumer: Consumer, name: str, turn: str) -> Steps[None]:
        link = consumer.link
        self.write(list(consumer.unsettled), b"NACK", REQUEUE, None, ending=True)
        yield lambda done: link.confirmed(command_frame("BEGIN", [("transaction", turn)]), done)
        link.write(command_frame("ABORT", [("transaction", turn)]))
        self.write(list(consumer.unsettled), b"NACK", REQUEUE, None, ending=True)
        yield lambda done: self._leave(consumer, name, done)


def _fail_drains(consumer: Consumer, cause: ProviderError) -> None:
    drains, consumer.drains = consumer.drains, []
    for future in drains:
        fail(future, cause)
