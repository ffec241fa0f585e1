"""What this process knows of subscriptions and client ids that brokers do not check over STOMP.

The only state of the module kind in the provider: two connections of one process to one broker must see each other, and
nothing but the process lies between them. Other processes are not seen; the capabilities say so.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from jmsapi.spi import ConsumerSpec, ErrorKind, GivenBack, ProviderError

__all__ = ["CLIENT_IDS", "GIVEN_BACK", "SUBSCRIPTIONS", "ClientIds", "Key", "Subscriptions"]

Key = tuple[str, ...]
"""Broker, client id, name: whatever tells one from another."""


@dataclass(slots=True)
class _Record:
    topic: str
    selector: str | None
    no_local: bool
    shared: bool
    active: int
    changed: bool = False
    """What is left of it is another topic's or selector's, as far as this process knows."""


class Subscriptions:
    """Named subscriptions that were opened in this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._records: dict[Key, _Record] = {}

    def enter(self, key: Key, spec: ConsumerSpec) -> bool:
        """Count one more consumer.

        Returns:
            True when the subscription was opened before with another topic or selector and is idle: it is to be replaced,
            and so it is until a consumer of the new kind was there.
        Raises:
            ProviderError: IN_USE, an unshared one is active; MISMATCH, a shared one is active with another topic or
                selector, or the name is known as the other kind.
        """
        selector = spec.selector if spec.terms is None else spec.terms
        with self._guard:
            record = self._records.get(key)
            if record is None:
                self._records[key] = _Record(spec.address.name, selector, spec.no_local, spec.shared, 1)
                return False
            if record.shared != spec.shared:
                kind = "a shared" if record.shared else "an unshared"
                raise ProviderError(ErrorKind.MISMATCH, f"{spec.subscription!r} is {kind} subscription; unsubscribe it first")
            same = (record.topic, record.selector, record.no_local) == (spec.address.name, selector, spec.no_local)
            if record.active and not spec.shared:
                raise ProviderError(ErrorKind.IN_USE, f"the subscription {spec.subscription!r} is in use")
            if record.active and not same:
                text = f"the subscription {spec.subscription!r} is in use with another topic or selector"
                raise ProviderError(ErrorKind.MISMATCH, text)
            record.topic, record.selector, record.no_local = spec.address.name, selector, spec.no_local
            record.active += 1
            record.changed = record.changed or not same
            return record.changed

    def opened(self, key: Key) -> None:
        """Take note that a consumer is there: what was to be replaced before it is."""
        with self._guard:
            record = self._records.get(key)
            if record is not None:
                record.changed = False

    def leave(self, key: Key) -> bool:
        """Count one consumer less; return whether it was the last."""
        with self._guard:
            record = self._records.get(key)
            if record is None:
                return True
            record.active -= 1
            return record.active <= 0

    def active(self, key: Key) -> bool:
        """Return whether the subscription has a consumer in this process."""
        with self._guard:
            record = self._records.get(key)
            return record is not None and record.active > 0

    def kind(self, key: Key) -> bool | None:
        """Return whether the subscription is a shared one; None when it is not known."""
        with self._guard:
            record = self._records.get(key)
            return None if record is None else record.shared

    def forget(self, key: Key) -> None:
        """Forget a subscription: it is unsubscribed, or never came to be."""
        with self._guard:
            self._records.pop(key, None)


class ClientIds:
    """Client ids in use in this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken: set[Key] = set()

    def claim(self, key: Key) -> None:
        """Take a client id.

        Raises:
            ProviderError: CLIENT_ID; another connection of this process has it.
        """
        with self._guard:
            if key in self._taken:
                raise ProviderError(ErrorKind.CLIENT_ID, f"the client id {key[-1]!r} is in use in this process", fatal=True)
            self._taken.add(key)

    def release(self, key: Key) -> None:
        """Give a client id back."""
        with self._guard:
            self._taken.discard(key)


SUBSCRIPTIONS: Final = Subscriptions()
CLIENT_IDS: Final = ClientIds()
GIVEN_BACK: Final = GivenBack()
"""Those of closed connections of this process, by host, port and id. Classic frees one only a moment after it has said so."""
