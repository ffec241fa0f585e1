"""Topics and the five kinds of subscription.

A subscription is a queue with a condition at its entrance. A durable one lives until it is unsubscribed, any other as long
as it has a consumer. Names of subscriptions are separate for durable and non-durable ones and for each client id, no client
id being one more.

Spec: 6.11.1 to 6.11.5, SHS-1 to SHS-59.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, Envelope, ErrorKind, HeaderView, ProviderError
from jmsapi_inproc.filing import stored_queue
from jmsapi_inproc.messages import Selector, compiled
from jmsapi_inproc.queues import Queue

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.connection import InprocProvider
    from jmsapi_inproc.store import Shelf
    from jmsapi_inproc.store_filing import Filing

__all__ = ["Sender", "Subscription", "SubscriptionKey", "Subscriptions", "Topic"]


@dataclass(frozen=True, slots=True)
class SubscriptionKey:
    """What tells a named subscription from another."""

    durable: bool
    client_id: str | None
    name: str


class Sender(Protocol):
    """Who sends, as far as a subscription asks for it."""

    @property
    def client_id(self) -> str | None:
        """The client id of the connection."""
        ...


class Topic:
    """Gives each subscription its copy."""

    __slots__ = ("gone", "name", "owner", "subscriptions")

    def __init__(self, name: str, owner: InprocProvider | None = None) -> None:
        self.name = name
        self.owner = owner
        """The connection of a temporary topic."""
        self.gone = False
        self.subscriptions: list[Subscription] = []

    def publish(self, envelope: Envelope, sender: Sender) -> None:
        """File a message in every subscription that wants it, now or at its delivery time."""
        for subscription in self.subscriptions:
            if subscription.wants(envelope, sender):
                subscription.queue.publish(envelope, sender)

    def plan(self, envelope: Envelope, sender: Sender, filing: Filing) -> None:
        """Have a message filed in every subscription that wants it, when what belongs to it is written."""
        for subscription in self.subscriptions:
            if subscription.wants(envelope, sender):
                subscription.queue.plan(envelope, sender, filing)

    def close(self) -> None:
        """Drop everything; nothing can be published here any more."""
        self.gone = True
        for subscription in self.subscriptions:
            subscription.queue.close()
        self.subscriptions = []


class Subscription:
    """One subscription, with or without consumers."""

    __slots__ = (
        "_excluded",
        "_selector",
        "ending",
        "filings",
        "key",
        "no_local",
        "queue",
        "replaces",
        "selector_text",
        "shared",
        "topic",
    )

    def __init__(
        self,
        broker: Broker,
        topic: Topic,
        spec: ConsumerSpec,
        selector: Selector | None,
        key: SubscriptionKey | None,
        connection: InprocProvider | None,
        shelf: Shelf | None = None,
    ) -> None:
        self.topic = topic
        self.key = key
        self.shared = spec.shared
        self.selector_text = spec.selector
        self.no_local = spec.no_local
        self.queue = Queue(broker, topic.name) if shelf is None else stored_queue(broker, topic.name, shelf)
        self.replaces: Subscription | None = None
        """In whose place it comes when it is written."""
        self.filings = 0
        """How many consumers wait for it to be written."""
        self.ending = False
        """It is being written that it ends."""
        self._selector = selector
        self._excluded = connection if spec.no_local else None
        """The connection that made it; a durable subscription goes by its client id instead, now and later (6.11.3-12)."""

    def wants(self, envelope: Envelope, sender: Sender) -> bool:
        """Return whether a message of that connection enters."""
        if self.no_local:
            if self.key is not None and self.key.client_id is not None:
                if sender.client_id == self.key.client_id:
                    return False
            elif sender is self._excluded:
                return False
        return self._selector is None or self._selector.matches(HeaderView(envelope))

    def same_as(self, topic: Topic, spec: ConsumerSpec) -> bool:
        """Return whether a request is for this subscription as it is, not for another in its place."""
        return self.topic is topic and self.selector_text == spec.selector and self.no_local == spec.no_local

    @property
    def busy(self) -> bool:
        """Whether it is being written that it comes or goes."""
        return self.ending or self.replaces is not None or (self.filings > 0 and not self.written)

    @property
    def written(self) -> bool:
        """Whether it is in the file, if it has to be."""
        return self.queue.shelf is None or self.queue.shelf.known

    def end(self) -> None:
        """Leave the topic and drop all messages."""
        self.queue.close()
        # Never changed in place: should a signal handler come in between, this very thread may be walking over the old list.
        self.topic.subscriptions = [one for one in self.topic.subscriptions if one is not self]


class Subscriptions:
    """All subscriptions that have names. Every method is called under the broker's lock."""

    __slots__ = ("_broker", "_by_key")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_key: dict[SubscriptionKey, Subscription] = {}

    def find(
        self, topic: Topic, spec: ConsumerSpec, selector: Selector | None, connection: InprocProvider, most_consumers: int
    ) -> Subscription:
        """Return the subscription a consumer asks for, made or replaced if need be.

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
        shelf = None if key is None or not key.durable else self._broker.shelf_for(topic.name, key, spec)
        new = self._add(Subscription(self._broker, topic, spec, selector, key, connection, shelf))
        if old is not None and shelf is not None:
            new.replaces = old
        elif old is not None:
            old.end()
        return new

    def restore(self, topic: Topic, shelf: Shelf) -> Subscription:
        """Put a durable subscription in place as the file has it."""
        place = shelf.place
        spec = ConsumerSpec(
            Address(DestinationKind.TOPIC, topic.name),
            place.selector,
            place.no_local,
            place.subscription,
            durable=True,
            shared=place.shared,
        )
        selector = None if place.selector is None else compiled(place.selector)
        key = SubscriptionKey(True, place.client_id, place.subscription or "")
        return self._add(Subscription(self._broker, topic, spec, selector, key, None, shelf))

    def _add(self, new: Subscription) -> Subscription:
        new.topic.subscriptions = [*new.topic.subscriptions, new]
        if new.key is not None:
            self._by_key[new.key] = new
        return new

    def settled(self, new: Subscription) -> None:
        """Take note that a durable subscription has been written, or could not be: then the one it replaces stays."""
        new.filings -= 1
        old = new.replaces
        if new.written:
            new.replaces = None
            if old is not None:
                old.end()
        elif not new.filings:
            if new.key is not None and self._by_key.get(new.key) is new:
                del self._by_key[new.key]
                if old is not None:
                    self._by_key[new.key] = old
            new.end()

    def left(self, subscription: Subscription) -> None:
        """Take note that a consumer left: the last one ends a non-durable subscription."""
        key = subscription.key
        if subscription.queue.consumers or (key is not None and key.durable):
            return
        self.end(subscription)

    def to_unsubscribe(self, client_id: str | None, name: str) -> Subscription:
        """Return the durable subscription of that client id and name, which may be ended.

        Raises:
            ProviderError: SUBSCRIPTION when there is none; IN_USE when it has consumers or an open transaction holds messages.
        """
        key = SubscriptionKey(True, client_id, name)
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

    def end(self, subscription: Subscription) -> None:
        """End a subscription that has a name."""
        if subscription.key is not None and self._by_key.get(subscription.key) is subscription:
            del self._by_key[subscription.key]
        subscription.end()

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()

    def _check(self, old: Subscription, key: SubscriptionKey, topic: Topic, spec: ConsumerSpec, most_consumers: int) -> None:
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


def _key(spec: ConsumerSpec, connection: InprocProvider) -> SubscriptionKey | None:
    if spec.subscription is None:
        return None
    if spec.durable and not spec.shared and connection.client_id is None:
        raise ProviderError(
            ErrorKind.CLIENT_ID, f"durable subscription {spec.subscription!r}: an unshared one needs a client id, and none is set"
        )
    return SubscriptionKey(spec.durable, connection.client_id, spec.subscription)


def _of(key: SubscriptionKey) -> str:
    return f"{key.name!r}" + ("" if key.client_id is None else f" of client id {key.client_id!r}")


def _busy(what: str) -> ProviderError:
    return ProviderError(ErrorKind.IN_USE, f"{what} is being written or ended by another call")
