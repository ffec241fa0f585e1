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
from jmsapi_stomp.classic import FIRST_ONLY
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import Frame, command_frame
from jmsapi_stomp.plans import Plan
from jmsapi_stomp.steps import Steps
from jmsapi_stomp.wiring import ConsumerHandle, StompTag, Wiring

__all__ = ["Aside"]

_GRACE_MS: Final = 50
_LONG_GRACE_MS: Final = 200
_LOOKS: Final = 100
_PROBE_MS: Final = 3_600_000
_PROBE: Final = "jmsapi_probe"
_ASKED: Final = b"\njmsapi_probe:"
_MEMBER: Final = "jmsapi_member"


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
        deadline = self._wiring.clock.monotonic() + _LOOKS * max(self._wiring.options.drain_ms, _GRACE_MS) / 1000
        while not consumer.unsettled and self._wiring.clock.monotonic() < deadline:
            yield lambda done: self._wiring.loop.later(_GRACE_MS / 1000, lambda: done(None))

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
            probe = command_frame("SEND", [("destination", topic), (_PROBE, word), ("expires", expires)])
            yield partial(self._wiring.link.confirmed, probe)
            yield from self.arrival(consumer)
            self._forwards = bool(consumer.unsettled)
            yield partial(self._consumers.acknowledge, list(consumer.unsettled))

        yield from self.by(Plan(queue, [("selector", f"{_PROBE} = '{word}'")]), ask)
        if not self._forwards:
            text = (
                "the broker does not copy virtual topics to their queues: its configuration needs a destinationInterceptor with "
                'virtualTopic name="VirtualTopic.>" and prefix="Consumer.*.", as it has by default'
            )
            raise ProviderError(ErrorKind.UNSUPPORTED, text)

    def join(self, members: str) -> Steps[Consumer]:
        """Be one of those who consume from a queue, so that others know of it.

        All of them subscribe to a queue whose messages go to the one that has been there longest; that one answers.
        """
        member = self.consumer(Plan(f"/queue/{members}", FIRST_ONLY))
        link, serial = self._wiring.link, member.handle.serial

        def answer(frame: Frame) -> bool:
            asked = frame.find(_ASKED)
            if asked is not None:
                headers = [(_PROBE, asked), (_MEMBER, f"{self._wiring.word}.{serial}")]
                link.write(command_frame("SEND", [("destination", f"/topic/{members}"), *headers]))
            return asked is not None

        member.told = answer
        yield partial(self._consumers.subscribe, member)
        return member

    def alone(self, member: Consumer, watch: str | None) -> Steps[bool]:
        """Ask who has consumed longest from a queue; False when it is another, or when that is not known.

        Clients of another kind do not answer. Classic tells of them on ``watch``, where it has XStream to say it in: the
        image of 6.3.1 has none, and tells nobody anything.
        """
        members = member.plan.destination.removeprefix("/queue/")
        word, first = str(uuid.uuid4()), list[object]()

        def ask(answers: Consumer) -> Steps[None]:
            expires = str(self._wiring.clock.now_ms() + _PROBE_MS)
            probe = command_frame("SEND", [("destination", f"/queue/{members}"), (_PROBE, word), ("expires", expires)])
            yield partial(self._wiring.link.confirmed, probe)
            yield from self.arrival(answers)
            first.extend(envelope.properties.get(_MEMBER) for envelope in answers.unsettled.values())

        yield from self.by(Plan(f"/topic/{members}", [("selector", f"{_PROBE} = '{word}'")]), ask)
        if first != [f"{self._wiring.word}.{member.handle.serial}"]:
            return False
        others = list[StompTag]()

        def look(watcher: Consumer) -> Steps[None]:
            yield self._grace
            others.extend(watcher.unsettled)

        if watch is not None:
            yield from self.by(Plan(watch), look)
        return not others

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
