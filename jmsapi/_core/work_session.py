"""The session of one worker, which settles what it takes from an endpoint's intake.

Spec: 10.3-8, MDB-44 to MDB-62.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from jmsapi._core.committing import commit, rollback
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.intake import IntakeSession
from jmsapi._core.ledger import AUTO, Entry, Inbox
from jmsapi._core.session import SessionImpl
from jmsapi._core.waiting import Deadline
from jmsapi._core.work_ledger import WorkLedger
from jmsapi.errors import IllegalStateException, JMSException, TransactionRolledBackException
from jmsapi.spi import Address, Outcome

if TYPE_CHECKING:
    from jmsapi._core.connection import ConnectionImpl

__all__ = ["WorkSession"]

C = TypeVar("C", bound=ConsumerImpl)
_LONG_S: Final = 60.0


class _OnlyReceives(ConsumerImpl):
    """A consumer of a worker's session: a listener would run beside the callback."""

    @property
    def message_listener(self) -> NoReturn:
        """Refuse: its session is a container's."""
        raise IllegalStateException("message_listener: in a container only callbacks receive asynchronously (10.2-5)")

    @message_listener.setter
    def message_listener(self, message_listener: object) -> NoReturn:
        raise IllegalStateException("message_listener: in a container only callbacks receive asynchronously (10.2-5)")


