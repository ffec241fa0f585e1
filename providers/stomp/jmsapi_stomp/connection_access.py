"""What the provider does at the broker for itself: consumers that the core does not know, and deletions.

Whatever becomes of a question to the broker, the consumer that was to answer it is released: it would take messages for nobody.
All of it runs on the I/O thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from itertools import count
from typing import Any, Final

from jmsapi.spi import Address, Clock, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi.wire import Promise, answer_of
from jmsapi_stomp.answers import perform
from jmsapi_stomp.auxiliary_connections import AuxiliaryConnections
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.consumer_release import ConsumerRelease
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.delivery_flow import DeliveryFlow
from jmsapi_stomp.frame_collector import FrameCollector
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.handles import ConsumerHandle, StompTag
from jmsapi_stomp.settlement import StompSettlement
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["ConnectionAccess"]

_GRACE_MS: Final = 50
_LONG_GRACE_MS: Final = 200
_LOOKS: Final = 100


class ConnectionAccess:
    """An open connection, as a broker's behaviour uses it: a ``BrokerAccess``."""

    def __init__(
        self,
        context: StompContext,
        connections: AuxiliaryConnections,
        flow: DeliveryFlow,
        release: ConsumerRelease,
        settlement: StompSettlement,
    ) -> None:
        self._context = context
        self._flow = flow
        self._release = release
        self._settlement = settlement
        self._serials = count(1)
        self.connections = connections

    @property
    def clock(self) -> Clock:
        """The time."""
        return self._context.clock

    @property
    def connection(self) -> StompConnection:
        """The main connection."""
        return self._context.connection

    @property
    def client_id(self) -> str | None:
        """The connection's client id."""
        return self._context.client_id

    @property
    def identity(self) -> str:
        """A word of the connection's own, unique in the world."""
        return self._context.identity

    def next_serial(self) -> int:
        """Return a number for an id on the wire that nothing else has."""
        return next(self._serials)

    def auxiliary(self, plan: SubscribePlan, connection: StompConnection | None = None) -> StompConsumer:
        """Return a consumer that the core does not know, not subscribed yet; on the main connection when none is given."""
        spec = ConsumerSpec(Address(DestinationKind.QUEUE, plan.destination), prefetch=1000)
        handle = ConsumerHandle(-next(self._serials), 0, False)
        return StompConsumer(handle, spec, plan, connection or self._context.connection)

    async def subscribe(self, consumer: StompConsumer) -> None:
        """Subscribe a consumer."""
        await answer_of(partial(self._flow.subscribe, consumer))

    async def release(self, consumer: StompConsumer) -> None:
        """End a consumer; its unsettled messages go back to the broker."""
        await answer_of(partial(self._release.release, consumer))

    async def with_consumer(self, plan: SubscribePlan, use: Callable[[StompConsumer], Awaitable[None]]) -> None:
        """Use an auxiliary consumer, and release it afterwards, whatever happens."""
        consumer = self.auxiliary(plan)
        await self.subscribe(consumer)
        try:
            await use(consumer)
        finally:
            await self.release(consumer)

    def collect(self, consumer: StompConsumer) -> FrameCollector:
        """Have the messages of a consumer collected for the behaviour."""
        made = FrameCollector(self._context.loop, self._context.options.request_timeout_ms / 1000)
        consumer.collector, consumer.handler = made, made.take
        return made

    def show_by(self, consumer: StompConsumer, look: Coroutine[Any, None, list[Frame]]) -> None:
        """Run what fetches the next messages of a browser, and show them; none is the end."""

        async def show() -> None:
            self._flow.show(consumer, await look)

        def ended(cause: ProviderError | None) -> None:
            if cause is not None and not consumer.closing:
                self._release.close(consumer, cause)

        perform(show(), ended)

    async def arrival(self, consumer: StompConsumer) -> None:
        """Wait until a message is there, or some seconds are over."""
        clock = self._context.clock
        deadline = clock.monotonic() + _LOOKS * max(self._context.options.drain_ms, _GRACE_MS) / 1000
        while not consumer.unsettled and clock.monotonic() < deadline:
            await self._pause(_GRACE_MS)

    async def grace(self) -> None:
        """Wait a moment for what may be on its way."""
        await self._pause(max(self._context.options.drain_ms, _GRACE_MS))

    async def _pause(self, milliseconds: int) -> None:
        over: Promise[None] = Promise()
        self._context.loop.later(milliseconds / 1000, lambda: over.resolve(None))
        await over

    async def acknowledge(self, tags: Sequence[StompTag]) -> None:
        """Acknowledge messages and wait for the broker's answer."""
        await answer_of(partial(self._settlement.acknowledge, tags))

    async def empty(self, *plans: SubscribePlan) -> None:
        """Consume what is left in queues, until nothing more comes: STOMP cannot ask how much there is."""
        consumers: list[StompConsumer] = []
        try:
            for plan in plans:
                consumer = self.auxiliary(plan)
                await self.subscribe(consumer)
                consumers.append(consumer)
            while consumers:
                await self._pause(max(self._context.options.drain_ms, _LONG_GRACE_MS))
                tags = [tag for consumer in consumers for tag in consumer.unsettled]
                if not tags:
                    break
                for consumer in consumers:
                    consumer.buffer.clear()
                await self.acknowledge(tags)
        finally:
            for consumer in consumers:
                await self.release(consumer)

    async def delete(self, deletion: Headers) -> None:
        """Delete a subscription or a queue by an UNSUBSCRIBE with these headers."""
        await self._context.behaviour.delete(self, deletion)

    async def replace(self, deletion: Headers, *, volatile: bool = False) -> None:
        """Delete what is left under a subscription's name; what others still use stays.

        Raises:
            ProviderError: IN_USE, unless it is ``volatile``: others use it.
        """
        try:
            await self.delete(deletion)
        except ProviderError as cause:
            if not volatile and cause.kind is not ErrorKind.SUBSCRIPTION:  # another process may have deleted it
                raise ProviderError(ErrorKind.IN_USE, f"the subscription is in use elsewhere: {cause.message}") from cause
