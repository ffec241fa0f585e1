"""A session without its API: its state, ledger, settlement, transaction, sends and dispatcher, and what it does as a whole.

Consumers, producers and browsers are made with these parts, and so is the session that the application sees (``session.py``).

Spec: 4.4, 4.3.4, 4.3.5.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from jmsapi._callbacks import check_returned
from jmsapi._core.acknowledgement.broker_redelivery import BrokerRedelivery
from jmsapi._core.acknowledgement.client_mode import ClientAcknowledgement
from jmsapi._core.acknowledgement.ledger import AUTO, DUPS_OK, TRANSACTED, Entry, Inbox, SettlementPlan
from jmsapi._core.acknowledgement.lending import Lender
from jmsapi._core.acknowledgement.settlement import Settlement, report_returned
from jmsapi._core.acknowledgement.transaction import LocalTransaction, NoTransaction, SessionTransaction
from jmsapi._core.delay_trial import try_delay_steps
from jmsapi._core.destination import TemporaryOwner, address_of
from jmsapi._core.dispatch import Dispatcher
from jmsapi._core.errors_map import jms_error
from jmsapi._core.forked import free
from jmsapi._core.interrupted_close import calls_application
from jmsapi._core.message import MessageImpl, received, was_received
from jmsapi._core.object_codec import ObjectCodec
from jmsapi._core.options_check import MODES
from jmsapi._core.pending_sends import PendingSend, PendingSends, SendingProducer
from jmsapi._core.provider_connection import ProviderConnection
from jmsapi._core.session_rules import SessionRules
from jmsapi._core.session_state import Listener, SessionState
from jmsapi._core.telemetry import Handed, observed_call, observed_listener
from jmsapi._core.waiting import ConditionWait, Deadline, Steps, run
from jmsapi.api import CompletionListener, Destination, Message
from jmsapi.errors import IllegalStateException, InvalidDestinationException, JMSException
from jmsapi.spi import PERSISTENT, Address, ConsumerSpec, Handle, PlainEnvelope, ProviderError
from jmsapi.spi.label import message_label

__all__ = ["OpenBrowser", "OpenProducer", "SessionOwner", "SessionParts", "handed", "open_session_steps", "unreadable"]

T = TypeVar("T")
_log: Final = logging.getLogger("jmsapi")
_FIRST_PAUSE_MS: Final = 50


class SessionOwner(TemporaryOwner, Protocol):
    """What a session's parts know of its connection."""

    identity: str
    codec: ObjectCodec
    temporaries: set[Address]
    deleted: set[Address]

    @property
    def link(self) -> ProviderConnection:
        """The connection to the provider."""
        ...

    @property
    def in_listener(self) -> bool:
        """Whether the connection is closing and the calling thread runs one of its listeners, which keeps all services."""
        ...

    def touch(self) -> None:
        """Record that the connection is in use, so that its client id is settled (4.3.2-4)."""

    def report(self, error: JMSException) -> None:
        """Give an error that no caller gets to the exception listener, else to the log."""

    def subscription_in_use(self, name: str) -> bool:
        """Return whether a consumer of this connection uses a durable subscription, or has something unsettled from it."""
        ...

    def session_parts(self) -> Iterable[SessionParts]:
        """Return the parts of all open sessions."""
        ...

    def forget(self, parts: SessionParts) -> None:
        """Drop a closed session."""


class OpenProducer(SendingProducer, Protocol):
    """What a session's parts know of a producer."""

    handle: Handle
    closed: bool


class OpenBrowser(Protocol):
    """What a session's parts know of a browser."""

    closed: bool


def open_session_steps(
    owner: SessionOwner, mode: int, number: int, *, rules: SessionRules | None = None, lock: threading.Lock | None = None
) -> Steps[SessionParts]:
    """Open a session at the provider and make its parts.

    Args:
        owner: Its connection.
        mode: One of the four session modes.
        number: Which session of the connection this is, for thread names and message ids.
        rules: What its surroundings forbid; None for nothing.
        lock: That of another session, to be shared; None for one of its own.
    """
    link = owner.link
    if mode == TRANSACTED:
        link.require("transactions", "a transacted session")
    opened = link.ask(lambda: link.provider.open_session(transacted=mode == TRANSACTED))
    handle: Handle = yield link.awaiting(opened, "create a session")
    state = SessionState(link, mode, f"jmsapi-{link.number}-session-{number}", lock)
    return SessionParts(owner, state, handle, number, rules or SessionRules())


