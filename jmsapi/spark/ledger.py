"""Each row of a batch sent once: rows and the token that counts them move in the same transaction of the broker.

The *ledger* is a small queue with one message in it, the token: which batch, how many of its rows are sent. Whoever commits a
batch takes the token, sends the rows that come next, and sends the token on, in one transaction; a crash undoes all three.
So a rival that is still alive, and its successor, take turns, and each row is sent by one of them:

- The token cannot be had twice, so nobody sends from the same position.
- A token that is past the batch says that the batch is sent. It is only then that its rows are deleted.
- What the batch consists of is fixed (``Outbox.fix``) before the first row is sent.
- The token that counts is named in the outbox, once. A token that nobody used comes from a start that died early and is
  dropped; any other token belongs to another sink: refused.

Knows no Spark.
"""

from __future__ import annotations

import itertools
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol, TypeVar

import jmsapi
from jmsapi import Connection, Message, MessageConsumer, MessageProducer, Session, TextMessage
from jmsapi.errors import JMSError, JMSException
from jmsapi.spark.claim import Step
from jmsapi.spark.options import LEDGER, SinkOptions
from jmsapi.spark.outbox import Binding, File, JobRows, Manifest, Outbox
from jmsapi.spark.staging import Gone, self_test
from jmsapi.spark.trouble import is_final

__all__ = ["Rows", "Sends", "SinkLedger", "SinkProgress"]

T = TypeVar("T")
Rows = Callable[[memoryview], Iterator[Mapping[str, Any]]]
"""Reads a staged file."""
_LOOK_MS: Final = 500.0
_RETRY_S: Final = 1.0
_NEW: Final = -1
_log: Final = logging.getLogger("jmsapi.spark")


class Sends(Protocol):
    """Sends rows in one session."""

    def send(self, row: Mapping[str, Any], duplicate_id: str | None = None) -> None:
        """Send one row."""
        ...


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """How far the sink is."""

    id: str
    batch: int = _NEW
    rows: int = 0
    """How many rows of the batch are sent."""
    manifest: str = ""
    """Id of what the batch consists of."""

    def encode(self) -> str:
        """Return the text of its message."""
        return json.dumps({"token": self.id, "batch": self.batch, "rows": self.rows, "manifest": self.manifest})

    @classmethod
    def decode(cls, message: Message) -> SinkProgress | None:
        """Read a message; None when it is no token."""
        try:
            record: Any = json.loads(message.text or "") if isinstance(message, TextMessage) else {}
            return cls(str(record["token"]), int(record["batch"]), int(record["rows"]), str(record["manifest"]))
        except (ValueError, KeyError, TypeError):
            return None


