"""A message consumer: its inbox, receive and listener.

Spec: 4.5, 4.3.3, 4.3.4, 6.11.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi._core.acknowledgement.ledger import AUTO, DUPS_OK, TRANSACTED, Entry, Inbox, SettlementPlan
from jmsapi._core.blocking_call_warning import warn_in_event_loop
from jmsapi._core.credit import Credit
from jmsapi._core.errors_map import jms_error
from jmsapi._core.interrupted_close import close_when_possible
from jmsapi._core.interrupted_receive import InHand, ReceivedMessages, returns_or_keeps
from jmsapi._core.options_check import check_listener
from jmsapi._core.session_parts import SessionParts, handed, unreadable
from jmsapi._core.session_state import Listener
from jmsapi._core.telemetry import ConnectionTelemetry
from jmsapi._core.timeouts import longest_wait, warns_of_seconds
from jmsapi._core.waiting import ConditionWait, Deadline, Steps, run
from jmsapi._not_copied import NotCopied
from jmsapi.api import Message, MessageConsumer
from jmsapi.errors import IllegalStateException, JMSException
from jmsapi.spi import ConsumerSpec, Delivery, Handle, ProviderError
from jmsapi.values import Timeout

__all__ = ["ConsumerImpl"]

_log: Final = logging.getLogger("jmsapi")
_AT_A_TIME: Final = 100
"""Entries that ``pull_many`` takes while it holds the session's lock: the thread that brings more waits for that."""


