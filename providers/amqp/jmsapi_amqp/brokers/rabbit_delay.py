"""Delivery delay on RabbitMQ: a queue for each delay and destination, whose messages expire into the destination.

Delays are rounded up to three significant digits, so that there are few queues; the broker drops one that is idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import Address, ProviderError
from jmsapi_amqp.attach import Target, attach_sender, end_link, open_wire_session
from jmsapi_amqp.links import SenderLink
from jmsapi_amqp.management import Management, part
from jmsapi_amqp.tasks import Promise, spawn

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["DelayQueues", "rounded"]

_KEPT: Final = 16
"""Links to delay queues kept open."""


def rounded(delay_ms: int) -> int:
    """Return a delay rounded up to three significant digits."""
    unit = int(10 ** max(0, len(str(delay_ms)) - 3))
    return -(-delay_ms // unit) * unit


class DelayQueues:
    """The delay queues that one connection sends to."""

    def __init__(self, options: AmqpOptions, exchange: str) -> None:
        self._expiry_ms = options.rabbit_delay_expiry_ms
        self._exchange = exchange
        self._links: dict[str, SenderLink] = {}
        self._opening: dict[str, Promise[SenderLink]] = {}

    async def send(
        self, connection: Connection, manage: Management, destination: Address, delay_ms: int, raw: bytes, token: object
    ) -> None:
        """Send a message to where it will wait; a failure is the answer to its token."""
        try:
            link = await self._link(connection, manage, destination, rounded(delay_ms))
        except ProviderError as error:
            connection.sent.append((token, error))
            return
        link.offer(raw, None, token)

    async def _link(self, connection: Connection, manage: Management, destination: Address, delay_ms: int) -> SenderLink:
        topic = destination.kind.is_topic
        queue = f"jmsapi.delay.{delay_ms}.{'topic.' if topic else ''}{destination.name}"
        # Asked for each time, which also tells the broker that the queue is not idle.
        await manage.put_queue(
            queue,
            arguments={
                "x-message-ttl": delay_ms,
                "x-dead-letter-exchange": self._exchange if topic else "",
                "x-dead-letter-routing-key": destination.name,
                "x-expires": delay_ms + self._expiry_ms,
            },
        )
        opening = self._opening.get(queue)
        if opening is not None:
            return await opening
        link = self._links.get(queue)
        if link is not None and link.pointer is not None:
            return link
        promise = self._opening[queue] = connection.add_promise(Promise[SenderLink]())
        try:
            asked = f"send to {destination.name!r} after {delay_ms} ms"
            link = await attach_sender(connection, open_wire_session(connection), Target(f"/queues/{part(queue)}"), asked)
        except ProviderError as error:
            promise.fail(error)
            raise
        finally:
            del self._opening[queue]
        link.own_session = True
        self._links[queue] = link
        promise.keep(link)
        while len(self._links) > _KEPT:
            oldest = next(iter(self._links))
            spawn(_end_when_answered(connection, self._links.pop(oldest)))
        return link


async def _end_when_answered(connection: Connection, link: SenderLink) -> None:
    """End a link after its last message was answered."""
    while link.pointer is not None and (link.waiting or link.unanswered):
        idle: Promise[None] = connection.add_promise(Promise())
        link.idle = idle
        await idle
    await end_link(connection, link)
