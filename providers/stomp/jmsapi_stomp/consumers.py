"""Consumers over a wire without credit: what the broker pushes is held here until the core asks for it.

All on the I/O thread. A consumer's *unsettled* deliveries are those the broker has not been told about.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import Delivery, ErrorKind, ProviderError
from jmsapi_stomp.codec import StompEnvelope
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.control import Done
from jmsapi_stomp.ending import Ending
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.plans import Headers
from jmsapi_stomp.settling import REQUEUE
from jmsapi_stomp.wiring import ConsumerHandle, StompTag, Wiring, resolve

__all__ = ["Consumers"]

_SUBSCRIPTION: Final = b"\nsubscription:"
_ACK: Final = b"\nack:"
_BROWSER: Final = b"\nbrowser:"
_MESSAGE_ID: Final = b"\nmessage-id:"
_DESTINATION: Final = b"\ndestination:"
_MISSES: Final = 100
_FEW: Final = 8
_LOOK_S: Final = 60.0
_REST_S: Final = 0.25


class Consumers(Ending):
    """The consumers of a connection."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring)
        if wiring.dialect.delivery_patience is not None:
            wiring.loop.later(_LOOK_S, self._look_for_old)

    def find(self, handle: ConsumerHandle) -> Consumer | None:
        """Return the consumer of a handle, None when it is released."""
        return self._by_serial.get(handle.serial)

    def of_session(self, session: int) -> list[Consumer]:
        """Return the consumers of a session."""
        return [consumer for consumer in self._by_serial.values() if consumer.handle.session == session]

    # opening

    def subscribe(self, consumer: Consumer, done: Done) -> None:
        """Send SUBSCRIBE with no more than the core asked for, or without a limit where a full window could not be widened."""
        self._by_serial[consumer.handle.serial] = consumer
        bounded = consumer.plan.shareable or not consumer.spec.deferred_acks

        def answered(cause: ProviderError | None) -> None:
            if cause is not None:
                self.abandon(consumer, cause)
            consumer.open = cause is None
            consumer.arrived = self._wiring.clock.monotonic()
            done(cause)

        def subscribed(cause: ProviderError | None) -> None:
            if cause is None and consumer.plan.misses is not None:
                self._subscribe_to_misses(consumer, consumer.plan.misses, answered)
            else:
                answered(cause)

        size = max(consumer.spec.prefetch, 1)
        if size <= _FEW and consumer.plan.shareable and not self._wiring.dialect.exact_windows:
            size = 1  # one more at a time, when it is wanted: bytes would let too many small messages through
        self._subscribe(consumer, size if bounded else None, subscribed)

    def _subscribe_to_misses(self, consumer: Consumer, headers: Headers, done: Done) -> None:
        name = f"c{consumer.handle.serial}.misses"
        consumer.names.append(name)
        self._misses[name.encode()] = consumer
        start = [("id", name), ("destination", consumer.plan.destination), ("ack", "client-individual")]
        window = self._wiring.dialect.window(_MISSES, deferred=False)
        asked = "cannot consume what a selector refuses"
        consumer.link.request(asked, "SUBSCRIBE", [*start, *window, *headers], done, late=lambda: self.seen(consumer, name))

    def _subscribe(self, consumer: Consumer, size: int | None, done: Done) -> None:
        plan, spec, dialect = consumer.plan, consumer.spec, self._wiring.dialect
        wider = dialect.widens and bool(consumer.names)
        if wider:
            name = consumer.names[0]
        else:
            name = f"c{consumer.handle.serial}" + (f".{len(consumer.names)}" if consumer.names else "")
            consumer.names.append(name)
            self._by_name[name.encode()] = consumer
        if size is not None:
            consumer.size += size
            consumer.room += dialect.window_room(size, deferred=spec.deferred_acks)
        headers = [
            ("id", name),
            ("destination", plan.destination),
            ("ack", "auto" if plan.browse else "client-individual"),
            *dialect.window(size, deferred=spec.deferred_acks),
            *([("widen", "true")] if wider else plan.headers),
        ]
        asked = f"cannot consume from {spec.address.name!r}"
        consumer.link.request(asked, "SUBSCRIBE", headers, done, late=lambda: self.seen(consumer, name))

    def _widen(self, consumer: Consumer) -> None:
        """Make room when the application waits for more than the broker's window lets through: else it would wait for ever.

        By as many messages as are wanted, so that no more are held here than the core asked for; after a few times by as
        much again, for each time costs a subscription.
        """
        consumer.take_in()
        if not consumer.credit or consumer.buffer or not consumer.extensible or consumer.held < consumer.room * 0.9:
            return
        if len(consumer.names) < _FEW:
            size = min(consumer.credit, consumer.size)
        elif consumer.spec.deferred_acks:
            size = max(consumer.credit, consumer.size)
        else:
            return
        self._subscribe(consumer, size if self._wiring.dialect.exact_windows or size > _FEW else 1, lambda _: None)

    def _watch(self, consumer: Consumer) -> None:
        """Look in a moment whether the broker rests, when the application waits and holds more than one window."""
        if self._wiring.dialect.dispatch_may_rest and consumer.credit and len(consumer.names) > 1 and not consumer.watched:
            consumer.watched = True
            arrived = consumer.arrived
            self._wiring.loop.later(_REST_S, lambda: self._nudge(consumer, arrived))

    def _nudge(self, consumer: Consumer, arrived: float) -> None:
        """Make something happen to a queue once after each delivery: a consumer that selects nothing comes and goes.

        Classic 6.3.1 takes a page of 200 messages into memory, gives them out, and then may wait for an acknowledgement before
        it takes the next, although a further subscription has room
        (``test_a_consumer_that_acknowledges_late_gets_more_than_the_window_holds``).
        """
        consumer.watched = False
        if consumer.closing or not consumer.credit or consumer.buffer:
            return
        if consumer.arrived != arrived:
            self._watch(consumer)
            return
        name = f"n{consumer.handle.serial}.{len(consumer.names)}"
        nothing = [("selector", "JMS_PY_id IS NULL AND JMS_PY_id IS NOT NULL"), *self._wiring.dialect.window(1, deferred=False)]
        headers = [("id", name), ("destination", consumer.plan.destination), ("ack", "client-individual"), *nothing]

        def go(cause: ProviderError | None = None) -> None:
            if cause is None:
                consumer.link.request("cannot end a consumer", "UNSUBSCRIBE", [("id", name)], lambda _: None)

        consumer.link.request("cannot wake a queue", "SUBSCRIBE", headers, go, late=go)

    # receiving

    def on_messages(self, frames: Sequence[Frame]) -> None:
        """File what one read brought and hand on what there is credit for, one batch a consumer."""
        dialect = self._wiring.dialect
        batches: dict[Consumer, list[Delivery]] = {}
        for frame in frames:
            name = frame.raw(_SUBSCRIPTION) or b""
            consumer = self._by_name.get(name)
            if consumer is None:
                self._miss(name, frame)
                continue
            if consumer.abandoned:
                self.seen(consumer, name.decode())
            if consumer.told is not None:
                if consumer.told(frame):
                    consumer.link.write(b"ACK\nid:%b\n\n\0" % (frame.raw(_ACK) or b""))
                continue
            if consumer.plan.browse and frame.raw(_BROWSER) == b"end":
                consumer.shown = True
                batches.setdefault(consumer, [])
                continue
            if dialect.cannot_acknowledge(frame) and not consumer.plan.browse:
                self._unsettleable(consumer, frame)
                continue
            if consumer.plan.bound_to is not None and frame.raw(_DESTINATION) != consumer.plan.bound_to.encode():
                self._stray(consumer, frame)
            size = len(frame.head) + len(frame.body)
            tag = StompTag(consumer.handle.serial, frame.raw(_ACK) or b"", size, consumer.spec.deferred_acks)
            envelope = StompEnvelope(frame, dialect, consumer.spec.address)
            delivery = Delivery(tag, envelope, dialect.delivery_count(frame))
            if not consumer.plan.browse:
                consumer.unsettled[tag] = envelope
                consumer.held += dialect.window_cost(size)
            batch = batches.setdefault(consumer, [])
            if consumer.credit > 0 and not consumer.buffer:
                consumer.credit -= 1
                batch.append(delivery)
            else:
                if not consumer.buffer:
                    consumer.waits_since = self._wiring.clock.monotonic()
                consumer.buffer.append(delivery)
        now = self._wiring.clock.monotonic()
        for consumer, batch in batches.items():
            consumer.arrived = now
            if batch and not consumer.closing:  # else one of them has ended it, and all go back
                self._wiring.events.on_deliveries(consumer.handle, batch)
            if consumer.credit:
                self._widen(consumer)
                self._watch(consumer)
            self._end_drains(consumer)

    def _miss(self, name: bytes, frame: Frame) -> None:
        """Acknowledge what a selector refused."""
        consumer = self._misses.get(name)
        if consumer is not None and consumer.abandoned:
            self.seen(consumer, name.decode())
        elif consumer is not None:
            consumer.link.write(b"ACK\nid:%b\n\n\0" % (frame.raw(_ACK) or b""))

    def _stray(self, consumer: Consumer, frame: Frame) -> None:
        """End a consumer whose queue another process bound to another topic as well: its messages cannot be told apart later."""
        if consumer.closing:
            return
        name = frame.find(_DESTINATION)
        text = f"the subscription {consumer.spec.subscription!r} is bound to {name!r} as well: unsubscribe it first"
        self.close(consumer, ProviderError(ErrorKind.MISMATCH, text))

    def _unsettleable(self, consumer: Consumer, frame: Frame) -> None:
        """End a consumer that got what it could never settle; the message goes back."""
        if not consumer.closing:
            text = (
                f"a message of an AMQP client came from {consumer.spec.address.name!r} (id {frame.find(_MESSAGE_ID)!r}): "
                "Classic takes no acknowledgement over STOMP of a message whose id it did not make; consume it over AMQP"
            )
            self.close(consumer, ProviderError(ErrorKind.UNSUPPORTED, text))

    def credit(self, handle: ConsumerHandle, n: int) -> None:
        """Allow more deliveries and hand on what is held."""
        consumer = self.find(handle)
        if consumer is None or consumer.closing:
            return
        consumer.credit += n
        self._pump(consumer)
        self._widen(consumer)
        self._watch(consumer)

    def _pump(self, consumer: Consumer) -> None:
        count = min(consumer.credit, len(consumer.buffer))
        if count:
            batch = [consumer.buffer.popleft() for _ in range(count)]
            consumer.credit -= count
            self._wiring.events.on_deliveries(consumer.handle, batch)
            self._end_drains(consumer)

    def drain(self, handle: ConsumerHandle, future: Future[None]) -> None:
        """Take the credit back once nothing has come for the grace period: STOMP has no better way to ask."""
        consumer = self.find(handle)
        if consumer is None or consumer.closing or consumer.credit == 0:
            resolve(future, None)
            return
        consumer.drains.append(future)
        if consumer.plan.browse:
            self._end_drains(consumer)
        elif len(consumer.drains) == 1:
            grace = self._wiring.options.drain_ms / 1000
            self._wiring.loop.later(grace, lambda: self._quiet(consumer, grace))

    def _quiet(self, consumer: Consumer, grace: float) -> None:
        if not consumer.drains:
            return
        left = consumer.arrived + grace - self._wiring.clock.monotonic()
        if left > 0:
            self._wiring.loop.later(left, lambda: self._quiet(consumer, grace))
            return
        consumer.credit = 0
        self._end_drains(consumer)

    # waiting too long

    def _look_for_old(self) -> None:
        """Give back what waits here unasked for too long: RabbitMQ ends a connection that holds a message for 30 minutes."""
        patience = self._wiring.dialect.delivery_patience
        now = self._wiring.clock.monotonic()
        for consumer in list(self._by_serial.values()):
            if patience is not None and consumer.buffer and now - consumer.waits_since > patience:
                tags = [delivery.tag for delivery in consumer.buffer if isinstance(delivery.tag, StompTag)]
                consumer.buffer.clear()
                self.write(tags, b"NACK", REQUEUE, None)
        self._wiring.loop.later(_LOOK_S, self._look_for_old)
