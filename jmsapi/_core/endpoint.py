"""The inner door for listener containers: take deliveries, and say what becomes of each.

An *intake* receives from one destination; *workers* take from it, each with a session of its own. Whatever a worker takes it
accepts (``finish``, ``commit_work``), hands out again (``again``), gives back unseen (``put_back``) or rejects.

Spec: MDB-44 to MDB-67, 10.3-8.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.intake import IntakeSession, IntakeTerms, Watcher
from jmsapi._core.ledger import AUTO, DUPS_OK, TRANSACTED, Entry
from jmsapi._core.work_session import WorkSession
from jmsapi.api import Connection, MessageConsumer, Session
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import Level, Timer

__all__ = [
    "AUTO",
    "DUPS_OK",
    "TRANSACTED",
    "Entry",
    "Intake",
    "IntakeTerms",
    "Watcher",
    "WorkSession",
    "failed_before",
    "times_delivered",
]

_INTAKE: Final = "a listener container receives by connections of this library"


class Intake:
    """Where the workers of an endpoint take their messages from.

    Args:
        connection: One of this library's, of its own.
        consume: Makes the consumer, on the session that is given.
        terms: How much to take, and for whom.
    Raises:
        IllegalArgumentException: The connection is somebody else's.
        JMSException: The consumer cannot be made; nothing is left open.
    Threads: any.
    """

    def __init__(self, connection: Connection, consume: Callable[[Session], MessageConsumer], terms: IntakeTerms) -> None:
        if not isinstance(connection, ConnectionImpl):
            raise IllegalArgumentException(f"{_INTAKE}, not by {connection!r}")
        self._connection = connection
        self._guard = threading.Lock()
        self._timer: Timer | None = None
        self._due: float | None = None
        self._ended = False

        def make(owner: ConnectionImpl, _: int, number: int) -> IntakeSession:
            return IntakeSession(owner, number, terms)

        self._session = connection.add_session(make, None, None, None)
        try:
            consume(self._session)
        except BaseException:
            self._session.close()
            raise

    def worker(self, mode: int) -> WorkSession:
        """Make the session of a worker: TRANSACTED, AUTO or DUPS_OK.

        Raises:
            JMSException: It cannot be made, or transactions are not to be had.
        """

        def make(owner: ConnectionImpl, chosen: int, number: int) -> WorkSession:
            return WorkSession(owner, chosen, number, self._session)

        return self._connection.add_session(make, mode, None, None)

    @property
    def transactions(self) -> bool:
        """Whether the broker has transactions."""
        return bool(self._connection.link.capabilities.transactions)

    @property
    def counts_deliveries(self) -> bool:
        """Whether the broker counts exactly how often it has handed out a message."""
        return self._connection.link.capabilities.delivery_count_exact.level is Level.NATIVE

    @property
    def keeps_rejected(self) -> bool:
        """Whether the broker is sure to keep a rejected message where people can find it."""
        return self._connection.link.capabilities.dead_letter.level is Level.NATIVE

    @property
    def max_redeliveries(self) -> int:
        """After how many failures the connection's options have a message rejected; -1: never."""
        return self._connection.link.options.max_redeliveries

    @property
    def waiting(self) -> int:
        """How many messages wait here for a worker."""
        return len(self._session.consumer.inbox.buffer)

    @property
    def parked(self) -> int:
        """How many wait to be handed out again later."""
        return len(self._session.parked)

    @property
    def idle(self) -> int:
        """How many workers wait for messages."""
        return len(self._session.idle)

    @property
    def trouble(self) -> Exception | None:
        """Why no more will come: the link is lost for good, or the broker has ended the consumer."""
        return self._connection.link.lost or self._session.consumer.cause

    @property
    def interrupted(self) -> bool:
        """Whether there is no link at the moment, while another one is being made."""
        return self._connection.link.interrupted

    def unpark(self, wake: Callable[[], None]) -> None:
        """Hand out again what has waited long enough.

        Args:
            wake: Called when the next is due: call this again then. By the connection's clock, on a thread of it.
        """
        clock = self._connection.link.clock
        due = self._session.unpark(clock.monotonic())
        with self._guard:
            armed, self._due = self._due, due
            if due == armed and self._timer is not None:
                return
            timer, self._timer = self._timer, None
            if due is not None and not self._ended:
                self._timer = clock.call_later(max(0.0, due - clock.monotonic()), wake)
        if timer is not None:
            timer.cancel()

    def _disarm(self) -> None:
        with self._guard:
            self._ended = True
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def stop_taking(self) -> None:
        """Let workers take nothing more: those that wait come back with nothing."""
        self._disarm()
        self._session.stop_taking()

    def give_back(self) -> None:
        """Close the consumer: what no worker has goes back. Workers go on with what they have."""
        self._session.unpark_all()
        self._session.consumer.close()

    def close(self, timeout_ms: float) -> None:
        """Close the connection with all sessions, in at most this time, in milliseconds."""
        self._disarm()
        self._connection.close_within(timeout_ms)


def times_delivered(entry: Entry) -> int:
    """Return how often a message was delivered, this time included."""
    return entry.delivery.delivery_count + entry.extra


def failed_before(entry: Entry) -> int:
    """Return how often a callback of this endpoint has failed on it since it came."""
    return entry.extra
