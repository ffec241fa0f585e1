"""What the provider consumes for itself: to see whether something comes, and to empty queues.

Whatever becomes of the question, the consumer that was to answer it is released: it would take messages for nobody. All on
the I/O thread.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.plans import Plan
from jmsapi_stomp.steps import Steps
from jmsapi_stomp.wiring import ConsumerHandle, Wiring

__all__ = ["Aside"]

_GRACE_MS: Final = 50
_LONG_GRACE_MS: Final = 200
_LOOKS: Final = 100
_PROBE_MS: Final = 3_600_000


class Aside:
    """Consumers of our own on the main connection."""

    def __init__(self, wiring: Wiring, consumers: Consumers) -> None:
        self._wiring = wiring
        self._consumers = consumers
        self._serials = count(1)
        self._forwards = False
        """The broker was seen to copy a virtual topic's messages."""

    def consumer(self, plan: Plan) -> Consumer:
        """Return a consumer that the core does not know, not subscribed yet."""
        spec = ConsumerSpec(Address(DestinationKind.QUEUE, plan.destination), prefetch=1000)
        return Consumer(ConsumerHandle(-next(self._serials), 0, False), spec, plan, self._wiring.link)

    def by(self, plan: Plan, steps: Callable[[Consumer], Steps[None]]) -> Steps[None]:
        """Go through steps with a consumer, and release it at their end, whichever it is."""
        consumer = self.consumer(plan)
        yield partial(self._consumers.subscribe, consumer)
        failure: ProviderError | None = None
        try:
            yield from steps(consumer)
        except ProviderError as cause:
            failure = cause
        yield partial(self._consumers.release, consumer)
        if failure is not None:
            raise failure

    def arrival(self, consumer: Consumer) -> Steps[None]:
        """Wait for a message, but not for ever."""
        for _ in range(_LOOKS):
            if consumer.unsettled:
                break
            yield self._grace

    def _grace(self, done: Done) -> None:
        self._wiring.loop.later(max(self._wiring.options.drain_ms, _GRACE_MS) / 1000, lambda: done(None))

    def _long_grace(self, done: Done) -> None:
        self._wiring.loop.later(max(self._wiring.options.drain_ms, _LONG_GRACE_MS) / 1000, lambda: done(None))

    def see_forwarding(self, topic: str, queue: str) -> Steps[None]:
        """Send a message to a virtual topic of ours and see it come to the queue: else the subscription would stay empty.

        Raises:
            ProviderError: UNSUPPORTED; the broker is not set up for it.
        """
        if self._forwards:
            return
        word = str(uuid.uuid4())

        def ask(consumer: Consumer) -> Steps[None]:
            expires = str(self._wiring.clock.now_ms() + _PROBE_MS)
            probe = command_frame("SEND", [("destination", topic), ("jmsapi_probe", word), ("expires", expires)])
            yield partial(self._wiring.link.confirmed, probe)
            yield from self.arrival(consumer)
            self._forwards = bool(consumer.unsettled)
            yield partial(self._consumers.acknowledge, list(consumer.unsettled))

        yield from self.by(Plan(queue, [("selector", f"jmsapi_probe = '{word}'")]), ask)
        if not self._forwards:
            text = (
                "the broker does not copy virtual topics to their queues: its configuration needs a destinationInterceptor with "
                'virtualTopic name="VirtualTopic.>" and prefix="Consumer.*.", as it has by default'
            )
            raise ProviderError(ErrorKind.UNSUPPORTED, text)

    def throw_away(self, watch: str, destination: str) -> Steps[None]:
        """Empty the queue behind a subscription that nobody has: what came before its first consumer was not for it.

        The broker tells a new watcher who consumes already. A message that comes while the queue is emptied is lost with
        the rest; it was sent before the subscription was there.
        """
        alone = False

        def look(others: Consumer) -> Steps[None]:
            nonlocal alone
            yield self._grace
            alone = not others.unsettled
            yield partial(self._consumers.acknowledge, list(others.unsettled))

        yield from self.by(Plan(watch), look)
        if alone:
            yield from self.empty(Plan(destination))

    def empty(self, *plans: Plan) -> Steps[None]:
        """Consume what is left in queues: until nothing more comes, for STOMP cannot ask how much there is."""
        consumers: list[Consumer] = []
        failure: ProviderError | None = None
        try:
            for plan in plans:
                consumer = self.consumer(plan)
                yield partial(self._consumers.subscribe, consumer)
                consumers.append(consumer)
            yield from self._take_all(consumers)
        except ProviderError as cause:
            failure = cause
        for consumer in consumers:
            yield partial(self._consumers.release, consumer)
        if failure is not None:
            raise failure

    def _take_all(self, consumers: list[Consumer]) -> Steps[None]:
        while consumers:
            yield self._long_grace
            tags = [tag for consumer in consumers for tag in consumer.unsettled]
            if not tags:
                return
            for consumer in consumers:
                consumer.buffer.clear()
            yield partial(self._consumers.acknowledge, tags)
