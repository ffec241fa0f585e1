"""A session's transaction: begun at the broker when first needed, committed or rolled back, and begun again behind that.

A session talks to one of these and never asks whether it is transacted. Why a transaction can only be rolled back is recorded in
one place, ``SessionState.rollback_only``, by whoever meets the reason: a send that failed, a connection or a consumer that was
lost with deliveries. Providers only fail ``settle`` and ``end``.

Only one thread uses a session, and closing waits for it, so the fields here need no lock.

Spec: 4.4.7-2, 4.4.7-5, 4.4.7-7.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final, Protocol

from jmsapi._core.acknowledgement.broker_redelivery import BrokerRedelivery
from jmsapi._core.acknowledgement.ledger import Entry, Inbox, SettlementPlan
from jmsapi._core.acknowledgement.settlement import Settlement
from jmsapi._core.errors_map import jms_error
from jmsapi._core.pending_sends import PendingSends
from jmsapi._core.session_state import RollbackReason, SessionState
from jmsapi._core.telemetry import observed_steps
from jmsapi._core.waiting import Deadline, Steps, run
from jmsapi.errors import JMSException, TransactionRolledBackException
from jmsapi.spi import Envelope, Handle, Outcome, ProviderError, Tag

__all__ = ["LocalTransaction", "NoTransaction", "SessionTransaction"]

_log: Final = logging.getLogger("jmsapi")


class SessionTransaction(Protocol):
    """The transactions of one session, as its other parts see them."""

    def handle(self) -> Handle | None:
        """Return the provider's transaction, beginning it if none is open; None where sends and acks stand for themselves.

        Raises:
            JMSException: The broker refused, or did not answer in time.
        """
        ...

    def handle_steps(self) -> Steps[Handle | None]:
        """See ``handle``."""
        ...

    @property
    def is_begun(self) -> bool:
        """Whether ``handle`` has nothing to wait for."""
        ...

    def check_may_listen(self) -> None:
        """Raise IllegalStateException when the session takes no message listeners."""

    def enlist(self) -> None:
        """Accept what is held under the running transaction now, since the broker stops at a window of unsettled ones."""

    def abandon_steps(self, timeout: float) -> Steps[None]:
        """Roll back at the end of the session, also a transaction begun ahead.

        Args:
            timeout: Seconds to wait for it; the end of the session, which comes next, rolls back too.
        """
        ...


class NoTransaction:
    """The transaction policy of a session without transactions."""

    def handle(self) -> Handle | None:
        """Return None: sends and acks stand for themselves."""
        return None

    def handle_steps(self) -> Steps[Handle | None]:
        """Return what ``handle`` returns, which needs no wait."""
        return self.handle()
        yield

    @property
    def is_begun(self) -> bool:
        """Whether there is nothing to wait for: always."""
        return True

    def check_may_listen(self) -> None:
        """Allow it."""

    def enlist(self) -> None:
        """Do nothing: each acknowledgement stands for itself."""

    def abandon_steps(self, timeout: float) -> Steps[None]:
        """Do nothing: there is nothing open."""
        return
        yield


class LocalTransaction:
    """The running transaction of one transacted session.

    Args:
        state: The session's.
        settlement: The session's.
        sends: The session's.
        session: The provider's session.
    """

    def __init__(self, state: SessionState, settlement: Settlement, sends: PendingSends, session: Handle) -> None:
        self._state = state
        self._settlement = settlement
        self._sends = sends
        self._session = session
        self._redelivery = BrokerRedelivery(state, settlement)
        self._begun: Future[Handle] | None = None
        self._running: Handle | None = None
        """The handle of the transaction that runs, once the provider has answered."""
        self._used = False
        """Something has been done under it."""

    # ---- beginning ------------------------------------------------------------------------------------------------
    def handle(self) -> Handle:
        """Return the provider's transaction, beginning it if none is open; see SessionTransaction."""
        if self._running is not None:
            self._used = True
            return self._running
        return run(self.handle_steps())

    @property
    def is_begun(self) -> bool:
        """Whether a transaction is begun, and the provider has answered."""
        return self._running is not None

    def handle_steps(self) -> Steps[Handle]:
        """See ``handle``."""
        self._used = True
        if self._running is not None:
            return self._running
        link = self._state.link
        if self._begun is None:
            self._begun = link.ask(lambda: link.provider.begin(self._session))
        begun = self._begun
        try:
            running: Handle = yield link.awaiting(begun, "begin a transaction")
        except Exception:
            # Who only stops waiting leaves it to the next call, which needs one too.
            self._begun = None
            raise
        self._running = running
        return running

    def check_may_listen(self) -> None:
        """Allow it."""

    def enlist(self) -> None:
        """Accept what is held under the running transaction now; see SessionTransaction."""
        state = self._state
        try:
            tx = self.handle()
        except JMSException as error:
            # The commit will meet the same trouble, and raises it.
            _log.debug("%s: %s", state.name, error)
            return
        with state.lock:
            tags = state.ledger.enlist()
        if not tags:
            return
        settled = state.link.ask(lambda: state.link.provider.settle(tags, Outcome.ACCEPTED, tx))
        # What is refused later the provider reports by the end of the transaction, which may be another one by then.
        refused = settled.exception() if settled.done() else None
        if isinstance(refused, ProviderError):
            with state.lock:
                state.deliveries_lost(refused)

    # ---- ending ---------------------------------------------------------------------------------------------------
    def commit_steps(self) -> Steps[None]:
        """Commit; see Session.

        Raises:
            TransactionRolledBackException: A message was not sent, the connection was lost during the transaction, or the broker
                rolled it back.
            JMSException: Code ``in-doubt``: whether it is committed is not known.
        """
        telemetry = self._state.link.telemetry
        if telemetry is not None:
            return observed_steps(lambda: telemetry.settling("commit", self._delivered()), self._commit_steps())
        return self._commit_steps()

    def _delivered(self) -> list[Envelope]:
        with self._state.lock:
            return self._state.ledger.delivered()

    def _commit_steps(self) -> Steps[None]:
        state = self._state
        if not self._sends.quiet:
            yield from self._await_sends("commit")
        reason = state.take_rollback_only()
        tx: Handle | None = None
        tags: list[Tag] = []
        if reason is None and (self._used or state.ledger.unsettled):
            # Where none can be begun nothing has happened, and all can be tried again.
            tx = self._running or (yield from self.handle_steps())
            with state.lock:
                # Under one lock: what is lost from now on makes the provider fail the end of this transaction.
                reason, state.rollback_only = state.rollback_only, None
                if reason is None:
                    tags = state.ledger.enlist()
        if reason is not None:
            try:
                yield from self._roll_back()
            except JMSException as late:
                # With a connection that is gone the broker rolls back by itself: nobody has asked it to commit.
                if late.error_code != "connection":
                    raise
            raise TransactionRolledBackException(f"commit: {_in_words(reason)}") from _cause(reason)
        if tx is None:
            return
        try:
            yield from self._commit(tx, tags)
        except TransactionRolledBackException:
            yield from self._settlement.carry_out_steps(self._rolled_back())
            raise
        except BaseException:
            # The outcome is not known, also where somebody interrupted the wait. Neither settle nor hand out again: what was not
            # committed comes from the broker.
            self._settlement.carry_out_soon(self._committed())
            raise
        else:
            yield from self._settlement.carry_out_steps(self._committed())
        finally:
            # A loss since then concerns a transaction whose outcome is known already.
            state.take_rollback_only()

    def rollback_steps(self) -> Steps[None]:
        """Roll back and hand out again what was received; see Session.

        Raises:
            JMSException: ``timeout``: sends are still not confirmed, which are rolled back all the same; or the broker did not
                confirm the rollback. What was received is handed out again in any case.
        """
        telemetry = self._state.link.telemetry
        if telemetry is not None:
            return observed_steps(lambda: telemetry.settling("rollback", self._delivered()), self._rollback_steps())
        return self._rollback_steps()

    def _rollback_steps(self) -> Steps[None]:
        late: JMSException | None = None
        try:
            yield from self._await_sends("rollback")
        except JMSException as error:
            late = error
        self._state.take_rollback_only()
        yield from self._roll_back()
        if late is not None:
            raise JMSException(f"{late}; all of it is rolled back", late.error_code) from late

    def undo_steps(self) -> Steps[None]:
        """Roll back what was sent; what was received stays delivered.

        Raises:
            JMSException: ``timeout``: sends are still not confirmed, and nothing is rolled back; or the broker did not confirm.
        """
        telemetry = self._state.link.telemetry
        if telemetry is not None:
            return observed_steps(lambda: telemetry.settling("rollback", self._delivered()), self._undo_steps())
        return self._undo_steps()

    def _undo_steps(self) -> Steps[None]:
        yield from self._await_sends("rollback")
        self._state.take_rollback_only()
        yield from self._end_used()

    def commit_entries_steps(self, entries: Sequence[Entry]) -> Steps[None]:
        """Commit if these entries can still be accepted, else roll back; see ``commit_steps``."""
        state = self._state
        with state.lock:
            whole = all(map(state.ledger.holds, entries))
        if whole:
            yield from self.commit_steps()
            return
        reason = state.take_rollback_only()
        yield from self.rollback_steps()
        raise TransactionRolledBackException(
            "commit: the connection was lost since a message of the transaction was received, so all of it is rolled back; "
            "what was received in it comes again"
        ) from (None if reason is None else _cause(reason))

    def abandon_steps(self, timeout: float) -> Steps[None]:
        """Roll back at the end of the session; see SessionTransaction."""
        begun, self._begun, self._running, self._used = self._begun, None, None, False
        if begun is not None:
            link = self._state.link
            tx = yield link.awaiting(begun, "begin a transaction", timeout)
            yield link.awaiting(link.ask(lambda: link.provider.end(tx, commit=False)), "roll back", timeout)

    def _commit(self, tx: Handle, tags: list[Tag]) -> Steps[None]:
        """Accept the deliveries under the transaction and commit it; the next one begins behind it."""
        link = self._state.link
        settled = link.ask(lambda: link.provider.settle(tags, Outcome.ACCEPTED, tx)) if tags else None
        if settled is not None and settled.done() and (refused := settled.exception()) is not None:
            yield from self._end(tx, commit=False)
            text = f"commit: what was received cannot be accepted, so all of it is rolled back: {refused}"
            raise TransactionRolledBackException(text) from refused
        yield from self._end(tx, commit=True)
        if settled is not None:
            try:
                yield link.awaiting(settled, "acknowledge in the transaction")
            except GeneratorExit:
                raise
            except BaseException as given_up:
                if isinstance(given_up, Exception):
                    raise
                raise given_up from JMSException("commit: the transaction is committed", "done")

    def _roll_back(self) -> Steps[None]:
        sources = self._redelivery.sources()
        try:
            if sources:
                yield from self._hand_to_broker(sources)
            yield from self._end_used()
        except BaseException:
            # Whatever the broker has made of it: a later commit must not consume what was to be rolled back.
            self._settlement.carry_out_soon(self._rolled_back())
            raise
        yield from self._settlement.carry_out_steps(self._rolled_back())
        if sources:
            yield from self._redelivery.release_behind_steps(sources)

    def _hand_to_broker(self, sources: list[Inbox]) -> Steps[None]:
        """Accept what was received in the transaction that is rolled back: the broker counts it, and decides what follows."""
        state, link = self._state, self._state.link
        yield from self._redelivery.stop_steps(sources)
        tx = yield from self.handle_steps()
        with state.lock:
            tags = state.ledger.enlist()
        # What cannot be accepted has gone back already.
        link.ask(lambda: link.provider.settle(tags, Outcome.ACCEPTED, tx))

    def _end_used(self) -> Steps[None]:
        if self._used:
            tx = yield from self.handle_steps()
            yield from self._end(tx, commit=False)

    def _end(self, tx: Handle, *, commit: bool) -> Steps[None]:
        link = self._state.link
        self._running, self._used = None, False
        ended = link.ask(lambda: link.provider.end(tx, commit=commit))
        # The next one is asked for before the answer is here: one round trip a transaction, not two.
        self._begun = None if link.lost else link.ask(lambda: link.provider.begin(self._session))
        try:
            yield link.awaiting(ended, "commit" if commit else "roll back")
        except JMSException as error:
            if commit and error.error_code == "timeout":
                raise JMSException(f"{error}; the transaction may or may not be committed", "in-doubt") from error
            raise
        except GeneratorExit:
            raise
        except BaseException as given_up:
            if not commit or isinstance(given_up, Exception):
                raise
            text = "commit: the wait for the answer was given up; the transaction may or may not be committed"
            raise given_up from JMSException(text, "in-doubt")

    def _committed(self) -> SettlementPlan:
        with self._state.lock:
            return self._state.ledger.committed()

    def _rolled_back(self) -> SettlementPlan:
        state = self._state
        with state.lock:
            return state.ledger.rolled_back(broker_returns=state.link.capabilities.rollback_returns)

    def _await_sends(self, asked: str) -> Steps[None]:
        timeout_ms = self._state.link.options.send_timeout_ms
        quiet = yield from self._sends.quiet_steps(Deadline(timeout_ms))
        if not quiet:
            raise JMSException(f"{asked}: sends are still not confirmed after {timeout_ms} ms", "timeout")


def _cause(reason: RollbackReason) -> JMSException:
    """Return what went wrong as an exception that applications know, which tells them whether another try may help."""
    return jms_error(reason.cause, "receive" if reason.deliveries_lost else "send a message")


def _in_words(reason: RollbackReason) -> str:
    cause = reason.cause
    if reason.deliveries_lost:
        why = getattr(cause, "message", str(cause))
        return (
            f"the connection or a consumer was lost during the transaction ({why}), so all of it is rolled back; "
            "what was received in it comes again"
        )
    return f"a message of the transaction was not sent ({cause}), so all of it is rolled back"
