"""Opening and ending consumers, with the rules of named subscriptions that the broker does not keep.

An unshared durable subscription has one consumer, a changed one is replaced, a shared one is not changed while it is used. What
this process knows it checks in ``jmsapi_brokers.subscriptions``, for both wires; the rest is done by the broker's behaviour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsapi.spi import Address, DestinationKind, ErrorKind, ProviderError
from jmsapi_brokers.subscriptions import SUBSCRIPTIONS, SubscriptionKey
from jmsapi_stomp.answers import Done, perform
from jmsapi_stomp.connection_access import ConnectionAccess
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.consumer_release import ConsumerRelease
from jmsapi_stomp.context import StompContext

__all__ = ["Subscriber"]

_UNSURE: Final = frozenset({ErrorKind.TIMEOUT, ErrorKind.PROTOCOL, ErrorKind.CONNECTION, ErrorKind.IN_DOUBT})
"""The broker may have the subscription all the same."""


class Subscriber:
    """Opens consumers and removes subscriptions and temporary destinations. I/O thread only."""

    def __init__(self, context: StompContext, access: ConnectionAccess, release: ConsumerRelease) -> None:
        self._context = context
        self._access = access
        self._release = release
        release.on_gone = self.left

    def _key(self, name: str, *, durable: bool) -> SubscriptionKey:
        return SubscriptionKey(self._context.broker, self._context.client_id, name, durable)

    # opening

    def open(self, consumer: StompConsumer, done: Done) -> None:
        """Subscribe."""
        perform(self._open(consumer), done)

    async def _open(self, consumer: StompConsumer) -> None:
        spec = consumer.spec
        if consumer.plan.browse:
            await self._browse(consumer)
            return
        if not consumer.plan.registered:
            await self._access.subscribe(consumer)
            return
        key = self._key(spec.subscription or "", durable=spec.durable)
        first, unknown = not SUBSCRIPTIONS.active(key), SUBSCRIPTIONS.shared(key) is None
        changed = SUBSCRIPTIONS.enter(key, spec, f"cannot consume from the subscription {spec.subscription!r}")
        consumer.key = key
        try:
            await self._context.behaviour.claim(self._access, consumer, first=first, changed=changed)
            await self._access.subscribe(consumer)
        except ProviderError as cause:
            self.left(consumer)
            if unknown and cause.kind not in _UNSURE and not SUBSCRIPTIONS.active(key):
                SUBSCRIPTIONS.forget(key)
            raise
        SUBSCRIPTIONS.opened(key)

    async def _browse(self, consumer: StompConsumer) -> None:
        try:
            await self._context.behaviour.browse(self._access, consumer)
        except ProviderError:
            await self._access.release(consumer)
            self.left(consumer)
            raise

    # ending

    def left(self, consumer: StompConsumer) -> None:
        """Record that a consumer is gone, and let go what was held for it."""
        key, consumer.key = consumer.key, None
        if key is not None:
            SUBSCRIPTIONS.leave(key)
        lock, consumer.lock = consumer.lock, None
        if lock is not None:
            self._access.connections.drop(lock)
        member, consumer.member = consumer.member, None
        if member is not None:
            self._release.release(member, lambda _: None)
        if key is None and consumer.plan.volatile:
            # It was given up, and the broker made it all the same.
            perform(self._delete_idle(consumer), lambda _: None)

    def release(self, consumer: StompConsumer, done: Done) -> None:
        """End a consumer, and with the last one a subscription that must not outlive it."""
        perform(self._end(consumer), done)

    async def _end(self, consumer: StompConsumer) -> None:
        await self._access.release(consumer)
        key, lock = consumer.key, consumer.lock
        consumer.lock = None
        if lock is not None:
            await self._access.connections.leave(lock)
        member, consumer.member = consumer.member, None
        if member is not None:
            await self._access.release(member)
        self.left(consumer)
        if key is not None:
            await self._delete_idle(consumer)

    async def _delete_idle(self, consumer: StompConsumer) -> None:
        """Delete a subscription that must not outlive its consumers, when this process has none left."""
        plan, spec = consumer.plan, consumer.spec
        idle = plan.volatile and not SUBSCRIPTIONS.active(self._key(spec.subscription or "", durable=spec.durable))
        if plan.replace is not None and idle:
            await self._access.replace(plan.replace, volatile=True)

    # temporary destinations

    def create_temporary(self, kind: DestinationKind, done: Callable[[Address | ProviderError], object]) -> None:
        """Make a temporary destination and call ``done`` with its address or the error."""
        made: list[Address] = []

        async def make() -> None:
            address = await self._context.behaviour.make_temporary(self._access, kind)
            self._context.temporary.add(address)
            made.append(address)

        perform(make(), lambda cause: done(cause or made[0]))

    def remove_temporary(self, address: Address, done: Done) -> None:
        """Delete a temporary destination.

        Only RabbitMQ and the loopback server delete anything. Artemis deletes a queue that is empty and idle. On Classic it lives
        as long as the connection, and others may go on sending to it
        (``test_classic_goes_on_taking_messages_for_a_deleted_temporary_queue``).
        """

        async def remove() -> None:
            self._context.temporary.discard(address)
            try:
                await self._context.behaviour.remove_temporary(self._access, address)
            except ProviderError:
                self._context.temporary.add(address)
                raise

        perform(remove(), done)

    def leave_temporaries(self, done: Done) -> None:
        """Do what must be done about temporary destinations before the connection closes."""
        perform(self._context.behaviour.leave_temporaries(self._access, list(self._context.temporary)), done)

    # durable subscriptions

    def remove(self, name: str, done: Done) -> None:
        """Delete a durable subscription.

        Errors: IN_USE; SUBSCRIPTION when there is none, where the broker can tell; UNSUPPORTED.
        """
        perform(self._remove(name), done)

    async def _remove(self, name: str) -> None:
        key = self._key(name, durable=True)
        if SUBSCRIPTIONS.active(key):
            raise ProviderError(ErrorKind.IN_USE, f"the subscription {name!r} is in use")
        shared = SUBSCRIPTIONS.shared(key) is True
        await self._context.behaviour.remove_subscription(self._access, name, shared=shared)
        SUBSCRIPTIONS.forget(key)
