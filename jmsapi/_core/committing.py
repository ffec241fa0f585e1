"""How a session's transaction ends: committed, rolled back, or in doubt.

Spec: 4.4.7-2, 4.4.7-5, 4.4.7-7.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from jmsapi._core.waiting import Deadline
from jmsapi.errors import JMSException, TransactionRolledBackException
from jmsapi.spi import Outcome

if TYPE_CHECKING:
    from jmsapi._core.session import SessionImpl
    from jmsapi._core.transaction import LocalTransaction
    from jmsapi.spi import Handle, Tag

__all__ = ["commit", "enlist", "rollback"]

_log: Final = logging.getLogger("jmsapi")


def enlist(session: SessionImpl) -> None:
    """Accept what is held under the running transaction now, since the broker stops at a window of unsettled ones."""
    try:
        tx = session.transaction.handle()
    except JMSException as error:
        # The commit will meet the same trouble, and says so.
        _log.debug("%s: %s", session.name, error)
        return
    with session.lock:
        tags = session.ledger.enlist()
    if tags:
        session.link.ask(lambda: session.link.provider.settle(tags, Outcome.ACCEPTED, tx))


def commit(session: SessionImpl, transaction: LocalTransaction) -> None:
    """Commit; see Session.

    Raises:
        TransactionRolledBackException: A message was not sent, the link was lost during the transaction, or the broker
            rolled it back.
        JMSException: Code ``in-doubt``: whether it is committed is not known.
    """
    _await_sends(session, "commit")
    failure = session.outbox.take_failure()
    with session.lock:
        broken = session.interruptions.take_broken()
    tx: Handle | None = None
    tags: list[Tag] = []
    if failure is None and broken is None and (transaction.used or session.ledger.unsettled):
        # Where none can be begun nothing has happened, and all can be tried again.
        tx = transaction.handle()
        with session.lock:
            # In one look: of what is lost from now on the provider tells when this transaction ends.
            broken = session.interruptions.take_broken()
            if broken is None:
                tags = session.ledger.enlist()
    if broken is not None:
        _roll_back(session, transaction)
        raise TransactionRolledBackException(
            f"commit: the link or a consumer was lost during the transaction ({broken.message}), so all of it is rolled back; "
            "what was received in it comes again"
        ) from broken
    if failure is not None:
        _roll_back(session, transaction)
        raise TransactionRolledBackException(
            f"commit: a message of the transaction was not sent ({failure}), so all of it is rolled back"
        ) from failure
    if tx is None:
        return
    try:
        transaction.commit(tx, tags)
    except TransactionRolledBackException:
        _hand_out_again(session)
        raise
    except BaseException:
        # The outcome is not known, also where somebody interrupted the wait. Neither settle nor hand out again: what was not
        # committed comes from the broker.
        _settled(session)
        raise
    else:
        _settled(session)
    finally:
        # A break since then concerns a transaction whose outcome is told already.
        with session.lock:
            session.interruptions.take_broken()


def rollback(session: SessionImpl, transaction: LocalTransaction) -> None:
    """Roll back and hand out again what was received; see Session.

    Raises:
        JMSException: ``timeout``: sends are still not confirmed, which are rolled back all the same; or the broker did not
            confirm the rollback. What was received is handed out again in any case.
    """
    late: JMSException | None = None
    try:
        _await_sends(session, "rollback")
    except JMSException as error:
        late = error
    session.outbox.take_failure()
    with session.lock:
        session.interruptions.take_broken()
    _roll_back(session, transaction)
    if late is not None:
        raise JMSException(f"{late}; all of it is rolled back", late.error_code) from late


def _settled(session: SessionImpl) -> None:
    with session.lock:
        plan = session.ledger.committed()
    session.carry_out(plan)


def _roll_back(session: SessionImpl, transaction: LocalTransaction) -> None:
    try:
        transaction.rollback()
    finally:
        # Whatever the broker has made of it: a later commit must not consume what was to be rolled back.
        _hand_out_again(session)


def _hand_out_again(session: SessionImpl) -> None:
    with session.lock:
        plan = session.ledger.rolled_back(broker_returns=session.link.capabilities.rollback_returns)
    session.carry_out(plan)


def _await_sends(session: SessionImpl, asked: str) -> None:
    timeout_ms = session.link.options.send_timeout_ms
    if not session.outbox.quiet(Deadline(timeout_ms)):
        raise JMSException(f"{asked}: sends are still not confirmed after {timeout_ms} ms", "timeout")
