"""What a broker's behaviour may do at the broker, beside saying how things are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from jmsapi.spi import Clock
from jmsapi_stomp.answers import Done
from jmsapi_stomp.auxiliary_connections import AuxiliaryConnections
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frame_collector import FrameCollector
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.handles import StompTag
from jmsapi_stomp.subscribe_plan import Headers, SubscribePlan

__all__ = ["BrokerAccess", "SubscriptionEnd"]


class BrokerAccess(Protocol):
    """The open connection, as a behaviour uses it. I/O thread only.

    What waits raises ProviderError: the broker's refusal, TIMEOUT, or why the connection is lost.
    """

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def connection(self) -> StompConnection:
        """The main connection."""
        ...

    @property
    def connections(self) -> AuxiliaryConnections:
        """Further connections."""
        ...

    @property
    def client_id(self) -> str | None:
        """The connection's client id."""
        ...

    @property
    def identity(self) -> str:
        """A word of the connection's own, unique in the world."""
        ...

    def auxiliary(self, plan: SubscribePlan, connection: StompConnection | None = None) -> StompConsumer:
        """Return a consumer that the core does not know, not subscribed yet; on the main connection when none is given."""
        ...

    async def subscribe(self, consumer: StompConsumer) -> None:
        """Subscribe a consumer."""

    async def release(self, consumer: StompConsumer) -> None:
        """End a consumer; its unsettled messages go back to the broker."""

    async def with_consumer(self, plan: SubscribePlan, use: Callable[[StompConsumer], Awaitable[None]]) -> None:
        """Use an auxiliary consumer, and release it afterwards, whatever happens."""

    def collect(self, consumer: StompConsumer) -> FrameCollector:
        """Have the messages of a consumer collected for the behaviour."""
        ...

    def show_by(self, consumer: StompConsumer, look: Coroutine[Any, None, list[Frame]]) -> None:
        """Run what fetches the next messages of a browser, and show them; none is the end.

        Its failure ends the browser.
        """

    async def arrival(self, consumer: StompConsumer) -> None:
        """Wait until a message is there, or some seconds are over."""

    async def grace(self) -> None:
        """Wait a moment for what may be on its way."""

    async def acknowledge(self, tags: Sequence[StompTag]) -> None:
        """Acknowledge messages and wait for the broker's answer."""

    async def empty(self, *plans: SubscribePlan) -> None:
        """Consume what is left in queues."""

    async def delete(self, deletion: Headers) -> None:
        """Delete a subscription or a queue by an UNSUBSCRIBE with these headers."""

    async def replace(self, deletion: Headers, *, volatile: bool = False) -> None:
        """Delete what is left under a subscription's name; what others still use stays.

        Raises:
            ProviderError: IN_USE, unless it is ``volatile``: others use it.
        """

    def next_serial(self) -> int:
        """Return a number for an id on the wire that nothing else has."""
        ...


class SubscriptionEnd(Protocol):
    """What ``StompBehaviour.return_and_unsubscribe`` may do. I/O thread only."""

    def requeue(self, consumer: StompConsumer) -> None:
        """Return a consumer's unsettled deliveries by NACK."""

    def unsubscribe(self, consumer: StompConsumer, name: str, done: Done) -> None:
        """Send UNSUBSCRIBE for one subscription of a consumer."""

    def forget(self, consumer: StompConsumer, name: str) -> None:
        """Forget a subscription that has ended after all."""
