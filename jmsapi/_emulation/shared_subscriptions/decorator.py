"""Shared subscriptions of a broker that has none: the decorator that gives them to every consumer that asks for one.

A subscription is an ordinary durable subscription with the selector, in which the broker collects messages; a queue that all
members read; and a forwarder, which one of the connections with a member runs, that moves messages from the one to the other.
What the parts are called is in ``parts``, how they are made and removed in ``membership``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

from jmsapi._emulation.forwarding import Forwarding
from jmsapi._emulation.guarded_calls import call_below
from jmsapi._emulation.shared_subscriptions.auxiliary import AuxiliaryConnection, AuxiliaryInbox, awaited
from jmsapi._emulation.shared_subscriptions.envelopes import OfTopic
from jmsapi._emulation.shared_subscriptions.forwarder import Forwarder
from jmsapi._emulation.shared_subscriptions.kinds import KINDS, Name
from jmsapi._emulation.shared_subscriptions.membership import Registrar
from jmsapi._emulation.shared_subscriptions.parts import PREFIX, Definition, Parts, presence
from jmsapi._emulation.shared_subscriptions.worker import JobThread
from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    ConsumerSpec,
    Delivery,
    Envelope,
    ErrorKind,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    Tag,
    answered,
    emulated,
    failed,
)

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["SharedSubscriptions"]

T = TypeVar("T")
_REFUSED_AGAIN_S: Final = 30.0
_PATIENCE: Final = 0.8
"""The part of the application's wait that the work may take, so that its own error comes first."""


@dataclass(eq=False)
class _Subscription:
    """A shared subscription with a member on this connection."""

    parts: Parts
    definition: Definition
    topic: Address
    forwarder: Forwarder
    members: set[Handle] = field(default_factory=set[Handle])
    presence: tuple[Handle, Tag] | None = None
    leadership: Handle | None = None
    refused_at: float | None = None
    """When this connection could not forward, and gave leadership up."""


