"""Which durable subscriptions of this process are shared and which are not.

A shared and an unshared durable subscription of one client id may not have one name, and the broker, which knows the parts of a
shared one only, cannot tell. What another process has made, and left inactive, is not noticed.

Spec: 6.11.3-11, 6.11.4-9 (final text: 8.3.3, 8.3.4).
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

__all__ = ["KINDS", "KindRegistry", "Name"]


class Name(NamedTuple):
    """What a durable subscription is known by."""

    broker: str
    host: str
    client_id: str
    name: str


class KindRegistry:
    """Remembers the kind of each durable subscription. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[Name, bool] = {}

    def is_shared(self, name: Name) -> bool | None:
        """Return whether the subscription is a shared one; None when it is not known."""
        with self._lock:
            return self._shared.get(name)

    def note(self, name: Name, *, shared: bool) -> None:
        """Remember a subscription that was opened."""
        with self._lock:
            self._shared[name] = shared

    def forget(self, name: Name) -> None:
        """The subscription has been removed."""
        with self._lock:
            self._shared.pop(name, None)


KINDS: Final = KindRegistry()
