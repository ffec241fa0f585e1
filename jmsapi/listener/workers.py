"""A worker: one thread and one session, which takes messages of its endpoint and has the callback called.

It decides what becomes of each delivery. Nothing that a callback raises ends it (MDB-58). A message whose callback has failed is
handed out again, forwarded, deleted or rejected; whatever of that cannot be done leaves it where it was.

Spec: MDB-44 to MDB-70; field reports B18, B21.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._core.endpoint import AUTO, DUPS_OK, TRANSACTED, Entry, Intake, WorkSession, failed_before, times_delivered
from jmsapi.errors import JMSException, TransactionRolledBackException
from jmsapi.listener.activation_spec import AcknowledgeMode
from jmsapi.listener.causes import in_words
from jmsapi.listener.dead_letter import send_dead_letter
from jmsapi.listener.redelivery import Fate, GrowingWait, Redelivery
from jmsapi.listener.runtime_context import RuntimeContext
from jmsapi.listener.runtime_endpoint import CallbackEndpoint, InstancePool, MessageEndpoint, NoInstance
from jmsapi.listener.transaction_attribute import TransactionAttribute

if TYPE_CHECKING:
    from jmsapi.api import Destination, Session
    from jmsapi.listener.endpoint_definition import EndpointDefinition

__all__ = ["Boss", "Worker"]

_log = logging.getLogger("jmsapi.listener")
_PAUSE: Final = GrowingWait(100, 2.0, 5_000, 0.1)
"""Between deliveries that cannot be committed."""


class Boss(Protocol):
    """What a worker knows of its container."""

    definition: EndpointDefinition
    instances: InstancePool
    redelivery: Redelivery
    stopping: threading.Event

    def wrapped(self, endpoint: MessageEndpoint) -> MessageEndpoint:
        """Put what watches an endpoint around it."""
        ...

    def dead_letters(self, session: Session) -> Destination:
        """Return where to forward what nobody can handle."""
        ...

    def problem(self, error: BaseException) -> None:
        """Hear what a callback has raised, or why a delivery could not be settled."""

    def may_go(self, worker: Worker) -> bool:
        """Whether an idle worker is to end; it then does."""
        ...

    def gone(self, worker: Worker) -> None:
        """A worker has ended."""


class Worker:
    """One thread of a container.

    Args:
        boss: Its container.
        intake: Where messages come from.
        name: Of the thread.
    Raises:
        JMSException: Its session cannot be made.
    Threads: any; its work is done on a thread of its own.
    """

    def __init__(self, boss: Boss, intake: Intake, name: str) -> None:
        spec = boss.definition.spec
        self._boss = boss
        self._intake = intake
        self._transacted = boss.definition.transaction is TransactionAttribute.REQUIRED
        self._work = intake.worker(_mode(boss.definition))
        self._second: WorkSession | None = None
        self._batch = boss.definition.batch
        self._most = spec.batch_size if self._batch else 1
        self._gather_s = spec.batch_wait_ms / 1000 if self._most > 1 else 0.0
        self._idle_s = spec.idle_timeout_ms / 1000 if spec.max_consumers > spec.min_consumers else None
        self._taken: Sequence[Entry] = ()
        self._committed = False
        self._pauses = 0
        self._spoiled = False
        """A transaction could not be ended, so its session must not be used any more."""
        context = RuntimeContext(boss.definition.transaction, self._work, self._further, self._drop_further)
        self._context = context
        self._callback = CallbackEndpoint(boss.definition, boss.instances, context, self._commit, self._rollback)
        self._endpoint = boss.wrapped(self._callback)
        self.busy = False
        self.delivered = self.failed = self.given_up = 0
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    # ---- the thread -----------------------------------------------------------------------------------------------
    def _run(self) -> None:
        work, boss = self._work, self._boss
        try:
            while not self._spoiled:
                taken = work.take(self._most, self._idle_s, self._gather_s)
                if taken is None or (not taken and boss.may_go(self)):
                    return
                if not taken:
                    continue
                self.busy = True
                try:
                    self._handle(taken)
                except BaseException as error:
                    self._spoiled = True
                    boss.problem(error)
                finally:
                    self.busy = False
                    work.leave()
                if self._spoiled or self._pauses:
                    boss.stopping.wait(_PAUSE.seconds(max(0, self._pauses - 1)))
        except JMSException as error:
            boss.problem(error)
        finally:
            # What is not settled by now comes again.
            self.close()
            work.free_groups()
            boss.gone(self)

    def close(self) -> None:
        """Close its sessions: what is not settled goes back."""
        for session in (self._second, self._work):
            if session is not None:
                _close(session)

    # ---- one delivery ---------------------------------------------------------------------------------------------
    def _handle(self, taken: list[Entry]) -> None:
        redelivery = self._boss.redelivery
        if redelivery.is_over(failed_before(taken[0])):
            # What comes again comes alone, so this is the only one.
            self._give_up(taken[0], redelivery.at_limit)
            return
        work = self._work
        try:
            messages = [work.message(entry) for entry in taken]
        except JMSException as error:
            self._unreadable(taken, error)
            return
        self._taken, self._committed = taken, False
        failure: BaseException | None = None
        endpoint, callback = self._endpoint, self._callback
        try:
            endpoint.before_delivery()
            endpoint.on_message(messages if self._batch else messages[0])
        except NoInstance:
            endpoint.after_delivery()
            work.put_back(taken)
            return
        except BaseException as error:
            failure = error
            if not callback.has_raised(error):
                # It is of what was put around the endpoint, so the callback has not been called, or its outcome is not trusted.
                callback.mark()
        try:
            endpoint.after_delivery()
        except BaseException as error:
            self._after_failed(taken, failure, error)
            return
        finally:
            # What was put around the endpoint may have kept it from being ended; what was sent must not be in the next one.
            self._context.end_left_open()
        self.delivered += 1
        if self._committed if self._transacted else failure is None:
            if not self._transacted:
                work.finish(taken)
            self._pauses = 0
            if failure is not None:
                # An application exception that does not roll back.
                self._boss.problem(failure)
            return
        self._failed(taken, failure)

    def _commit(self) -> None:
        self._spoiled = True
        try:
            self._work.commit_work(self._taken)
        except TransactionRolledBackException:
            self._spoiled = False
            raise
        self._spoiled = False
        self._committed = True

    def _rollback(self) -> None:
        self._spoiled = True
        self._work.undo()
        self._spoiled = False

    def _after_failed(self, taken: list[Entry], failure: BaseException | None, error: BaseException) -> None:
        """Nothing was committed, or it is not known. What is still in hand comes again, as does what a rollback gave back."""
        self.delivered += 1
        self.failed += 1
        _note(taken, error)
        if failure is not None:
            self._boss.problem(failure)
        self._boss.problem(error)
        self._work.again(taken)
        self._pauses += 1

    def _failed(self, taken: list[Entry], failure: BaseException | None) -> None:
        self.failed += 1
        self._pauses = 0
        _note(taken, failure)
        if failure is not None:
            self._boss.problem(failure)
        again: list[Entry] = []
        longest = 0.0
        # What came by a link that is lost comes again from the broker, and is judged then.
        for entry in filter(self._work.holds, taken):
            fate, wait = self._boss.redelivery.decide(self._deliveries(entry))
            if fate is Fate.AGAIN or self._spoiled:
                again.append(entry)
                longest = max(longest, wait)
            else:
                self._give_up(entry, fate)
        if again:
            # One wait for all of them, so that they keep their order.
            self._work.again(again, longest)

    def _deliveries(self, entry: Entry) -> int:
        # A count that is not exact may be one of deliveries that nobody saw.
        return times_delivered(entry) if self._intake.counts_deliveries else failed_before(entry) + 1

    def _unreadable(self, taken: list[Entry], error: JMSException) -> None:
        """Not even the kind of one of them can be told, so there is nothing to call a callback with."""
        self.failed += 1
        self._boss.problem(error)
        for entry in filter(self._work.holds, taken):
            try:
                self._work.message(entry)
            except JMSException:
                if self._intake.keeps_rejected:
                    self.given_up += 1
                    self._work.reject([entry])
                else:
                    self._work.again([entry], self._boss.redelivery.after_limit.seconds(failed_before(entry)))
            else:
                self._work.put_back([entry])

    # ---- what nobody can handle -----------------------------------------------------------------------------------
    def _give_up(self, entry: Entry, fate: Fate) -> None:
        if not self._work.holds(entry):
            return
        deliveries = self._deliveries(entry)
        name = self._boss.definition.name
        try:
            if fate is Fate.REJECT:
                self._work.reject([entry])
            else:
                self._settle_away(entry, fate, deliveries)
        except Exception as error:
            self._boss.problem(error)
            _log.error("%s: a message could not be given up, so it comes again: %s", name, in_words(error))
            self._pauses += 1
            return
        self.given_up += 1
        _log.error("%s: a message was given up (%s) after %d deliveries: %s", name, fate.value, deliveries, entry.failure)

    def _settle_away(self, entry: Entry, fate: Fate, deliveries: int) -> None:
        """Forward and consume, or only consume: in one transaction where there are any."""
        session = self._settling()
        if session is not self._work:
            self._work.hand_to(session, [entry])
        try:
            if fate is Fate.FORWARD:
                message = session.message(entry)
                dead_letters, name = self._boss.dead_letters(session), self._boss.definition.name
                send_dead_letter(session, dead_letters, message, name, deliveries, entry.failure)
            if session.mode == TRANSACTED:
                session.commit_work([entry])
            else:
                session.finish([entry])
        except BaseException:
            session.again([entry], self._boss.redelivery.after_limit.seconds(failed_before(entry)))
            if session is self._work:
                self._spoiled = True
            else:
                self._drop_further()
            raise

    def _settling(self) -> WorkSession:
        return self._work if self._transacted or not self._intake.transactions else self._further()

    def _further(self) -> WorkSession:
        """Return a transacted session of this worker, beside one that is not."""
        if self._second is None:
            self._second = self._intake.worker(TRANSACTED)
        return self._second

    def _drop_further(self) -> None:
        session, self._second = self._second, None
        if session is not None:
            _close(session)


def _note(entries: Sequence[Entry], failure: BaseException | None) -> None:
    """Keep why they have failed: they may be given up later, and by another worker."""
    words = in_words(failure)
    for entry in entries:
        entry.failure = words


def _close(session: WorkSession) -> None:
    try:
        session.close()
    except JMSException as error:
        _log.debug("a session of a listener could not be closed: %s", error)


def _mode(definition: EndpointDefinition) -> int:
    if definition.transaction is TransactionAttribute.REQUIRED:
        return TRANSACTED
    return DUPS_OK if definition.spec.acknowledge_mode is AcknowledgeMode.DUPS_OK else AUTO
