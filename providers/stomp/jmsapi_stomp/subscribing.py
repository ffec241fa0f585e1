"""Opening and ending subscriptions: what the brokers leave to the client.

Rules of names that the broker does not keep are kept here: an unshared durable subscription has one consumer, a changed
one is replaced, a shared one is not changed while it is used. What this process knows it checks in ``registry``; between
processes RabbitMQ has lock queues, Classic its own checks, Artemis over STOMP nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_stomp.artemis import Artemis
from jmsapi_stomp.aside import Aside
from jmsapi_stomp.classic import Classic
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.link import Link
from jmsapi_stomp.links import Links
from jmsapi_stomp.loopback import Loopback, new_temporary, removal
from jmsapi_stomp.plans import GLOBAL_CLIENT, Headers, Plan
from jmsapi_stomp.rabbitmq import TEMPORARY, RabbitMQ
from jmsapi_stomp.registry import SUBSCRIPTIONS, Key
from jmsapi_stomp.steps import Steps, run
from jmsapi_stomp.wiring import Wiring

__all__ = ["Subscribing"]

_SIDE_TOPIC: Final = "/topic/jmsapi.unsub"


class Subscribing:
    """Opens consumers and removes subscriptions. I/O thread only."""

    def __init__(self, wiring: Wiring, consumers: Consumers, links: Links) -> None:
        self._wiring = wiring
        self._consumers = consumers
        self._links = links
        self._serials = count(1)
        self._temporaries = count(1)
        self._connection_id = ""
        self._aside = Aside(wiring, consumers)
        consumers.on_gone = self.left

    def _key(self, name: str, *, durable: bool) -> Key:
        wiring = self._wiring
        return (*wiring.place, wiring.client_id or "", "durable" if durable else "volatile", name)

    # opening

    def open(self, consumer: Consumer, done: Done) -> None:
        """Subscribe."""
        run(self._open(consumer), done)

    def _open(self, consumer: Consumer) -> Steps[None]:
        plan, spec = consumer.plan, consumer.spec
        if not plan.registered:
            yield lambda done: self._consumers.subscribe(consumer, done)
            return
        if plan.forwarded is not None:
            yield from self._aside.see_forwarding(*plan.forwarded)
        key = self._key(spec.subscription or "", durable=spec.durable)
        first = not SUBSCRIPTIONS.active(key)
        changed = SUBSCRIPTIONS.enter(key, spec)
        consumer.key = key
        try:
            if plan.inner:
                consumer.link = yield from self._links.inner()
            if plan.lock is not None:
                consumer.lock = yield from self._locked(plan.lock, spec.subscription or "")
            again = self._wiring.options.resubscribe and spec.durable and not self._wiring.dialect.checks_subscriptions
            stale = first and (changed or plan.volatile or again)
            if plan.replace is not None and stale:
                yield from self._replace(plan.replace, volatile=plan.volatile)
            if plan.members is not None:
                consumer.member = yield from self._aside.join(plan.members)
                stale = first and (changed or not spec.durable)
                if stale and (yield from self._aside.alone(consumer.member, plan.watch)):
                    # What came before the first consumer was not for it, and nothing deletes the queue.
                    yield from self._aside.empty(Plan(plan.destination))
            yield lambda done: self._consumers.subscribe(consumer, done)
            SUBSCRIPTIONS.opened(key)
        except ProviderError:
            self.left(consumer)
            raise

    def _locked(self, queue: str, name: str) -> Steps[Link]:
        try:
            link = yield from self._links.lock(queue)
        except ProviderError as cause:
            if cause.kind is ErrorKind.IN_USE:
                raise ProviderError(ErrorKind.IN_USE, f"the subscription {name!r} is in use by another connection") from cause
            raise
        return link

    def _replace(self, deletion: Headers, *, volatile: bool) -> Steps[None]:
        """Delete what is left under the name; what others still use stays."""
        try:
            yield from self._delete(deletion)
        except ProviderError as cause:
            if not volatile and cause.kind is not ErrorKind.SUBSCRIPTION:  # another process may have deleted it
                raise ProviderError(ErrorKind.IN_USE, f"the subscription is in use elsewhere: {cause.message}") from cause

    def _delete(self, deletion: Headers) -> Steps[None]:
        """Delete a subscription where an ERROR would end the connection that asks: on one of its own."""
        wiring = self._wiring
        if not wiring.dialect.every_error_ends:
            yield from self._delete_on(wiring.link, deletion)
            return
        link = yield from self._links.connect(wiring.client_id or GLOBAL_CLIENT)
        try:
            yield from self._delete_on(link, deletion)
        finally:
            self._links.drop(link)

    def _delete_on(self, link: Link, deletion: Headers) -> Steps[None]:
        # RabbitMQ wants the id of a subscription to end: any will do, for the queue's name is in the other headers.
        asked, name = "cannot unsubscribe", f"u{next(self._serials)}"
        if isinstance(self._wiring.dialect, RabbitMQ):
            leave = partial(link.request, asked, "UNSUBSCRIBE", [("id", name)], lambda _: None)
            yield partial(link.request, asked, "SUBSCRIBE", [("id", name), ("destination", _SIDE_TOPIC)], late=leave)
        yield partial(link.request, asked, "UNSUBSCRIBE", [("id", name), *deletion])

    # ending

    def left(self, consumer: Consumer) -> None:
        """Take note that a consumer is gone, and let go what was held for it."""
        key, consumer.key = consumer.key, None
        last = key is not None and SUBSCRIPTIONS.leave(key)
        lock, consumer.lock = consumer.lock, None
        if lock is not None:
            self._links.drop(lock)
        member, consumer.member = consumer.member, None
        if member is not None:
            self._consumers.release(member, lambda _: None)
        if last and key is not None and not consumer.spec.durable:
            SUBSCRIPTIONS.forget(key)
        if key is None and consumer.plan.volatile:
            # One that was given up, and that the broker made all the same.
            run(self._delete_idle(consumer), lambda _: None)

    def release(self, consumer: Consumer, done: Done) -> None:
        """End a consumer, and with the last one a subscription that is not to outlive it."""
        run(self._release(consumer), done)

    def _release(self, consumer: Consumer) -> Steps[None]:
        yield lambda done: self._consumers.release(consumer, done)
        key, lock = consumer.key, consumer.lock
        consumer.lock = None
        if lock is not None:
            yield from self._links.part(lock)
        member, consumer.member = consumer.member, None
        if member is not None:
            yield partial(self._consumers.release, member)
        self.left(consumer)
        if key is not None:
            yield from self._delete_idle(consumer)

    def _delete_idle(self, consumer: Consumer) -> Steps[None]:
        """Delete a subscription that is not to outlive its consumers, when this process has none left."""
        plan, spec = consumer.plan, consumer.spec
        idle = plan.volatile and not SUBSCRIPTIONS.active(self._key(spec.subscription or "", durable=spec.durable))
        if plan.replace is not None and idle:
            yield from self._replace(plan.replace, volatile=True)

    # temporary destinations

    def create_temporary(self, kind: DestinationKind, done: Callable[[Address | ProviderError], object]) -> None:
        """Make a temporary destination and tell its address; Artemis makes it when it is first used."""
        made: list[Address] = []
        run(self._create_temporary(kind, made), lambda cause: done(cause or made[0]))

    def _create_temporary(self, kind: DestinationKind, made: list[Address]) -> Steps[None]:
        dialect, link = self._wiring.dialect, self._wiring.link
        if isinstance(dialect, Classic):
            if not self._connection_id:
                self._connection_id = yield from self._own_id()
            address = Address(kind, f"{self._connection_id}:{next(self._temporaries)}")
            yield from self._create_on_classic(dialect, address)
        elif isinstance(dialect, Loopback):
            address = yield from self._named_by_broker(kind)
        else:
            address = Address(kind, f"jmsapi.temp.{uuid.uuid4()}")
            if isinstance(dialect, RabbitMQ) and not kind.is_topic:
                # A SEND declares the queue; its message, which is to live for 0 ms, is dropped at once.
                headers = [("destination", f"/queue/{address.name}"), ("expiration", "0"), *TEMPORARY]
                yield lambda done: link.confirmed(command_frame("SEND", headers), done)
        self._wiring.temporary.add(address)
        made.append(address)

    def _own_id(self) -> Steps[str]:
        """Return the id the broker gave the connection: CONNECTED has it if there is no client id, else own messages do."""
        link = self._wiring.link
        if self._wiring.client_id is None:
            return link.connected_headers.get("session", "")
        topic, ids = f"/topic/jmsapi.self.{uuid.uuid4()}", list[str | None]()

        def ask(consumer: Consumer) -> Steps[None]:
            yield lambda done: link.confirmed(command_frame("SEND", [("destination", topic)]), done)
            yield from self._aside.arrival(consumer)
            ids.extend(envelope.message_id for envelope in consumer.unsettled.values())

        yield from self._aside.by(Plan(topic), ask)
        if not ids or not ids[0]:
            raise ProviderError(ErrorKind.TIMEOUT, "cannot make a temporary destination: the broker did not say who we are")
        return ids[0].rsplit(":", 3)[0]

    def _named_by_broker(self, kind: DestinationKind) -> Steps[Address]:
        addresses: list[Address] = []

        def read(consumer: Consumer) -> Steps[None]:
            addresses.extend(envelope.destination for envelope in consumer.unsettled.values())
            yield lambda done: done(None)

        yield from self._aside.by(Plan(new_temporary(kind)), read)
        if not addresses:
            raise ProviderError(ErrorKind.PROTOCOL, "the server made a temporary destination and did not name it")
        return addresses[0]

    def _create_on_classic(self, dialect: Classic, address: Address) -> Steps[None]:
        """Have the broker make the destination, which then lives as long as the connection.

        Classic 6.3.1 makes ``/temp-queue/x`` when a connection first names it, under the name that others know: the
        connection's id and a number that counts up from 1 (``test_temporary_destinations_carry_answers``).
        With that for x, the owner and the others read one name. The second SUBSCRIBE shows that it is this name.
        """
        link = self._wiring.link
        for name, destination in zip("lr", (dialect.local_name(address), dialect.destination(address)), strict=True):
            key = f"t{name}{next(self._serials)}"
            headers = [("id", key), ("destination", destination), ("ack", "client-individual")]
            asked = "cannot make a temporary destination"
            leave = partial(link.request, asked, "UNSUBSCRIBE", [("id", key)])
            yield partial(link.request, asked, "SUBSCRIBE", headers, late=partial(leave, lambda _: None))
            yield leave

    def remove_temporary(self, address: Address, done: Done) -> None:
        """Delete a temporary destination: on RabbitMQ its queue; elsewhere what is left in it, for STOMP deletes nothing.

        Artemis then deletes what is empty and idle. On Classic it lives as long as the connection, and others may go on
        sending to it (``test_classic_goes_on_taking_messages_for_a_deleted_temporary_queue``).
        """
        wiring = self._wiring
        if isinstance(wiring.dialect, Loopback):
            run(self._remove_named(wiring.dialect, address), done)
            return
        wiring.temporary.discard(address)
        if isinstance(wiring.dialect, RabbitMQ) and not address.kind.is_topic:
            run(self._delete(wiring.dialect.deletion(address.name)), done)
        elif address.kind.is_topic:
            done(None)
        else:
            spec = ConsumerSpec(address)
            run(self._aside.empty(wiring.dialect.plan(spec, None)), done)

    def leave_temporaries(self, done: Done) -> None:
        """The connection closes, and its temporary queues go with it: Artemis deletes those that are empty, so empty them."""
        dialect = self._wiring.dialect
        queues = [one for one in self._wiring.temporary if not one.kind.is_topic] if isinstance(dialect, Artemis) else []
        run(self._aside.empty(*(dialect.plan(ConsumerSpec(one), None) for one in queues)), done)

    def _remove_named(self, dialect: Loopback, address: Address) -> Steps[None]:
        yield from self._delete(removal(dialect, address))
        self._wiring.temporary.discard(address)

    # durable subscriptions

    def remove(self, name: str, done: Done) -> None:
        """Delete a durable subscription.

        Errors: IN_USE; SUBSCRIPTION when there is none, where the broker can tell; UNSUPPORTED.
        """
        run(self._remove(name), done)

    def _remove(self, name: str) -> Steps[None]:
        wiring = self._wiring
        key = self._key(name, durable=True)
        if SUBSCRIPTIONS.active(key):
            raise ProviderError(ErrorKind.IN_USE, f"the subscription {name!r} is in use")
        if isinstance(wiring.dialect, RabbitMQ):
            yield from self._remove_queues(wiring.dialect, name)
        elif wiring.dialect.checks_subscriptions and SUBSCRIPTIONS.kind(key):
            text = f"{name!r} is a queue of a virtual topic, which STOMP cannot delete: the broker's administrator can"
            raise ProviderError(ErrorKind.UNSUPPORTED, text)
        else:
            yield from self._delete(wiring.dialect.deletion(name))
        SUBSCRIPTIONS.forget(key)

    def _remove_queues(self, dialect: RabbitMQ, name: str) -> Steps[None]:
        found = False
        for shared in (False, True):
            if not shared and self._wiring.client_id is None:
                continue
            queue = dialect.subscription_queue(name, self._wiring.client_id, durable=True, shared=shared)
            if not (yield from self._exists(queue)):
                continue
            found = True
            lock = None
            if not shared:
                lock = yield from self._locked(f"jmsapi.lock.sub.{self._wiring.client_id}.{name}", name)
            try:
                yield from self._delete(dialect.deletion(queue))
            finally:
                if lock is not None:
                    yield from self._links.part(lock)
        if not found:
            raise ProviderError(ErrorKind.SUBSCRIPTION, f"there is no durable subscription {name!r}")

    def _exists(self, queue: str) -> Steps[bool]:
        """Look for a queue on a connection of its own: RabbitMQ closes it when there is none.

        RabbitMQ 4.0 fails to write the ERROR that names a queue with letters beyond ASCII, and closes without it; so for such a
        name a connection that is closed twice is the answer (``test_a_subscription_with_any_letters_in_its_name_is_ended``).
        """
        for _ in range(2):
            try:
                yield from self._look_for(queue)
            except ProviderError as cause:
                if cause.kind is ErrorKind.DESTINATION:
                    break
                if queue.isascii() or cause.kind is not ErrorKind.CONNECTION:
                    raise
            else:
                return True
        return False

    def _look_for(self, queue: str) -> Steps[None]:
        link = yield from self._links.connect(None)
        headers = [("id", "look"), ("destination", f"/amq/queue/{queue.replace('/', '%2F')}"), ("ack", "client-individual")]
        window = self._wiring.dialect.window(1, deferred=False)
        try:
            yield lambda done: link.request("cannot look", "SUBSCRIBE", [*headers, *window], done)
        finally:
            self._links.drop(link)