class ConsumerImpl(NotCopied, MessageConsumer):
    """A consumer of one session.

    Args:
        session: Its session's parts.
        spec: What it asks of the provider.
        handle: The consumer at the provider.
        inbox: Where it goes on when it takes the place of a closed one; None for a new one.
    """

    def __init__(self, session: SessionParts, spec: ConsumerSpec, handle: Handle, inbox: Inbox | None = None) -> None:
        self.session = session
        self.spec = spec
        self.inbox = inbox or Inbox()
        kind = spec.address.kind
        self.inbox.only_here = kind.is_temporary or (kind.is_topic and spec.subscription is None)
        self.handle = handle
        self.listener: Listener | None = None
        self.in_line = False
        self.receiving = 0
        self.closed = False
        self.cause: ProviderError | None = None
        self.arrived: Callable[[], None] | None = None
        """Called when something has arrived, with the session's lock held, in place of waking who receives here."""
        self.in_hand = InHand(session)
        self._dropped = 0
        """Messages that had expired when they were about to be handed out. Guarded by the session's lock."""
        self._state = session.state
        self._link = session.link
        self._is_over = session.link.expiry.is_over
        self.credit = Credit(session.state, self.inbox, handle, spec.prefetch)
        window = self._link.capabilities.unsettled_window
        self._enlist_at = max(1, min(window, spec.prefetch) // 2) if window and session.mode == TRANSACTED else None
        self._settles = session.mode in (AUTO, DUPS_OK)
        """Whether a receive that returns settles what it returns."""
        self.telemetry = self._link.telemetry
        """The observer that is notified of the application's calls of receive; None when there is none."""
        self._link.attach(handle, self)

    def open(self) -> None:
        """Let messages come. After the session knows this consumer."""
        if self.credit.prefetch:
            self.credit.top_up()

    @property
    def exclusive(self) -> bool:
        """Whether no other consumer can have its messages: it is that of an unshared durable subscription."""
        return self.spec.durable and not self.spec.shared

    # ---- from the provider ----------------------------------------------------------------------------------------
    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """File deliveries and wake the caller that waits for them."""
        state = self._state
        with state.lock:
            self.credit.granted -= len(deliveries)
            state.ledger.file(self.inbox, deliveries, self._link.clock.monotonic())
            if self.arrived is not None:
                self.arrived()
            elif self.listener is not None:
                state.offer(self)
            elif self.receiving:
                state.changed.notify_all(self)

    def broke(self, cause: ProviderError) -> None:
        """The broker ended this consumer: receivers get the error, and so does the exception listener.

        What came by it and is not settled goes to others, so it is handed out no more, and who commits or acknowledges it gets
        an error.
        """
        # Borrowers hold what came by this consumer, too.
        for session in {self.session, *self.session.connection.session_parts()}:
            with session.state.lock:
                self.cause = cause
                session.consumer_ended(self.inbox, cause)
        if self.inbox.idle:
            self.session.settlement.release(self.inbox)
        self.session.connection.report(jms_error(cause, f"consume from {self.spec.address.name!r}"))

    # ---- the API --------------------------------------------------------------------------------------------------
    @property
    def message_selector(self) -> str | None:
        """Return the selector's text, or None; see MessageConsumer."""
        self.check_open()
        return self.spec.selector

    @property
    def message_listener(self) -> Listener | None:
        """Return the listener, or None; see MessageConsumer."""
        self.session.rules.check_consumer_listener()
        self.check_open()
        return self.listener

    @message_listener.setter
    def message_listener(self, message_listener: Listener | None) -> None:
        session, state = self.session, self._state
        session.rules.check_consumer_listener()
        check_listener(message_listener)
        self.check_open()
        if message_listener is not None:
            session.transaction.check_may_listen()
        with state.lock:
            self.listener = message_listener
            if message_listener is not None:
                state.listening.add(self)
                session.dispatcher.start()
                state.offer(self)
            else:
                state.listening.discard(self)
        if message_listener is not None and not self.credit.prefetch:
            self.credit.ask_for_one()

    @returns_or_keeps
    @warns_of_seconds
    def receive(self, timeout_ms: Timeout | None = None) -> Message | None:
        """Take the next message, waiting for one; see MessageConsumer."""
        # As ``next_within`` does, without a call more for each message.
        entry = self.pull(longest_wait(timeout_ms, "receive"), finish=True)
        return None if entry is None else self.session.message(entry)

    @returns_or_keeps
    def receive_no_wait(self) -> Message | None:
        """Take a message if one is there; see MessageConsumer."""
        return self.next_at_hand()

    def __iter__(self) -> Iterator[Message]:
        """Iterate over messages as they come; ends when the consumer, its session or its connection is closed."""
        return ReceivedMessages(self.next_message, self.in_hand)

    def next_within(self, timeout_ms: Timeout | None) -> Message | None:
        """Take the next message as ``receive`` does, for a caller that keeps what an interruption leaves in hand."""
        entry = self.pull(longest_wait(timeout_ms, "receive"), finish=True)
        return None if entry is None else self.session.message(entry)

    def next_at_hand(self) -> Message | None:
        """Take a message if one is there, for a caller that keeps what an interruption leaves in hand."""
        entry = self.pull_no_wait(finish=True)
        return None if entry is None else self.session.message(entry)

    def next_message(self) -> Message | None:
        """Take the next message; None when the consumer, its session or its connection is closed."""
        try:
            return None if self.ended else self.next_within(None)
        except IllegalStateException:
            # Closed since the last message: the end of the iteration, and no fault of who iterates.
            if self.ended:
                return None
            raise

    @property
    def ended(self) -> bool:
        """Whether it is closed, or its session closing."""
        return self.closed or self._state.closing

    def close(self) -> None:
        """Close the consumer; see MessageConsumer."""
        close_when_possible(lambda: run(self.close_steps()), apart=self._link.closes_apart)

    def check_open(self) -> None:
        """Raise IllegalStateException when the consumer is closed, JMSException when the broker ended it."""
        self.session.check_open()
        if self.closed:
            raise IllegalStateException("the consumer is closed", "closed")
        if self.cause is not None:
            raise jms_error(self.cause, f"consume from {self.spec.address.name!r}") from self.cause

    # ---- receiving ------------------------------------------------------------------------------------------------
    def pull(self, timeout_ms: float | None, *, finish: bool, watched: bool = True) -> Entry | None:
        """Take the next entry.

        Args:
            timeout_ms: Longest wait, which ``longest_wait`` has checked; None or 0 for ever.
            finish: The call that asked succeeds with this alone; else the caller records what became of the entry.
            watched: The application asks, so telemetry is told, if there is any.
        Returns:
            The entry, or None when time is up or the consumer was closed meanwhile.
        """
        warn_in_event_loop()
        if watched and self.telemetry is not None:
            return self._watched(self.telemetry, lambda: self.pull(timeout_ms, finish=finish, watched=False))
        if self.credit.prefetch:
            return self._take(timeout_ms or None, finish)
        self.credit.ask_for_one()
        return self._take(timeout_ms or None, finish) or run(self._drained_steps(finish))

    def pull_many(self, most: int, timeout_ms: float | None, more: Callable[[Entry], bool], *, look: bool = False) -> list[Entry]:
        """Take entries that are here, waiting for the first; nothing of them is decoded but whether they have expired.

        For sessions in which taking settles nothing, and with a prefetch.

        Args:
            most: The most entries. At a time some hundred are taken, since the session's lock is held meanwhile.
            timeout_ms: Longest wait, which ``longest_wait`` has checked; None or 0 for ever.
            more: Told each entry, whether another may be taken. Called with the session's lock held.
            look: Do not wait, but ask the broker what it has at hand when nothing is here.
        Returns:
            The entries; none when time is up, the broker has none at hand or the consumer was closed meanwhile.
        """
        warn_in_event_loop()
        began_ns = time.time_ns()
        taken: list[Entry] = []
        most = min(most, _AT_A_TIME)
        try:
            self._take_many(most, 0 if look else timeout_ms or None, more, taken)
            if look and not taken:
                self._look_for_many(most, more, taken)
        except BaseException as error:
            if taken or not isinstance(error, Exception):
                # The caller has none of it, and would acknowledge it with what comes later.
                self.session.after_interruption(reversed(taken))
            if isinstance(error, Exception) and self.telemetry is not None:
                self.telemetry.not_received(self.spec, error, began_ns)
            raise
        self.in_hand.entries = taken
        if self.telemetry is not None:
            for entry in taken:
                self.telemetry.received(self.spec, handed(entry), began_ns)
        return taken

    def pull_no_wait(self, *, finish: bool, watched: bool = True) -> Entry | None:
        """Take an entry that is here, or that the broker has at hand; see ``pull``."""
        if watched and self.telemetry is not None:
            return self._watched(self.telemetry, lambda: self.pull_no_wait(finish=finish, watched=False))
        prefetch = self.credit.prefetch
        if not prefetch:
            self.credit.ask_for_one()
        entry = self._take(0, finish) or run(self._drained_steps(finish))
        if prefetch:
            self.credit.top_up()
        return entry

    def pull_steps(self, timeout_ms: float | None, *, finish: bool, watched: bool = True) -> Steps[Entry | None]:
        """Take the next entry, by a driver that does not block; see ``pull`` and ``pull_no_wait``.

        Args:
            timeout_ms: Longest wait; None for ever, 0 for what is at hand.
            finish: See ``pull``.
            watched: See ``pull``.
        """
        if watched and self.telemetry is not None:
            return (yield from self._watched_steps(self.telemetry, self.pull_steps(timeout_ms, finish=finish, watched=False)))
        deadline = Deadline(timeout_ms, self._link.clock.monotonic)
        if not self.credit.prefetch:
            self.credit.ask_for_one()
        yield from self._before_take_steps()
        entry = self._take(0, finish)
        while entry is None and timeout_ms != 0 and not (self.ended or deadline.passed):
            with self._state.lock:
                self.receiving += 1
            try:
                yield ConditionWait(self._state.changed, self._may_take, deadline.remaining(), self)
            finally:
                with self._state.lock:
                    self._received()
            if self.ended:
                # Closed meanwhile, which ends a receive without a message.
                return None
            yield from self._before_take_steps()
            entry = self._take(0, finish)
        if entry is None and (timeout_ms == 0 or not self.credit.prefetch):
            entry = yield from self._drained_steps(finish)
        if timeout_ms == 0 and self.credit.prefetch:
            self.credit.top_up()
        self.in_hand.entries = ()
        return entry

    def _watched(self, telemetry: ConnectionTelemetry, pull: Callable[[], Entry | None]) -> Entry | None:
        began_ns = time.time_ns()
        try:
            entry = pull()
        except BaseException as error:
            telemetry.not_received(self.spec, error, began_ns)
            raise
        if entry is not None:
            telemetry.received(self.spec, handed(entry), began_ns)
        return entry

    def _watched_steps(self, telemetry: ConnectionTelemetry, pull: Steps[Entry | None]) -> Steps[Entry | None]:
        began_ns = time.time_ns()
        try:
            entry = yield from pull
        except BaseException as error:
            telemetry.not_received(self.spec, error, began_ns)
            raise
        if entry is not None:
            telemetry.received(self.spec, handed(entry), began_ns)
        return entry

    def _before_take_steps(self) -> Steps[None]:
        """Wait for what ``_take`` would wait for itself."""
        yield from self.session.settlement.last_ack_steps()
        if self._enlist_at is not None and self.inbox.unsettled + 1 >= self._enlist_at:
            yield from self.session.transaction.handle_steps()

    def _drained_steps(self, finish: bool) -> Steps[Entry | None]:
        # Only the broker knows whether something is on its way: take the credit back, and see what came.
        while not self.closed and self._state.flowing:
            try:
                yield from self.credit.take_back_steps(look=True)
            except JMSException as error:
                if not self._link.survives(error):
                    raise
                # Without a connection nothing is at hand; the credit holds for the next one.
                return None
            dropped = self._dropped
            entry = self._take(0, finish)
            if entry is not None or self._dropped == dropped:
                return entry
            # What was at hand had expired: something else may be behind it.
            if self.credit.prefetch:
                self.credit.top_up()
        return None

    def _take(self, timeout_ms: float | None, finish: bool) -> Entry | None:
        if self.in_hand.kept:
            return self.in_hand.next_kept()
        taken: list[Entry] = []
        try:
            return self._take_one(timeout_ms, finish, taken)
        except BaseException as error:
            if not isinstance(error, Exception):
                self.session.after_interruption(taken)
            raise

    def _take_one(self, timeout_ms: float | None, finish: bool, taken: list[Entry]) -> Entry | None:
        """See ``_take``; ``taken`` lists what is neither handed out nor settled, for when a signal's handler ends the call."""
        deadline: Deadline | None = None
        session, state, inbox, credit = self.session, self._state, self.inbox, self.credit
        if session.check_hand_out is not None:
            session.check_hand_out()
        settlement = session.settlement
        if settlement.last_ack is not None:
            settlement.await_last_ack()
        ledger, lock = state.ledger, state.lock
        while True:
            problem: ProviderError | None = None
            accept = expired = False
            due = 0
            plan: SettlementPlan | None = None
            entry: Entry | None = None
            with lock:
                if inbox.buffer and state.flowing and not self.closed and not state.listening:
                    taken.append(inbox.buffer[0])
                    entry = ledger.take(inbox)
                    if self._is_over(entry.delivery.envelope, entry.arrived):
                        expired = True
                        plan = ledger.drop(entry)
                        self._dropped += 1
                    elif (problem := unreadable(entry)) is not None:
                        plan = ledger.unreadable(entry)
                    else:
                        self.in_hand.entries = (entry,)
                        if finish and self._settles:
                            accept = ledger.mode == AUTO and ledger.accept(entry)
                            plan = None if accept else ledger.done(entry)
                    due = credit.due()
            if entry is None:
                asked, deadline = deadline is None, deadline or Deadline(timeout_ms, self._link.clock.monotonic)
                if not self._await(deadline, asked=asked):
                    return None
                continue
            if due:
                credit.grant(due)
            if accept:
                taken.clear()
                settlement.accepted(entry)
            elif plan is not None:
                taken.clear()
                settlement.carry_out(plan)
            if problem is not None:
                raise jms_error(problem, f"receive from {self.spec.address.name!r}") from problem
            if expired and not credit.prefetch:
                # It has used up what was asked for.
                credit.ask_for_one()
            if not expired:
                if self._enlist_at is not None and inbox.unsettled >= self._enlist_at:
                    session.transaction.enlist()
                return entry

    def _take_many(self, most: int, timeout_ms: float | None, more: Callable[[Entry], bool], taken: list[Entry]) -> None:
        """See ``pull_many``; ``taken`` lists what is taken, for when a signal's handler ends the call."""
        session, state, inbox, credit, enlist_at = self.session, self._state, self.inbox, self.credit, self._enlist_at
        if session.check_hand_out is not None:
            session.check_hand_out()
        deadline: Deadline | None = None
        ledger, is_over = state.ledger, self._is_over
        while not taken:
            expired: list[SettlementPlan] = []
            with state.lock:
                room = most if enlist_at is None else min(most, max(1, enlist_at - inbox.unsettled))
                while room and inbox.buffer and state.flowing and not self.closed and not state.listening:
                    room -= 1
                    taken.append(inbox.buffer[0])
                    entry = ledger.take(inbox)
                    if is_over(entry.delivery.envelope, entry.arrived):
                        expired.append(ledger.drop(entry))
                        self._dropped += 1
                        taken.pop()
                        continue
                    if not more(entry):
                        break
                due = credit.due()
            if due:
                credit.grant(due)
            for plan in expired:
                session.settlement.carry_out(plan)
            if not taken and not expired:
                asked, deadline = deadline is None, deadline or Deadline(timeout_ms, self._link.clock.monotonic)
                if not self._await(deadline, asked=asked):
                    return
        if enlist_at is not None and inbox.unsettled >= enlist_at:
            session.transaction.enlist()

    def _look_for_many(self, most: int, more: Callable[[Entry], bool], taken: list[Entry]) -> None:
        """Ask the broker what it has at hand, and take of that; see ``pull_many``."""
        while not taken and not self.closed and self._state.flowing:
            try:
                run(self.credit.take_back_steps(look=True))
            except JMSException as error:
                if not self._link.survives(error):
                    raise
                return
            dropped = self._dropped
            self._take_many(most, 0, more, taken)
            if self._dropped == dropped:
                return
            # What was at hand had expired: something else may be behind it.

    def _may_take(self) -> bool:
        """Whether a receive need not wait any longer. With the session's lock held."""
        state = self._state
        over = self.closed or state.closing or self._link.lost is not None or self.cause is not None
        return over or bool(self.inbox.buffer and state.flowing)

    def _await(self, deadline: Deadline, *, asked: bool) -> bool:
        """Wait until there is something to take; False when time is up, or there is no more reason to wait.

        Args:
            deadline: When time is up.
            asked: The call begins with this, so a consumer that is closed already is an error.
        """
        state = self._state
        receiving = False
        try:
            with state.lock:
                if asked:
                    self.check_open()
                if state.listening:
                    raise IllegalStateException("receive: the session has a message listener, so its messages go there")
                self.receiving += 1
                receiving = True
            state.changed.wait_until(lambda: self._may_take() or deadline.passed, deadline.remaining())
        finally:
            if receiving:
                with state.lock:
                    self._received()
        if self.inbox.buffer and state.flowing:
            return True
        if not self.ended and (self._link.lost is not None or self.cause is not None):
            self.check_open()
        return not deadline.passed and not self.ended

    def _received(self) -> None:
        self.receiving -= 1
        if self.ended:
            self._state.changed.notify_all()

    def run_listener(self, listener: Listener, entry: Entry) -> None:
        """Give one entry to the listener. On the session's thread, which holds no lock."""
        session = self.session
        session.call_listener(listener, entry, self.spec)
        if self._enlist_at is not None and self.inbox.unsettled >= self._enlist_at:
            session.transaction.enlist()
        if self.credit.prefetch:
            self.credit.top_up()
        elif not self.closed and self.listener is not None:
            self.credit.ask_for_one()

    def make_room(self) -> None:
        """Let more messages come, since some are acknowledged."""
        if self.credit.prefetch:
            self.credit.top_up()
        elif self.receiving or self.listener is not None:
            self.credit.ask_for_one()

    def take_credit_back_steps(self) -> Steps[None]:
        """Have nothing more on its way."""
        if self.credit.granted:
            yield from self.credit.take_back_steps(look=False)

    # ---- the end --------------------------------------------------------------------------------------------------
    def close_steps(self) -> Steps[None]:
        """Close: wait for its listener and receives, give back what waits; what is delivered keeps its state (4.5.3-3)."""
        session, state, name = self.session, self._state, self.spec.address.name
        deadline = Deadline(self._link.options.close_timeout_ms)
        with state.lock:
            first, self.closed = not self.closed, True
            self.credit.stopped = True  # already now, that nothing more comes while it waits for its listener
            if state.closing:
                return
            state.changed.notify_all()
        if not session.dispatcher.is_own_thread:
            orderly = yield from session.dispatcher.idle_steps(deadline, self)
            orderly = orderly and (yield ConditionWait(state.changed, lambda: not self.receiving, deadline.remaining()))
            if not orderly:
                _log.warning("close of a consumer on %r: its listener is still running", name)
        if not first:
            return
        yield from self.stop_credit_steps(deadline.remaining() or 0.0)
        with state.lock:
            state.listening.discard(self)
            # What the application has had must not keep the consumer, and its subscription, in use.
            held_back = state.ledger.flush()
            plan = state.ledger.close_inbox(self.inbox, keep=self.exclusive)
            idle = self.inbox.idle
        if held_back is not None:
            yield from session.settlement.carry_out_steps(held_back)
        yield from session.settlement.carry_out_steps(plan)
        if idle:
            released = session.settlement.release(self.inbox)
            if released is not None:
                yield self._link.awaiting(released, "close a consumer", deadline.remaining())

    def stop_credit_steps(self, timeout: float) -> Steps[None]:
        """Take its credit back for good, before it ends; see Receiver."""
        with self._state.lock:
            self.credit.stopped = True
        if self.cause is None:
            yield from self.credit.stop_steps(self.spec.address.name, timeout)

    def let_go(self) -> Future[None] | None:
        """End it at the provider."""
        return self._link.ask(lambda: self._link.provider.release(self.handle))

    def detach(self) -> None:
        """Let nothing come here any more."""
        self.in_hand.leave()
        self._link.detach(self.handle)