class SinkLedger:
    """Sends the batches of one sink.

    Args:
        options: Of the sink, checked.
        outbox: Its staged rows.
        owner: What the outbox must belong to: the query's id, or the job's name.
        sender: Makes what sends rows in a session.
        rows_of: Reads a staged file.
        on_step: For tests of crashes.
    Threads: one; rivals in other processes do no harm.
    """

    def __init__(
        self,
        options: SinkOptions,
        outbox: Outbox,
        owner: str,
        sender: Callable[[Session], Sends],
        rows_of: Rows,
        on_step: Step | None = None,
    ) -> None:
        self.options = options
        self.outbox = outbox
        self._owner = owner
        self.sender = sender
        self.rows_of = rows_of
        self._on_step = on_step
        self.name = options.sink_id or owner
        self.queue = options.ledger_queue or f"{LEDGER}{self.name}"
        self.moved_at = 0.0
        """When the token was last moved."""

    def commit(self, batch: int, files: Sequence[tuple[int, File]], *, last: bool = False, job: JobRows | None = None) -> None:
        """Send a batch, or what is left of it, then delete it.

        Args:
            batch: Its number, above those of all batches before.
            files: What it consists of, unless that is fixed.
            last: It is the only one: the ledger is over with it.
            job: Of the only one, what its rows are known by.
        Raises:
            JMSException: ``unsupported``: the provider has no transactions, or none that hold together; ``ledger-held``,
                ``ledger-reused``, ``staging-reused``, ``staging-lost``: see docs/errors.md. Nothing is sent twice.
                ``job-reused``: a job of this name is done, now or before, and had other rows.
            JMSError: The broker's, for longer than ``brokerRetryTimeout``. The same call goes on where this one ended.
        """
        self.step("fix", batch)
        self.outbox.open(batch)
        before = last and self.outbox.done
        if not before and (files or self.outbox.manifest(batch) is not None):
            self._persist(lambda: self._send(batch, files, last, job))
        self.step("clear", batch)
        self.outbox.clear(batch)
        self.step("cleared", batch)
        if last and job is not None:
            self._check_rows(job, before=before)

    def _check_rows(self, job: JobRows, *, before: bool) -> None:
        """Check that the rows of a job are those that were sent under its name: others would be missing without a word.

        Args:
            job: Its rows now.
            before: It was done when it began. One that goes on after a crash may have rows that say when they were made.
        """
        sent = self.outbox.finished()
        if sent is None or job.may_be(sent, goes_on=not before):
            if before:
                _log.warning("the jms sink: the job %r was done before: nothing is sent", self._owner)
            return
        of_batch = f", in batch {batch_of(sent)} of a stream," if sent.run else ""
        now = f"{job.rows} rows, not all the same"
        if job.place != sent.place:
            now = f"rows for {job.place}, not for {sent.place}"
        elif not job.run and job.url != sent.url:
            now = f"rows for {job.url}, not for {sent.url}"
        elif job.run and job.run != sent.run:
            now = f"those of batch {batch_of(job)}"
        raise JMSException(
            f"the jms sink: the job {self._owner!r} is done{of_batch} with {sent.rows} rows, and nothing but these is sent under "
            f"its name; here it has {now}. Give other rows another jobId; within foreachBatch one that has the batch's number",
            "job-reused",
        )

    def _persist(self, what: Callable[[], T]) -> T:
        """Try again as long as the broker is away."""
        self.moved_at = time.monotonic()
        while True:
            try:
                return what()
            except JMSError as error:
                if is_final(error) or time.monotonic() - self.moved_at > self.options.broker_retry_timeout / 1000:
                    raise
            time.sleep(_RETRY_S)

    def _send(self, batch: int, files: Sequence[tuple[int, File]], last: bool, job: JobRows | None) -> None:
        with self.options.factory().create_connection() as connection:
            self._check(connection)
            binding = self._bind(connection)
            unseen = self._unseen(batch, files)
            # Gone: a rival is past this batch, and the token says so.
            with suppress(Gone):
                if unseen is None:
                    self.outbox.fix(batch, files, job)
            manifest = self.outbox.manifest(batch)
            connection.start()
            session = connection.create_session(Session.SESSION_TRANSACTED)
            move = _Move(self, session, binding.token, batch, manifest, unseen)
            # The consumer stays until the last commit is confirmed: brokers ignore what one that is gone acknowledged.
            while not move.once():
                pass
            if last:
                self.outbox.finish(None if manifest is None else manifest.job)
                move.end()

    def _check(self, connection: Connection) -> None:
        can = jmsapi.capabilities(connection)
        for support in (can.transactions, can.transactions_atomic):
            if support.level.name != "NATIVE":
                raise JMSException(
                    "the jms sink: delivery=exactly-once needs transactions that take a message and send others as one, which "
                    f"{can.provider} on {can.broker} has not: {support.note}",
                    "unsupported",
                )

    def _unseen(self, batch: int, files: Sequence[tuple[int, File]]) -> JMSException | None:
        """Return what is wrong when tasks have staged what cannot be seen here: a batch must not consist of that for ever."""
        there = self.outbox.files(batch)
        unseen = sum(name not in there for _, (name, _) in files)
        if not unseen:
            return None
        return JMSException(
            f"the jms sink: {unseen} of {len(files)} staged files of batch {batch} cannot be seen where the query is planned: "
            "the staging location must be one that the driver and all executors share. Nothing of the batch was sent",
            "staging-unshared",
        )

    def _bind(self, connection: Connection) -> Binding:
        found = self.outbox.binding()
        if found is None:
            self_test(self.outbox.store)
            token = SinkProgress(uuid.uuid4().hex)
            with connection.create_session(Session.AUTO_ACKNOWLEDGE) as session:
                producer = session.create_producer(session.create_queue(self.queue))
                producer.send(session.create_text_message(token.encode()))
            self.outbox.bind(Binding(self._owner, token.id))
            found = self.outbox.binding()
        if found is None or found.owner != self._owner:
            raise JMSException(
                "the jms sink: its staging location was used by another query or job: batches of the same number would count as "
                "sent. Use its checkpoint, or another stagingLocation and sinkId",
                "staging-reused",
            )
        return found

    def step(self, name: str, batch: int, number: int = 0) -> None:
        """Tell the test of crashes what comes next."""
        if self._on_step is not None:
            self._on_step(name, batch, 0, number)


def batch_of(job: JobRows) -> str:
    """Return the number of the batch of a stream that a job writes."""
    return job.run.rpartition("/")[2]