class SessionParts:
    """The parts of one session.

    Args:
        owner: Its connection.
        state: Its state.
        handle: The session at the provider.
        number: Which session of the connection this is.
        rules: What its surroundings forbid.
    """

    def __init__(self, owner: SessionOwner, state: SessionState, handle: Handle, number: int, rules: SessionRules) -> None:
        self.connection = owner
        self.link = owner.link
        self.state = state
        self.mode = state.mode
        self.handle = handle
        self.rules = rules
        self.ledger = state.ledger
        self.settlement = Settlement(state)
        self.client = ClientAcknowledgement(state, self.settlement, lambda: self.in_listener, self.check_open, self.run)
        self.dispatcher = Dispatcher(state)
        self.sends = PendingSends(state, owner.report)
        self.sends.in_transactions = state.mode == TRANSACTED
        self.transaction: SessionTransaction = (
            LocalTransaction(state, self.settlement, self.sends, handle) if state.mode == TRANSACTED else NoTransaction()
        )
        self.check_hand_out: Callable[[], object] | None = None
        """Called before a message is handed out by ``receive``: raises where nobody could say what becomes of it."""
        self.lender: Lender | None = None
        """Lends what this session receives; None: it settles all of it."""
        self.producers: dict[OpenProducer, None] = {}
        self.browsers: dict[OpenBrowser, None] = {}
        self._ids = itertools.count(1)
        self._id_prefix = f"ID:{owner.identity}:{number}:"

    # ---- may it be used -------------------------------------------------------------------------------------------
    def check_open(self) -> None:
        """Raise IllegalStateException when the session is closed, JMSException when the connection is lost.

        While it is closing, a listener that still runs keeps all its services (4.3.5-2, 4.4.1-1).
        """
        state = self.state
        if state.closed or (state.closing and not self.in_listener):
            raise IllegalStateException("the session is closed", "closed")
        if self.link.lost is not None:
            raise jms_error(self.link.lost, "the connection is lost") from self.link.lost
        self.rules.check_use()

    @property
    def in_listener(self) -> bool:
        """Whether the calling thread runs a listener of this session, or of its closing connection."""
        return self.dispatcher.is_own_thread or self.sends.in_listener or self.connection.in_listener

    def usable(self, destination: Destination) -> Address:
        """Return the address of a destination to send to.

        Raises:
            InvalidDestinationException: None, foreign, or a temporary destination that is deleted.
        """
        address = address_of(destination)
        if address in self.connection.deleted:
            raise InvalidDestinationException(f"the temporary destination {address.name!r} is deleted")
        return address

    def local_transaction(self, asked: str) -> LocalTransaction:
        """Return the transaction that ``commit`` or ``rollback`` ends.

        Raises:
            IllegalStateException: The session is closed or not transacted, or a completion listener of it asks.
        """
        state = self.state
        if state.closed or (state.closing and not self.in_listener):
            raise IllegalStateException(f"{asked}: the session is closed", "closed")
        if not isinstance(self.transaction, LocalTransaction):
            raise IllegalStateException(f"{asked}: the session is not transacted, its mode is {MODES[self.mode]}")
        if self.sends.in_listener:
            raise IllegalStateException(f"{asked}: a completion listener may not end the transaction of its own session")
        self.check_open()
        return self.transaction

    # ---- messages -------------------------------------------------------------------------------------------------
    def message(self, entry: Entry) -> MessageImpl:
        """Return the message object of a delivery, a new one each time (B.3.1-7)."""
        acknowledge = self.client.acknowledge_of(entry)
        return received(entry.delivery, entry.extra, acknowledge, self.connection.codec, self.connection)

    def next_message_id(self) -> str:
        """Return an id that no other message has."""
        return f"{self._id_prefix}{next(self._ids)}"

    def expired(self, entry: Entry) -> bool:
        """Return whether an entry's time to live is over; see ``Expiry``."""
        return self.link.expiry.is_over(entry.delivery.envelope, entry.arrived)

    @calls_application
    def call_listener(self, listener: Listener, entry: Entry, spec: ConsumerSpec) -> None:
        """Give one entry to a listener, and settle it. On a thread that holds no lock.

        Args:
            listener: The consumer's, or the session's own.
            entry: Handed out to it.
            spec: That of the consumer by which it came.
        """
        state, plan = self.state, None
        telemetry = self.link.telemetry
        if self.settlement.last_ack is not None:
            self.settlement.await_last_ack()
        if self.expired(entry):
            with state.lock:
                plan = state.ledger.drop(entry)
        elif (problem := unreadable(entry)) is not None:
            with state.lock:
                plan = state.ledger.unreadable(entry)
            self.connection.report(jms_error(problem, f"{message_label(entry.delivery.envelope)} for its listener"))
        else:
            message = self.message(entry)
            try:
                # What is neither has been refused; an instance check of a protocol takes as long as all else that is done here.
                call: Callable[[Message], object] = getattr(listener, "on_message", None) or listener  # type: ignore[assignment]
                if telemetry is not None:
                    call = observed_call(telemetry, spec, handed(entry), call)
                # Also what is annotated to return nothing may return something to await.
                check_returned(call(message), "the message listener")
            except BaseException:
                _log.exception("the message listener %r raised on %s", listener, message_label(entry.delivery.envelope))
                plan = self._after_failure(entry)
            else:
                self.settlement.finish(entry)
        if plan is not None:
            self.settlement.carry_out(plan)
            if self.link.options.max_redeliveries < 0:
                run(self.pause_steps())  # with a limit it goes round so often, and no more

    def _after_failure(self, entry: Entry) -> SettlementPlan | None:
        """Return what becomes of an entry whose listener raised; None when that is done or kept for later."""
        state, redelivery = self.state, BrokerRedelivery(self.state, self.settlement)
        if self.mode in (AUTO, DUPS_OK) and (sources := redelivery.sources()):
            try:
                run(redelivery.listener_failed_steps(entry, sources))
            except JMSException as error:
                # The connection is lost or about to be; the broker hands out again what was not settled.
                _log.debug("%s: %s", state.name, error)
            return None
        with state.lock:
            return state.ledger.listener_failed(entry)

    # ---- sending --------------------------------------------------------------------------------------------------
    def send(
        self,
        producer: OpenProducer,
        envelope: PlainEnvelope,
        message: Message,
        listener: CompletionListener | None,
        *,
        blocking: bool = True,
    ) -> PendingSend:
        """Send one envelope; returns when it is as safe as its delivery mode asks (4.6.1-1).

        Args:
            producer: Who sends.
            envelope: What to send.
            message: What the completion listener is called with.
            listener: Called when the broker has answered; None to wait where the delivery mode asks for it.
            blocking: Wait; if not, the caller has a place of the window and waits for the answer itself.
        Raises:
            JMSException: Refused, or not confirmed in time.
        """
        if listener is not None:
            self.rules.check_completion_listener()
        link, sends = self.link, self.sends
        timeout = link.options.send_timeout_ms / 1000
        if blocking and link.delays_in_doubt and self._is_delayed(envelope):
            run(try_delay_steps(link))
        tx = self.transaction.handle()
        awaited = listener is None and tx is None and envelope.delivery_mode == PERSISTENT
        send = PendingSend(sends, producer, message, listener, awaited)
        if blocking and not link.window.enter(timeout):
            raise self._window_full()
        try:
            with self.state.lock:
                sends.register(send)
            if send.registered:
                link.provider.send(producer.handle, envelope, tx, send)
        except BaseException as error:
            sends.withdraw(send)
            if not isinstance(error, Exception):
                raise  # interrupted: the provider may have it, and answer it, or not
            link.window.leave()
            raise jms_error(error, "send a message") from error
        if not send.registered:
            link.window.leave()
            raise IllegalStateException("send: the session is closed", "closed")
        if awaited and blocking:
            sends.wait_for(send, timeout, link.take_back)
        return send

    def send_at_once(
        self, producer: OpenProducer, envelope: PlainEnvelope, message: Message, listener: CompletionListener | None
    ) -> PendingSend | None:
        """Send one envelope if there is nothing to wait for before it is sent; None: that takes ``send_steps``.

        Whether the caller waits for the answer, and how long, the send says; then come ``unanswered_steps``.
        """
        link = self.link
        if link.telemetry is not None or (link.delays_in_doubt and self._is_delayed(envelope)):
            return None
        if not self.transaction.is_begun or not link.window.enter_at_once():
            return None
        send = self.send(producer, envelope, message, listener, blocking=False)
        send.timeout = link.options.send_timeout_ms / 1000
        return send

    def unanswered_steps(self, send: PendingSend, error: BaseException | None) -> Steps[None]:
        """Go on after a wait for an answer that has an error in it: raise it, and what has become of the send.

        Args:
            send: Which.
            error: What has ended the wait; None: the answer, or the time.
        """
        return self.sends.unanswered_steps(send, error, self.link.options.send_timeout_ms / 1000, self.link.take_back)

    def send_steps(
        self, producer: OpenProducer, envelope: PlainEnvelope, message: Message, listener: CompletionListener | None
    ) -> Steps[None]:
        """Send one envelope, by a driver that does not block; see ``send``."""
        telemetry = self.link.telemetry
        if telemetry is None:
            yield from self._send_steps(producer, envelope, message, listener)
            return
        operation = telemetry.sending(envelope, forwarded=was_received(message))
        try:
            yield from self._send_steps(producer, envelope, message, observed_listener(operation, listener))
        except BaseException as error:
            operation.ended(error)
            raise
        if listener is None:
            operation.ended()

    def _send_steps(
        self, producer: OpenProducer, envelope: PlainEnvelope, message: Message, listener: CompletionListener | None
    ) -> Steps[None]:
        link = self.link
        if listener is not None:
            self.rules.check_completion_listener()
        if link.delays_in_doubt and self._is_delayed(envelope):
            yield from try_delay_steps(link)
        yield from self.transaction.handle_steps()
        if not link.window.enter_at_once():
            yield from self._place_steps(link.options.send_timeout_ms / 1000)
        send = self.send(producer, envelope, message, listener, blocking=False)
        if send.awaited:
            yield from self.sends.answer_steps(send, link.options.send_timeout_ms / 1000, link.take_back)

    def _place_steps(self, timeout: float) -> Steps[None]:
        """Wait for a place of the window, and take it."""
        window = self.link.window
        place = window.place()
        try:
            yield self.link.awaiting(place, "send a message", timeout)
        except BaseException as error:
            if not place.cancel():
                window.leave()
            raise self._window_full() if isinstance(error, JMSException) else error from None

    def _is_delayed(self, envelope: PlainEnvelope) -> bool:
        return envelope.delivery_time > self.link.clock.now_ms()

    def _window_full(self) -> JMSException:
        options = self.link.options
        return JMSException(
            f"send a message: {options.max_in_flight} sends are still unanswered after {options.send_timeout_ms / 1000:.1f} s",
            "timeout",
        )

    def close_producer_steps(self, producer: OpenProducer) -> Steps[None]:
        """Close one producer: wait for what it sent and for its completion listeners (4.6.2.4-1)."""
        if producer.pending and self.sends.in_listener:
            raise IllegalStateException("close: a completion listener may not close its own producer, or one that waits for it")
        with self.state.lock:
            first, producer.closed = not producer.closed, True
            if self.state.closing:
                return
        link = self.link
        deadline = Deadline(link.options.close_timeout_ms)
        quiet = yield from self.sends.quiet_steps(deadline, producer)
        if not quiet:
            _log.warning("close of a producer: sends are still not confirmed")
        if not first:
            return
        self.producers.pop(producer, None)
        if link.lost is None:
            released = link.ask(lambda: link.provider.release(producer.handle))
            yield link.awaiting(released, "close a producer", deadline.remaining())

    # ---- starting, stopping, connections that are lost and made again ----------------------------------------------
    def set_flowing(self, flowing: bool) -> None:
        """Start or stop handing out."""
        state = self.state
        with state.lock:
            before, state.flowing = state.flowing, flowing and not state.closing
            if state.flowing is before:
                return
            state.changed.notify_all()
            if self.lender is not None:
                self.lender.flow_changed()

    def paused_steps(self, deadline: Deadline) -> Steps[bool]:
        """Wait until no listener runs and no receive has a message in flight; False when time is up."""
        idle = yield from self.dispatcher.idle_steps(deadline)
        if not idle:
            return False
        settled: bool = yield ConditionWait(self.state.changed, lambda: not self.in_flight, deadline.remaining())
        return settled

    def run(self, steps: Steps[T]) -> T:
        """Run an operation in the session's thread; see ``waiting.run``."""
        try:
            return run(steps)
        except BaseException as error:
            if not isinstance(error, Exception):
                self.after_interruption(())
            raise

    def after_interruption(self, taken: Iterable[Entry]) -> None:
        """Put the records right after a handler of a signal has ended a call of this session's thread, at any point.

        Args:
            taken: What the call has taken, and neither handed out nor acknowledged at the provider: it is handed out again.
        """
        state = self.state
        with state.lock:
            for entry in taken:
                self.ledger.restore(entry)
            if self.dispatcher.running is None and self.lender is None:
                # The interrupted call was the only one, so nothing is on its way.
                self.ledger.recount(state.consumers)
                for one in state.consumers.values():
                    one.receiving = 0
            consumers = list(state.consumers.values())
            state.changed.notify_all()
        for consumer in consumers:
            consumer.make_room()

    @property
    def in_flight(self) -> int:
        """How many deliveries are on their way to the application or back. With the lock held."""
        return self.ledger.in_flight(self.state.consumers, 0 if self.lender is None else len(self.lender.lent))

    def interrupted(self, cause: ProviderError) -> None:
        """The connection is lost and made again: forget what came by it. Called on a provider's thread."""
        state = self.state
        with state.lock:
            if self.lender is not None:
                self.lender.void()
            self._lost(state.ledger.interrupted(state.consumers), cause)
            state.changed.notify_all()

    def lost(self) -> None:
        """The connection is lost for good: what waits comes again by others. Called on a provider's thread."""
        state = self.state
        with state.lock:
            state.ledger.lost(state.consumers)
            state.changed.notify_all()

    def consumer_ended(self, inbox: Inbox, cause: ProviderError) -> None:
        """The broker has ended a consumer: what came by it goes to others. With the lock held."""
        if self.lender is not None and self.lender.receives_by(inbox):
            self.lender.void()
        if count := self.ledger.ended(inbox):
            self._lost(count, cause)
        self.state.changed.notify_all()

    def _lost(self, count: int, cause: ProviderError) -> None:
        if count and self.mode == TRANSACTED:
            self.state.deliveries_lost(cause)
        self.client.lost(count, cause)

    def left_behind(self) -> None:
        """Forget what threads of the parent were doing: this is a forked child, where none of them goes on. Takes no lock."""
        state = self.state
        free(state.lock)
        state.ledger.left_behind(state.consumers)
        for consumer in state.consumers.values():
            consumer.receiving = 0
        for producer in self.producers:
            producer.pending = 0
        self.sends.left_behind()
        self.dispatcher.left_behind()

    def resumed(self) -> None:
        """Everything is there again: let messages come, and end what only waited for its last message's outcome."""
        with self.state.lock:
            consumers = dict(self.state.consumers)
        for inbox, consumer in consumers.items():
            if inbox.idle:
                self.settlement.release(inbox)
            else:
                consumer.make_room()

    # ---- closing --------------------------------------------------------------------------------------------------
    def check_may_close(self, what: str) -> None:
        """Raise IllegalStateException inside a listener of this session: it would wait for itself (4.3.5-4, 4.4.1-4)."""
        if self.dispatcher.is_own_thread and self.dispatcher.running is not None:
            raise IllegalStateException(f"close: a message listener may not close its own {what}")
        if self.sends.in_listener:
            raise IllegalStateException(f"close: a completion listener may not close its own {what}")

    def begin_close(self) -> bool:
        """Let nothing new begin; False when another caller is closing already."""
        if self.lender is not None:
            self.lender.before_close()
        state = self.state
        with state.lock:
            if state.closing:
                return False
            state.closing = True
            state.flowing = False
            self.dispatcher.stop()
            return True

    def quiesce_steps(self, deadline: Deadline) -> Steps[None]:
        """Wait for listeners, pending receives, sends and completion listeners, in this order. After ``begin_close``.

        Message listeners come first: until the last has returned, they may send and so call for completion listeners.
        """
        state = self.state
        orderly = yield from self.dispatcher.idle_steps(deadline)
        received_all = yield ConditionWait(state.changed, self._all_received(), deadline.remaining())
        joined = yield from self.dispatcher.join_steps(deadline)
        quiet = yield from self.sends.quiet_steps(deadline)
        if not (orderly and received_all and joined and quiet):
            _log.warning("close: a listener or a send of %s is still under way; going on without it", state.name)

    def _all_received(self) -> Callable[[], bool]:
        """Return a predicate: no receive is pending. Asked after each that ends, it looks at all of them only at last."""
        state = self.state
        with state.lock:
            pending = deque(state.consumers.values())

        def holds() -> bool:
            while pending and not pending[0].receiving:
                pending.popleft()
            return not pending and not self.in_flight and not any(one.receiving for one in state.consumers.values())

        return holds

    def shut_steps(self, deadline: Deadline) -> Steps[None]:
        """Roll back and give everything back to the provider. After ``quiesce_steps``."""
        yield from self.sends.close_steps(deadline)
        link, state = self.link, self.state
        try:
            with state.turn:
                yield from self.transaction.abandon_steps(deadline.remaining() or 0.1)
        except JMSException as error:
            if link.lost is None:
                _log.warning("close: the open transaction could not be rolled back: %s", error)
        if link.capabilities.unused_credit_reorders:
            for consumer in list(state.consumers.values()):
                yield from consumer.stop_credit_steps(deadline.remaining() or 0.0)
        with state.lock:
            plan = state.ledger.close(list(state.consumers), broker_returns=link.capabilities.rollback_returns)
            consumers = list(state.consumers.values())
            state.consumers.clear()
        futures = [link.settle(tags, outcome, failures) for tags, outcome, failures in plan.outcomes()]
        if state.ledger.borrows:
            report_returned(plan.settled)
        if link.lost is None:
            futures += [consumer.let_go() for consumer in consumers]
            for handle in [*(producer.handle for producer in list(self.producers)), self.handle]:
                futures.append(link.ask(lambda handle=handle: link.provider.release(handle)))  # type: ignore[misc]
        for future in futures:
            if future is not None:
                try:
                    yield link.awaiting(future, "close a session", deadline.remaining() or 0.1)
                except JMSException as error:
                    if link.lost is None:
                        _log.warning("close: %s", error)
        for made in (*self.browsers, *self.producers, *consumers):
            made.closed = True
        for consumer in consumers:
            consumer.detach()
        self.connection.forget(self)
        with state.lock:
            state.closed = True
            state.changed.notify_all()

    def close_steps(self) -> Steps[None]:
        """Close the session; see Session."""
        state = self.state
        if state.closed:
            return
        self.check_may_close("session")
        deadline = Deadline(self.link.options.close_timeout_ms)
        if self.begin_close():
            yield from self.quiesce_steps(deadline)
            yield from self.shut_steps(deadline)
        else:
            yield ConditionWait(state.changed, lambda: state.closed, deadline.remaining())

    def pause_steps(self) -> Steps[None]:
        """Wait before what was handed out again is taken: longer each time that it fails, so that nobody turns in a fast loop.

        What has failed once comes at once. Who closes the session ends the wait. Not with the lock of a transaction's end held.
        """
        state, ledger = self.state, self.ledger
        repeats, ledger.repeats = ledger.repeats, 0
        longest_ms = 0 if self.link.capabilities.redelivery_policy else self.link.options.redelivery_delay_ms
        if repeats < 2 or not longest_ms:
            return
        # Beyond the longest wait no power is needed, and a large one would be an error.
        seconds = min(longest_ms, _FIRST_PAUSE_MS * 2 ** min(repeats - 2, 32)) / 1000
        yield ConditionWait(state.changed, lambda: state.closing or self.link.lost is not None, seconds)

    def recover_steps(self) -> Steps[None]:
        """Hand out again what is delivered and not acknowledged; see Session."""
        redelivery = BrokerRedelivery(self.state, self.settlement)
        if sources := redelivery.sources():
            yield from redelivery.recover_steps(sources)
            return
        with self.state.lock:
            plan: SettlementPlan = self.ledger.recover()
        yield from self.settlement.carry_out_steps(plan)
        yield from self.pause_steps()


def handed(entry: Entry) -> Handed:
    """Return what telemetry is told of an entry that is handed out."""
    return Handed(entry.delivery.envelope, entry.delivery.delivery_count + entry.extra)


def unreadable(entry: Entry) -> ProviderError | None:
    """Return why not even the kind of a message can be told; None when it can."""
    try:
        entry.delivery.envelope.kind  # noqa: B018
    except ProviderError as error:
        return error
    return None
