"""A connection to a board: the fourteen calls of the SPI, and one thread that calls back."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    ConsumerSpec,
    Delivery,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    ProviderError,
    Tag,
    completed,
    failed,
    none,
)
from jmsapi.spi.options import ProviderOptions
from jmsapi_board.board import Board, BoardConsumer, board_of
from jmsapi_board.selectors import SELECTORS

__all__ = ["BoardConnection"]

_numbers = itertools.count(1)
_CLOSE_S: Final = 10.0
"""The longest wait for the thread to pass on what is in the outbox."""
CAPABILITIES: Final = Capabilities(
    "board",
    "board",
    "1.0",
    # Features: asked for, they are refused with these words.
    transactions=none("a board has no transactions"),
    no_local=none("a board does not know senders"),
    durable_subscription=none("a board forgets subscribers that leave"),
    shared_subscription=none("each subscriber of a topic has its own messages"),
    shared_durable_subscription=none("a board forgets subscribers that leave"),
    unsubscribe=none("a board forgets subscribers that leave"),
    shared_unsubscribe=none("a board forgets subscribers that leave"),
    browser=none("a board shows a message only to who takes it"),
    delivery_delay=none("a board has no clock"),
    # Qualities: what is not promised makes its requirements not applicable, for these reasons.
    transactions_atomic=none("a board has no transactions"),
    client_id_exclusive=none("a board does not know client identifiers"),
    delay_keeps_subscribers=none("a board has no clock"),
    message_groups=none("a board does not look into messages"),
    missing_queue_reported=none("a queue is made when it is first named"),
    durable_exclusive=none("a board forgets subscribers that leave"),
    subscription_change_detected=none("a board forgets subscribers that leave"),
    unknown_subscription_reported=none("a board forgets subscribers that leave"),
    expiry_in_broker=none("a board has no clock"),
    selectors=SELECTORS,
)


class BoardConnection:
    """One connection.

    Threads: calls from any. Callbacks come from a thread of its own, one after the other, out of one outbox: so their order is
    that of what happened on the board, and a future that is done by way of it is done after all that was on its way.
    """

    def __init__(self, options: ProviderOptions) -> None:
        self._name = options.host
        self._board: Board | None = None
        self._events: Events | None = None
        self._outbox: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"jmsapi-board-{next(_numbers)}-io", daemon=True)
        self._lock = threading.Lock()
        self._consumers: dict[BoardConsumer, Handle] = {}
        """Each with its session."""
        self._holders: dict[Tag, BoardConsumer] = {}
        self._closing: Future[None] | None = None

    def _run(self) -> None:
        while (step := self._outbox.get()) is not None:
            step()

    # ---- life -----------------------------------------------------------------------------------------------------
    def open(self, events: Events) -> Future[Capabilities]:
        """Connect: there is nobody who could refuse."""
        self._events = events
        self._board = board_of(self._name)
        self._thread.start()
        return completed(CAPABILITIES)

    def close(self) -> Future[None]:
        """End consumers, remove what is temporary, and let the thread finish what is in the outbox."""
        with self._lock:
            if self._closing is not None:
                return self._closing
            self._closing = Future()
            consumers = list(self._consumers)
            self._consumers.clear()
        if self._board is None:
            self._closing.set_result(None)
            return self._closing
        for consumer in consumers:
            self._board.release(consumer)
        self._board.leave(self)
        closing = self._closing
        self._outbox.put(lambda: closing.set_result(None))
        self._outbox.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)
        return closing

    def _here(self) -> Board:
        if self._board is None or self._closing is not None:
            raise ProviderError(ErrorKind.CLOSED, "the connection to the board is closed")
        return self._board

    def _when_sent_out(self) -> Future[None]:
        """Return a future that is done when all that is in the outbox now has been passed on."""
        future: Future[None] = Future()
        self._outbox.put(lambda: future.set_result(None))
        return future

    # ---- sessions, consumers, producers ---------------------------------------------------------------------------
    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """A board knows no sessions: a token will do. Transacted ones are never asked for: the capabilities say NONE."""
        return completed(Handle())

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Nor does it know producers."""
        return completed(Handle())

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Add a consumer to a queue, or a subscriber to a topic."""
        try:
            consumer = self._here().open(self, spec, self._deliver)
        except ProviderError as error:
            return failed(error)
        with self._lock:
            self._consumers[consumer] = session
        return completed(consumer)

    def release(self, handle: Handle) -> Future[None]:
        """End a consumer, or a session with its consumers."""
        with self._lock:
            ended = [consumer for consumer, session in self._consumers.items() if handle in (consumer, session)]
            for consumer in ended:
                del self._consumers[consumer]
        try:
            board = self._here()
        except ProviderError:
            return DONE
        for consumer in ended:
            board.release(consumer)
        return self._when_sent_out()

    # ---- messages -------------------------------------------------------------------------------------------------
    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Put a message on the board; the answer comes from the thread, as everything does."""
        error: ProviderError | None = None
        try:
            self._here().send(envelope)
        except ProviderError as refused:
            error = refused
        self._tell(lambda events: events.on_sent([(token, error)]))

    def _tell(self, what: Callable[[Events], None]) -> None:
        events = self._events
        if events is not None:
            self._outbox.put(lambda: what(events))

    def _deliver(self, consumer: BoardConsumer, delivery: Delivery) -> None:
        """Called by the board, under its lock."""
        self._holders[delivery.tag] = consumer

        def pass_on(events: Events) -> None:
            # One that was released meanwhile has given its messages back.
            with self._lock:
                known = consumer in self._consumers
            if known:
                events.on_deliveries(consumer, [delivery])

        self._tell(pass_on)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow more deliveries."""
        if isinstance(consumer, BoardConsumer):
            self._here().credit(consumer, n)
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        """Take credit back; what is on its way comes first."""
        if isinstance(consumer, BoardConsumer):
            self._here().credit(consumer, None)
        return self._when_sent_out()

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Say what became of deliveries. The last come back first, so that each finds the earlier ones behind it."""
        board = self._here()
        for position in reversed(range(len(tags))):
            consumer = self._holders.pop(tags[position], None)
            if consumer is not None:
                board.settle(consumer, tags[position], outcome, failures[position] if failures else 1)
        return DONE

    # ---- what there is not, and what is temporary -----------------------------------------------------------------
    def begin(self, session: Handle) -> Future[Handle]:
        """Never asked for: the capabilities say NONE."""
        return failed(ProviderError(ErrorKind.UNSUPPORTED, "a board has no transactions"))

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Never asked for: the capabilities say NONE."""
        return failed(ProviderError(ErrorKind.UNSUPPORTED, "a board has no transactions"))

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Make a destination that lives with this connection."""
        try:
            return completed(self._here().create_temporary(self, topic=topic))
        except ProviderError as error:
            return failed(error)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination; there are no subscriptions to end."""
        if isinstance(what, str):
            return failed(ProviderError(ErrorKind.SUBSCRIPTION, f"a board has no subscription {what!r}"))
        try:
            self._here().remove(what)
        except ProviderError as error:
            return failed(error)
        return DONE
