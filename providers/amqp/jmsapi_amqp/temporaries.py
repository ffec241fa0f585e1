"""Whose the temporary destinations of this process are.

Artemis lets any connection consume from a temporary destination (2.56.0). Within this process that is refused here, before the
broker is asked; between processes nothing can be done, which is why the capability is EMULATED.
"""

from __future__ import annotations

import threading
from typing import Final

__all__ = ["TEMPORARIES", "Temporaries"]


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
