"""Topics and the five kinds of subscription.

A subscription is a queue with a condition at its entrance. A durable one lives until it is unsubscribed, any other as long as it
has a consumer. Durable and non-durable subscriptions have separate namespaces, and so has each client id; "no client id" is one
more of them.

In a stored broker a durable subscription is created, replaced or ended by one batch, or not at all. Until that batch is written,
the old and the new subscription both receive what is published, so that whichever stays has missed nothing. The messages of one
that is gone are erased afterwards, a part at a time, and what is left of them when the file is opened again.

Every method is called under the broker's lock.

Spec: 6.11.1 to 6.11.5, SHS-1 to SHS-59.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from jmsapi.spi import DONE, ConsumerSpec, Envelope, ErrorKind, Handle, HeaderView, ProviderError, answered, completed
from jmsapi_inproc.messages import CompiledSelector, SendingConnection
from jmsapi_inproc.queue import BrokerQueue, QueueConsumer
from jmsapi_inproc.write_batch import WriteBatch

__all__ = ["BrokerTopic", "NamedSubscriptions", "SubscriptionIdentity", "SubscriptionQueues", "TopicSubscription"]


@dataclass(frozen=True, slots=True)
class SubscriptionIdentity:
    """What identifies a named subscription."""

    durable: bool
    client_id: str | None
    name: str


class BrokerTopic:
    """Gives each subscription its copy of a message."""

    __slots__ = ("gone", "name", "owner", "subscriptions")

    def __init__(self, name: str, owner: SendingConnection | None = None) -> None:
        self.name = name
        self.owner = owner
        """The connection of a temporary topic."""
        self.gone = False
        self.subscriptions: list[TopicSubscription] = []

    def publish(self, envelope: Envelope, sender: SendingConnection) -> None:
        """Add a message to each subscription that wants it, now or at its delivery time."""
        for subscription in self.subscriptions:
            if subscription.wants(envelope, sender):
                subscription.queue.publish(envelope, sender)

    def stage(self, envelope: Envelope, sender: SendingConnection, batch: WriteBatch) -> None:
        """Add a message to each subscription that wants it once a batch is written."""
        for subscription in self.subscriptions:
            if subscription.wants(envelope, sender):
                subscription.queue.stage(envelope, sender, batch)

    def close(self) -> None:
        """Drop everything; nothing can be published here any more."""
        self.gone = True
        for subscription in self.subscriptions:
            subscription.queue.close()
        self.subscriptions = []


class TopicSubscription:
    """One subscription, with or without consumers."""

    __slots__ = (
        "_excluded",
        "_selector",
        "ending",
        "key",
        "no_local",
        "opening",
        "queue",
        "replaces",
        "selector_text",
        "shared",
        "topic",
    )

    def __init__(
        self,
        topic: BrokerTopic,
        spec: ConsumerSpec,
        selector: CompiledSelector | None,
        key: SubscriptionIdentity | None,
        creator: SendingConnection | None,
        queue: BrokerQueue,
    ) -> None:
        self.topic = topic
        self.key = key
        self.shared = spec.shared
        self.selector_text = spec.selector
        self.no_local = spec.no_local
        self.queue = queue
        self.replaces: TopicSubscription | None = None
        """The subscription that this one replaces once it is written."""
        self.opening = 0
        """How many consumers wait for it to be written."""
        self.ending = False
        """Its removal is being written."""
        self._selector = selector
        self._excluded = creator if spec.no_local else None
        """The connection that made it; a durable subscription goes by its client id instead, now and later (6.11.3-12)."""

    def wants(self, envelope: Envelope, sender: SendingConnection) -> bool:
        """Return whether a message of that connection enters."""
        if self.no_local:
            if self.key is not None and self.key.client_id is not None:
                if sender.client_id == self.key.client_id:
                    return False
            elif sender is self._excluded:
                return False
        return self._selector is None or self._selector.matches(HeaderView(envelope))

    def same_as(self, topic: BrokerTopic, spec: ConsumerSpec) -> bool:
        """Return whether a request is for this subscription as it is, and not for one that replaces it."""
        return self.topic is topic and self.selector_text == spec.selector and self.no_local == spec.no_local

    @property
    def busy(self) -> bool:
        """Whether its creation or its end is being written."""
        return self.ending or self.replaces is not None or (self.opening > 0 and not self.written)

    @property
    def written(self) -> bool:
        """Whether it is in the file, if it has to be."""
        return self.queue.storage is None or self.queue.storage.known

    def end(self) -> None:
        """Leave the topic and drop all messages."""
        self.queue.close()
        # A new list each time: a signal handler may come here while this very thread iterates over the old one.
        self.topic.subscriptions = [one for one in self.topic.subscriptions if one is not self]


class SubscriptionQueues(Protocol):
    """What makes the queues of subscriptions: the broker."""

    def new_queue(self, topic: BrokerTopic, key: SubscriptionIdentity | None, spec: ConsumerSpec) -> BrokerQueue:
        """Make the queue of a new subscription, in the store if the subscription is durable and there is a store."""
        ...


class NamedSubscriptions:
    """All subscriptions that have names."""

    __slots__ = ("_by_key", "_queues")

    def __init__(self, queues: SubscriptionQueues) -> None:
        self._queues = queues
        self._by_key: dict[SubscriptionIdentity, TopicSubscription] = {}

    def find(
        self,
        topic: BrokerTopic,
        spec: ConsumerSpec,
        selector: CompiledSelector | None,
        connection: SendingConnection,
        most_consumers: int,
    ) -> TopicSubscription:
        """Return the subscription a consumer asks for, created or replaced if need be.

        Raises:
            ProviderError: CLIENT_ID, DESTINATION, IN_USE, MISMATCH, RESOURCE; then nothing has changed.
        """
        key = _key(spec, connection)
        if key is not None and key.durable and topic.owner is not None:
            raise ProviderError(ErrorKind.DESTINATION, f"durable subscription {key.name!r}: {topic.name!r} is a temporary topic")
        old = None if key is None else self._by_key.get(key)
        if key is not None and old is not None:
            self._check(old, key, topic, spec, most_consumers)
            if old.same_as(topic, spec) and not old.ending:
                return old
            if old.busy:
                raise _busy(f"durable subscription {_of(key)}")
            if old.queue.enlisted:
                raise ProviderError(
                    ErrorKind.IN_USE,
                    f"durable subscription {_of(key)} cannot be replaced by one with another topic or selector: an open "
                    "transaction holds messages of it; commit or roll back first",
                )
        new = self.add(TopicSubscription(topic, spec, selector, key, connection, self._queues.new_queue(topic, key, spec)))
        if old is not None and new.queue.storage is not None:
            new.replaces = old
        elif old is not None:
            old.end()
        return new

    def add(self, new: TopicSubscription) -> TopicSubscription:
        """Add a subscription to its topic, and under its name if it has one."""
        new.topic.subscriptions = [*new.topic.subscriptions, new]
        if new.key is not None:
            self._by_key[new.key] = new
        return new

    def opened(self, subscription: TopicSubscription, consumer: QueueConsumer, give_up: Callable[[], None]) -> Future[Handle]:
        """Return the consumer of a subscription once the file has the subscription, if it has to.

        Args:
            subscription: What ``find`` returned.
            consumer: Its consumer.
            give_up: Closes the consumer, if the subscription cannot be written.
        """
        storage = subscription.queue.storage
        if storage is None or storage.known:
            return completed(consumer)
        batch = WriteBatch()
        storage.create(batch)
        old = subscription.replaces
        if old is not None and old.queue.storage is not None:
            old.queue.storage.remove(batch)
        subscription.opening += 1
        batch.on_written(lambda: self._settled(subscription))
        batch.on_failed(give_up)
        batch.on_failed(lambda: self._settled(subscription))
        answer: Future[Handle] = answered(batch.completion(), lambda _: consumer)
        storage.writer.submit(batch)
        return answer

    def left(self, subscription: TopicSubscription) -> None:
        """End a non-durable subscription that its last consumer has left."""
        key = subscription.key
        if subscription.queue.consumers or (key is not None and key.durable):
            return
        self._end(subscription)

    def unsubscribe(self, client_id: str | None, name: str) -> Future[None]:
        """End the durable subscription of that client id and name; if that cannot be written, the subscription stays as it was.

        Raises:
            ProviderError: SUBSCRIPTION when there is none; IN_USE when it has consumers or an open transaction holds messages.
        """
        subscription = self._to_unsubscribe(client_id, name)
        storage = subscription.queue.storage
        if storage is None:
            self._end(subscription)
            return DONE
        subscription.ending = True
        batch = WriteBatch()
        storage.remove(batch)
        batch.on_written(lambda: self._end(subscription))
        batch.on_failed(lambda: setattr(subscription, "ending", False))
        answer = batch.completion()
        storage.writer.submit(batch)
        return answer

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()

    def _settled(self, new: TopicSubscription) -> None:
        """Let a durable subscription that has been written replace the old one; if it could not be written, the old one stays."""
        new.opening -= 1
        old = new.replaces
        if new.written:
            new.replaces = None
            if old is not None:
                old.end()
        elif not new.opening:
            if new.key is not None and self._by_key.get(new.key) is new:
                del self._by_key[new.key]
                if old is not None:
                    self._by_key[new.key] = old
            new.end()

    def _to_unsubscribe(self, client_id: str | None, name: str) -> TopicSubscription:
        key = SubscriptionIdentity(True, client_id, name)
        subscription = self._by_key.get(key)
        if subscription is None:
            raise ProviderError(ErrorKind.SUBSCRIPTION, f"unsubscribe {name!r}: there is no durable subscription {_of(key)}")
        if subscription.queue.consumers:
            raise ProviderError(ErrorKind.IN_USE, f"unsubscribe {name!r}: it has an active consumer; close it first")
        if subscription.queue.enlisted:
            raise ProviderError(
                ErrorKind.IN_USE, f"unsubscribe {name!r}: an open transaction holds messages of it; commit or roll back first"
            )
        if subscription.busy:
            raise _busy(f"unsubscribe {name!r}: it")
        return subscription

    def _end(self, subscription: TopicSubscription) -> None:
        if subscription.key is not None and self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        subscription.end()

    def _check(
        self, old: TopicSubscription, key: SubscriptionIdentity, topic: BrokerTopic, spec: ConsumerSpec, most_consumers: int
    ) -> None:
        active = len(old.queue.consumers)
        if old.shared != spec.shared:
            kind = "a shared" if old.shared else "an unshared"
            raise ProviderError(
                ErrorKind.IN_USE, f"durable subscription {_of(key)} exists as {kind} one; unsubscribe it or take another name"
            )
        if active and not spec.shared:
            raise ProviderError(ErrorKind.IN_USE, f"durable subscription {_of(key)} has an active consumer already")
        if active and not old.same_as(topic, spec):
            raise ProviderError(
                ErrorKind.MISMATCH,
                f"shared subscription {_of(key)} is active on topic {old.topic.name!r} with selector {old.selector_text!r}",
            )
        if spec.shared and 0 <= most_consumers <= active:
            raise ProviderError(
                ErrorKind.RESOURCE, f"shared subscription {_of(key)} has {active} consumers; max_shared_consumers allows no more"
            )


def _key(spec: ConsumerSpec, connection: SendingConnection) -> SubscriptionIdentity | None:
    if spec.subscription is None:
        return None
    if spec.durable and not spec.shared and connection.client_id is None:
        raise ProviderError(
            ErrorKind.CLIENT_ID, f"durable subscription {spec.subscription!r}: an unshared one needs a client id, and none is set"
        )
    return SubscriptionIdentity(spec.durable, connection.client_id, spec.subscription)


def _of(key: SubscriptionIdentity) -> str:
    return f"{key.name!r}" + ("" if key.client_id is None else f" of client id {key.client_id!r}")


def _busy(what: str) -> ProviderError:
    return ProviderError(ErrorKind.IN_USE, f"{what} is being written or ended by another call")
