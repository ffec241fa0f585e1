"""A session: its consumers, producers, ledger and transaction; commit, recover, acknowledge, close.

One lock guards the ledger, the inboxes and the flags; it is never held while calling a provider, user code or a future.
Only ``close`` may come from another thread than the one that uses the session (4.4.1-2).
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

from jmsapi._core.closing import quiesce, shut
from jmsapi._core.committing import commit, rollback
from jmsapi._core.creators import Creators
from jmsapi._core.dispatch import Dispatcher
from jmsapi._core.errors_map import jms_error
from jmsapi._core.interruptions import Interruptions
from jmsapi._core.ledger import CLIENT, TRANSACTED, Entry, Inbox, Ledger, Plan
from jmsapi._core.message import MessageImpl, received
from jmsapi._core.options_check import MODES
from jmsapi._core.outbox import Outbox, Ticket
from jmsapi._core.transaction import LocalTransaction, NoTransaction
from jmsapi._core.waiting import Deadline
from jmsapi.api import CompletionListener, Message
from jmsapi.errors import IllegalStateException, JMSException
from jmsapi.spi import PERSISTENT, Handle, PlainEnvelope, ProviderError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from jmsapi._core.browser import BrowserImpl
    from jmsapi._core.connection import ConnectionImpl
    from jmsapi._core.consumer import ConsumerImpl, Listener
    from jmsapi._core.loading import Load
    from jmsapi._core.producer import ProducerImpl

__all__ = ["SessionImpl"]

_log = logging.getLogger("jmsapi")


class SessionImpl(Creators):
    """A session of one connection.

    Args:
        connection: Its connection.
        mode: One of the four session modes.
        number: Which session of the connection this is, for thread names.
    """

    turn: AbstractContextManager[object] = nullcontext()
    """Held while a transaction ends; see Link."""

    def __init__(self, connection: ConnectionImpl, mode: int, number: int) -> None:
        self.connection = connection
        self.link = connection.link
        self.mode = mode
        self.lock = self.new_lock()
        self.changed = threading.Condition(self.lock)
        self.flowing = False
        """The connection is started and this session open: messages may be handed out. Guarded by the lock."""
        self.closing = False
        self.closed = False
        options = self.link.options
        self.ledger = Ledger(mode, max_redeliveries=options.max_redeliveries)
        self.interruptions = Interruptions(self)
        self.listening: set[ConsumerImpl] = set()
        """Consumers with a listener."""
        self.consumers: dict[Inbox, ConsumerImpl] = {}
        """Consumers the provider knows: open ones, and closed ones that still have something unsettled."""
        self.producers: dict[ProducerImpl, None] = {}
        self.browsers: dict[BrowserImpl, None] = {}
        self.own_listener: Listener | None = None
        """What ``run`` calls, for application servers."""
        self.loads: deque[Load] = deque()
        """What a connection consumer has loaded and nobody has run yet. Guarded by the lock."""
        self._ack_timeout = options.request_timeout_ms / 1000
        self.last_ack: Future[None] | None = None
        """The ack of the last message that was handed out in AUTO mode."""
        self._ids = itertools.count(1)
        self.name = name = f"jmsapi-{self.link.number}-session-{number}"
        self._id_prefix = f"ID:{connection.identity}:{number}:"
        self.dispatcher = Dispatcher(self, self.changed, name)
        self.outbox = Outbox(self.lock, self.changed, connection.report, f"{name}-completion")
        self.outbox.transacted = mode == TRANSACTED
        if mode == TRANSACTED:
            self.link.require("transactions", "a transacted session")
        self.handle: Handle = self.link.call(
            lambda: self.link.provider.open_session(transacted=mode == TRANSACTED), "create a session"
        )
        self.transaction: LocalTransaction | NoTransaction = (
            LocalTransaction(self.link, self.handle) if mode == TRANSACTED else NoTransaction()
        )

    closes_last = False
    """Whether a connection closes it after its other sessions, which settle what it has received."""

    def new_lock(self) -> threading.Lock:
        """Return the lock that guards this session."""
        return threading.Lock()

    # ---- state ----------------------------------------------------------------------------------------------------
    def check_open(self) -> None:
        """Raise IllegalStateException when the session is closed, JMSException when the link is lost.

        While it is closing, a listener that still runs keeps all its services (4.3.5-2, 4.4.1-1).
        """
        if self.closed or (self.closing and not self._in_listener):
            raise IllegalStateException("the session is closed", "closed")
        if self.link.lost is not None:
            raise jms_error(self.link.lost, "the connection is lost") from self.link.lost
        self.check_place()

    @property
    def _in_listener(self) -> bool:
        return self.dispatcher.is_own_thread or self.outbox.in_listener or self.connection.in_listener

    @property
    def transacted(self) -> bool:
        """Return whether the session has transactions; see Session."""
        self.check_open()
        return self.mode == TRANSACTED

    @property
    def acknowledge_mode(self) -> int:
        """Return the session's mode; see Session."""
        self.check_open()
        return self.mode

    def set_flowing(self, flowing: bool) -> None:
        """Start or stop handing out."""
        with self.lock:
            self.flowing = flowing and not self.closing
            self.changed.notify_all()

    @property
    def in_hand(self) -> int:
        """How many deliveries are taken from an inbox and on their way to the application or back. With the lock held."""
        return sum(inbox.unsettled for inbox in self.consumers) - self.ledger.unsettled

    def wait_paused(self, deadline: Deadline) -> bool:
        """Wait until no listener runs and no receive has a message in hand; False when time is up."""
        with self.lock:
            return self.dispatcher.idle(deadline) and self.changed.wait_for(lambda: not self.in_hand, deadline.remaining())

    # ---- messages -------------------------------------------------------------------------------------------------
    def message(self, entry: Entry) -> MessageImpl:
        """Return the message object of a delivery, a new one each time (B.3.1-7)."""
        acknowledge = self.interruptions.acknowledge_of(entry)
        return received(entry.delivery, entry.extra, acknowledge, self.connection.codec, self.connection)

    def next_message_id(self) -> str:
        """Return an id that no other message has."""
        return f"{self._id_prefix}{next(self._ids)}"

    def acknowledge_all(self) -> None:
        """Acknowledge all that the session has delivered, in CLIENT mode; nothing in the others (4.4.11-5)."""
        if self.closed or (self.closing and not self._in_listener):
            raise IllegalStateException("acknowledge: the session that received the message is closed", "closed")
        if self.mode != CLIENT:
            return
        self.check_open()
        with self.lock:
            self.interruptions.check_nothing_lost()
            plan = self.ledger.acknowledge()
        if plan is not None:
            with self.interruptions.noting_refusals():
                self.carry_out(plan, wait="acknowledge")

    def carry_out(self, plan: Plan, *, wait: str | None = None) -> None:
        """Do at the seam what the ledger asks for.

        Args:
            plan: From the ledger.
            wait: What is asked, when the caller must know that it was done.
        """
        futures: list[Future[None]] = []
        for tags, outcome, failures in plan.outcomes():
            future = self.link.settle(tags, outcome, failures)
            if future is not None:
                futures.append(future)
        with self.lock:
            idle = self.ledger.carried_out(plan)
            for consumer in self.listening:
                self.dispatcher.offer(consumer)
            if not self.flowing:
                self.changed.notify_all()
        released = [self.release(inbox) for inbox in idle]
        for future in released:
            if future is not None:
                self.await_release(future)
        if self.link.options.max_unacknowledged is not None:
            for consumer in list(self.consumers.values()):
                consumer.make_room()
        if wait is not None:
            if self.link.lost is not None:
                raise jms_error(self.link.lost, wait) from self.link.lost
            for future in futures:
                self.link.wait(future, wait)

    def release(self, inbox: Inbox) -> Future[None] | None:
        """End a closed consumer at the provider: nothing of it is unsettled any more."""
        with self.lock:
            consumer = self.consumers.pop(inbox, None) if inbox.idle else None
            if consumer is None:
                return None
            plan = self.ledger.close_inbox(inbox)
        for tags, outcome, failures in plan.outcomes():
            self.link.settle(tags, outcome, failures)
        consumer.detach()
        return consumer.let_go()

    def await_release(self, released: Future[None], timeout: float | None = None) -> None:
        """Wait until a consumer has ended: whoever asks for its subscription next must find it free."""
        try:
            self.link.wait(released, "close a consumer", timeout)
        except JMSException as error:
            _log.debug("%s: %s", self.name, error)

    def await_last_ack(self) -> None:
        """Wait until the ack of the last message has left, before the next is handed out in AUTO mode (4.4.12-2).

        Most often it has: then this costs nothing. If it cannot leave, the link is lost or about to be, which others say.
        """
        ack = self.last_ack
        if ack is not None:
            self.last_ack = None
            if not ack.done():
                with suppress(ProviderError, FutureTimeout):
                    ack.result(self._ack_timeout)

    def check_may_listen(self) -> None:
        """Raise IllegalStateException when the session takes no message listeners; this one does."""

    # ---- transactions ---------------------------------------------------------------------------------------------
    def commit(self) -> None:
        """Commit the transaction and begin the next; see Session."""
        with self.turn:
            commit(self, self._check_transacted("commit"))

    def rollback(self) -> None:
        """Roll the transaction back and hand out again what it received; see Session."""
        with self.turn:
            rollback(self, self._check_transacted("rollback"))

    def recover(self) -> None:
        """Hand out again what is delivered and not acknowledged; see Session."""
        self.check_open()
        if self.mode == TRANSACTED:
            raise IllegalStateException("recover: the session is transacted; rollback recovers its messages")
        with self.lock:
            plan = self.ledger.recover()
        self.carry_out(plan)

    def _check_transacted(self, asked: str) -> LocalTransaction:
        if self.closed or (self.closing and not self._in_listener):
            raise IllegalStateException(f"{asked}: the session is closed", "closed")
        if isinstance(self.transaction, NoTransaction):
            raise IllegalStateException(f"{asked}: the session is not transacted, its mode is {MODES[self.mode]}")
        if self.outbox.in_listener:
            raise IllegalStateException(f"{asked}: a completion listener may not end the transaction of its own session")
        self.check_open()
        return self.transaction

    # ---- sending --------------------------------------------------------------------------------------------------
    def send(
        self, producer: ProducerImpl, envelope: PlainEnvelope, message: Message, listener: CompletionListener | None
    ) -> None:
        """Send one envelope; returns when it is as safe as its delivery mode asks (4.6.1-1).

        Raises:
            JMSException: Refused, or not confirmed in time.
        """
        link = self.link
        timeout = link.options.send_timeout_ms / 1000
        tx = self.transaction.handle()
        awaited = listener is None and tx is None and envelope.delivery_mode == PERSISTENT
        ticket = Ticket(self.outbox, producer, message, listener, awaited)
        if not link.window.enter(timeout):
            raise JMSException(
                f"send a message: {link.options.max_in_flight} sends are still unanswered after {timeout:.1f} s", "timeout"
            )
        with self.lock:
            registered = self.outbox.register(ticket)
        if not registered:
            link.window.leave()
            raise IllegalStateException("send: the session is closed", "closed")
        try:
            link.provider.send(producer.handle, envelope, tx, ticket)
        except BaseException as error:
            self.outbox.withdraw(ticket)
            if not isinstance(error, Exception):
                raise  # interrupted: the provider may have it, and answer it, or not
            link.window.leave()
            raise jms_error(error, "send a message") from error
        if awaited:
            self.outbox.wait_for(ticket, timeout)

    # ---- links that are lost and made again -----------------------------------------------------------------------
    def interrupted(self, cause: ProviderError) -> None:
        """The link is lost and another one is on its way: forget what came by it. Called on a provider's thread."""
        with self.lock:
            self.interruptions.note(self.ledger.interrupted(self.consumers), cause)
            self.changed.notify_all()

    def resumed(self) -> None:
        """Everything is there again: let messages come, and end what only waited for its last message's outcome."""
        with self.lock:
            consumers = dict(self.consumers)
        for inbox, consumer in consumers.items():
            if inbox.idle:
                self.release(inbox)
            else:
                consumer.make_room()

    # ---- closing --------------------------------------------------------------------------------------------------
    def close_consumer(self, consumer: ConsumerImpl) -> None:
        """Close one consumer: wait for its listener and receives, give back what waits; delivered ones keep their state."""
        deadline = Deadline(self.link.options.close_timeout_ms)
        with self.lock:
            first, consumer.closed = not consumer.closed, True
            if self.closing:
                return
            self.changed.notify_all()
            if not self.dispatcher.is_own_thread:
                orderly = self.dispatcher.idle(deadline, consumer) and self.changed.wait_for(
                    lambda: not consumer.receiving, deadline.remaining()
                )
                if not orderly:
                    _log.warning("close of a consumer on %r: its listener is still running", consumer.spec.address.name)
        if not first:
            return
        consumer.stop_flow(deadline.remaining() or 0.0)
        with self.lock:
            self.listening.discard(consumer)
            # What the application has had must not keep the consumer, and its subscription, in use.
            held_back = self.ledger.flush()
            plan = self.ledger.close_inbox(consumer.inbox, keep=consumer.exclusive)
            idle = consumer.inbox.idle
        if held_back is not None:
            self.carry_out(held_back)
        self.carry_out(plan)
        if idle:
            released = self.release(consumer.inbox)
            if released is not None:
                self.link.wait(released, "close a consumer", deadline.remaining())

    def close_producer(self, producer: ProducerImpl) -> None:
        """Close one producer: wait for what it sent and for its completion listeners (4.6.2.4-1)."""
        if producer.pending and self.outbox.in_listener:
            raise IllegalStateException("close: a completion listener may not close its own producer, or one that waits for it")
        with self.lock:
            first, producer.closed = not producer.closed, True
            if self.closing:
                return
        deadline = Deadline(self.link.options.close_timeout_ms)
        if not self.outbox.quiet(deadline, producer):
            _log.warning("close of a producer: sends are still not confirmed")
        if not first:
            return
        self.producers.pop(producer, None)
        if self.link.lost is None:
            self.link.call(lambda: self.link.provider.release(producer.handle), "close a producer", deadline.remaining())

    def close(self) -> None:
        """Close the session; see Session."""
        if self.closed:
            return
        self.check_may_close("session")
        deadline = Deadline(self.link.options.close_timeout_ms)
        if self.begin_close():
            quiesce(self, deadline)
            shut(self, deadline)
        else:
            with self.lock:
                self.changed.wait_for(lambda: self.closed, deadline.remaining())

    def check_may_close(self, what: str) -> None:
        """Raise IllegalStateException inside a listener of this session: it would wait for itself (4.3.5-4, 4.4.1-4)."""
        if self.dispatcher.is_own_thread and self.dispatcher.running is not None:
            raise IllegalStateException(f"close: a message listener may not close its own {what}")
        if self.outbox.in_listener:
            raise IllegalStateException(f"close: a completion listener may not close its own {what}")

    def begin_close(self) -> bool:
        """Let nothing new begin; False when somebody else is closing already."""
        with self.lock:
            if self.closing:
                return False
            self.closing = True
            self.flowing = False
            self.dispatcher.stop()
            return True
