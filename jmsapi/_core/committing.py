"""How a session's transaction ends: committed, rolled back, or in doubt.

Spec: 4.4.7-2, 4.4.7-5, 4.4.7-7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi._core.waiting import Deadline
from jmsapi.errors import JMSException, TransactionRolledBackException

if TYPE_CHECKING:
    from jmsapi._core.session import SessionImpl
    from jmsapi._core.transaction import LocalTransaction

__all__ = ["commit", "rollback"]


def commit(session: SessionImpl, transaction: LocalTransaction) -> None:
    """Commit; see Session.

    Raises:
        TransactionRolledBackException: A message was not sent, the link was lost during the transaction, or the broker
            rolled it back.
        JMSException: Code ``in-doubt``: whether it is committed is not known.
    """
    _await_sends(session, "commit")
    failure = session.outbox.take_failure()
    broken = session.interruptions.take_broken()
    if broken is not None:
        _roll_back(session, transaction)
        raise TransactionRolledBackException(
            f"commit: the link was lost during the transaction ({broken.message}), so all of it is rolled back; "
            "what was received in it comes again"
        ) from broken
    if failure is not None:
        _roll_back(session, transaction)
        raise TransactionRolledBackException(
            f"commit: a message of the transaction was not sent ({failure}), so all of it is rolled back"
        ) from failure
    with session.lock:
        tags = session.ledger.held()
    try:
        transaction.commit(tags)
    except TransactionRolledBackException:
        _hand_out_again(session)
        raise
    except JMSException:
        # The outcome is not known. Neither settle nor hand out again: what was not committed comes from the broker.
        _settled(session)
        raise
    else:
        _settled(session)
    finally:
        # A break since then concerns a transaction whose outcome is told already.
        session.interruptions.take_broken()


def rollback(session: SessionImpl, transaction: LocalTransaction) -> None:
    """Roll back and hand out again what was received; see Session."""
    _await_sends(session, "rollback")
    session.outbox.take_failure()
    session.interruptions.take_broken()
    _roll_back(session, transaction)


def _settled(session: SessionImpl) -> None:
    with session.lock:
        plan = session.ledger.committed()
    session.carry_out(plan)


def _roll_back(session: SessionImpl, transaction: LocalTransaction) -> None:
    transaction.rollback()
    _hand_out_again(session)


def _hand_out_again(session: SessionImpl) -> None:
    with session.lock:
        plan = session.ledger.rolled_back(broker_returns=session.link.capabilities.rollback_returns)
    session.carry_out(plan)


def _await_sends(session: SessionImpl, asked: str) -> None:
    timeout_ms = session.link.options.send_timeout_ms
    if not session.outbox.quiet(Deadline(timeout_ms)):
        raise JMSException(f"{asked}: sends are still not confirmed after {timeout_ms} ms", "timeout")
