"""What a stored broker has to write, before it is written: every broker knows this much, and only a stored one loads the rest."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import TYPE_CHECKING

from jmsapi.spi import Events

if TYPE_CHECKING:
    from jmsapi_inproc.store_rows import Row, SqlValue

__all__ = ["Filing", "Verb"]


class Verb(IntEnum):
    """What is done to the file."""

    INSERT = 0
    DELETE = 1
    SQL = 2


class Filing:
    """What is written together or not at all.

    Args:
        events: Who is told, if it is a send.
        token: Of the send.
        owed: Nobody waits for it: when there is no room it is written later.
    """

    __slots__ = ("_effects", "_failed", "ended", "events", "future", "owed", "token", "work")

    def __init__(self, events: Events | None = None, token: object = None, *, owed: bool = False) -> None:
        self.work: list[tuple[Verb, object]] = []
        self.events = events
        self.token = token
        self.owed = owed
        self.ended = False
        """Whether it has taken effect, or failed."""
        self.future: Future[None] | None = None
        self._effects: list[Callable[[], None]] = []
        self._failed: list[Callable[[], None]] = []

    def insert(self, row: Row) -> None:
        """Add a message."""
        self.work.append((Verb.INSERT, row))

    def delete(self, key: int) -> None:
        """Take a message out."""
        self.work.append((Verb.DELETE, key))

    def sql(self, statement: str, *values: SqlValue) -> None:
        """Run a statement."""
        self.work.append((Verb.SQL, (statement, values)))

    def then(self, effect: Callable[[], None]) -> None:
        """Call something when it is written, under the broker's lock."""
        self._effects.append(effect)

    def otherwise(self, undo: Callable[[], None]) -> None:
        """Call something when it cannot be written, under the broker's lock."""
        self._failed.append(undo)

    def awaited(self) -> Future[None]:
        """Return what is done when it is written."""
        if self.future is None:
            self.future = Future()
        return self.future

    def take_effect(self, *, written: bool = True) -> None:
        """Do what follows, under the broker's lock."""
        for call in self._effects if written else self._failed:
            call()
