"""What has gone through a broker: all that was sent and committed, and what consumers hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from jmsapi.spi import Address, BranchId, Envelope, Tag

__all__ = ["HeldMessage", "Record", "Sent", "TransactionWork"]

_LOOK_AGAIN_S: Final = 0.5
"""Expiry and delivery times change the state without a call, so it is looked at this often."""


class Sent(NamedTuple):
    """A message that the broker took."""

    address: Address
    envelope: Envelope


class HeldMessage(NamedTuple):
    """A message that a consumer was given and has not settled."""

    owner: object
    """The connection it was given through."""
    address: Address
    envelope: Envelope
    dropped: bool = False
    """Whether the message was dropped before it reached the application."""


class TransactionWork:
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
        self._held: dict[Tag, HeldMessage] = {}
        self._late = 0
        self._branches: dict[BranchId, TransactionWork] = {}

    # ---- written by connections -----------------------------------------------------------------------------------
    def add(self, sent: Iterable[Sent]) -> None:
        """Record messages that the broker takes."""
        with self._changed:
            self._sent.extend(sent)
            self._tell()

    def withdraw(self, sent: Iterable[Sent]) -> None:
        """Remove messages that the broker refused after all."""
        with self._changed:
            for one in sent:
                # From the end and by identity, since equal messages may have been sent before.
                for index in range(len(self._sent) - 1, -1, -1):
                    if self._sent[index] is one:
                        del self._sent[index]
                        break
            self._tell()

    def hold(self, tag: Tag, held: HeldMessage) -> None:
        """Record a delivery."""
        with self._changed:
            self._held[tag] = held
            self._tell()

    def drop(self, tag: Tag) -> None:
        """Record that a delivery does not reach the application."""
        with self._changed:
            if tag in self._held:
                self._held[tag] = self._held[tag]._replace(dropped=True)
                self._tell()

    def let_go(self, tags: Iterable[Tag]) -> None:
        """Record that deliveries are settled or have returned to their queues."""
        with self._changed:
            for tag in tags:
                self._held.pop(tag, None)
            self._tell()

    def forget(self, owner: object) -> list[Tag]:
        """Record that a connection has ended; return the tags of what it held."""
        with self._changed:
            tags = [tag for tag, held in self._held.items() if held.owner is owner]
            for tag in tags:
                del self._held[tag]
            self._tell()
        return tags

    def work_of(self, branch: BranchId) -> TransactionWork:
        """Return the work of a branch, which several connections may do."""
        with self._changed:
            return self._branches.setdefault(branch, TransactionWork())

    def work_done(self, branch: BranchId) -> TransactionWork:
        """Record that a branch has ended, and return its work."""
        with self._changed:
            return self._branches.pop(branch, None) or TransactionWork()

    def late(self, n: int) -> None:
        """Add to the number of calls or deliveries that are held up; negative when they no longer are."""
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

    def held_of(self, address: Address) -> list[HeldMessage]:
        """Return what consumers of a destination hold."""
        with self._changed:
            return [held for held in self._held.values() if _same(held.address, address)]

    def busy(self) -> tuple[list[HeldMessage], int]:
        """Return what consumers have not settled, and how much is held up."""
        with self._changed:
            return [held for held in self._held.values() if not held.dropped], self._late

    def wait_for(self, reached: Callable[[], bool], within: float) -> bool:
        """Wait for a state, which is checked at each change.

        Args:
            reached: Returns whether the state is reached. Called without a lock.
            within: Seconds.
        Returns:
            Whether it was reached in time.
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
