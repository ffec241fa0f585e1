"""How a session ends: wait for what runs, roll back, give everything back to the provider.

The steps are apart because a connection takes each of them for all its sessions before the next: a listener that still runs
may use every session of its connection until it returns (4.3.5-2).

Spec: 4.3.5-1 to 4.3.5-8, 4.4.1-1 to 4.4.1-8, 4.6.2.4-1.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from jmsapi._core.consumer import ConsumerImpl
    from jmsapi._core.session import SessionImpl
    from jmsapi._core.waiting import Deadline

__all__ = ["quiesce", "shut"]

_log = logging.getLogger("jmsapi")


def quiesce(session: SessionImpl, deadline: Deadline) -> None:
    """Wait for listeners, pending receives, sends and completion listeners, in this order. After ``begin_close``.

    Message listeners come first: until the last has returned, they may send and so call for completion listeners.
    """
    with session.lock:
        orderly = session.dispatcher.idle(deadline)
        orderly = (
            session.changed.wait_for(
                lambda: not session.in_hand and not any(one.receiving for one in session.consumers.values()),
                deadline.remaining(),
            )
            and orderly
        )
    orderly = session.dispatcher.join(deadline) and orderly
    orderly = session.outbox.quiet(deadline) and orderly
    if not orderly:
        _log.warning("close: a listener or a send of %s is still under way; going on without it", session.name)


def shut(session: SessionImpl, deadline: Deadline) -> None:
    """Roll back and give everything back to the provider. After ``quiesce``."""
    session.outbox.close(deadline)
    link = session.link
    try:
        with session.turn:
            session.transaction.abandon(deadline.remaining() or 0.1)
    except JMSException as error:
        if link.lost is None:
            _log.warning("close: the open transaction could not be rolled back: %s", error)
    with session.lock:
        plan = session.ledger.close(list(session.consumers), broker_returns=link.capabilities.rollback_returns)
        consumers = list(session.consumers.values())
        session.consumers.clear()
    futures = [link.settle(tags, outcome, failures) for tags, outcome, failures in plan.outcomes()]
    if link.lost is None:
        futures += _release(session, consumers)
    for future in futures:
        if future is not None:
            try:
                link.wait(future, "close a session", deadline.remaining() or 0.1)
            except JMSException as error:
                if link.lost is None:
                    _log.warning("close: %s", error)
    for browser in list(session.browsers):
        browser.closed = True
    for producer in list(session.producers):
        producer.closed = True
    for consumer in consumers:
        consumer.closed = True
        consumer.detach()
    session.connection.forget(session)
    with session.lock:
        session.closed = True
        session.changed.notify_all()


def _release(session: SessionImpl, consumers: list[ConsumerImpl]) -> list[Future[None] | None]:
    link = session.link
    released = [consumer.let_go() for consumer in consumers]
    handles = [*(producer.handle for producer in list(session.producers)), session.handle]
    return released + [link.ask(lambda handle=handle: link.provider.release(handle)) for handle in handles]  # type: ignore[misc]
