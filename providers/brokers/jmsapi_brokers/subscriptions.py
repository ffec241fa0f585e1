"""The named subscriptions and client ids that this process has open, whichever wire they were opened over.

Some rules of JMS about names are kept by no broker, or not over every wire: that an unshared durable subscription has one
consumer, that a shared one is not changed while it is used, that a name is of one kind. Two connections of one process can be
held to them here. Other processes are not seen; the capabilities say so where it matters.

All methods may be called from any thread.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from jmsapi.spi import Address, ConsumerSpec, ErrorKind, ProviderError

__all__ = ["BROKERS", "CLIENT_IDS", "SUBSCRIPTIONS", "BrokerRegistry", "ClientIds", "SubscriptionKey", "SubscriptionRegistry"]

_REMEMBERED_S: Final = 10.0
"""How long the end of a shared non-durable subscription is remembered."""


@dataclass(slots=True)
class _Endpoints:
    number: int
    ports: dict[str, int] = field(default_factory=dict[str, int])
    """By wire."""


class BrokerRegistry:
    """Which broker a connection leads to, so that the two wires of one broker are known to be its.

    No broker names itself alike over both wires, so this goes by product, host and port: ports of one wire are brokers of
    their own; a port of the other wire belongs to the first broker of that host that has none of that wire yet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._known: dict[tuple[str, str, str], list[_Endpoints]] = {}

    def number(self, product: str, host: str, vhost: str, wire: str, port: int) -> int:
        """Return a number that stands for one broker within this process.

        Args:
            product: The broker's product.
            host: As the application wrote it.
            vhost: The virtual host, or the empty text.
            wire: ``amqp`` or ``stomp``.
            port: The port of that wire.
        """
        with self._lock:
            brokers = self._known.setdefault((product, host, vhost), [])
            found = next((one for one in brokers if one.ports.get(wire) == port), None)
            if found is None:
                found = next((one for one in brokers if wire not in one.ports and port in one.ports.values()), None)
            if found is None:
                found = next((one for one in brokers if wire not in one.ports), None)
            if found is None:
                found = _Endpoints(next(self._numbers))
                brokers.append(found)
            found.ports.setdefault(wire, port)
            return found.number


class SubscriptionKey(NamedTuple):
    """What tells one named subscription from another."""

    broker: int
    """Of ``BrokerRegistry``."""
    client_id: str | None
    name: str
    durable: bool


@dataclass(slots=True)
class _Record:
    address: Address
    selector: str | None
    no_local: bool
    shared: bool
    active: int = 0
    changed: bool = False
    opened: bool = False
    """A consumer was there; else nobody knows whether there is such a subscription."""


class SubscriptionRegistry:
    """Named subscriptions that were opened in this process and not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[SubscriptionKey, _Record] = {}
        self._left: dict[SubscriptionKey, float] = {}

    def enter(self, key: SubscriptionKey, spec: ConsumerSpec, asked: str) -> bool:
        """Count one more consumer.

        Args:
            key: Its subscription.
            spec: What it asks for.
            asked: What was asked, as the beginning of an error's sentence.
        Returns:
            True when the subscription was opened before with another topic or selector and is idle: it is to be replaced,
            until ``opened`` tells that a consumer of the new kind is there.
        Raises:
            ProviderError: IN_USE, an unshared one is active; MISMATCH, a shared one is active with another topic or
                selector, or the name is known as the other kind.
        """
        terms = (spec.address, spec.selector if spec.terms is None else spec.terms, spec.no_local)
        with self._lock:
            record = self._records.get(key)
            if record is None:
                record = self._records[key] = _Record(*terms, spec.shared)
            if record.shared != spec.shared:
                kind = "a shared" if record.shared else "an unshared"
                raise ProviderError(ErrorKind.MISMATCH, f"{asked}: there is {kind} durable subscription of that name")
            if record.active and not spec.shared:
                raise ProviderError(ErrorKind.IN_USE, f"{asked}: the subscription has an active consumer")
            same = (record.address, record.selector, record.no_local) == terms
            if record.active and not same:
                text = f"{asked}: the shared subscription is active with another topic or selector"
                raise ProviderError(ErrorKind.MISMATCH, text)
            record.address, record.selector, record.no_local = terms
            record.active += 1
            record.changed = record.changed or not same
            return record.changed

    def opened(self, key: SubscriptionKey) -> None:
        """Record that a consumer is there: what was to be replaced before it is."""
        with self._lock:
            record = self._records.get(key)
            if record is not None:
                record.changed = False
                record.opened = True

    def leave(self, key: SubscriptionKey) -> bool:
        """Count one consumer less; return whether it was the last. A non-durable subscription ends with it."""
        with self._lock:
            record = self._records.get(key)
            if record is None:
                return True
            record.active = max(record.active - 1, 0)
            if record.active:
                return False
            if not record.opened:
                del self._records[key]
            elif not key.durable:
                del self._records[key]
                now = time.monotonic()
                self._left = {one: left for one, left in self._left.items() if now - left < _REMEMBERED_S}
                self._left[key] = now
            return True

    def active(self, key: SubscriptionKey) -> bool:
        """Return whether the subscription has a consumer in this process."""
        with self._lock:
            record = self._records.get(key)
            return record is not None and record.active > 0

    def elsewhere(self, key: SubscriptionKey, address: Address) -> bool:
        """Return whether the subscription was opened in this process on another topic, and has no consumer."""
        with self._lock:
            record = self._records.get(key)
            return record is not None and not record.active and record.address != address

    def shared(self, key: SubscriptionKey) -> bool | None:
        """Return whether the subscription is a shared one; None when this process has not opened it."""
        with self._lock:
            record = self._records.get(key)
            return None if record is None else record.shared

    def quiet_for(self, key: SubscriptionKey) -> float | None:
        """Return for how many seconds a non-durable subscription has had no consumer.

        Returns:
            None when it has one, or had none in the last ten seconds.
        """
        with self._lock:
            left = None if key in self._records else self._left.get(key)
        return None if left is None else time.monotonic() - left

    def forget(self, key: SubscriptionKey) -> None:
        """Forget a subscription: it is unsubscribed, or never came to be."""
        with self._lock:
            self._records.pop(key, None)


class ClientIds:
    """Client ids that connections of this process use, where the broker does not see to it that each is used once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[tuple[int, str]] = set()

    def claim(self, broker: int, client_id: str) -> None:
        """Take a client id.

        Raises:
            ProviderError: CLIENT_ID; another connection of this process has it.
        """
        with self._lock:
            if (broker, client_id) in self._taken:
                raise ProviderError(ErrorKind.CLIENT_ID, f"the client id {client_id!r} is in use in this process", fatal=True)
            self._taken.add((broker, client_id))

    def release(self, broker: int, client_id: str) -> None:
        """Give a client id back."""
        with self._lock:
            self._taken.discard((broker, client_id))


BROKERS: Final = BrokerRegistry()
CLIENT_IDS: Final = ClientIds()
SUBSCRIPTIONS: Final = SubscriptionRegistry()
