"""Named subscriptions on RabbitMQ: a queue each, under the names that the STOMP provider uses too.

Topic and selector are kept as arguments of the queue, which the broker stores and does not compare; so JMS' rules about
changed subscriptions can be checked from every process. An exclusive queue beside it is the lock of an unshared durable one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from jmsapi.spi import Address, ConsumerSpec, ErrorKind, ProviderError
from jmsapi_amqp.links import ReceiverLink, SenderLink
from jmsapi_amqp.management import Management, ManagementAnswer
from jmsapi_brokers import rabbitmq

__all__ = ["RabbitSubscriptions"]


class RabbitSubscriptions:
    """The subscriptions of one connection to RabbitMQ.

    Args:
        exchange: For topics.
        most: The most consumers of one shared subscription that this connection joins; -1 no limit.
    """

    def __init__(self, exchange: str, most: int) -> None:
        self._exchange = exchange
        self._most = most
        self._locks: dict[int, str] = {}

    async def make(
        self,
        manage: Management,
        queue: str,
        address: Address,
        asked: str,
        *,
        exclusive: bool = False,
        durable: bool = True,
        auto_delete: bool = False,
        arguments: Mapping[str, object] | None = None,
    ) -> None:
        """Declare a queue and bind it to a topic.

        Raises:
            ProviderError: The broker refused one of them.
        """
        answer = await manage.put_queue(queue, durable=durable, exclusive=exclusive, auto_delete=auto_delete, arguments=arguments)
        if answer.status not in (200, 201):
            raise ProviderError(ErrorKind.MISMATCH, f"{asked}: the broker answered {answer.reason}")
        bound = await manage.bind(self._exchange, queue, address.name)
        if bound.status not in (200, 201, 204):
            raise ProviderError(ErrorKind.DESTINATION, f"{asked}: the broker answered {bound.reason}")

    async def prepare(self, manage: Management, client_id: str | None, spec: ConsumerSpec, asked: str) -> str:
        """Return the queue of a subscription, made or made anew as JMS says.

        Raises:
            ProviderError: IN_USE, MISMATCH; RESOURCE when a shared one has all the consumers it may have.
        """
        queue = rabbitmq.subscription_queue(client_id, spec.subscription or "", durable=spec.durable, shared=spec.shared)
        lock = None if spec.shared else rabbitmq.subscription_lock(client_id, spec.subscription or "")
        if lock is not None:
            answer = await manage.put_queue(lock, durable=False, exclusive=True, auto_delete=True)
            if answer.status not in (200, 201):
                raise ProviderError(ErrorKind.IN_USE, f"{asked}: another connection is active on it")
        if spec.durable:
            other = rabbitmq.subscription_queue(client_id, spec.subscription or "", durable=True, shared=not spec.shared)
            if (await manage.get_queue(other)).status == 200:
                kind = "an unshared" if spec.shared else "a shared"
                raise ProviderError(ErrorKind.MISMATCH, f"{asked}: there is {kind} durable subscription of that name")
        wanted = rabbitmq.subscription_terms(spec.address.name, spec.terms or spec.selector)
        found = await manage.get_queue(queue)
        if found.status == 200 and _changed(found, wanted):
            if spec.shared and _consumers(found) > 0:
                text = f"{asked}: the shared subscription is active with another topic or selector"
                raise ProviderError(ErrorKind.MISMATCH, text)
            await manage.delete_queue(queue)
        elif spec.shared and 0 <= self._most <= _consumers(found):
            raise self._full(asked)
        await self.make(manage, queue, spec.address, asked, durable=spec.durable, auto_delete=not spec.durable, arguments=wanted)
        return queue

    async def check_room(self, manage: Management, queue: str, spec: ConsumerSpec, asked: str) -> None:
        """Refuse a consumer that is attached, and came in the same moment as the last one that there was room for.

        Raises:
            ProviderError: RESOURCE.
        """
        if spec.shared and 0 <= self._most < _consumers(await manage.get_queue(queue)):
            raise self._full(asked)

    def _full(self, asked: str) -> ProviderError:
        text = f"{asked}: it has {self._most} consumers; rabbit.max_shared_consumers allows no more"
        return ProviderError(ErrorKind.RESOURCE, text)

    def joined(self, link: ReceiverLink, client_id: str | None, spec: ConsumerSpec) -> None:
        """Note whose lock goes with a link."""
        if not spec.shared:
            self._locks[link.number] = rabbitmq.subscription_lock(client_id, spec.subscription or "")

    async def left(self, manage: Management, link: SenderLink | ReceiverLink) -> None:
        """Give up the lock of a link that has ended."""
        lock = self._locks.pop(link.number, None)
        if lock is not None:
            await manage.delete_queue(lock)

    async def unsubscribe(self, manage: Management, client_id: str | None, name: str, asked: str) -> None:
        """Delete the queue of a durable subscription, shared or not.

        Raises:
            ProviderError: SUBSCRIPTION when there is none; IN_USE.
        """
        for shared in (False, True):
            queue = rabbitmq.subscription_queue(client_id, name, durable=True, shared=shared)
            found = await manage.get_queue(queue)
            if found.status == 200:
                if _consumers(found) > 0:
                    raise ProviderError(ErrorKind.IN_USE, f"{asked}: a consumer is active on it; close it first")
                await manage.delete_queue(queue)
                return
        raise ProviderError(ErrorKind.SUBSCRIPTION, f"{asked}: there is no such subscription")


def _consumers(answer: ManagementAnswer) -> int:
    count = answer.map.get("consumer_count")
    return count if isinstance(count, int) else 0


def _changed(answer: ManagementAnswer, wanted: Mapping[str, str]) -> bool:
    """Whether a queue says that it was made with other terms; one without our arguments says nothing."""
    arguments = answer.map.get("arguments")
    if not isinstance(arguments, Mapping):
        return False
    return rabbitmq.terms_differ(cast("Mapping[str, object]", arguments), wanted)
