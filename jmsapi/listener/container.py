"""A listener container: one endpoint with its own connection, its workers, and a thread that looks after them.

That thread makes what is broken again, with one growing wait for each trouble whatever it was that failed; it starts workers
when messages wait, and ends everything in order when it is told to. It sleeps while there is nothing of that to do.

Spec: MDB-57 to MDB-79, 12.1; field reports B15, B16, B18.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from jmsapi._callbacks import check_returned
from jmsapi._not_copied import NotCopied
from jmsapi.errors import JMSException, UnsupportedFeatureException
from jmsapi.listener.health import EndpointHealth, EndpointState
from jmsapi.listener.redelivery import GrowingWait, Redelivery
from jmsapi.listener.task_worker import TaskWorker
from jmsapi.listener.transaction_attribute import TransactionAttribute
from jmsapi.listener.workers import ContainerWorker

if TYPE_CHECKING:
    from jmsapi._core.endpoint import SharedReceiver
    from jmsapi.api import Destination, Session
    from jmsapi.listener.callback_loop import CallbackLoop
    from jmsapi.listener.endpoint_definition import EndpointDefinition
    from jmsapi.listener.runtime_endpoint import InstancePool, MessageEndpoint
    from jmsapi.listener.runtime_source import ActivationSource

__all__ = ["ErrorHandler", "ListenerContainer"]

ErrorHandler = Callable[[str, BaseException], None]
_log = logging.getLogger("jmsapi.listener")
_LONG_S: Final = 60.0
_MOST_CUT_S: Final = 1.0
_CLOSE_MS: Final = 2_000.0
"""Time to close a connection when the deadline has passed, or when the connection is lost."""


class ListenerContainer(NotCopied):
    """Runs one endpoint.

    Args:
        definition: The endpoint.
        source: Where its messages come from.
        instances: Of the callback's class.
        wrap: Puts what watches an endpoint around it.
        on_error: Hears what callbacks raise and why deliveries, connections and the container have failed.
        callback_loop: Where asynchronous callbacks run.
    Threads: any.
    """

    def __init__(
        self,
        definition: EndpointDefinition,
        source: ActivationSource,
        instances: InstancePool,
        wrap: Callable[[MessageEndpoint], MessageEndpoint] | None,
        on_error: ErrorHandler | None,
        callback_loop: CallbackLoop,
    ) -> None:
        spec = definition.spec
        self.definition = definition
        self.callback_loop = callback_loop
        self.instances = instances
        self.redelivery = Redelivery.of(spec, max_redeliveries=-1, keeps_rejected=False)
        self.stopping = threading.Event()
        self._source = source
        self._wrap = wrap
        self._on_error = on_error
        self._retry = GrowingWait(
            spec.connection_retry_delay_ms, spec.connection_retry_backoff, spec.connection_retry_max_delay_ms
        )
        self._wake = threading.Event()
        self._changed = threading.Condition()
        self._workers: list[ContainerWorker] = []
        self._ended: list[tuple[int, int, int]] = []
        """The counts of workers that have ended."""
        self._receiver: SharedReceiver | None = None
        self._state = EndpointState.READY
        self._reason = ""
        self._last_error: BaseException | None = None
        self._number = 0
        self._behind = False
        """Messages wait or may wait for a worker that there is not yet."""
        self._failures = 0
        self._since = 0.0
        self._deadline: float | None = None
        self._cut = False
        """A callback was cancelled, since its time was up."""
        self._orderly = True
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name=f"jmsapi-listener-{definition.name}", daemon=True)

    # ---- for its workers ------------------------------------------------------------------------------------------
    def wrapped(self, endpoint: MessageEndpoint) -> MessageEndpoint:
        """Put what watches an endpoint around it; see WorkerOwner."""
        return endpoint if self._wrap is None else self._wrap(endpoint)

    def dead_letters(self, session: Session) -> Destination:
        """Return where to forward what nobody can handle; see WorkerOwner."""
        return self._source.dead_letters_of(session)

    def note(self, error: BaseException) -> None:
        """Note an error; see WorkerOwner."""
        self._last_error = error

    def problem(self, error: BaseException, about: str = "", *, traceback: bool = True) -> None:
        """Note and tell an error; see WorkerOwner."""
        self.note(error)
        if self._on_error is None:
            shown = (error.__cause__ or error) if traceback else None
            _log.warning("%s: %s%s", self.definition.name, f"{about}: " if about else "", error, exc_info=shown)
            return
        try:
            result: object = self._on_error(self.definition.name, error)
            check_returned(result, "on_error")
        except BaseException:
            # Not even SystemExit: it would end a worker in the middle of a delivery, and nothing else.
            _log.exception("%s: its error handler raised", self.definition.name)

    def may_go(self, worker: ContainerWorker) -> bool:
        """Let an idle worker go while there are more than the fewest; see WorkerOwner."""
        with self._changed:
            if len(self._workers) <= self.definition.spec.min_consumers:
                return False
            self._forget(worker)
            return True

    def gone(self, worker: ContainerWorker) -> None:
        """Note that a worker has ended; see WorkerOwner."""
        with self._changed:
            self._forget(worker)
            self._changed.notify_all()
        self._wake.set()

    def loop_ended(self) -> None:
        """End, since the event loop of its callbacks does; see WorkerOwner."""
        self.stopping.set()
        self._wake.set()

    def _forget(self, worker: ContainerWorker) -> None:
        if worker in self._workers:
            self._workers.remove(worker)
            self._cut = self._cut or worker.was_cut
            self._ended.append((worker.delivered, worker.failed, worker.given_up))

    # ---- for its receiver: with a lock held -------------------------------------------------------------------------
    def backlog(self) -> None:
        """Messages wait and no worker is idle; see PoolObserver."""
        if len(self._workers) < self.definition.spec.max_consumers and not (self._behind and self._wake.is_set()):
            self._behind = True
            self._wake.set()

    def delayed(self) -> None:
        """A message waits for its time; see PoolObserver."""
        self._wake.set()

    # ---- for its deployment ---------------------------------------------------------------------------------------
    def open(self) -> None:
        """Connect, and make the consumer and the fewest workers. Nothing is taken before ``begin``.

        Raises:
            JMSException: It cannot be done; nothing is left open.
        """
        spec = self.definition.spec
        connection, receiver = self._source.connect(self._told, self)
        try:
            self.redelivery = Redelivery.of(
                spec, max_redeliveries=receiver.max_redeliveries, keeps_rejected=receiver.keeps_rejected
            )
            workers = [self._worker(receiver) for _ in range(spec.min_consumers)]
        except UnsupportedFeatureException as error:
            connection.close()
            if receiver.transactions or self.definition.transaction is not TransactionAttribute.REQUIRED:
                raise
            raise UnsupportedFeatureException(
                error.feature,
                error.provider,
                error.broker,
                error.emulate,
                reason=f"{self.definition.name}: {error}; the other way is TransactionAttribute.NOT_SUPPORTED: no transaction,"
                " and a message is acknowledged when the callback has returned",
            ) from error
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        with self._changed:
            self._receiver = receiver
            self._workers = workers

    def _worker(self, receiver: SharedReceiver) -> ContainerWorker:
        self._number += 1
        kind = TaskWorker if self.definition.asynchronous else ContainerWorker
        return kind(self, receiver, f"jmsapi-listener-{self.definition.name}-{self._number}")

    def begin(self) -> None:
        """Start taking messages, if ``open`` was successful, and looking after it all."""
        if self._receiver is not None:
            try:
                self._start_taking()
            except JMSException as error:
                # Lost since it was opened.
                self.discard_attempt()
                self.failed_to_open(error)
        self.callback_loop.enter()
        self._thread.start()

    def _start_taking(self) -> None:
        spec = self.definition.spec
        for worker in list(self._workers):
            worker.start()
        self._connection.start()
        self._since = time.monotonic()
        self._set(EndpointState.RUNNING, "")
        _log.info("%s: takes messages from %s, by %s consumers", self.definition.name, self._source, spec.concurrency)

    def failed_to_open(self, error: JMSException) -> None:
        """Have ``begin`` try again after a wait."""
        self._set(EndpointState.RETRYING, str(error))
        self._last_error = error
        self._failures = 1

    def discard(self) -> None:
        """End what ``open`` has made, before ``begin``."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close(_CLOSE_MS)
        self._set(EndpointState.STOPPED, "")
        self._done.set()

    def request_stop(self, deadline: float) -> None:
        """Begin to stop.

        Args:
            deadline: When callbacks that still run are left alone, by ``time.monotonic``.
        """
        with self._changed:
            self._deadline = deadline if self._deadline is None else min(deadline, self._deadline)
            self._changed.notify_all()
            workers = list(self._workers)
        self.stopping.set()
        # So long before the deadline asynchronous callbacks are cancelled, for they may need a moment to end.
        left = max(0.0, deadline - time.monotonic())
        for worker in workers:
            worker.told_to_stop(left - min(_MOST_CUT_S, left / 4))
        self._wake.set()

    def wait(self, timeout: float) -> bool:
        """Wait until it has ended; return whether it has, and no callback was left running."""
        return self._done.wait(timeout) and self._orderly

    def ended(self, timeout: float | None) -> bool:
        """Wait until it has ended, in whatever way."""
        return self._done.wait(timeout)

    def runs_here(self) -> bool:
        """Whether the calling thread is its own, or one of its workers."""
        return threading.current_thread() is self._thread or any(one.runs_here for one in list(self._workers))

    @property
    def health(self) -> EndpointHealth:
        """How it is."""
        with self._changed:
            workers, receiver = list(self._workers), self._receiver
            counts = [*self._ended, *((one.delivered, one.failed, one.given_up) for one in workers)]
            state, reason = self._state, self._reason
        if state is EndpointState.RUNNING and receiver is not None and receiver.interrupted:
            reason = "the link to the broker is lost, and is being made again"
        return EndpointHealth(
            self.definition.name,
            state,
            reason,
            len(workers),
            sum(one.busy for one in workers),
            0 if receiver is None else receiver.waiting,
            0 if receiver is None else receiver.delayed,
            sum(one[0] for one in counts),
            sum(one[1] for one in counts),
            sum(one[2] for one in counts),
            self._last_error,
        )

    def _set(self, state: EndpointState, reason: str) -> None:
        with self._changed:
            self._state, self._reason = state, reason
            self._changed.notify_all()

    # ---- the thread that looks after it ---------------------------------------------------------------------------
    def _told(self, error: JMSException) -> None:
        """The connection tells of trouble that no caller hears of."""
        self._last_error = error
        receiver = self._receiver
        if receiver is not None and receiver.trouble is None:
            # Not its end, of which others tell.
            _log.warning("%s: %s", self.definition.name, error)
        self._wake.set()

    def _look_after(self) -> None:
        try:
            while not self.stopping.is_set():
                if self._receiver is None:
                    if not self._make_again():
                        return
                    continue
                self._receiver.redeliver_due(self._wake.set)
                # While there is no link, nobody tells when workers can be made again.
                self._wake.wait(1.0 if self._receiver.interrupted else _LONG_S)
                self._wake.clear()
                if self.stopping.is_set():
                    break
                trouble = self._receiver.trouble
                if trouble is not None:
                    self._break_down(trouble)
                else:
                    self._staff(self._receiver)
        except BaseException as error:
            self._last_error = error
            _log.exception("%s: the container has failed", self.definition.name)
            self._set(EndpointState.FAILED, f"{type(error).__name__}: {error}")
        finally:
            self._end()

    def _staff(self, receiver: SharedReceiver) -> None:
        """Have as many workers as there are messages for, in the bounds of the activation."""
        spec = self.definition.spec
        with self._changed:
            there = len(self._workers)
        # One for each call that waits: those that are made now have taken nothing yet.
        wanted = there if receiver.idle else there + -(-receiver.waiting // spec.batch_size)
        behind, self._behind = self._behind, False
        if behind and not spec.prefetch and not receiver.idle:
            # Nothing waits here, so only one who asks will tell whether there is more to do.
            wanted = max(wanted, there + 1)
        for _ in range(min(max(wanted, spec.min_consumers), spec.max_consumers) - there):
            if self.stopping.is_set() or receiver.interrupted:
                return
            try:
                worker = self._worker(receiver)
            except JMSException as error:
                self.problem(error)
                self.stopping.wait(self._retry.seconds(0))
                self._wake.set()
                return
            with self._changed:
                self._workers.append(worker)
            worker.start()

    def _break_down(self, trouble: BaseException) -> None:
        """The connection or the consumer has come to its end: leave it, to make another."""
        self._last_error = trouble
        receiver, self._receiver = self._receiver, None
        lasted = time.monotonic() - self._since
        # Who lasts no longer than the wait has had no success: its trouble goes on.
        self._failures = 1 if lasted > self._retry.seconds(self._failures) + 1.0 else self._failures + 1
        self._set(EndpointState.RETRYING, str(trouble))
        if receiver is not None:
            receiver.stop_taking()
            self._await_workers(time.monotonic() + self.definition.spec.stop_deadline_ms / 1000, until_stop=True)
            receiver.close(_CLOSE_MS)

    def _make_again(self) -> bool:
        """Wait, then connect; return False when it is of no use any more."""
        spec = self.definition.spec
        error = self._last_error
        if spec.connection_retry_limit is not None and self._failures > spec.connection_retry_limit:
            self._set(EndpointState.FAILED, f"given up after {self._failures} attempts: {error}")
            _log.error("%s: given up after %d attempts: %s", self.definition.name, self._failures, error)
            if error is not None:
                self.problem(error)
            return False
        wait = self._retry.seconds(self._failures - 1)
        _log.warning("%s: takes no messages, attempt %d in %.1f s: %s", self.definition.name, self._failures, wait, error)
        if self.stopping.wait(wait):
            return False
        self._wake.clear()
        try:
            self.open()
            self._start_taking()
        except JMSException as failure:
            self._last_error = failure
            self._failures += 1
            self._set(EndpointState.RETRYING, str(failure))
            self.discard_attempt()
        return True

    def discard_attempt(self) -> None:
        """Leave a connection that could not be started."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close(_CLOSE_MS)

    def _end(self) -> None:
        failed = self._state is EndpointState.FAILED
        if not failed:
            self._set(EndpointState.STOPPING, "it was told to stop")
            _log.info("%s: stops", self.definition.name)
        receiver, self._receiver = self._receiver, None
        deadline = self._deadline if self._deadline is not None else time.monotonic()
        if receiver is not None:
            receiver.stop_taking()
            try:
                receiver.give_back()
            except JMSException as error:
                _log.warning("%s: %s", self.definition.name, error)
        self._orderly = self._await_workers(deadline, until_stop=False)
        if not self._orderly:
            _log.warning("%s: a callback still runs; its message comes again", self.definition.name)
        if receiver is not None:
            receiver.close(max(_CLOSE_MS, (deadline - time.monotonic()) * 1000) if self._orderly else 1.0)
        if not failed:
            self._set(EndpointState.STOPPED, "")
            _log.info("%s: has stopped", self.definition.name)
        self.callback_loop.leave()
        self._done.set()

    def _await_workers(self, deadline: float, *, until_stop: bool) -> bool:
        """Wait for the workers to end; return whether all have, and no callback was cancelled."""
        with self._changed:
            workers = list(self._workers)
            while self._workers:
                left = (deadline if self._deadline is None else min(deadline, self._deadline)) - time.monotonic()
                if left <= 0 or (until_stop and self.stopping.is_set()):
                    break
                self._changed.wait(left)
            running = list(self._workers)
            for one in running:
                one.cut()
                self._forget(one)
        for one in workers:
            if one not in running:
                # It has said that it goes.
                one.join(1.0)
        return not running and not self._cut
