"""What is read from a store's file: rows in the order of their keys, and the messages in them.

Every method is called under the broker's lock. What is read is what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from jmsapi.spi import ProviderError
from jmsapi_inproc.messages import StoredMessage
from jmsapi_inproc.store.file import UNREADABLE, StoreFile, refusal
from jmsapi_inproc.store.keys import LAST_ORDER
from jmsapi_inproc.store.rows import COLUMNS, envelope_of
from jmsapi_inproc.write_batch import Row

__all__ = ["Reader"]

_ALL: Final = ", ".join((*COLUMNS, "checksum"))
_SELECT: Final = f"SELECT {_ALL} FROM message WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"


class Reader:
    """Reads a store.

    Args:
        file: The file.
        on_damage: Called, under the lock, with the cause when the file turns out to be damaged: the broker has to end.
    """

    def __init__(self, file: StoreFile, on_damage: Callable[[ProviderError], None]) -> None:
        self._file = file
        self._on_damage = on_damage

    def rows(self, above: int, end: int, limit: int) -> Iterator[Row]:
        """Return rows whose keys are above ``above`` and not above ``end``, in order."""
        return self.query(_SELECT, above, end, limit)

    def row(self, key: int) -> Row | None:
        """Return one row."""
        return next(self.rows(key - 1, key, 1), None)

    def due_after(self, due: int, key: int, limit: int) -> list[tuple[int, int]]:
        """Return the next delayed messages: their delivery times and keys."""
        found = self.query(
            "SELECT due, key FROM message WHERE due IS NOT NULL AND (due, key) >= (?, ?) ORDER BY due, key LIMIT ?",
            due,
            key,
            limit,
        )
        return cast("list[tuple[int, int]]", list(found))

    def message_of(self, row: Row) -> StoredMessage:
        """Return the message of a row.

        Raises:
            ProviderError: The row holds no message; then the broker ends.
        """
        key = cast("int", row[0])
        try:
            return StoredMessage(envelope_of(row), key, key & LAST_ORDER, cast("int", row[2]))
        except ProviderError as error:
            raise self._damaged(error) from error

    def highest(self, low: int, high: int) -> int:
        """Return the highest key in a range, or its lower end."""
        found = next(self.query("SELECT max(key) FROM message WHERE key > ? AND key <= ?", low, high))[0]
        return low if found is None else cast("int", found)

    def count(self, above: int, end: int) -> int:
        """Return how many messages there are in a range."""
        return cast("int", next(self.query("SELECT count(*) FROM message WHERE key > ? AND key <= ?", above, end))[0])

    def query(self, statement: str, *values: int) -> Iterator[Row]:
        """Return what a statement finds in the file.

        Raises:
            ProviderError: The file is damaged; then the broker ends.
        """
        try:
            yield from cast("Iterable[Row]", self._file.reader.execute(statement, values))
        except UNREADABLE as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ProviderError:
        self._file.read_only = True
        cause = refusal(self._file.path, f"reading failed: {error}; it is left as it is")
        self._on_damage(cause)
        return cause