class SharedSubscriptions(Forwarding):
    """Makes shared subscriptions of what the broker has.

    Args:
        provider: The one below.
        connect: Makes a provider, not open yet, for further connections to the same broker.
        options: Of this connection.
    """

    def __init__(self, provider: Provider, connect: Callable[[ProviderOptions], Provider], options: ProviderOptions) -> None:
        super().__init__(provider)
        self._options = options
        self._make = connect
        self._timeout_s = options.request_timeout_ms / 1000 * _PATIENCE
        self._registrar = Registrar(self._connect, self._timeout_s)
        self._worker = JobThread("jmsapi-shared-subscriptions")
        self._needed = False
        self._broker = ""
        self._closed = False
        self._session: Handle | None = None
        """For consumers of our own."""
        self._subscriptions: dict[Parts, _Subscription] = {}
        """Subscriptions that have a member in this process. Touched by the worker alone."""
        self._member_of: dict[Handle, _Subscription] = {}
        self._waiting: dict[Handle, AuxiliaryInbox] = {}
        """Presence consumers of our own."""
        self._candidates: dict[Handle, _Subscription] = {}
        """Consumers of our own that wait for leadership."""
        self._ended: WeakKeyDictionary[Handle, ProviderError] = WeakKeyDictionary()
        """What the broker ended before it was known here whose it is."""

    def changed(self, capabilities: Capabilities) -> Capabilities:
        """Offer shared subscriptions where the broker has none but what they are made of."""
        self._needed = capabilities.forwards_shared
        self._broker = capabilities.broker
        if not self._needed:
            # Nothing is refused where nothing is reserved: one call less for each message.
            self.send = self.below.send  # type: ignore[method-assign]
            return capabilities
        how = "a durable subscription, from which one of the members forwards to a queue that all of them read"
        return capabilities.with_(
            shared_subscription=emulated(f"{how}; removed with the last member"),
            shared_durable_subscription=emulated(how),
            shared_unsubscribe=emulated("removes the durable subscription and empties the queue"),
        )

    # ---- calls ----------------------------------------------------------------------------------------------------
    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Open a member of a shared subscription; everything else is passed down."""
        if not self._needed:
            return self.below.open_consumer(session, spec)
        if not spec.shared:
            return self._open_unshared(session, spec)
        if spec.address.kind.is_temporary:
            text = (
                f"a shared subscription on the temporary topic {spec.address.name!r}: only its own connection can receive from it"
            )
            return failed(ProviderError(ErrorKind.UNSUPPORTED, text))
        return self._worker.submit(lambda: self._join(session, spec))

    def _open_unshared(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        refusal = _reserved(spec.address)
        if refusal is not None:
            return failed(refusal)
        known = self._known(spec.subscription) if spec.durable else None
        if known is None:
            return self.below.open_consumer(session, spec)
        opened: Future[Handle] = Future()

        def noted(handle: Handle) -> Handle:
            KINDS.note(known, shared=False)
            return handle

        def free(ended: Future[None]) -> None:
            error = ended.exception()
            if error is not None:
                opened.set_exception(error)
            else:
                answered(call_below(self.below.open_consumer, session, spec), noted, answer=opened)

        if KINDS.is_shared(known):
            self._worker.submit(lambda: self._check_is_gone(known)).add_done_callback(free)
        else:
            free(DONE)
        return opened

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Refuse the queues of shared subscriptions."""
        refusal = _reserved(destination) if self._needed and destination is not None else None
        return self.below.open_producer(session, destination) if refusal is None else failed(refusal)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Refuse the queues of shared subscriptions."""
        if self._needed and envelope.destination.name.startswith(PREFIX):
            refusal = _reserved(envelope.destination)
            if refusal is not None:
                raise refusal
        self.below.send(producer, envelope, tx, token)

    def drain(self, consumer: Handle) -> Future[None]:
        """See first that everything is forwarded that was there, if this connection forwards."""
        subscription = self._member_of.get(consumer)
        if subscription is None:
            return self.below.drain(consumer)
        drained: Future[None] = Future()
        subscription.forwarder.flush().add_done_callback(
            lambda _: answered(self.below.drain(consumer), lambda value: value, answer=drained)
        )
        return drained

    def release(self, handle: Handle) -> Future[None]:
        """End a consumer; with the last member on this connection, its part in the subscription."""
        subscription = self._member_of.pop(handle, None)
        if subscription is None:
            return self.below.release(handle)
        released: Future[None] = Future()

        def leave(ended: Future[None]) -> None:
            left = self._worker.submit(lambda: self._leave(subscription, handle))
            answered(left, lambda _: ended.result(), answer=released)

        self.below.release(handle).add_done_callback(leave)
        return released

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """End a subscription of that name, of whichever kind it is."""
        if not self._needed or not isinstance(what, str):
            return self.below.remove(session, what)
        if self._options.client_id is None:
            return self._worker.submit(lambda: self._unsubscribe(what, None))
        removed: Future[None] = Future()

        def unless_there(ended: Future[None]) -> None:
            error = ended.exception()
            if isinstance(error, ProviderError) and error.kind is ErrorKind.SUBSCRIPTION:
                answered(self._worker.submit(lambda: self._unsubscribe(what, error)), lambda value: value, answer=removed)
            else:
                answered(ended, lambda value: value, answer=removed)

        known = self._known(what)
        if known is not None and not KINDS.is_shared(known):
            KINDS.forget(known)
        self.below.remove(session, what).add_done_callback(unless_there)
        return removed

    def _known(self, subscription: str | None) -> Name | None:
        """Return what a durable subscription of this connection's client id is known by."""
        client_id = self._options.client_id
        return (
            None if client_id is None or subscription is None else Name(self._broker, self._options.host, client_id, subscription)
        )

    def close(self) -> Future[None]:
        """Stop forwarding, then close the provider below."""
        self._abandon()
        return self.below.close()

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Show what members get as messages of the topic; take what is for us."""
        subscription = self._member_of.get(consumer)
        if subscription is not None:
            topic = subscription.topic
            shown = [delivery._replace(envelope=OfTopic(delivery.envelope, topic)) for delivery in deliveries]
            self.above.on_deliveries(consumer, shown)
        elif consumer in self._candidates:
            self._candidates[consumer].forwarder.start()
        elif consumer in self._waiting:
            self._waiting[consumer].put(deliveries)
        else:
            self.above.on_deliveries(consumer, deliveries)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """A part that the broker ends ends every member of its subscription on this connection."""
        candidate = self._candidates.pop(handle, None)
        subscription = candidate or next(
            (one for one in list(self._subscriptions.values()) if one.presence is not None and one.presence[0] is handle), None
        )
        if subscription is None:
            self._ended[handle] = cause
            self.above.on_closed(handle, cause)
            return
        subscription.forwarder.stop(wait=False)
        for member in list(subscription.members):
            self.above.on_closed(member, cause)

    def on_lost(self, cause: ProviderError) -> None:
        """Stop forwarding: somebody else does, whose connection lives."""
        self._abandon()
        self.above.on_lost(cause)

    def _abandon(self) -> None:
        self._closed = True
        self._worker.end()
        for subscription in list(self._subscriptions.values()):
            subscription.forwarder.stop(wait=False)

    # ---- on the worker's thread -----------------------------------------------------------------------------------
    def _connect(self, client_id: str) -> AuxiliaryConnection:
        return AuxiliaryConnection(self._make(self._options.having(client_id=client_id)), self._timeout_s)

    def _join(self, session: Handle, spec: ConsumerSpec) -> Handle:
        parts = Parts(self._options.client_id, spec.subscription or "", spec.durable)
        wanted = Definition.of(spec)
        known = self._known(parts.name) if parts.durable else None
        if known is not None and KINDS.is_shared(known) is False:
            raise ProviderError(ErrorKind.MISMATCH, f"there is an unshared durable subscription of the name {parts.name!r}")
        subscription = self._subscriptions.get(parts)
        if subscription is None:
            subscription = self._enter(parts, wanted, spec)
        elif subscription.definition != wanted:
            text = f"the shared subscription {parts.name!r} is active with another topic or selector"
            raise ProviderError(ErrorKind.MISMATCH, text)
        below = replace(spec, address=parts.queue, selector=None, terms=None, subscription=None, durable=False, shared=False)
        try:
            member = self._await(self.below.open_consumer(session, below), f"consume from {parts.queue.name!r}")
        except BaseException:
            if not subscription.members:
                self._withdraw(subscription)
            raise
        subscription.members.add(member)
        self._member_of[member] = subscription
        if known is not None:
            KINDS.note(known, shared=True)
        return member

    def _check_is_gone(self, known: Name) -> None:
        """Refuse an unshared subscription with the name of a shared one, unless somebody else has ended that."""
        parts = Parts(known.client_id, known.name, True)
        if parts not in self._subscriptions:
            with self._registrar.locked(parts) as lock:
                if not self._registrar.is_there(lock, parts):
                    KINDS.forget(known)
                    return
        raise ProviderError(ErrorKind.MISMATCH, f"there is a shared durable subscription of the name {known.name!r}")

    def _enter(self, parts: Parts, wanted: Definition, spec: ConsumerSpec) -> _Subscription:
        subscription = _Subscription(parts, wanted, spec.address, self._forwarder(parts, wanted))
        with self._registrar.locked(parts) as lock:
            others = self._registrar.enter(lock, parts, wanted)
            try:
                self._be_present(lock, subscription)
                self._await_leadership(subscription)
            except BaseException:
                self._withdraw(subscription)
                raise
        self._subscriptions[parts] = subscription
        if not others:
            # Nobody else forwards: what is published from now on is on its way as soon as this returns.
            subscription.forwarder.ready.wait(self._timeout_s)
        return subscription

    def _forwarder(self, parts: Parts, wanted: Definition) -> Forwarder:
        def connect() -> AuxiliaryConnection:
            return self._connect(parts.forwarder_id)

        def refused(cause: ProviderError) -> None:
            self._worker.submit(lambda: self._hand_over(parts, cause))

        return Forwarder(parts, wanted.topic, wanted.selector, connect, self._options.prefetch, refused)

    def _hand_over(self, parts: Parts, cause: ProviderError) -> None:
        """Let a member on the other wire forward; where there is none, tell the members here why nothing comes."""
        subscription = self._subscriptions.get(parts)
        if subscription is None or subscription.leadership is None:
            return
        now = time.monotonic()
        if subscription.refused_at is not None and now - subscription.refused_at < _REFUSED_AGAIN_S:
            for member in list(subscription.members):
                self.above.on_closed(member, cause)
            return
        subscription.refused_at = now
        self._candidates.pop(subscription.leadership, None)
        self._await(self.below.release(subscription.leadership), "give leadership up")
        subscription.forwarder = self._forwarder(parts, subscription.definition)
        self._await_leadership(subscription)

    def _be_present(self, lock: AuxiliaryConnection, subscription: _Subscription) -> None:
        """Hold a message of the members' queue as long as this connection lives."""
        consumer = self._own_consumer(subscription.parts.members)
        inbox = self._waiting[consumer] = AuxiliaryInbox()
        lock.send(presence(subscription.parts))
        self._grant(consumer)
        came = inbox.take(self._timeout_s)
        if not came:
            raise ProviderError(ErrorKind.TIMEOUT, f"no message came from {subscription.parts.members.name!r}")
        subscription.presence = consumer, came[0].tag

    def _await_leadership(self, subscription: _Subscription) -> None:
        consumer = self._own_consumer(subscription.parts.leader)
        subscription.leadership = consumer
        self._candidates[consumer] = subscription
        self._grant(consumer)

    def _grant(self, consumer: Handle) -> None:
        """Let one message come to a consumer of our own, which is registered."""
        cause = self._ended.pop(consumer, None)
        if cause is not None:
            raise cause
        self._await(self.below.credit(consumer, 1), "receive for a shared subscription")

    def _own_consumer(self, address: Address) -> Handle:
        if self._session is None:
            self._session = self._await(self.below.open_session(transacted=False), "open a session")
        spec = ConsumerSpec(address, prefetch=1, deferred_acks=True)
        return self._await(self.below.open_consumer(self._session, spec), f"consume from {address.name!r}")

    def _leave(self, subscription: _Subscription, member: Handle) -> None:
        subscription.members.discard(member)
        if subscription.members or self._closed:
            return
        self._withdraw(subscription)
        if not subscription.parts.durable:
            with self._registrar.locked(subscription.parts) as lock:
                self._registrar.left(lock, subscription.parts)

    def _withdraw(self, subscription: _Subscription) -> None:
        """Forward no more, let another connection lead, and be no member."""
        self._subscriptions.pop(subscription.parts, None)
        subscription.forwarder.stop()
        if subscription.leadership is not None:
            self._candidates.pop(subscription.leadership, None)
            self._await(self.below.release(subscription.leadership), "give leadership up")
        if subscription.presence is not None:
            consumer, tag = subscription.presence
            self._await(self.below.settle([tag], Outcome.ACCEPTED), "leave a shared subscription")
            self._waiting.pop(consumer, None)
            self._await(self.below.release(consumer), "leave a shared subscription")

    def _unsubscribe(self, name: str, otherwise: ProviderError | None) -> None:
        parts = Parts(self._options.client_id, name, True)
        if parts in self._subscriptions:
            raise ProviderError(ErrorKind.IN_USE, "the shared subscription has active consumers")
        with self._registrar.locked(parts) as lock:
            found = self._registrar.unsubscribe(lock, parts)
        known = self._known(name)
        if known is not None:
            KINDS.forget(known)
        if not found:
            raise otherwise or ProviderError(ErrorKind.SUBSCRIPTION, f"there is no shared subscription {name!r} either")

    def _await(self, future: Future[T], what: str) -> T:
        return awaited(future, self._timeout_s, what)


def _reserved(address: Address) -> ProviderError | None:
    """Return the refusal of a queue that belongs to a shared subscription."""
    if address.kind.is_topic or not address.name.startswith(PREFIX):
        return None
    text = f"the queue {address.name!r} belongs to a shared subscription: what is taken from it or sent to it is the library's"
    return ProviderError(ErrorKind.DESTINATION, text)
