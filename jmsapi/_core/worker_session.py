"""The session of one worker of a listener container, which settles what it borrows from the container's receiver.

Spec: 10.3-8, MDB-44 to MDB-62.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from jmsapi._core.acknowledgement.ledger import AUTO, Entry, SettlementPlan
from jmsapi._core.message import MessageImpl
from jmsapi._core.session import SessionImpl
from jmsapi._core.session_rules import SessionRules
from jmsapi._core.shared_receiver import WorkerLender
from jmsapi._core.waiting import ConditionWait, Deadline, StateCondition, Steps, run
from jmsapi.errors import IllegalStateException

__all__ = ["WorkerRules", "WorkerSession"]


class WorkerRules(SessionRules):
    """What a callback may not do with its worker's session, which is its container's to run and to commit."""

    def __init__(self) -> None:
        self.check_place: Callable[[], None] = lambda: None
        """Raises where the container does not let the session be used."""

    def check_use(self) -> None:
        """Raise where the container does not let the session be used; see SessionRules."""
        self.check_place()

    def check_commit(self, asked: str) -> NoReturn:
        """Refuse: the container does it; see SessionRules."""
        _refuse(asked)

    def check_recover(self) -> NoReturn:
        """Refuse: the container does it; see SessionRules."""
        _refuse("recover")

    def check_session_listener(self, asked: str) -> NoReturn:
        """Refuse: only the container listens; see SessionRules."""
        _refuse(asked)

    def check_consumer_listener(self) -> NoReturn:
        """Refuse: a listener would run beside the callback; see SessionRules."""
        raise IllegalStateException("message_listener: in a container only callbacks receive asynchronously (10.2-5)")


def _refuse(asked: str) -> NoReturn:
    raise IllegalStateException(f"{asked}: the session of a callback is its container's to run and to commit (10.2, 10.3)")


class WorkerSession:
    """What one worker does with its session: take deliveries, and settle, return, delay or reject each.

    Args:
        session: The session that the callback sees.
        rules: Its rules.
        lender: Where messages come from. It shares its lock with the session.
    """

    def __init__(self, session: SessionImpl, rules: WorkerRules, lender: WorkerLender) -> None:
        self.session = session
        self.mode = session.parts.mode
        self._rules = rules
        self._lender = lender
        self._parts = parts = session.parts
        self._state = state = parts.state
        self._ledger = parts.ledger
        self._settlement = parts.settlement
        state.turn = state.link.turn
        self.called = StateCondition(state.lock)
        """The receiver has something for this worker, or wants it to go."""
        self._groups: list[str] = []
        """Message groups of the deliveries that this worker has taken, until it leaves."""

    def check_place_by(self, check: Callable[[], None]) -> None:
        """Have a function raise where the session may not be used."""
        self._rules.check_place = check

    def enter_thread(self) -> None:
        """The calling thread goes on with what this worker has taken, in the place of the one that took it."""
        with self._state.lock:
            self._parts.dispatcher.enter(self._lender.receiver)

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is the one that has taken deliveries and not left."""
        return self._parts.dispatcher.is_own_thread

    def message(self, entry: Entry) -> MessageImpl:
        """Return the message object of a delivery."""
        return self._parts.message(entry)

    def close(self) -> None:
        """Close the session: what is not settled goes back to the broker."""
        self.session.close()

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
        return run(self.take_steps(most, idle_s, gather_s))

    def take_steps(self, most: int, idle_s: float | None, gather_s: float) -> Steps[list[Entry] | None]:
        """Take as ``take`` does, for a worker that is a task: one that stops waiting leaves its message to another."""
        plan = self._lazy()
        if plan is not None:
            yield from self._settlement.carry_out_steps(plan)
        while True:
            taken = yield from self._take_first_steps(most, idle_s)
            if not taken:
                return taken
            try:
                if len(taken) < most and not taken[0].extra and gather_s > 0:
                    yield from self._gather_steps(taken, most, Deadline(gather_s * 1000))
                yield from self._settlement.last_ack_steps()
            except BaseException:
                self._lender.settlement.carry_out_soon(self._unseen(taken))
                self._lender.make_room_held()
                self.leave()
                raise
            living, expired = self._living(taken)
            for plan in expired:
                yield from self._settlement.carry_out_steps(plan)
            if living:
                return living
            self.leave()

    def _take_first_steps(self, most: int, idle_s: float | None) -> Steps[list[Entry] | None]:
        idle, lock = self._lender.idle, self._state.lock
        while True:
            with lock:
                over, taken = self._try_first(most)
                if over:
                    return taken
                waits = self in idle
                if not waits:
                    idle.append(self)
            if not waits:
                self._ask_for_one()
                continue
            called = yield from self._called_steps(idle_s)
            with lock:
                if not called and self in idle:
                    idle.remove(self)
                    return []

    def _try_first(self, most: int) -> tuple[bool, list[Entry] | None]:
        """Return whether waiting is over, and what was taken; None when there will be nothing any more. With the lock held."""
        lender, consumer = self._lender, self._lender.receiver
        idle, inbox = lender.idle, consumer.inbox
        if self._is_over:
            if self in idle:
                idle.remove(self)
            return True, None
        if inbox.buffer and lender.state.flowing and (taken := lender.pick(inbox, most, True, self._groups)):
            if self in idle:
                idle.remove(self)
            self._parts.dispatcher.enter(consumer)
            self._borrow(taken)
            if not lender.room and not idle:
                # Nobody is left who would ask for the next.
                lender.observer.backlog()
            return True, taken
        return False, None

    @property
    def _is_over(self) -> bool:
        """Whether there will be nothing to take any more. With the lock held."""
        return self._lender.stopping or self._state.closing or self._state.link.lost is not None

    def _called_steps(self, timeout_s: float | None) -> Steps[bool]:
        """Wait until the receiver has something for this worker, or wants it to go; False when time is up."""
        idle = self._lender.idle
        try:
            called: bool = yield ConditionWait(self.called, lambda: self not in idle or self._is_over, timeout_s)
        except BaseException:
            with self._state.lock:
                if self in idle:
                    idle.remove(self)
                else:
                    self._lender.call_workers()
            raise
        return called

    def _ask_for_one(self) -> None:
        """Without prefetch a message is asked for when somebody is there to have it."""
        if not self._lender.room:
            self._lender.receiver.make_room()

    def _gather_steps(self, taken: list[Entry], most: int, deadline: Deadline) -> Steps[None]:
        lender, lock = self._lender, self._state.lock
        while True:
            with lock:
                if self._batch_is_full(taken, most, deadline):
                    return
                waits = self in lender.idle
                if not waits:
                    lender.idle.append(self)
            if waits:
                yield from self._called_steps(deadline.remaining())
            else:
                self._ask_for_one()

    def _batch_is_full(self, taken: list[Entry], most: int, deadline: Deadline) -> bool:
        """Add what is there to a batch; return whether to wait for no more. With the lock held."""
        lender, inbox = self._lender, self._lender.receiver.inbox
        more = lender.pick(inbox, most - len(taken), False, self._groups) if lender.state.flowing else []
        self._borrow(more)
        taken += more
        over = len(taken) >= most or lender.stopping or deadline.passed or self._state.link.lost is not None
        if over or (inbox.buffer and inbox.buffer[0].extra):
            if self in lender.idle:
                lender.idle.remove(self)
            return True
        return False

    def _borrow(self, entries: Sequence[Entry]) -> None:
        self._lender.lend(entries)
        self._ledger.borrow(entries)

    def _living(self, taken: list[Entry]) -> tuple[list[Entry], list[SettlementPlan]]:
        """Return what has not expired, and what is to be told of the rest."""
        expired = [entry for entry in taken if self._parts.expired(entry)]
        if not expired:
            return taken, []
        with self._state.lock:
            plans = [self._ledger.drop(entry) for entry in expired]
        return [entry for entry in taken if entry not in expired], plans

    def _lazy(self) -> SettlementPlan | None:
        if self.mode == AUTO:
            return None
        with self._state.lock:
            return self._ledger.flush()

    def leave(self) -> None:
        """The listener has returned, and all it had is settled or has gone back."""
        with self._state.lock:
            self._parts.dispatcher.leave()
            self._free_groups()

    def free_groups(self) -> None:
        """Let others have messages of the groups that this worker had, whatever has become of its own."""
        with self._state.lock:
            self._free_groups()

    def _free_groups(self) -> None:
        held, self._groups = self._groups, []
        self._lender.free_groups(held)

    def holds(self, entry: Entry) -> bool:
        """Whether an entry can still be settled. If not, its connection is lost, or it is settled."""
        with self._state.lock:
            return self._ledger.holds(entry)

    # ---- settling -------------------------------------------------------------------------------------------------
    def finish(self, entries: Sequence[Entry]) -> None:
        """Acknowledge by the mode of the session: the listener has returned."""
        for entry in entries:
            self._settlement.finish(entry)

    def commit_work(self, entries: Sequence[Entry]) -> None:
        """Commit what was sent, and with it that these were consumed.

        Raises:
            TransactionRolledBackException: It is rolled back, and these come again.
            JMSException: ``in-doubt``.
        """
        transaction = self._parts.local_transaction("commit")
        with self._state.turn:
            run(transaction.commit_entries_steps(entries))

    def undo(self) -> None:
        """Roll back what was sent. What was taken stays in flight, for ``again``, ``reject`` or another commit."""
        transaction = self._parts.local_transaction("rollback")
        with self._state.turn:
            run(transaction.undo_steps())

    def again(self, entries: Sequence[Entry], delay_s: float = 0.0) -> None:
        """Hand out again what the listener has seen: its count goes up, at once in front or after a delay."""
        lender = self._lender
        until = self._state.link.clock.monotonic() + delay_s
        with self._state.lock:
            waiting, plan = lender.take_back(self._ledger.cede(entries), seen=True)
            delayed = delay_s > 0 and not lender.stopping and bool(waiting)
            if delayed:
                lender.delay(waiting, until)
            else:
                lender.put_in_front(waiting)
        lender.settlement.carry_out(plan)
        if delayed:
            lender.make_room()
        else:
            lender.make_room_held()

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Give back what no listener has seen: no count is spent."""
        lender = self._lender
        lender.settlement.carry_out(self._unseen(entries))
        lender.make_room_held()

    def _unseen(self, entries: Sequence[Entry]) -> SettlementPlan:
        lender = self._lender
        with self._state.lock:
            waiting, plan = lender.take_back(self._ledger.cede(entries), seen=False)
            lender.put_in_front(waiting)
        return plan

    def reject(self, entries: Sequence[Entry]) -> None:
        """Let the broker put them where it puts what nobody can handle."""
        with self._state.lock:
            plan = self._ledger.rejected(entries)
        self._settlement.carry_out(plan)

    def hand_to(self, other: WorkerSession, entries: Sequence[Entry]) -> list[Entry]:
        """Let another session of the same receiver settle them; return those that can still be settled."""
        with self._state.lock:
            living = self._ledger.cede(entries)
            other._ledger.borrow(living)
            return living
