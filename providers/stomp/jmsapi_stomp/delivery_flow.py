"""Deliveries over a wire without credit: what the broker pushes is held here until the core asks for it.

All of it runs on the I/O thread. A consumer's *unsettled* deliveries are those that the broker has not been told about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import Delivery, ErrorKind, ProviderError, resolve
from jmsapi_stomp.answers import Done
from jmsapi_stomp.codec import StompEnvelope
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.consumer_release import ConsumerRelease, end_drains
from jmsapi_stomp.consumer_table import ConsumerTable
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.frames import Frame, UnreadableMessage, text_of
from jmsapi_stomp.handles import ConsumerHandle, StompTag
from jmsapi_stomp.settlement import StompSettlement
from jmsapi_stomp.subscribe_plan import Headers

__all__ = ["DeliveryFlow"]

_SUBSCRIPTION: Final = b"\nsubscription:"
_ACK: Final = b"\nack:"
_BROWSER: Final = b"\nbrowser:"
_DESTINATION: Final = b"\ndestination:"
_MISSES: Final = 100
_FEW: Final = 8
_LOOK_S: Final = 60.0
_REST_S: Final = 0.25


class DeliveryFlow:
    """Subscribes the consumers of a connection, hands their deliveries to the core, and keeps their windows open."""

    def __init__(
        self, context: StompContext, table: ConsumerTable, settlement: StompSettlement, release: ConsumerRelease
    ) -> None:
        self._context = context
        self._table = table
        self._settlement = settlement
        self._release = release
        if context.behaviour.delivery_patience is not None:
            context.loop.later(_LOOK_S, self._return_old)

    # opening

    def subscribe(self, consumer: StompConsumer, done: Done) -> None:
        """Send SUBSCRIBE for no more than the core asked for, or without a limit where a full window could not be widened."""
        self._table.by_serial[consumer.handle.serial] = consumer
        bounded = consumer.plan.shareable or not (consumer.spec.deferred_acks or consumer.plan.unbounded)

        def answered(cause: ProviderError | None) -> None:
            if cause is not None:
                self._release.abandon(consumer, cause)
            consumer.open = cause is None
            consumer.arrived = self._context.clock.monotonic()
            done(cause)

        def subscribed(cause: ProviderError | None) -> None:
            if cause is None and consumer.plan.misses is not None:
                self._subscribe_to_misses(consumer, consumer.plan.misses, answered)
            else:
                answered(cause)

        size = max(consumer.spec.prefetch, 1)
        if size <= _FEW and consumer.plan.shareable and not self._context.behaviour.exact_windows:
            size = 1  # one more at a time, when it is wanted: bytes would let too many small messages through
        self._subscribe(consumer, size if bounded else None, subscribed)

    def _subscribe_to_misses(self, consumer: StompConsumer, headers: Headers, done: Done) -> None:
        name = f"c{consumer.handle.serial}.misses"
        consumer.names.append(name)
        self._table.misses[name.encode()] = consumer
        start = [("id", name), ("destination", consumer.plan.destination), ("ack", "client-individual")]
        window = self._context.behaviour.window(_MISSES, deferred=False)
        asked = "cannot consume what a selector refuses"
        headers = [*start, *window, *headers]
        consumer.connection.request(asked, "SUBSCRIBE", headers, done, late=lambda: self._release.seen(consumer, name))

    def _subscribe(self, consumer: StompConsumer, size: int | None, done: Done) -> None:
        plan, spec, behaviour = consumer.plan, consumer.spec, self._context.behaviour
        wider = behaviour.widens and bool(consumer.names)
        if wider:
            name = consumer.names[0]
        else:
            name = f"c{consumer.handle.serial}" + (f".{len(consumer.names)}" if consumer.names else "")
            consumer.names.append(name)
            self._table.by_name[name.encode()] = consumer
        if size is not None:
            consumer.size += size
            consumer.room += behaviour.window_room(size, deferred=spec.deferred_acks)
        headers = [
            ("id", name),
            ("destination", plan.destination),
            ("ack", "auto" if plan.browse else "client-individual"),
            *behaviour.window(size, deferred=spec.deferred_acks),
            *([("widen", "true")] if wider else plan.headers),
        ]
        asked = f"cannot consume from {spec.address.name!r}"
        consumer.connection.request(asked, "SUBSCRIBE", headers, done, late=lambda: self._release.seen(consumer, name))

    def _widen(self, consumer: StompConsumer) -> None:
        """Make room when the application waits for more than the broker's window lets through: else it would wait for ever.

        By as many messages as are wanted, so that no more are held here than the core asked for; after a few times by as
        much again, for each time costs a subscription.
        """
        consumer.count_settled_elsewhere()
        if not consumer.credit or consumer.buffer or not consumer.extensible or consumer.held < consumer.room * 0.9:
            return
        if len(consumer.names) < _FEW:
            size = min(consumer.credit, consumer.size)
        elif consumer.spec.deferred_acks:
            size = max(consumer.credit, consumer.size)
        else:
            return
        self._subscribe(consumer, size if self._context.behaviour.exact_windows or size > _FEW else 1, lambda _: None)

    def _check_for_rest(self, consumer: StompConsumer) -> None:
        """Look in a moment whether the broker rests, when the application waits and holds more than one window."""
        may_rest = self._context.behaviour.dispatch_may_rest and consumer.credit and len(consumer.names) > 1
        if may_rest and not consumer.rest_check:
            consumer.rest_check = True
            arrived = consumer.arrived
            self._context.loop.later(_REST_S, lambda: self._wake_queue(consumer, arrived))

    def _wake_queue(self, consumer: StompConsumer, arrived: float) -> None:
        """Make something happen to a queue once after each delivery: a consumer that selects nothing comes and goes.

        Classic 6.3.1 takes a page of 200 messages into memory, dispatches them, and then may wait for an acknowledgement
        before it takes the next page, although a further subscription has room
        (``test_a_consumer_that_acknowledges_late_gets_more_than_the_window_holds``).
        """
        consumer.rest_check = False
        if consumer.closing or not consumer.credit or consumer.buffer:
            return
        if consumer.arrived != arrived:
            self._check_for_rest(consumer)
            return
        name = f"n{consumer.handle.serial}.{len(consumer.names)}"
        nothing = [
            ("selector", "JMS_PY_id IS NULL AND JMS_PY_id IS NOT NULL"),
            *self._context.behaviour.window(1, deferred=False),
        ]
        headers = [("id", name), ("destination", consumer.plan.destination), ("ack", "client-individual"), *nothing]

        def go(cause: ProviderError | None = None) -> None:
            if cause is None:
                consumer.connection.request("cannot end a consumer", "UNSUBSCRIBE", [("id", name)], lambda _: None)

        consumer.connection.request("cannot wake a queue", "SUBSCRIBE", headers, go, late=go)

    # receiving

    def on_messages(self, frames: Sequence[Frame]) -> None:
        """File what one read brought and hand on what there is credit for, in one batch for each consumer.

        Raises:
            UnreadableMessage: One of them names no subscription.
        """
        behaviour, by_name = self._context.behaviour, self._table.by_name
        batches: dict[StompConsumer, list[Delivery]] = {}
        for frame in frames:
            name = frame.raw(_SUBSCRIPTION) or b""
            consumer = by_name.get(name)
            if consumer is None:
                self._on_miss(name, frame)
                continue
            browse = consumer.plan.browse
            if (consumer.unusual or browse) and self._set_aside(consumer, name, frame, batches):
                continue
            why = behaviour.why_unsettleable(frame)
            if why is not None and not browse:
                self._on_unsettleable(consumer, why)
                continue
            size = len(frame.head) + len(frame.body)
            confirmed = consumer.spec.deferred_acks or behaviour.confirms_acknowledgements
            tag = StompTag(consumer.handle.serial, frame.raw(_ACK) or b"", size, confirmed)
            envelope = StompEnvelope(frame, behaviour, consumer.spec.address)
            delivery = Delivery(tag, envelope, behaviour.delivery_count(frame))
            if not browse:
                consumer.unsettled[tag] = envelope
                consumer.held += behaviour.window_cost(size)
            batch = batches.setdefault(consumer, [])
            if consumer.credit > 0 and not consumer.buffer:
                consumer.credit -= 1
                batch.append(delivery)
            else:
                if not consumer.buffer:
                    consumer.waits_since = self._context.clock.monotonic()
                consumer.buffer.append(delivery)
        self._hand_over(batches)

    def _hand_over(self, batches: dict[StompConsumer, list[Delivery]]) -> None:
        now = self._context.clock.monotonic()
        for consumer, batch in batches.items():
            consumer.arrived = now
            if batch and not consumer.closing:  # else a message of the batch ended the consumer, and all go back
                self._context.events.on_deliveries(consumer.handle, batch)
            if consumer.credit:
                self._widen(consumer)
                self._check_for_rest(consumer)
            end_drains(consumer)

    def _set_aside(
        self, consumer: StompConsumer, name: bytes, frame: Frame, batches: dict[StompConsumer, list[Delivery]]
    ) -> bool:
        """Deal with a frame for an unusual consumer; False when it is a delivery all the same."""
        if consumer.abandoned:
            self._release.seen(consumer, name.decode())
        if consumer.handler is not None:
            if consumer.handler(frame):
                consumer.connection.write(b"ACK\nid:%b\n\n\0" % (frame.raw(_ACK) or b""))
            return True
        if consumer.plan.browse and frame.raw(_BROWSER) == b"end":
            consumer.browsed = True
            batches.setdefault(consumer, [])
            return True
        if consumer.plan.bound_to is not None and frame.raw(_DESTINATION) != consumer.plan.bound_to.encode():
            self._on_foreign_binding(consumer, frame)
        return False

    def _on_miss(self, name: bytes, frame: Frame) -> None:
        """Acknowledge what a selector refused, and drop what comes late for a subscription that has ended.

        Raises:
            UnreadableMessage: The frame names no subscription, so that somebody may wait for it in vain.
        """
        if not name:
            raise UnreadableMessage(frame, "it is a MESSAGE without a subscription")
        try:
            text_of(name)
        except ProviderError as fault:
            raise UnreadableMessage(frame, f"its subscription cannot be: {fault.message}") from fault
        consumer = self._table.misses.get(name)
        if consumer is not None and consumer.abandoned:
            self._release.seen(consumer, name.decode())
        elif consumer is not None:
            consumer.connection.write(b"ACK\nid:%b\n\n\0" % (frame.raw(_ACK) or b""))

    def _on_foreign_binding(self, consumer: StompConsumer, frame: Frame) -> None:
        """End a consumer whose queue another process bound to another topic as well: its messages cannot be told apart later."""
        if consumer.closing:
            return
        name = frame.find(_DESTINATION)
        text = f"the subscription {consumer.spec.subscription!r} is bound to {name!r} as well: unsubscribe it first"
        self._release.close(consumer, ProviderError(ErrorKind.MISMATCH, text))

    def _on_unsettleable(self, consumer: StompConsumer, why: str) -> None:
        """End a consumer that got a message which it could never settle; the message goes back."""
        if not consumer.closing:
            text = f"a message from {consumer.spec.address.name!r} cannot be acknowledged: {why}"
            self._release.close(consumer, ProviderError(ErrorKind.UNSUPPORTED, text))

    def credit(self, handle: ConsumerHandle, n: int) -> None:
        """Allow more deliveries and hand on what is held."""
        consumer = self._table.find(handle)
        if consumer is None or consumer.closing:
            return
        consumer.credit += n
        self._hand_on(consumer)
        if consumer.wants is not None:
            self._fetch(consumer, consumer.wants)
            return
        self._widen(consumer)
        self._check_for_rest(consumer)

    def _hand_on(self, consumer: StompConsumer) -> None:
        count = min(consumer.credit, len(consumer.buffer))
        if count:
            batch = [consumer.buffer.popleft() for _ in range(count)]
            consumer.credit -= count
            self._context.events.on_deliveries(consumer.handle, batch)
            end_drains(consumer)

    def show(self, consumer: StompConsumer, frames: Sequence[Frame]) -> None:
        """Hand on what was fetched for a browser; nothing is the end."""
        if consumer.closing:
            return
        behaviour = self._context.behaviour
        for frame in frames:
            tag = StompTag(consumer.handle.serial, b"", len(frame.head) + len(frame.body), False)
            envelope = StompEnvelope(frame, behaviour, consumer.spec.address)
            consumer.buffer.append(Delivery(tag, envelope, behaviour.delivery_count(frame)))
        consumer.browsed = not frames
        self._hand_on(consumer)
        end_drains(consumer)
        if consumer.wants is not None:
            self._fetch(consumer, consumer.wants)

    def _fetch(self, consumer: StompConsumer, wants: Callable[[], None]) -> None:
        if consumer.credit and not consumer.buffer and not consumer.browsed:
            wants()

    def drain(self, handle: ConsumerHandle, future: Future[None]) -> None:
        """Take the credit back once nothing has come for the grace period: STOMP has no better way to ask."""
        consumer = self._table.find(handle)
        if consumer is None or consumer.closing or consumer.credit == 0:
            resolve(future, None)
            return
        consumer.drains.append(future)
        if consumer.plan.browse:
            end_drains(consumer)
        elif len(consumer.drains) == 1:
            grace = self._context.options.drain_ms / 1000
            self._context.loop.later(grace, lambda: self._end_drain(consumer, grace))

    def _end_drain(self, consumer: StompConsumer, grace: float) -> None:
        if not consumer.drains:
            return
        left = consumer.arrived + grace - self._context.clock.monotonic()
        if left > 0:
            self._context.loop.later(left, lambda: self._end_drain(consumer, grace))
            return
        consumer.credit = 0
        end_drains(consumer)

    # waiting too long

    def _return_old(self) -> None:
        """Return what waits here unasked for too long: RabbitMQ ends a connection that holds a message for 30 minutes."""
        patience = self._context.behaviour.delivery_patience
        now = self._context.clock.monotonic()
        for consumer in list(self._table.by_serial.values()):
            if patience is not None and consumer.buffer and now - consumer.waits_since > patience:
                tags = [delivery.tag for delivery in consumer.buffer if isinstance(delivery.tag, StompTag)]
                consumer.buffer.clear()
                self._settlement.requeue(tags)
        self._context.loop.later(_LOOK_S, self._return_old)
