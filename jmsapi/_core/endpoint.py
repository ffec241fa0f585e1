"""The entry point for listener containers: take deliveries, and settle, return, delay or reject each.

A *shared receiver* receives from one destination; *workers* take from it, each with a session of its own. Whatever a worker takes
it accepts (``finish``, ``commit_work``), hands out again (``again``), gives back unseen (``put_back``) or rejects.

Spec: MDB-44 to MDB-67, 10.3-8.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from jmsapi._core.acknowledgement.ledger import AUTO, CLIENT, DUPS_OK, TRANSACTED, Entry
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.message import MessageImpl
from jmsapi._core.session import SessionImpl
from jmsapi._core.shared_receiver import PoolObserver, ReceiverTerms, WorkerLender
from jmsapi._core.telemetry import ConnectionTelemetry, Handed, Operation
from jmsapi._core.worker_session import WorkerRules, WorkerSession
from jmsapi.api import Connection, Message, MessageConsumer, Session
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import ConsumerSpec, Level, Timer
from jmsapi.spi.label import message_label

__all__ = [
    "AUTO",
    "DUPS_OK",
    "TRANSACTED",
    "ConnectionTelemetry",
    "ConsumerSpec",
    "Entry",
    "Operation",
    "PoolObserver",
    "ReceiverTerms",
    "SharedReceiver",
    "WorkerSession",
    "failed_before",
    "handed_messages",
    "message_label",
    "times_delivered",
]

_RECEIVES: Final = "a listener container receives by connections of this library"


class SharedReceiver:
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

    def __init__(self, connection: Connection, consume: Callable[[Session], MessageConsumer], terms: ReceiverTerms) -> None:
        if not isinstance(connection, ConnectionImpl):
            raise IllegalArgumentException(f"{_RECEIVES}, not by {connection!r}")
        self._connection = connection
        self._guard = threading.Lock()
        self._timer: Timer | None = None
        self._due: float | None = None
        self._ended = False

        self._session = connection.add_session(SessionImpl, CLIENT, None, None)
        self._lender = self._session.parts.lender = WorkerLender(self._session, terms)
        try:
            consume(self._session)
        except BaseException:
            self._session.close()
            raise

    def worker(self, mode: int) -> WorkerSession:
        """Make the session of a worker: TRANSACTED, AUTO or DUPS_OK.

        Raises:
            JMSException: It cannot be made, or transactions are not to be had.
        """
        rules = WorkerRules()
        lock = self._session.parts.state.lock
        session = self._connection.add_session(SessionImpl, mode, None, None, rules=rules, lock=lock)
        return WorkerSession(session, rules, self._lender)

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
    def telemetry(self) -> ConnectionTelemetry | None:
        """The observer of this receiver's messages; None when there is none."""
        return self._connection.link.telemetry

    @property
    def spec(self) -> ConsumerSpec:
        """What the receiver asks of the provider."""
        return self._lender.receiver.spec

    @property
    def waiting(self) -> int:
        """How many messages wait here for a worker."""
        return len(self._lender.inbox.buffer)

    @property
    def delayed(self) -> int:
        """How many wait to be handed out again later."""
        return len(self._lender.delayed)

    @property
    def idle(self) -> int:
        """How many workers wait for messages."""
        return len(self._lender.idle)

    @property
    def trouble(self) -> Exception | None:
        """Why no more will come: the connection is lost for good, or the broker has ended the consumer."""
        return self._connection.link.lost or self._lender.receiver.cause

    @property
    def interrupted(self) -> bool:
        """Whether the broker cannot be reached at the moment, and the connection is being made again."""
        return self._connection.link.interrupted

    def redeliver_due(self, wake: Callable[[], None]) -> None:
        """Hand out again what has waited long enough.

        Args:
            wake: Called when the next is due: call this again then. By the connection's clock, on a thread of it.
        """
        clock = self._connection.link.clock
        due = self._lender.redeliver_due(clock.monotonic())
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
        self._lender.stop_taking()

    def give_back(self) -> None:
        """Close the consumer: what no worker has goes back. Workers go on with what they have."""
        self._lender.redeliver_all()
        self._lender.receiver.close()

    def close(self, timeout_ms: float) -> None:
        """Close the connection with all sessions, in at most this time, in milliseconds."""
        self._disarm()
        self._connection.close_within(timeout_ms)


def times_delivered(entry: Entry) -> int:
    """Return how often a message was delivered, this time included."""
    return entry.delivery.delivery_count + entry.extra


def handed_messages(messages: Sequence[Message]) -> list[Handed]:
    """Return what telemetry is told of messages that a callback is called with."""
    # A message that the application has put in place of a received one has no delivery.
    return [
        Handed(one.delivery.envelope, one.get_int_property("JMSXDeliveryCount"))
        for one in messages
        if isinstance(one, MessageImpl) and one.delivery is not None
    ]


def failed_before(entry: Entry) -> int:
    """Return how often a callback of this endpoint has failed on it since it came."""
    return entry.extra
