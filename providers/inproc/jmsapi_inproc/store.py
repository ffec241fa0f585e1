"""The store of a broker: its places in the file, the numbers of messages, and what is read back.

Every method is called under the broker's lock, if not said otherwise. What is read is what is committed; see ``store_waiting``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_inproc.filing import arrive
from jmsapi_inproc.messages import DELAYED, Message, StoredMessage
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.store_file import StoreFile, refusal
from jmsapi_inproc.store_filing import Filing
from jmsapi_inproc.store_opening import CLOSED_IN_ORDER, EXPIRED, put_right
from jmsapi_inproc.store_rows import COLUMNS, HEAVY, Place, Row, envelope_of, place_of_row, row_of, weight
from jmsapi_inproc.store_schedule import Schedule
from jmsapi_inproc.store_writer import Writer

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.topics import SubscriptionKey, Topic

__all__ = ["PAGE", "Shelf", "Store"]

PAGE: Final = 256
"""The most messages that are read at one time."""
ORDER_BITS: Final = 42
PLACE_SHIFT: Final = ORDER_BITS + 4
MOST_PLACES: Final = 1 << 17
DELAYED_LEVEL: Final = 15
_LAST_ORDER: Final = (1 << ORDER_BITS) - 1
_SWEEP_MS: Final = 10_000
_ERASE: Final = "DELETE FROM message WHERE key IN (SELECT key FROM message WHERE key > ? AND key < ? LIMIT ?)"
_ERASED: Final = 1000
"""The most messages of a place that are taken out at one time."""
_ALL: Final = ", ".join(COLUMNS)
_SELECT: Final = f"SELECT {_ALL} FROM message WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"


class Shelf:
    """One queue's part of the store.

    Args:
        store: The store.
        place: As the file has it, or shall.
        known: Whether the file has it.
    """

    __slots__ = ("_base", "_grouped_in", "_grouped_known", "_noted_in", "grouped", "known", "place", "store")

    def __init__(self, store: Store, place: Place, *, known: bool) -> None:
        self.store = store
        self.place = place
        self.known = known
        self.grouped = place.grouped
        """Whether there ever was a message that belongs to a group."""
        self._base = place.number << PLACE_SHIFT
        self._noted_in: Filing | None = None
        self._grouped_in: Filing | None = None
        self._grouped_known = place.grouped

    def key(self, level: int, order: int) -> int:
        """Return the number of a message; a higher level comes first."""
        return self._base | (9 - level) << ORDER_BITS | order

    def delayed_key(self, order: int) -> int:
        """Return the number of a message whose time has not come."""
        return self._base | DELAYED_LEVEL << ORDER_BITS | order

    def note(self, filing: Filing) -> None:
        """Have the file know a queue when the filing is written; a subscription is written for who asks for it."""
        if not self.known and self._noted_in is not filing and not self.place.topic:
            self._noted_in = filing
            self.store.add_place(filing, self.place)
            filing.then(self.noted)

    def add(self, filing: Filing, message: StoredMessage, *, due: int | None = None) -> None:
        """Write a message."""
        self.note(filing)
        if message.group is not None and not self._grouped_known:
            self.grouped = True
            if self._grouped_in is not filing:
                self._grouped_in = filing
                filing.sql("UPDATE place SET grouped = 1 WHERE id = ?", self.place.number)
                filing.then(self._grouped)
        filing.insert(row_of(message.envelope, message.key, due, message.count))

    def read(self, level: int, after: int, end: int) -> tuple[list[StoredMessage], bool]:
        """Return the messages of a level whose orders are above ``after`` and not above ``end``, and whether that is all.

        At most a page; big bodies make it a shorter one.
        """
        base = self.key(level, 0)
        found: list[StoredMessage] = []
        room = PAGE * HEAVY >> 4
        for row in self.store.rows(base + after, base + end, PAGE):
            message = self.store.message_of(row)
            found.append(message)
            room -= weight(message.envelope.body)
            if room < 0:
                return found, False
        return found, len(found) < PAGE

    def last(self, level: int) -> int:
        """Return the highest order of a level; 0 if there is none."""
        base = self.key(level, 0)
        return self.store.highest(base, base + _LAST_ORDER) - base

    def last_delayed(self) -> int:
        """Return the highest order of a delayed message; 0 if there is none."""
        base = self.delayed_key(0)
        return self.store.highest(base, base + _LAST_ORDER) - base

    def count(self, level: int, after: int, end: int) -> int:
        """Return how many messages there are in a range of orders."""
        base = self.key(level, 0)
        return self.store.count(base + after, base + end)

    def move_in(self, filing: Filing, message: Message, queue: Queue) -> StoredMessage:
        """Write a message that was only in memory; return it as it is when that is done."""
        delayed = message.state is DELAYED
        order = message.order or queue.next_order()
        key = self.delayed_key(order) if delayed else self.key(message.envelope.priority, order)
        kept = StoredMessage(message.envelope, key, order, message.count)
        self.add(filing, kept, due=message.envelope.delivery_time if delayed else None)
        return kept

    def erase(self) -> None:
        """Take the place out of the file, with all its messages: not all at once, so that neither time nor room is wanting."""
        self.known = False
        filing = Filing(owed=True)
        filing.sql(_ERASE, self._base, self._base + (1 << PLACE_SHIFT), _ERASED)
        self.store.remove_place(filing, self.place)
        filing.then(self._erased)
        self.store.submit(filing)

    def _erased(self) -> None:
        if self.store.closing:
            return
        if self.store.highest(self._base, self._base + (1 << PLACE_SHIFT) - 1) > self._base:
            self.erase()
        else:
            self.store.free(self.place)

    def closed(self, delayed: Iterable[Message]) -> None:
        """The queue is gone, and these delayed messages of it in memory."""
        self.store.schedule.left(sum(isinstance(message, StoredMessage) for message in delayed))
        if not self.store.closing:
            self.erase()

    def fall_due(self, message: Message, queue: Queue) -> None:
        """File a delayed message whose time has come: where it waits is another number."""
        if not isinstance(message, StoredMessage):
            queue.put(message)
            return
        schedule, old = self.store.schedule, message.key
        message.order = queue.next_order()
        message.key = self.key(message.envelope.priority, message.order)
        filing = Filing(owed=True)
        filing.sql("UPDATE message SET key = ?, due = NULL WHERE key = ?", message.key, old)
        filing.then(lambda: schedule.written(old))
        filing.then(lambda: arrive(queue, message))
        schedule.leaves(old)
        schedule.left()
        self.store.submit(filing)

    def noted(self) -> None:
        """Take note that the file has the place."""
        self.known = True
        self._noted_in = None

    def _grouped(self) -> None:
        self._grouped_known = True
        self._grouped_in = None


class Store:
    """An open store.

    Args:
        file: Its file.
        broker: Whose it is.
    """

    def __init__(self, file: StoreFile, broker: Broker) -> None:
        self.file = file
        self._broker = broker
        self._clock = broker.clock
        self.writer = Writer(file, broker)
        self.closing = False
        """The broker ends, and what is in the file stays there."""
        self.schedule = Schedule(self, broker)
        self._swept = 0
        self._next_place = 1
        self._hidden = 0
        self._reader = file.reader
        put_right(file.writer, PLACE_SHIFT)
        self.places = [place_of_row(row) for row in self._all(f"SELECT {', '.join(Place._fields[1:])}, id FROM place")]
        self._hidden = self.highest(0, (1 << PLACE_SHIFT) - 1)
        for (last,) in self.query("SELECT max(id) FROM branch"):
            self._hidden = max(self._hidden, cast("int", last or 0))
        self._taken = {place.number for place in self.places}

    def shelves(self) -> Iterator[Shelf]:
        """Return the places the file has."""
        return (Shelf(self, place, known=True) for place in self.places)

    def queue(self, name: str) -> Shelf:
        """Return a shelf for a new queue."""
        return self._new(False, name, None, None, False, False, None)

    def subscription(self, topic: str, key: SubscriptionKey, *, shared: bool, no_local: bool, selector: str | None) -> Shelf:
        """Return a shelf for a new durable subscription."""
        return self._new(True, topic, key.client_id, key.name, shared, no_local, selector)

    def submit(self, filing: Filing) -> bool:
        """Have a filing written. Without anything to write it takes effect at once: then False."""
        if not filing.work:
            filing.take_effect()
            return False
        now = self._clock.now_ms()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            expired = Filing(owed=True)
            expired.sql(EXPIRED, now)
            self.writer.submit(expired)
        self.writer.submit(filing)
        return True

    def drop(self, message: Message) -> None:
        """Take a message out of the file that nobody gets any more."""
        if isinstance(message, StoredMessage):
            filing = Filing(owed=True)
            filing.delete(message.key)
            self.writer.submit(filing)

    def recount(self, message: StoredMessage) -> None:
        """Write how often a message was handed out."""
        filing = Filing(owed=True)
        filing.sql("UPDATE message SET count = ? WHERE key = ?", message.count, message.key)
        self.writer.submit(filing)

    def rows(self, above: int, end: int, limit: int) -> Iterator[Row]:
        """Give rows in the order of their numbers."""
        return self._all(_SELECT, above, end, limit)

    def row(self, key: int) -> Row | None:
        """Return one row."""
        return next(self.rows(key - 1, key, 1), None)

    def due_after(self, due: int, key: int, limit: int) -> list[tuple[int, int]]:
        """Return the next delayed messages: their times and numbers."""
        found = self._all(
            "SELECT due, key FROM message WHERE due IS NOT NULL AND (due, key) >= (?, ?) ORDER BY due, key LIMIT ?",
            due,
            key,
            limit,
        )
        return cast("list[tuple[int, int]]", list(found))

    def message_of(self, row: Row) -> StoredMessage:
        """Return the message of a row.

        Raises:
            ProviderError: The row holds none; then the broker ends.
        """
        key = cast("int", row[0])
        try:
            return StoredMessage(envelope_of(row), key, key & _LAST_ORDER, cast("int", row[2]))
        except ProviderError as error:
            raise self._damaged(error) from error

    def place_of(self, key: int) -> int:
        """Return the number of the place a message is in."""
        return key >> PLACE_SHIFT

    def highest(self, low: int, high: int) -> int:
        """Return the highest number in a range, or its lower end."""
        found = next(self._all("SELECT max(key) FROM message WHERE key > ? AND key <= ?", low, high))[0]
        return low if found is None else cast("int", found)

    def count(self, above: int, end: int) -> int:
        """Return how many messages there are in a range."""
        return cast("int", next(self._all("SELECT count(*) FROM message WHERE key > ? AND key <= ?", above, end))[0])

    def add_place(self, filing: Filing, place: Place) -> None:
        """Write a place."""
        filing.sql(
            "INSERT OR IGNORE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            place.number,
            int(place.topic),
            place.name,
            place.client_id,
            place.subscription,
            int(place.shared),
            int(place.no_local),
            place.selector,
            int(place.grouped),
        )

    def remove_place(self, filing: Filing, place: Place) -> None:
        """Take a place out; its messages are for ``Shelf.erase``."""
        filing.sql("DELETE FROM place WHERE id = ?", place.number)

    def leave_in_order(self, places: Iterable[Queue | Topic]) -> None:
        """Write what is only in memory, since the broker ends."""
        filing = Filing(owed=True)
        for place in places:
            queues = [place] if isinstance(place, Queue) else [one.queue for one in place.subscriptions]
            for queue in queues:
                for message in queue.kept():
                    if queue.shelf is not None and not isinstance(message, StoredMessage):
                        queue.shelf.move_in(filing, message, queue)
        self.add_place(filing, Place(CLOSED_IN_ORDER, False, "", None, None, False, False, None, False))
        self.writer.submit(filing)

    def free(self, place: Place) -> None:
        """Let another place have the number."""
        self._taken.discard(place.number)
        self._broker.unshelved(place.number)

    def close(self, timeout: float) -> None:
        """Write what waits and close the file. Not under the lock."""
        if self.writer.rest(timeout):
            self.file.close()

    def _new(
        self,
        topic: bool,
        name: str,
        client_id: str | None,
        subscription: str | None,
        shared: bool,
        no_local: bool,
        selector: str | None,
    ) -> Shelf:
        if len(self._taken) >= MOST_PLACES - 1:
            raise ProviderError(
                ErrorKind.RESOURCE,
                f"the store {self.file.path} has {len(self._taken)} queues and durable subscriptions, and room for no more; "
                "empty queues go when it is opened again",
            )
        number = self._next_place
        while number in self._taken:
            number = number % (MOST_PLACES - 1) + 1
        self._taken.add(number)
        self._next_place = number % (MOST_PLACES - 1) + 1
        return Shelf(self, Place(number, topic, name, client_id, subscription, shared, no_local, selector, False), known=False)

    def next_hidden(self) -> int:
        """Return a number of the place of prepared transactions, or for one of them."""
        self._hidden += 1
        return self._hidden

    def query(self, statement: str, *values: int) -> Iterator[Row]:
        """Give what a statement finds in the file.

        Raises:
            ProviderError: The file is damaged; then the broker ends.
        """
        return self._all(statement, *values)

    def _all(self, statement: str, *values: int) -> Iterator[Row]:
        try:
            yield from cast("Iterable[Row]", self._reader.execute(statement, values))
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ProviderError:
        self.file.as_it_is = True
        cause = refusal(self.file.path, f"reading failed: {error}; it is left as it is")
        self._broker.broken_soon(cause)
        return cause
