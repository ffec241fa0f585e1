"""Consumers over a wire without credit: what the broker pushes is held here until the core asks for it.

All on the I/O thread. A consumer's *unsettled* deliveries are those the broker has not been told about. RELEASED and FAILED
take effect when the consumer is released: by UNSUBSCRIBE on Artemis and Classic; on RabbitMQ, where UNSUBSCRIBE locks what
is unsettled until the connection closes, by the void trick (``release``).
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import ConsumerSpec, Delivery, Outcome, ProviderError
from jmsapi_stomp.codec import StompEnvelope
from jmsapi_stomp.frames import Frame, command_frame
from jmsapi_stomp.link import Done, Link
from jmsapi_stomp.wiring import ConsumerHandle, StompTag, Wiring, fail, resolve

__all__ = ["Consumer", "Consumers"]

_GIVE_BACK: Final = 0.01
_SUBSCRIPTION: Final = b"\nsubscription:"
_ACK: Final = b"\nack:"


class Consumer:
    """One subscription and what is held of it."""

    __slots__ = (
        "arrived",
        "auto",
        "buffer",
        "closing",
        "credit",
        "drains",
        "given_back",
        "handle",
        "headers",
        "link",
        "open",
        "spec",
        "subscription",
        "unsettled",
    )

    def __init__(self, handle: ConsumerHandle, spec: ConsumerSpec, link: Link) -> None:
        self.handle = handle
        self.spec = spec
        self.link = link
        self.subscription = f"c{handle.serial}"
        self.headers: list[tuple[str, str]] = []
        self.credit = 0
        self.buffer: deque[Delivery] = deque()
        self.unsettled: set[StompTag] = set()
        self.given_back: list[StompTag] = []
        self.drains: list[Future[None]] = []
        self.arrived = 0.0
        self.open = False
        self.closing = False
        self.auto = False


class Consumers:
    """The consumers of a connection."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._by_serial: dict[int, Consumer] = {}
        self._by_subscription: dict[bytes, Consumer] = {}

    def find(self, handle: ConsumerHandle) -> Consumer | None:
        """Return the consumer of a handle, None when it is released."""
        return self._by_serial.get(handle.serial)

    def of_session(self, session: int) -> list[Consumer]:
        """Return the consumers of a session."""
        return [consumer for consumer in self._by_serial.values() if consumer.handle.session == session]

    # opening

    def subscribe(self, consumer: Consumer, destination: str, headers: Iterable[tuple[str, str]], done: Done) -> None:
        """Send SUBSCRIBE."""
        consumer.headers = [
            ("destination", destination),
            ("ack", "auto" if consumer.auto else "client-individual"),
            *headers,
        ]
        self._by_serial[consumer.handle.serial] = consumer
        self._by_subscription[consumer.subscription.encode()] = consumer

        def answered(cause: ProviderError | None) -> None:
            if cause is not None:
                self._forget(consumer)
            consumer.open = cause is None
            consumer.arrived = self._wiring.clock.monotonic()
            done(cause)

        asked = f"cannot consume from {consumer.spec.address.name!r}"
        consumer.link.request(asked, "SUBSCRIBE", [("id", consumer.subscription), *consumer.headers], answered)

    def _forget(self, consumer: Consumer) -> None:
        self._by_serial.pop(consumer.handle.serial, None)
        self._by_subscription.pop(consumer.subscription.encode(), None)

    # receiving

    def on_messages(self, frames: Sequence[Frame]) -> None:
        """File what one read brought and hand on what there is credit for, one batch a consumer."""
        dialect = self._wiring.dialect
        batches: dict[Consumer, list[Delivery]] = {}
        for frame in frames:
            consumer = self._by_subscription.get(frame.raw(_SUBSCRIPTION) or b"")
            if consumer is None:
                continue
            tag = StompTag(consumer.handle.serial, frame.raw(_ACK) or b"", len(frame.head) + len(frame.body))
            envelope = StompEnvelope(frame, dialect, consumer.spec.address)
            delivery = Delivery(tag, envelope, dialect.delivery_count(frame))
            consumer.unsettled.add(tag)
            if consumer.credit > 0 and not consumer.buffer:
                consumer.credit -= 1
                batches.setdefault(consumer, []).append(delivery)
            else:
                consumer.buffer.append(delivery)
                batches.setdefault(consumer, [])
        now = self._wiring.clock.monotonic()
        for consumer, batch in batches.items():
            consumer.arrived = now
            if batch:
                self._wiring.events.on_deliveries(consumer.handle, batch)
            self._end_drains(consumer)

    def credit(self, handle: ConsumerHandle, n: int) -> None:
        """Allow more deliveries and hand on what is held."""
        consumer = self.find(handle)
        if consumer is None or consumer.closing:
            return
        consumer.credit += n
        self._pump(consumer)

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
        if len(consumer.drains) == 1:
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

    def _end_drains(self, consumer: Consumer) -> None:
        if consumer.drains and consumer.credit == 0:
            drains, consumer.drains = consumer.drains, []
            for future in drains:
                resolve(future, None)

    # settling

    def settle(self, tags: Sequence[StompTag], outcome: Outcome, done: Done | None) -> None:
        """Settle outside a transaction. ``done``, if given, is called when the broker has answered.

        Artemis' REJECTED is not for here: it needs a copy to be sent first.
        """
        if outcome is Outcome.ACCEPTED:
            self.acknowledge(tags, done)
            return
        if outcome is Outcome.REJECTED:
            self._write(tags, b"NACK", b"requeue:false\n" if self._wiring.dialect.negative_ack_returns else b"", done)
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

    def acknowledge(self, tags: Sequence[StompTag], done: Done | None, transaction: str | None = None) -> None:
        """Write an ACK for each tag that is not settled yet."""
        more = b"transaction:%b\n" % transaction.encode() if transaction is not None else b""
        self._write(tags, b"ACK", more, done, keep=transaction is not None)

    def _write(self, tags: Sequence[StompTag], command: bytes, more: bytes, done: Done | None, *, keep: bool = False) -> None:
        frames: list[bytes] = []
        link = self._wiring.link
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            if consumer is None or tag not in consumer.unsettled:
                continue
            if consumer.link is not link and frames:
                link.write(b"".join(frames))
                frames = []
            link = consumer.link
            frames.append(b"%b\nid:%b\n%b\n\0" % (command, tag.ack, more))
            if not keep:
                consumer.unsettled.discard(tag)
        if done is None:
            if frames:
                link.write(b"".join(frames))
        elif not frames:
            done(None)
        else:
            if len(frames) > 1:
                link.write(b"".join(frames[:-1]))
            link.confirmed(frames[-1], done)

    def forget(self, tags: Iterable[StompTag]) -> None:
        """Take deliveries as settled: their transaction is committed."""
        for tag in tags:
            consumer = self._by_serial.get(tag.consumer)
            if consumer is not None:
                consumer.unsettled.discard(tag)

    def _later_give_back(self, consumer: Consumer) -> None:
        """Wait a moment before NACK: at once the message would come again to a consumer that is about to be released."""

        def give_back() -> None:
            tags, consumer.given_back = consumer.given_back, []
            if not consumer.closing:
                self._write(tags, b"NACK", b"requeue:true\n", None)

        self._wiring.loop.later(_GIVE_BACK, give_back)

    # closing

    def release(self, consumer: Consumer, done: Done) -> None:
        """End a consumer; what it holds unsettled goes back to the broker."""
        if consumer.closing or consumer.handle.serial not in self._by_serial:
            done(None)
            return
        consumer.closing = True
        consumer.credit = 0
        consumer.buffer.clear()
        self._end_drains(consumer)

        def gone(_: ProviderError | None) -> None:
            self._forget(consumer)
            done(None)

        def leave() -> None:
            asked = f"cannot end the consumer of {consumer.spec.address.name!r}"
            consumer.link.request(asked, "UNSUBSCRIBE", [("id", consumer.subscription)], gone)

        if self._wiring.dialect.closing_returns or consumer.auto:
            leave()
        else:
            self._void(consumer, leave, gone)

    def _void(self, consumer: Consumer, leave: Callable[[], None], gone: Done) -> None:
        """Move the subscription's id to an empty private queue, give back what it held, then leave.

        RabbitMQ 4.0 takes ACK and NACK only while the id is subscribed to something. UNSUBSCRIBE and SUBSCRIBE go in one
        write: it then handles both before the deliveries that are still in its hands, and sends us those as well, instead
        of an ERROR "Subscription not found" that would leave them locked until the connection closes. They come before
        the answer to whatever we send next, so one more exchange lets us see them all
        (``test_releasing_a_consumer_gives_everything_back``).
        """
        give_back = b"requeue:true\n"
        turn = f"void-{uuid.uuid4()}"

        def moved(cause: ProviderError | None) -> None:
            if cause is not None:
                gone(cause)
                return
            self._write(list(consumer.unsettled), b"NACK", give_back, None)
            consumer.link.confirmed(command_frame("BEGIN", [("transaction", turn)]), seen)

        def seen(_: ProviderError | None) -> None:
            consumer.link.write(command_frame("ABORT", [("transaction", turn)]))
            self._write(list(consumer.unsettled), b"NACK", give_back, None)
            leave()

        headers = [
            ("id", consumer.subscription),
            ("destination", f"/queue/jmsapi.void.{uuid.uuid4()}"),
            ("ack", "client-individual"),
            ("exclusive", "true"),
            ("durable", "false"),
            ("auto-delete", "true"),
            ("prefetch-count", "1"),
        ]
        first = command_frame("UNSUBSCRIBE", [("id", consumer.subscription)])
        consumer.link.request("cannot end a consumer", "SUBSCRIBE", headers, moved, first=first)

    def all_lost(self, link: Link, cause: ProviderError) -> list[Consumer]:
        """Forget the consumers of a link that is gone and return them."""
        gone = [consumer for consumer in self._by_serial.values() if consumer.link is link]
        for consumer in gone:
            consumer.closing = True
            consumer.buffer.clear()
            drains, consumer.drains = consumer.drains, []
            for future in drains:
                fail(future, cause)
            self._forget(consumer)
        return gone
