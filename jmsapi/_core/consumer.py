"""A message consumer: its window of credit, its inbox, receive and listener.

Spec: 4.5, 4.3.3, 4.3.4, 6.11.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from jmsapi._core.committing import enlist
from jmsapi._core.crediting import Crediting
from jmsapi._core.errors_map import jms_error
from jmsapi._core.ledger import TRANSACTED, Entry, Inbox, Plan
from jmsapi._core.options_check import check_listener, check_receive_timeout
from jmsapi._core.waiting import Deadline
from jmsapi.api import Message, MessageConsumer, MessageListener
from jmsapi.errors import IllegalStateException, JMSException
from jmsapi.spi import ConsumerSpec, Delivery, Handle, Outcome, ProviderError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from jmsapi._core.session import SessionImpl

__all__ = ["ConsumerImpl", "Listener"]

Listener = MessageListener | Callable[[Message], None]
_log = logging.getLogger("jmsapi")


class ConsumerImpl(Crediting, MessageConsumer):
    """A consumer of one session.

    Args:
        session: Its session.
        spec: What it asks of the provider.
        before: A closed consumer of the same session and spec that the provider still knows; this one goes on in its place.
    """

    def __init__(self, session: SessionImpl, spec: ConsumerSpec, before: ConsumerImpl | None = None) -> None:
        link = session.link
        handle = (
            link.call(lambda: link.provider.open_consumer(session.handle, spec), f"create a consumer on {spec.address.name!r}")
            if before is None
            else before.handle
        )
        self._begin(session, spec, Inbox() if before is None else before.inbox, handle, prefetch=spec.prefetch)
        link.attach(handle, self)

    def _begin(self, session: SessionImpl, spec: ConsumerSpec, inbox: Inbox, handle: Handle, *, prefetch: int) -> None:
        self.session = session
        self.spec = spec
        self.inbox = inbox
        self.handle = handle
        self.listener: Listener | None = None
        self.in_line = False
        self.receiving = 0
        """Threads that wait in a receive call."""
        self.closed = False
        self._dropped = 0
        """Messages that had expired when they were about to be handed out. Guarded by the session's lock."""
        self.cause: ProviderError | None = None
        self._link = session.link
        self._prefetch = prefetch
        self._limit = self._link.options.max_unacknowledged
        self._credit = 0
        """Messages the provider may still deliver. Guarded by the session's lock."""
        window = self._link.capabilities.unsettled_window
        self._enlist_at = max(1, min(window, spec.prefetch) // 2) if window and session.mode == TRANSACTED else None
        self._settle = self._link.provider.settle

    def open(self) -> None:
        """Let messages come. After the session knows this consumer."""
        if self._prefetch:
            self._top_up()

    @property
    def exclusive(self) -> bool:
        """Whether no other consumer can have its messages: it is that of an unshared durable subscription."""
        return self.spec.durable and not self.spec.shared

    # ---- from the provider ----------------------------------------------------------------------------------------
    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """File deliveries and wake whoever waits for them."""
        session = self.session
        with session.lock:
            self._credit -= len(deliveries)
            session.ledger.file(self.inbox, deliveries)
            if self.listener is not None:
                session.dispatcher.offer(self)
            elif self.receiving:
                session.changed.notify_all()

    def broke(self, cause: ProviderError) -> None:
        """The broker ended this consumer: receivers hear of it, and so does the exception listener.

        What came by it and is not settled others get, so it is handed out no more, and who commits or acknowledges it hears that.
        """
        # The sessions of an endpoint's workers hold what came by its one consumer.
        for session in {self.session, *self.session.connection.sessions()}:
            with session.lock:
                self.cause = cause
                if lost := session.ledger.ended(self.inbox):
                    session.interruptions.note(lost, cause)
                session.changed.notify_all()
        if self.inbox.idle:
            self.session.release(self.inbox)
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
        self.check_open()
        return self.listener

    @message_listener.setter
    def message_listener(self, message_listener: Listener | None) -> None:
        listener = message_listener
        check_listener(listener)
        session = self.session
        self.check_open()
        if listener is not None:
            session.check_may_listen()
        with session.lock:
            self.listener = listener
            if listener is not None:
                session.listening.add(self)
                session.dispatcher.start()
                session.dispatcher.offer(self)
            else:
                session.listening.discard(self)
        if listener is not None and not self._prefetch:
            self._ask_for_one()

    def receive(self, timeout_ms: float | None = None) -> Message | None:
        """Take the next message, waiting for one; see MessageConsumer."""
        entry = self.pull(timeout_ms, finish=True)
        return None if entry is None else self.session.message(entry)

    def receive_no_wait(self) -> Message | None:
        """Take a message if one is there; see MessageConsumer."""
        entry = self.pull_no_wait(finish=True)
        return None if entry is None else self.session.message(entry)

    def __iter__(self) -> Iterator[Message]:
        """Iterate over messages as they come; ends when the consumer, its session or its connection is closed."""
        while not self._ended:
            try:
                message = self.receive()
            except IllegalStateException:
                # Closed since the last message: the end of the iteration, and no fault of who iterates.
                if self._ended:
                    return
                raise
            if message is None:
                return
            yield message

    @property
    def _ended(self) -> bool:
        return self.closed or self.session.closing

    def close(self) -> None:
        """Close the consumer; see MessageConsumer."""
        self.session.close_consumer(self)

    def check_open(self) -> None:
        """Raise IllegalStateException when the consumer is closed, JMSException when the broker ended it."""
        self.session.check_open()
        if self.closed:
            raise IllegalStateException("the consumer is closed", "closed")
        if self.cause is not None:
            raise jms_error(self.cause, f"consume from {self.spec.address.name!r}") from self.cause

    # ---- receiving ------------------------------------------------------------------------------------------------
    def pull(self, timeout_ms: float | None, *, finish: bool) -> Entry | None:
        """Take the next entry.

        Args:
            timeout_ms: Longest wait; None or 0 for ever.
            finish: The call that asked succeeds with this alone; else the caller says what became of the entry.
        Returns:
            The entry, or None when time is up or the consumer was closed meanwhile.
        """
        if timeout_ms is not None:
            check_receive_timeout(timeout_ms)
        if self._prefetch:
            return self._take(timeout_ms or None, finish)
        self._ask_for_one()
        return self._take(timeout_ms or None, finish) or self._drained(finish)

    def pull_no_wait(self, *, finish: bool) -> Entry | None:
        """Take an entry that is here, or that the broker has at hand; see ``pull``."""
        if not self._prefetch:
            self._ask_for_one()
        entry = self._take(0, finish) or self._drained(finish)
        if self._prefetch:
            self._top_up()
        return entry

    def _drained(self, finish: bool) -> Entry | None:
        # Only the broker knows whether something is on its way: take the credit back, and see what came.
        while not self.closed and self.session.flowing:
            try:
                self._link.call(lambda: self._link.provider.drain(self.handle), "ask for messages at hand")
            except JMSException as error:
                if not self._link.survives(error):
                    raise
                # No link, so nothing is at hand; the credit holds for the next one.
                return None
            with self.session.lock:
                self._credit = 0
            dropped = self._dropped
            entry = self._take(0, finish)
            if entry is not None or self._dropped == dropped:
                return entry
            # What was at hand had expired: something else may be behind it.
            if self._prefetch:
                self._top_up()
        return None

    def _take(self, timeout_ms: float | None, finish: bool) -> Entry | None:
        deadline: Deadline | None = None
        session, inbox = self.session, self.inbox
        session.await_last_ack()
        ledger, lock = session.ledger, session.lock
        while True:
            unreadable: ProviderError | None = None
            with lock:
                if not (inbox.buffer and session.flowing) or self.closed or session.listening:
                    deadline = deadline or Deadline(timeout_ms, self._link.clock.monotonic)
                    self._await(deadline)
                entry = ledger.take(inbox) if session.flowing and not self.closed else None
                if entry is None:
                    return None
                expired = self._expired(entry)
                accept = False
                plan: Plan | None = None
                if expired:
                    plan = ledger.drop(entry)
                    self._dropped += 1
                elif (unreadable := _unreadable(entry)) is not None:
                    plan = ledger.unreadable(entry)
                elif finish:
                    accept = ledger.accept(entry)
                    plan = None if accept else ledger.done(entry)
                due = self._due()
            if due:
                self._grant(due)
            if accept:
                self._accepted(entry)
            elif plan is not None:
                session.carry_out(plan)
            if unreadable is not None:
                raise jms_error(unreadable, f"receive from {self.spec.address.name!r}") from unreadable
            if expired and not self._prefetch:
                # It has used up what was asked for.
                self._ask_for_one()
            if not expired:
                if self._enlist_at is not None and inbox.unsettled >= self._enlist_at:
                    enlist(session)
                return entry

    def _await(self, deadline: Deadline) -> None:
        """Wait until there is something to take, or no more reason to wait. With the session's lock held."""
        session = self.session
        self.check_open()
        if session.listening:
            raise IllegalStateException("receive: the session has a message listener, so its messages go there")
        self.receiving += 1
        try:
            while not (self.inbox.buffer and session.flowing) and not self.closed and not session.closing:
                if self._link.lost is not None or self.cause is not None:
                    self.check_open()
                if deadline.passed:
                    return
                left = deadline.remaining()
                session.changed.wait(60.0 if left is None else min(left, 60.0))
        finally:
            self.receiving -= 1
            if session.closing or self.closed:
                session.changed.notify_all()

    def run_listener(self, listener: Listener, entry: Entry) -> None:
        """Give one entry to the listener. On the session's thread, which holds no lock."""
        session = self.session
        session.await_last_ack()
        if self._expired(entry):
            with session.lock:
                plan: Plan | None = session.ledger.drop(entry)
        elif (unreadable := _unreadable(entry)) is not None:
            with session.lock:
                plan = session.ledger.unreadable(entry)
            session.connection.report(jms_error(unreadable, f"a message from {self.spec.address.name!r} for its listener"))
        else:
            message = session.message(entry)
            plan = None
            try:
                if isinstance(listener, MessageListener):
                    listener.on_message(message)
                else:
                    listener(message)
            except BaseException:
                _log.exception("the message listener %r on %r raised", listener, self.spec.address.name)
                with session.lock:
                    plan = session.ledger.listener_failed(entry)
            else:
                self.finish(entry)
            if self._enlist_at is not None and self.inbox.unsettled >= self._enlist_at:
                enlist(session)
        if plan is not None:
            session.carry_out(plan)
        if self._prefetch:
            self._top_up()
        elif not self.closed and self.listener is not None:
            self._ask_for_one()

    def finish(self, entry: Entry) -> None:
        """The application has had the entry: acknowledge it as the session's mode asks."""
        session = self.session
        with session.lock:
            accept = session.ledger.accept(entry)
            plan = None if accept else session.ledger.done(entry)
        if accept:
            self._accepted(entry)
        elif plan is not None:
            session.carry_out(plan)

    def refuse_body(self, entry: Entry) -> None:
        """The application asked for a body of another type: AUTO and DUPS_OK hand the message out again (11.2.5.1-21)."""
        with self.session.lock:
            plan = self.session.ledger.wrong_body(entry)
        if plan is not None:
            self.session.carry_out(plan)

    def _accepted(self, entry: Entry) -> None:
        session = self.session
        try:
            session.last_ack = self._settle((entry.delivery.tag,), Outcome.ACCEPTED)
        except ProviderError as error:
            _log.debug("an acknowledgement was not taken, so the message will come again: %s", error)
        with session.lock:
            idle = session.ledger.left(entry)
            if not session.flowing:
                # Who stops or closes waits for this.
                session.changed.notify_all()
        if idle:
            session.release(self.inbox)
        elif self._limit is not None:
            self.make_room()

    def _expired(self, entry: Entry) -> bool:
        try:
            expiration = entry.delivery.envelope.expiration
        except ProviderError:
            return False
        return expiration > 0 and expiration <= self._link.clock.now_ms()

    # ---- the end --------------------------------------------------------------------------------------------------
    def let_go(self) -> Future[None] | None:
        """End it at the provider."""
        return self._link.ask(lambda: self._link.provider.release(self.handle))

    def detach(self) -> None:
        """Let nothing come here any more."""
        self._link.detach(self.handle)


def _unreadable(entry: Entry) -> ProviderError | None:
    """Return why not even the kind of a message can be told; None when it can."""
    try:
        entry.delivery.envelope.kind  # noqa: B018
    except ProviderError as error:
        return error
    return None
