"""What the connections of this process must know of each other.

Artemis lets any connection consume from a temporary destination, closes the whole connection of a member of a shared
non-durable subscription that disagrees with the others, and takes the end of a shared durable one that is in use without
a word, and without effect (2.56.0). Within this process both are refused here, before the
broker is asked; between processes nothing can be done, which is why the capabilities say EMULATED.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from jmsapi.spi import Address, GivenBack

__all__ = ["DURABLE", "GIVEN_BACK", "SHARED", "TEMPORARIES", "DurableKinds", "SharedTerms", "Temporaries"]


class Temporaries:
    """Names and the connections they belong to. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[str, str] = {}

    def add(self, name: str, owner: str) -> None:
        """Note whose a name is."""
        with self._lock:
            self._owners[name] = owner

    def discard(self, name: str) -> None:
        """Forget a name."""
        with self._lock:
            self._owners.pop(name, None)

    def discard_all(self, owner: str) -> None:
        """Forget every name of a connection that has ended."""
        with self._lock:
            self._owners = {name: whose for name, whose in self._owners.items() if whose != owner}

    def is_of_another(self, name: str, owner: str) -> bool:
        """Whether a name belongs to another connection of this process."""
        whose = self._owners.get(name)
        return whose is not None and whose != owner


TEMPORARIES: Final = Temporaries()
"""Those of this process: one is enough, as brokers make names that are unique in the world."""


_REMEMBERED_S: Final = 10.0


@dataclass(slots=True)
class _Terms:
    address: Address
    selector: str | None
    members: int = 1


class SharedTerms:
    """Topic and selector of each active shared subscription. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terms: dict[tuple[object, ...], _Terms] = {}
        self._left: dict[tuple[object, ...], float] = {}

    def enter(self, key: tuple[object, ...], address: Address, selector: str | None) -> bool:
        """Count a member in; False, and nothing done, when it disagrees with those that are there."""
        with self._lock:
            terms = self._terms.get(key)
            if terms is None:
                self._terms[key] = _Terms(address, selector)
                return True
            if terms.address != address or terms.selector != selector:
                return False
            terms.members += 1
            return True

    def is_active(self, key: tuple[object, ...]) -> bool:
        """Whether there is a member."""
        return key in self._terms

    def leave(self, key: tuple[object, ...]) -> None:
        """Count a member out."""
        with self._lock:
            terms = self._terms.get(key)
            if terms is not None:
                terms.members -= 1
                if terms.members == 0:
                    del self._terms[key]
                    now = time.monotonic()
                    self._left = {one: left for one, left in self._left.items() if now - left < _REMEMBERED_S}
                    self._left[key] = now

    def quiet_for(self, key: tuple[object, ...]) -> float | None:
        """Return for how many seconds nobody has been a member; None when that was never, or long ago, or somebody is."""
        with self._lock:
            left = None if key in self._terms else self._left.get(key)
        return None if left is None else time.monotonic() - left


SHARED: Final = SharedTerms()
"""Those of this process, by broker, client id, name and durability."""


GIVEN_BACK: Final = GivenBack()
"""Client ids of closed connections of this process, by broker and id. Artemis frees one only a moment after it has said so."""


class DurableKinds:
    """Whether a durable subscription that this process has used is a shared one, as long as it is not ended. Any thread."""

    def __init__(self) -> None:
        self._shared: dict[tuple[object, ...], bool] = {}

    def differs(self, key: tuple[object, ...], *, shared: bool) -> bool:
        """Whether the subscription is known to be of the other kind."""
        return self._shared.get(key, shared) is not shared

    def note(self, key: tuple[object, ...], *, shared: bool) -> None:
        """Note the kind of a subscription in use."""
        self._shared[key] = shared

    def forget(self, key: tuple[object, ...]) -> None:
        """Forget a subscription that has ended."""
        self._shared.pop(key, None)


DURABLE: Final = DurableKinds()
"""Those of this process, by broker, client id and name. Artemis keeps both kinds in one queue and does not tell which it is."""