class _Move:
    """One session that moves the token through a batch."""

    def __init__(
        self,
        ledger: SinkLedger,
        session: Session,
        token: str,
        batch: int,
        manifest: Manifest | None,
        unseen: JMSException | None,
    ) -> None:
        queue = session.create_queue(ledger.queue)
        self._ledger = ledger
        self._session = session
        self._consumer: MessageConsumer = session.create_consumer(queue)
        self._producer: MessageProducer = session.create_producer(queue)
        self._sender = ledger.sender(session)
        self._token = token
        self._batch = batch
        self._manifest = manifest
        self._unseen = unseen
        """Why there is no manifest, unless a rival is past this batch."""
        self._rows: Iterator[tuple[str, Mapping[str, Any]]] = iter(())
        self._next: int | None = None
        """The row that comes next from ``_rows``."""
        self._number = 0

    def once(self) -> bool:
        """Send one transaction; return whether the batch is sent."""
        token = self._take()
        if token is None or token.batch > self._batch:
            self._move(token)
            return True
        if token.batch == _NEW:
            self._look_behind(token)
        start = token.rows if token.batch == self._batch else 0
        manifest = self._manifest
        if manifest is None or (start and token.manifest != manifest.id):
            self._refuse(
                token,
                (None if manifest else self._unseen)
                or JMSException(
                    f"the jms sink: batch {self._batch} is sent in part, and what it consisted of is not in the staging location",
                    "staging-lost",
                ),
            )
        try:
            sent = self._send_from(manifest, start)
        except FileNotFoundError:
            # Deleted by a rival, which is past this batch, so the token says so; else they are lost.
            self._session.rollback()
            self._refuse_unless_past()
            return True
        end = start + sent
        over = end >= manifest.rows
        self._move(
            SinkProgress(self._token, self._batch + 1) if over else SinkProgress(self._token, self._batch, end, manifest.id)
        )
        return over

    def end(self) -> None:
        """Take the token away: the job is over, and nobody asks for it any more."""
        with suppress(JMSError):
            if self._consumer.receive(_LOOK_MS) is not None:
                self._session.commit()

    def _take(self) -> SinkProgress | None:
        """Wait for the token; None when the job is over meanwhile."""
        ledger = self._ledger
        until = time.monotonic() + ledger.options.broker_retry_timeout / 1000
        while True:
            message = self._consumer.receive(_LOOK_MS)
            if message is None:
                if ledger.outbox.done:
                    return None
                if time.monotonic() > until:
                    raise JMSException(
                        f"the jms sink: the token of the ledger {ledger.queue!r} did not come: another process holds it, or it "
                        "was consumed or has expired, or it is in the broker's dead letter queue, from where it must be put back",
                        "ledger-held",
                    )
                continue
            token = SinkProgress.decode(message)
            if token is not None and token.id == self._token:
                return token
            self._pass_over(message, token)

    def _pass_over(self, message: Message, token: SinkProgress | None, mine: SinkProgress | None = None) -> None:
        """Drop a token of a start that died before the outbox named it: nobody ever used it. Refuse anything else."""
        if token is None or token.batch != _NEW:
            if mine is not None:
                self._producer.send(self._session.create_text_message(mine.encode()))
            self._refuse(
                message,
                JMSException(
                    f"the jms sink: the ledger {self._ledger.queue!r} has a message of somebody else, or of a staging location "
                    "that is gone. A sinkId and its ledger are for one query or job, whose staging location must be kept",
                    "ledger-reused",
                ),
            )

    def _look_behind(self, mine: SinkProgress) -> None:
        """Look once, before a token is first used, whether the ledger has others."""
        while (message := self._consumer.receive(_LOOK_MS)) is not None:
            self._pass_over(message, SinkProgress.decode(message), mine)

    def _send_from(self, manifest: Manifest, start: int) -> int:
        if self._next != start:
            self._rows = itertools.islice(self._all(manifest), start, None)
        # What is in between is not known when this fails.
        self._next = None
        sent = 0
        self._ledger.step("send", self._batch, self._number)
        for duplicate_id, row in itertools.islice(self._rows, self._ledger.options.transaction_messages):
            try:
                self._sender.send(row, duplicate_id)
            except JMSException as error:
                if error.error_code != "bad-row":
                    raise
                raise JMSException(
                    f"the jms sink: batch {self._batch}: {error}. Its task could not know: only this broker or its wire says "
                    "what is wrong with it. The batch is fixed; with deadLetterQueue it goes on without that row",
                    "bad-row",
                ) from error
            sent += 1
        self._next = start + sent
        return sent

    def _all(self, manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
        ledger = self._ledger
        before, number = _NEW, 0
        for partition, file in manifest.files:
            number = number if partition == before else 0
            before = partition
            for row in ledger.rows_of(ledger.outbox.read(self._batch, file)):
                yield f"{ledger.name}-{manifest.id}-{partition}-{number}", row
                number += 1

    def _move(self, token: SinkProgress | None) -> None:
        """Send the token on, with all that this transaction sent."""
        if token is not None:
            self._producer.send(self._session.create_text_message(token.encode()))
        self._ledger.step("settle", self._batch, self._number)
        self._session.commit()
        self._ledger.moved_at = time.monotonic()
        self._ledger.step("settled", self._batch, self._number)
        self._number += 1

    def _refuse_unless_past(self) -> None:
        token = self._take()
        if token is not None and token.batch <= self._batch:
            self._refuse(
                token, JMSException(f"the jms sink: rows of batch {self._batch} are not in the staging location", "staging-lost")
            )
        self._move(token)

    def _refuse(self, what: SinkProgress | Message, why: JMSException) -> NoReturn:
        """Put a message back, so that it does not age by coming back, and raise."""
        message = self._session.create_text_message(what.encode()) if isinstance(what, SinkProgress) else what
        self._producer.send(message)
        self._session.commit()
        raise why