class WorkSession(SessionImpl):
    """The session of one worker, which settles what it takes from an intake.

    Args:
        connection: Its connection.
        mode: SESSION_TRANSACTED, AUTO_ACKNOWLEDGE or DUPS_OK_ACKNOWLEDGE.
        number: Which session of the connection this is.
        intake: Where messages come from.
    """

    ledger: WorkLedger

    def __init__(self, connection: ConnectionImpl, mode: int, number: int, intake: IntakeSession) -> None:
        self.intake = intake
        super().__init__(connection, mode, number)
        self.ledger = WorkLedger(mode)
        self.turn = self.link.turn
        self.called = threading.Condition(self.lock)
        """The intake has something for this worker, or wants it to go."""
        self._groups: list[str] = []
        """Those of what it has taken, until it leaves."""

    def new_lock(self) -> threading.Lock:
        """Share the intake's lock."""
        return self.intake.lock

    @property
    def in_hand(self) -> int:
        """What it has taken its listener has, and that is waited for."""
        return 0

    def release(self, inbox: Inbox) -> Future[None] | None:
        """End a closed consumer at the provider, which is the intake's."""
        return super().release(inbox) if inbox in self.consumers else self.intake.release(inbox)

    # ---- what its listener may not do -----------------------------------------------------------------------------
    def commit(self) -> NoReturn:
        """Refuse: the container does it."""
        self._refuse("commit")

    def rollback(self) -> NoReturn:
        """Refuse: the container does it."""
        self._refuse("rollback")

    def recover(self) -> NoReturn:
        """Refuse: the container does it."""
        self._refuse("recover")

    def run(self) -> NoReturn:
        """Refuse: the container does it."""
        self._refuse("run")

    @property
    def message_listener(self) -> NoReturn:
        """Refuse: its container is who listens."""
        self._refuse("message_listener")

    @message_listener.setter
    def message_listener(self, message_listener: object) -> NoReturn:
        self._refuse("message_listener")

    def add_consumer(self, kind: type[C], address: Address, message_selector: str | None, **terms: Any) -> C:
        """Create a consumer, which has no listener."""
        return cast("C", super().add_consumer(_OnlyReceives, address, message_selector, **terms))

    def _refuse(self, asked: str) -> NoReturn:
        raise IllegalStateException(f"{asked}: the session of a callback is its container's to run and to commit (10.2, 10.3)")

    # ---- taking ---------------------------------------------------------------------------------------------------
    def take(self, most: int, idle_s: float | None, gather_s: float) -> list[Entry] | None:
        """Take messages, waiting for the first; the worker counts as running its listener until ``leave``.

        Args:
            most: The most messages.
            idle_s: Longest wait for the first, in seconds; None for ever.
            gather_s: Longest wait for further ones.
        Returns:
            At least one; none when time is up; None when there will be none any more.
        """
        self._settle_lazy()
        while True:
            taken = self._take_first(most, idle_s)
            if not taken:
                return taken
            if len(taken) < most and not taken[0].extra and gather_s > 0:
                self._gather(taken, most, Deadline(gather_s * 1000))
            self.await_last_ack()
            living = self._living(taken)
            if living:
                return living
            self.leave()

    def _take_first(self, most: int, idle_s: float | None) -> list[Entry] | None:
        intake, consumer = self.intake, self.intake.consumer
        idle, inbox = intake.idle, consumer.inbox
        while True:
            with self.lock:
                if intake.stopping or self.closing or self.link.lost is not None:
                    if self in idle:
                        idle.remove(self)
                    return None
                if inbox.buffer and intake.flowing and (taken := intake.pick(inbox, most, True, self._groups)):
                    if self in idle:
                        idle.remove(self)
                    self.dispatcher.enter(consumer)
                    self.ledger.adopt(taken)
                    if not intake.room and not idle:
                        # Nobody is left who would ask for the next.
                        intake.watcher.backlog()
                    return taken
                if self in idle:
                    # Who is called is taken off this list first.
                    if not self.called.wait(_LONG_S if idle_s is None else idle_s) and idle_s is not None and self in idle:
                        idle.remove(self)
                        return []
                    continue
                idle.append(self)
            if not intake.room:
                # Without prefetch a message is asked for when somebody is there to have it.
                consumer.make_room()

    def _gather(self, taken: list[Entry], most: int, deadline: Deadline) -> None:
        """Add what comes to a batch, until it is full or its time is up."""
        intake, inbox = self.intake, self.intake.consumer.inbox
        while True:
            with self.lock:
                more = intake.pick(inbox, most - len(taken), False, self._groups) if intake.flowing else []
                self.ledger.adopt(more)
                taken += more
                over = len(taken) >= most or intake.stopping or deadline.passed or self.link.lost is not None
                if over or (inbox.buffer and inbox.buffer[0].extra):
                    if self in intake.idle:
                        intake.idle.remove(self)
                    return
                if self in intake.idle:
                    self.called.wait(deadline.remaining())
                    continue
                intake.idle.append(self)
            if not intake.room:
                intake.make_room()

    def _living(self, taken: list[Entry]) -> list[Entry]:
        """Settle what has expired; return the rest."""
        consumer = self.intake.consumer
        expired = [entry for entry in taken if consumer.is_expired(entry)]
        if not expired:
            return taken
        for entry in expired:
            with self.lock:
                plan = self.ledger.drop(entry)
            self.carry_out(plan)
        self.leave_room()
        return [entry for entry in taken if entry not in expired]

    def _settle_lazy(self) -> None:
        if self.mode == AUTO:
            return
        with self.lock:
            plan = self.ledger.flush()
        if plan is not None:
            self.carry_out(plan)
            self.intake.make_room()

    def leave(self) -> None:
        """The listener has returned, and all it had is settled or has gone back."""
        with self.lock:
            self.dispatcher.leave()
            self._free_groups()

    def free_groups(self) -> None:
        """Let others have messages of the groups that this worker had, whatever has become of its own."""
        with self.lock:
            self._free_groups()

    def _free_groups(self) -> None:
        held, self._groups = self._groups, []
        self.intake.free_groups(held)

    def holds(self, entry: Entry) -> bool:
        """Whether what is said of an entry still counts. If not, its link is lost, or it is settled."""
        with self.lock:
            return self.ledger.holds(entry)

    # ---- settling -------------------------------------------------------------------------------------------------
    def finish(self, entries: Sequence[Entry]) -> None:
        """Acknowledge by the mode of the session: the listener has returned."""
        for entry in entries:
            with self.lock:
                accept = self.ledger.accept(entry)
                plan = None if accept else self.ledger.done(entry)
            if accept:
                self._accepted(entry)
            elif plan is not None:
                self.carry_out(plan)
        self.leave_room()

    def _accepted(self, entry: Entry) -> None:
        self.last_ack = self.link.settle((entry.delivery.tag,), Outcome.ACCEPTED)
        with self.lock:
            idle = self.ledger.left(entry)
        if idle:
            self.release(entry.inbox)

    def commit_work(self, entries: Sequence[Entry]) -> None:
        """Commit what was sent, and with it that these were consumed.

        Raises:
            TransactionRolledBackException: It is rolled back, and these come again.
            JMSException: ``in-doubt``.
        """
        transaction = self._check_transacted("commit")
        try:
            with self.turn:
                if all(map(self.holds, entries)):
                    commit(self, transaction)
                    return
                with self.lock:
                    cause = self.interruptions.take_broken()
                rollback(self, transaction)
        finally:
            self.leave_room()
        raise TransactionRolledBackException(
            "commit: the link was lost since a message of the transaction was received, so all of it is rolled back; "
            "what was received in it comes again"
        ) from cause

    def undo(self) -> None:
        """Roll back what was sent. What was taken stays in hand, for ``again``, ``park``, ``reject`` or another commit."""
        transaction = self._check_transacted("rollback")
        timeout_ms = self.link.options.send_timeout_ms
        if not self.outbox.quiet(Deadline(timeout_ms)):
            raise JMSException(f"rollback: sends are still not confirmed after {timeout_ms} ms", "timeout")
        self.outbox.take_failure()
        with self.lock:
            self.interruptions.take_broken()
        with self.turn:
            transaction.rollback()

    def again(self, entries: Sequence[Entry], delay_s: float = 0.0) -> None:
        """Hand out again what the listener has seen: its count goes up, at once in front or after a delay."""
        intake = self.intake
        until = self.link.clock.monotonic() + delay_s
        with self.lock:
            plan, waiting = self.ledger.seen(entries)
            parked = waiting if delay_s > 0 and not intake.stopping else []
            for entry in parked:
                intake.park(entry, until)
            if not parked:
                for entry in reversed(waiting):
                    entry.inbox.buffer.appendleft(entry)
        self.carry_out(plan)
        if parked:
            intake.make_room()
            intake.watcher.parked()
        else:
            self.leave_room()

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Give back what no listener has seen: no count is spent."""
        for entry in reversed(entries):
            with self.lock:
                plan = self.ledger.put_back(entry)
            self.carry_out(plan)
        self.leave_room()

    def reject(self, entries: Sequence[Entry]) -> None:
        """Let the broker put them where it puts what nobody can handle."""
        with self.lock:
            plan = self.ledger.rejected(entries)
        self.carry_out(plan)
        self.leave_room()

    def hand_to(self, other: WorkSession, entries: Sequence[Entry]) -> list[Entry]:
        """Let another session of the same intake settle them; return those that can still be settled."""
        with self.lock:
            living = self.ledger.cede(entries)
            other.ledger.receive(living)
            return living

    def leave_room(self) -> None:
        """What was in this worker's hand is so no more."""
        if self.intake.room:
            self.intake.make_room()
