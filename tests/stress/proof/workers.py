"""The applications of the proof: senders of three kinds, movers, and consumers, each a thread with a connection of its own.

Each does what an application does after an error: it goes on if the connection does, and makes a new one if not.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import jmsapi
from jmsapi import CompletionListener, Connection, JMSError, Message, Session

from .book import Book, Copy, Fate, body_of

FIRST, SECOND = "proof.first", "proof.second"
BATCH = 20
ASYNC_WINDOW = 200
LEAD = 4000
"""How many messages senders may be ahead of the consumers."""
PAUSE_S = 0.1
PATIENCE = 5
"""With failover: after so many errors one after the other an application makes a new connection."""


class Stage:
    """What the workers share."""

    def __init__(self, url: str, book: Book, wanted: int, *, failover: bool, options: dict[str, Any]) -> None:
        self.factory = jmsapi.connection_factory(url, **options)
        self.book = book
        self.wanted = wanted
        self.failover = failover
        self.no_more_sends = threading.Event()
        self.stop = threading.Event()
        self.errors: dict[str, int] = {}
        self.reconnects = 0
        self.faults: list[BaseException] = []
        self._lock = threading.Lock()

    @property
    def enough(self) -> bool:
        """Whether as many messages are confirmed as were wanted."""
        return self.book.confirmed >= self.wanted or self.no_more_sends.is_set()

    @property
    def too_far_ahead(self) -> bool:
        """Whether senders should wait for the consumers."""
        return self.book.open_or_confirmed - self.book.handled > LEAD

    def noted(self, who: str, error: BaseException) -> None:
        """Count an error that an application of its kind would see."""
        code = getattr(error, "error_code", None)
        with self._lock:
            key = f"{who}: {type(error).__name__} {code or ''}".strip()
            self.errors[key] = self.errors.get(key, 0) + 1


class Worker(threading.Thread, ABC):
    """One application with one session.

    Args:
        stage: What it shares with the others.
        name: Its own.
        mode: Of its session.
    """

    def __init__(self, stage: Stage, name: str, mode: int) -> None:
        super().__init__(name=f"proof-{name}", daemon=True)
        self.stage = stage
        self.kind = name
        self.mode = mode
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._errors = 0

    def run(self) -> None:
        try:
            while not self.over:
                try:
                    if self._session is None:
                        self._connect()
                    self.step()
                    self._errors = 0
                except JMSError as error:
                    self.stage.noted(self.kind, error)
                    self.after(error)
            self.finish()
        except BaseException as error:
            self.stage.faults.append(error)
            raise
        finally:
            self._drop()

    @property
    def over(self) -> bool:
        """Whether its work is done."""
        return self.stage.stop.is_set()

    def _connect(self) -> None:
        self._connection = self.stage.factory.create_connection()
        self._connection.exception_listener = lambda error: None
        self._connection.start()
        self._session = self._connection.create_session(self.mode)
        self.prepare(self._session)
        self.stage.reconnects += 1

    def _drop(self) -> None:
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except JMSError as error:
                self.stage.noted(f"{self.kind} close", error)

    def undo(self) -> None:
        """Roll back what was not asked to be committed."""
        if self._session is None:
            return
        try:
            self._session.rollback()
        except JMSError as error:
            self.stage.noted(f"{self.kind} rollback", error)
            self._drop()

    def after(self, error: JMSError) -> None:
        """Go on with the session if there is still one to go on with."""
        self._errors += 1
        if not self.stage.failover or self._session is None or self._errors > PATIENCE or error.error_code == "closed":
            self._errors = 0
            self._drop()
            self.stage.stop.wait(PAUSE_S)

    def prepare(self, session: Session) -> None:
        """Make what the work needs."""

    @abstractmethod
    def step(self) -> None:
        """Do some work; an error ends it anywhere."""

    def finish(self) -> None:
        """Do what is left when the work is done."""


# ---------------------------------------------------------------- senders


class Sender(Worker):
    """Sends persistent messages to the first queue."""

    def __init__(self, stage: Stage, name: str, mode: int = Session.AUTO_ACKNOWLEDGE) -> None:
        super().__init__(stage, name, mode)
        self._number = 0

    @property
    def over(self) -> bool:
        return self.stage.stop.is_set() or self.stage.enough

    def prepare(self, session: Session) -> None:
        self.session = session
        self.producer = session.create_producer(session.create_queue(FIRST))

    def ids(self, n: int) -> list[str]:
        """Take the next ids, when the consumers are not too far behind."""
        while self.stage.too_far_ahead and not self.over:
            time.sleep(0.01)
        ids = [f"{self.kind}:{number}" for number in range(self._number, self._number + n)]
        self._number += n
        self.stage.book.sending(ids)
        return ids


class SyncSender(Sender):
    """Waits for the broker's word on each message."""

    def step(self) -> None:
        book = self.stage.book
        (id,) = self.ids(1)
        try:
            self.producer.send(self.session.create_text_message(body_of(id)))
        except JMSError as error:
            book.told([id], Fate.UNKNOWN, repr(error))
            raise
        book.told([id], Fate.CONFIRMED)


