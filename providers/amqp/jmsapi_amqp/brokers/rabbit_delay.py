"""Delivery delay on RabbitMQ: a queue for each delay and destination, whose messages expire into the destination.

Delays are rounded up to three significant digits, so that there are few queues; the broker drops one that is idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import Address, ErrorKind, ProviderError
from jmsapi.wire import Promise
from jmsapi_amqp.attach import Target, attach_sender, end_link, leave_session, open_wire_session, session_with_room
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.links import SenderLink
from jmsapi_amqp.management import Management, part
from jmsapi_brokers import rabbitmq

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["DelayQueues"]

_KEPT: Final = 16
"""Links to delay queues kept open."""


class DelayQueues:
    """The delay queues that one connection sends to."""

    def __init__(self, options: AmqpOptions, exchange: str) -> None:
        self._expiry_ms = options.rabbit_delay_expiry_ms
        self._exchange = exchange
        self._links: dict[str, SenderLink] = {}
        self._opening: dict[str, Promise[SenderLink]] = {}

    async def send(
        self, context: ConnectionContext, manage: Management, destination: Address, delay_ms: int, raw: bytes, token: object
    ) -> None:
        """Send a message to where it will wait; a failure is the answer to its token."""
        try:
            link = await self._link(context, manage, destination, delay_ms)
        except ProviderError as error:
            context.traffic.sent.append((token, error))
            return
        link.offer(raw, None, token)

    async def _link(self, context: ConnectionContext, manage: Management, destination: Address, delay_ms: int) -> SenderLink:
        queue, delay_ms, arguments = rabbitmq.delay_queue(destination, delay_ms, exchange=self._exchange, idle_ms=self._expiry_ms)
        asked = f"send to {destination.name!r} after {delay_ms} ms"
        # Asked for each time, which also tells the broker that the queue is not idle.
        answer = await manage.put_queue(queue, arguments=arguments)
        if answer.status not in (200, 201):
            # A queue with other arguments would take the message to another place.
            raise ProviderError(ErrorKind.MISMATCH, f"{asked}: the broker answered {answer.reason}")
        opening = self._opening.get(queue)
        if opening is not None:
            return await opening
        link = self._links.get(queue)
        if link is not None and link.pointer is not None:
            return link
        promise = self._opening[queue] = context.add_promise(Promise[SenderLink]())
        try:
            wire = open_wire_session(context) if context.free_sessions > 0 else session_with_room(context, None)[0]
            try:
                link = await attach_sender(context, wire, Target(f"/queues/{part(queue)}"), asked)
            except ProviderError:
                leave_session(context, wire)
                raise
        except ProviderError as error:
            promise.fail(error)
            raise
        finally:
            del self._opening[queue]
        link.own_session = True
        self._links[queue] = link
        promise.resolve(link)
        while len(self._links) > _KEPT:
            oldest = next(iter(self._links))
            context.spawn(_end_when_answered(context, self._links.pop(oldest)))
        return link


async def _end_when_answered(context: ConnectionContext, link: SenderLink) -> None:
    """End a link after its last message was answered."""
    while link.pointer is not None and (link.waiting or link.unanswered):
        idle: Promise[None] = context.add_promise(Promise())
        link.idle = idle
        await idle
    await end_link(context, link)
