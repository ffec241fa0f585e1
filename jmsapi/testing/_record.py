"""What has gone through a broker: all that was sent and committed, and what consumers hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from jmsapi.spi import Address, BranchId, Envelope, Tag

if TYPE_CHECKING:
    from jmsapi.testing._recording import Recording

__all__ = ["Held", "Record", "Sent", "Work"]

_LOOK_AGAIN_S: Final = 0.5
"""A message that expires or falls due makes no call; so look again at least this often."""


class Sent(NamedTuple):
    """A message that the broker took."""

    address: Address
    envelope: Envelope


class Held(NamedTuple):
    """A message that a consumer was given and has not settled."""

    owner: Recording
    address: Address
    envelope: Envelope
    dropped: bool = False
    """It never reached the application."""


class Work:
    """What a transaction has done so far: sent, and accepted."""

    __slots__ = ("sent", "tags")

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.tags: list[Tag] = []


class Record:
    """Written by all connections of a broker, read by assertions. Threads: any."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._version = 0
        self._sent: list[Sent] = []
        self._held: dict[Tag, Held] = {}
        self._late = 0
        self._branches: dict[BranchId, Work] = {}

    # ---- written by connections -----------------------------------------------------------------------------------
    def add(self, sent: Iterable[Sent]) -> None:
        """Take note of messages that the broker takes."""
        with self._changed:
            self._sent.extend(sent)
            self._tell()

    def withdraw(self, sent: Iterable[Sent]) -> None:
        """Forget messages that it refused after all."""
        with self._changed:
            for one in sent:
                # The latest that is this very one: equal ones may have been sent before.
                for index in range(len(self._sent) - 1, -1, -1):
                    if self._sent[index] is one:
                        del self._sent[index]
                        break
            self._tell()

    def hold(self, tag: Tag, held: Held) -> None:
        """Take note of a delivery."""
        with self._changed:
            self._held[tag] = held
            self._tell()

    def drop(self, tag: Tag) -> None:
        """Take note that a delivery does not reach the application."""
        with self._changed:
            if tag in self._held:
                self._held[tag] = self._held[tag]._replace(dropped=True)
                self._tell()

    def let_go(self, tags: Iterable[Tag]) -> None:
        """Take note that deliveries are settled or gone back."""
        with self._changed:
            for tag in tags:
                self._held.pop(tag, None)
            self._tell()

    def forget(self, owner: Recording) -> list[Tag]:
        """Take note that a connection has ended; return the tags of what it held."""
        with self._changed:
            tags = [tag for tag, held in self._held.items() if held.owner is owner]
            for tag in tags:
                del self._held[tag]
            self._tell()
        return tags

    def work_of(self, branch: BranchId) -> Work:
        """Return the work of a branch, which several connections may do."""
        with self._changed:
            return self._branches.setdefault(branch, Work())

    def work_done(self, branch: BranchId) -> Work:
        """Take note that a branch is over, and return its work."""
        with self._changed:
            return self._branches.pop(branch, None) or Work()

    def late(self, n: int) -> None:
        """Take note that so many calls or deliveries are held up, or (negative) are not any more."""
        with self._changed:
            self._late += n
            self._tell()

    # ---- read by assertions ---------------------------------------------------------------------------------------
    def sent_to(self, address: Address) -> list[Sent]:
        """Return all that a destination was sent, in order."""
        with self._changed:
            return [one for one in self._sent if _same(one.address, address)]

    def counts(self) -> dict[Address, int]:
        """Return how many messages each destination was sent."""
        found: dict[Address, int] = {}
        with self._changed:
            for one in self._sent:
                found[one.address] = found.get(one.address, 0) + 1
        return found

    def held_of(self, address: Address) -> list[Held]:
        """Return what consumers of a destination hold."""
        with self._changed:
            return [held for held in self._held.values() if _same(held.address, address)]

    def busy(self) -> tuple[list[Held], int]:
        """Return what consumers have to do still, and how much is held up."""
        with self._changed:
            return [held for held in self._held.values() if not held.dropped], self._late

    def wait_for(self, reached: Callable[[], bool], within: float) -> bool:
        """Wait for a state; see to it again at each change.

        Args:
            reached: Tells whether it is there. Called without a lock.
            within: Seconds.
        Returns:
            Whether it was there in time.
        """
        end = time.monotonic() + within
        while True:
            with self._changed:
                version = self._version
            if reached():
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                if self._version == version:
                    self._changed.wait(min(left, _LOOK_AGAIN_S))

    def _tell(self) -> None:
        self._version += 1
        self._changed.notify_all()


def _same(one: Address, other: Address) -> bool:
    # A temporary destination may be looked up by its name alone.
    return one.name == other.name and one.kind.is_topic == other.kind.is_topic