class AsyncSender(Sender):
    """Sends with a completion listener."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        self._room = threading.Semaphore(ASYNC_WINDOW)

    def step(self) -> None:
        if not self._room.acquire(timeout=1):
            return
        (id,) = self.ids(1)
        try:
            self.producer.send(self.session.create_text_message(body_of(id)), completion_listener=_Answer(self, id))
        except JMSError as error:
            # Neither callback will come.
            self._room.release()
            self.stage.book.told([id], Fate.UNKNOWN, repr(error))
            raise

    def answered(self, id: str, error: Exception | None) -> None:
        self._room.release()
        if error is not None:
            self.stage.noted(self.kind, error)
        self.stage.book.told([id], Fate.CONFIRMED if error is None else Fate.UNKNOWN, repr(error) if error else "")


class _Answer(CompletionListener):
    def __init__(self, sender: AsyncSender, id: str) -> None:
        self._sender = sender
        self._id = id

    def on_completion(self, message: Message) -> None:
        self._sender.answered(self._id, None)

    def on_exception(self, message: Message, exception: Exception) -> None:
        self._sender.answered(self._id, exception)


def rolled_back_for_sure(error: JMSError) -> bool:
    """Whether an error says that the transaction has not happened."""
    return isinstance(error, jmsapi.TransactionRolledBackException)


class TransactedSender(Sender):
    """Sends in transactions."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name, Session.SESSION_TRANSACTED)

    def step(self) -> None:
        book = self.stage.book
        ids = self.ids(BATCH)
        asked = False
        try:
            for id in ids:
                self.producer.send(self.session.create_text_message(body_of(id)))
            asked = True
            self.session.commit()
        except JMSError as error:
            # A commit that was never asked for has not happened; one that was may have, unless the error says it has not.
            book.told(ids, Fate.UNKNOWN if asked and not rolled_back_for_sure(error) else Fate.REFUSED, repr(error))
            if not asked:
                self.undo()
            raise
        book.told(ids, Fate.CONFIRMED)


# ---------------------------------------------------------------- movers and consumers


class Mover(Worker):
    """Takes messages from the first queue and sends their copies to the second, in one transaction."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name, Session.SESSION_TRANSACTED)

    def prepare(self, session: Session) -> None:
        self.session = session
        self.consumer = session.create_consumer(session.create_queue(FIRST))
        self.producer = session.create_producer(session.create_queue(SECOND))

    def step(self) -> None:
        asked = False
        try:
            for n in range(BATCH):
                message = self.consumer.receive(500 if n == 0 else 20)
                if message is None:
                    break
                self.producer.send(self.session.create_text_message(message.get_body(str)))
            asked = True
            self.session.commit()
        except JMSError:
            if not asked:
                self.undo()
            raise


class Consumer(Worker):
    """Takes copies from the second queue and acknowledges them in groups."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name, Session.CLIENT_ACKNOWLEDGE)

    def prepare(self, session: Session) -> None:
        self.session = session
        self.consumer = session.create_consumer(session.create_queue(SECOND))

    def step(self) -> None:
        book, began = self.stage.book, time.monotonic()
        copies: list[Copy] = []
        first: Message | None = None
        asked_at: float | None = None
        try:
            for n in range(BATCH):
                message = self.consumer.receive(500 if n == 0 else 20)
                if message is None:
                    break
                first = first or message
                copy = book.received(message.get_body(str), message.jms_message_id or "?")
                if copy is not None:
                    copies.append(copy)
            if first is None:
                return
            asked_at = time.monotonic()
            # By the first one: an acknowledgement says nothing of what came by a link before that of its own message.
            first.acknowledge()
        except JMSError as error:
            if asked_at is None or error.error_code == "redelivered":
                why = f"{self.kind}, {'before' if asked_at is None else 'after'} it asked: {error!r}"
                book.not_acked(copies, since=began, why=why)
                self._give_back()
            else:
                book.ack_unknown(copies)
            raise
        book.acked(copies, asked_at)

    def _give_back(self) -> None:
        """Have what was not acknowledged handed out again."""
        try:
            self.session.recover()
        except JMSError as error:
            self.stage.noted(f"{self.kind} recover", error)
            self._drop()


def drained(url: str, name: str, take: Callable[[str, str], None]) -> int:
    """Empty a queue on a healthy link; return how many messages were in it."""
    n = 0
    with jmsapi.connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(name))
        while (message := consumer.receive(2000)) is not None:
            n += 1
            take(message.get_body(str), message.jms_message_id or "?")
    return n


def workers(stage: Stage) -> Iterable[Worker]:
    """Make all the workers of a run."""
    yield SyncSender(stage, "sync")
    yield AsyncSender(stage, "async")
    yield TransactedSender(stage, "transacted")
    for n in range(2):
        yield Mover(stage, f"mover{n}")
    for n in range(2):
        yield Consumer(stage, f"consumer{n}")
