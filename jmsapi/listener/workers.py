"""A worker: one thread (or task, see ``task_worker``) and one session, which takes messages and has the callback called.

It decides what becomes of each delivery. Nothing that a callback raises ends it (MDB-58). A message whose callback has failed is
handed out again, forwarded, deleted or rejected; whatever of that cannot be done leaves it where it was.

Spec: MDB-44 to MDB-70; field reports B18, B21.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._callbacks import check_returned
from jmsapi._core.endpoint import (
    AUTO,
    DUPS_OK,
    TRANSACTED,
    Entry,
    SharedReceiver,
    WorkerSession,
    failed_before,
    message_label,
    times_delivered,
)
from jmsapi.errors import JMSException, MessageFormatException, TransactionRolledBackException
from jmsapi.listener.activation_spec import AcknowledgeMode
from jmsapi.listener.causes import in_words
from jmsapi.listener.dead_letter import send_dead_letter
from jmsapi.listener.observed_endpoint import observed
from jmsapi.listener.redelivery import Fate, GrowingWait, Redelivery
from jmsapi.listener.runtime_context import RuntimeContext
from jmsapi.listener.runtime_endpoint import CallbackEndpoint, InstancePool, MessageEndpoint, NoInstance
from jmsapi.listener.transaction_attribute import TransactionAttribute

if TYPE_CHECKING:
    from jmsapi.api import Destination, Message, Session
    from jmsapi.listener.callback_loop import CallbackLoop
    from jmsapi.listener.endpoint_definition import EndpointDefinition

__all__ = ["PAUSE", "ContainerWorker", "WorkerOwner"]

_log = logging.getLogger("jmsapi.listener")
PAUSE: Final = GrowingWait(100, 2.0, 5_000, 0.1)
"""Between deliveries that cannot be committed."""


class WorkerOwner(Protocol):
    """What a worker knows of its container."""

    definition: EndpointDefinition
    instances: InstancePool
    redelivery: Redelivery
    stopping: threading.Event
    callback_loop: CallbackLoop

    def wrapped(self, endpoint: MessageEndpoint) -> MessageEndpoint:
        """Put what watches an endpoint around it."""
        ...

    def dead_letters(self, session: Session) -> Destination:
        """Return where to forward what nobody can handle."""
        ...

    def note(self, error: BaseException) -> None:
        """Note an error that ``problem`` is told of next: whoever sees a failure counted sees its error, too."""

    def problem(self, error: BaseException, about: str = "", *, traceback: bool = True) -> None:
        """Hear what a callback has raised, or why a delivery could not be settled.

        Args:
            error: The error.
            about: The message that it is about, or the first of a batch, for the log.
            traceback: Whether it is worth a traceback in the log: it was not seen before, and no content is at fault.
        """

    def may_go(self, worker: ContainerWorker) -> bool:
        """Whether an idle worker is to end; it then does."""
        ...

    def gone(self, worker: ContainerWorker) -> None:
        """A worker has ended."""

    def loop_ended(self) -> None:
        """The event loop of asynchronous callbacks ends, though nobody has stopped the deployment."""


class ContainerWorker:
    """One thread of a container.

    Args:
        owner: Its container.
        receiver: Where messages come from.
        name: Of the thread.
    Raises:
        JMSException: Its session cannot be made.
    Threads: any; its work is done on a thread of its own.
    """

    def __init__(self, owner: WorkerOwner, receiver: SharedReceiver, name: str) -> None:
        spec = owner.definition.spec
        self._owner = owner
        self._receiver = receiver
        self._transacted = owner.definition.transaction is TransactionAttribute.REQUIRED
        self._work = receiver.worker(_mode(owner.definition))
        self._second: WorkerSession | None = None
        self._batch = owner.definition.batch
        self._most = spec.batch_size if self._batch else 1
        self._gather_s = spec.batch_wait_ms / 1000 if self._most > 1 else 0.0
        self._idle_s = spec.idle_timeout_ms / 1000 if spec.max_consumers > spec.min_consumers else None
        self._taken: Sequence[Entry] = ()
        self._committed = False
        self._pauses = 0
        self._spoiled = False
        """A transaction could not be ended, so its session must not be used any more."""
        self._cut = False
        """The callback that runs has been cancelled, since it was not to run any longer."""
        self._awaited: Future[object] | None = None
        """What a plain callback has returned to be awaited."""
        self._context = RuntimeContext(owner.definition.transaction, self._work, self._further, self._drop_further)
        self._callback = self._make_callback()
        self._endpoint = observed(receiver, owner.wrapped(self._callback))
        self.busy = False
        self.delivered = self.failed = self.given_up = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _make_callback(self) -> CallbackEndpoint:
        owner = self._owner
        return CallbackEndpoint(
            owner.definition, owner.instances, self._context, self._commit, self._rollback, self._await_in_loop
        )

    # ---- its life -------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Let it work."""
        self._thread.start()

    @property
    def runs_here(self) -> bool:
        """Whether the caller is in its callback, and would wait for itself."""
        return threading.current_thread() is self._thread

    def told_to_stop(self, cut_in_s: float) -> None:
        """Its container stops: if it waits after a failure, it waits no longer.

        Args:
            cut_in_s: When an asynchronous callback that runs is cancelled, in seconds from now.
        """

    @property
    def was_cut(self) -> bool:
        """Whether its last callback was cancelled, since its time was up."""
        return self._cut

    def cut(self) -> None:
        """Cancel what its callback awaits. A callback that runs in a thread can only be left alone."""
        awaited = self._awaited
        if awaited is not None:
            self._cut = True
            awaited.cancel()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, as it has said that it will."""
        self._thread.join(timeout_s)

    # ---- the thread -----------------------------------------------------------------------------------------------
    def _run(self) -> None:
        work, owner = self._work, self._owner
        try:
            while not self._spoiled:
                taken = work.take(self._most, self._idle_s, self._gather_s)
                if taken is None or (not taken and owner.may_go(self)):
                    return
                if not taken:
                    continue
                self.busy = True
                try:
                    self._handle(taken)
                except BaseException as error:
                    self._spoiled = True
                    owner.problem(error)
                finally:
                    self.busy = False
                    work.leave()
                if self._spoiled or self._pauses:
                    owner.stopping.wait(PAUSE.seconds(max(0, self._pauses - 1)))
        except JMSException as error:
            owner.problem(error)
        finally:
            # What is not settled by now comes again.
            self.close()
            work.free_groups()
            owner.gone(self)

    def close(self) -> None:
        """Close its sessions: what is not settled goes back."""
        for session in (self._second, self._work):
            if session is not None:
                _close(session)

    # ---- one delivery ---------------------------------------------------------------------------------------------
    def _handle(self, taken: list[Entry]) -> None:
        messages, instead = self._readable(taken)
        if instead is not None:
            instead()
            return
        failure: BaseException | None = None
        try:
            # An endpoint that the application has wrapped may be asynchronous for all that its annotations say.
            check_returned(self._endpoint.before_delivery(), "before_delivery")  # type: ignore[func-returns-value]
            result: object = self._endpoint.on_message(messages if self._batch else messages[0])
            check_returned(result, "on_message of the wrapped endpoint")
        except BaseException as error:
            failure = error
        self._conclude(taken, failure)

    def _readable(self, taken: list[Entry]) -> tuple[list[Message], Callable[[], None] | None]:
        """Return the messages to call the callback with, or what is to be done instead, which may wait for the broker."""
        redelivery = self._owner.redelivery
        if redelivery.is_over(failed_before(taken[0])):
            # What comes again comes alone, so this is the only one.
            return [], lambda: self._give_up(taken[0], redelivery.at_limit)
        try:
            messages: list[Message] = [self._work.message(entry) for entry in taken]
        except JMSException:
            return [], lambda: self._unreadable(taken)
        self._taken, self._committed = taken, False
        return messages, None

    def _conclude(self, taken: list[Entry], failure: BaseException | None) -> None:
        """Settle what the callback has had, by what it or what was put around it has raised."""
        work, endpoint = self._work, self._endpoint
        if isinstance(failure, NoInstance):
            endpoint.after_delivery()
            work.put_back(taken)
            return
        if failure is not None and not self._callback.has_raised(failure):
            # It is of what was put around the endpoint, so the callback has not been called, or its outcome is not trusted.
            self._callback.mark()
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
                self._problem(taken, failure)
            return
        self._failed(taken, failure)

    def _await_in_loop(self, returned: Awaitable[object]) -> None:
        """Have what a plain callback has returned awaited in the loop of asynchronous ones, while this thread waits."""
        self._awaited = future = self._owner.callback_loop.result_of(returned)
        try:
            future.result()
        finally:
            self._awaited = None

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
        self._owner.note(error)
        self.delivered += 1
        self.failed += 1
        _note(taken, error)
        if failure is not None:
            self._problem(taken, failure)
        self._problem(taken, error)
        self._work.again(taken)
        self._pauses += 1

    def _failed(self, taken: list[Entry], failure: BaseException | None) -> None:
        if failure is not None:
            self._owner.note(failure)
        self.failed += 1
        self._pauses = 0
        _note(taken, failure)
        if failure is not None:
            self._problem(taken, failure)
        again: list[Entry] = []
        longest = 0.0
        # What came by a link that is lost comes again from the broker, and is judged then.
        for entry in filter(self._work.holds, taken):
            fate, wait = self._owner.redelivery.decide(self._deliveries(entry))
            # One that was cut off has not failed by itself, so it is not given up.
            if fate is Fate.AGAIN or self._spoiled or self._cut:
                again.append(entry)
                longest = max(longest, wait)
            else:
                self._give_up(entry, fate)
        if again:
            # One wait for all of them, so that they keep their order.
            self._work.again(again, longest)

    def _problem(self, taken: list[Entry], error: BaseException, *, traceback: bool = True) -> None:
        """Tell an error about messages. The same trouble of the same message has its traceback once, and bad content has none."""
        cause = error.__cause__
        unfit = isinstance(cause, MessageFormatException) and cause.error_code == "callback-argument"
        more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        about = message_label(taken[0].delivery.envelope) + more
        self._owner.problem(error, about, traceback=traceback and not unfit and not failed_before(taken[0]))

    def _deliveries(self, entry: Entry) -> int:
        # A count that is not exact may be one of deliveries that nobody saw.
        return times_delivered(entry) if self._receiver.counts_deliveries else failed_before(entry) + 1

    def _unreadable(self, taken: list[Entry]) -> None:
        """Not even the kind of one of them can be told, so there is nothing to call a callback with."""
        self.failed += 1
        for entry in filter(self._work.holds, taken):
            try:
                self._work.message(entry)
            except JMSException as error:
                self._problem([entry], error, traceback=False)
                if self._receiver.keeps_rejected:
                    self.given_up += 1
                    self._work.reject([entry])
                else:
                    self._work.again([entry], self._owner.redelivery.after_limit.seconds(failed_before(entry)))
            else:
                self._work.put_back([entry])

    # ---- what nobody can handle -----------------------------------------------------------------------------------
    def _give_up(self, entry: Entry, fate: Fate) -> None:
        if not self._work.holds(entry):
            return
        deliveries = self._deliveries(entry)
        name, label = self._owner.definition.name, message_label(entry.delivery.envelope)
        try:
            if fate is Fate.REJECT:
                self._work.reject([entry])
            else:
                self._settle_away(entry, fate, deliveries)
        except Exception as error:
            self._problem([entry], error)
            _log.error("%s: %s could not be given up, so it comes again: %s", name, label, in_words(error))
            self._pauses += 1
            return
        self.given_up += 1
        if fate is Fate.FORWARD and self._receiver.telemetry is not None:
            self._receiver.telemetry.forwarded_dead(self._receiver.spec)
        _log.error("%s: %s was given up (%s) after %d deliveries: %s", name, label, fate.value, deliveries, entry.failure)

    def _settle_away(self, entry: Entry, fate: Fate, deliveries: int) -> None:
        """Forward and consume, or only consume: in one transaction where there are any."""
        session = self._settling()
        if session is not self._work:
            self._work.hand_to(session, [entry])
        try:
            if fate is Fate.FORWARD:
                message = session.message(entry)
                dead_letters, name = self._owner.dead_letters(session.session), self._owner.definition.name
                send_dead_letter(session.session, dead_letters, message, name, deliveries, entry.failure)
            if session.mode == TRANSACTED:
                session.commit_work([entry])
            else:
                session.finish([entry])
        except BaseException:
            session.again([entry], self._owner.redelivery.after_limit.seconds(failed_before(entry)))
            if session is self._work:
                self._spoiled = True
            else:
                self._drop_further()
            raise

    def _settling(self) -> WorkerSession:
        return self._work if self._transacted or not self._receiver.transactions else self._further()

    def _further(self) -> WorkerSession:
        """Return a transacted session of this worker, beside one that is not."""
        if self._second is None:
            self._second = self._receiver.worker(TRANSACTED)
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


def _close(session: WorkerSession) -> None:
    try:
        session.close()
    except JMSException as error:
        _log.debug("a session of a listener could not be closed: %s", error)


def _mode(definition: EndpointDefinition) -> int:
    if definition.transaction is TransactionAttribute.REQUIRED:
        return TRANSACTED
    return DUPS_OK if definition.spec.acknowledge_mode is AcknowledgeMode.DUPS_OK else AUTO
