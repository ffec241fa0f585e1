"""A receiver that lends its deliveries: when the consumer at the provider may end."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from jmsapi._core.acknowledgement.ledger import Entry, Inbox
from jmsapi._core.acknowledgement.lending import Lender


def test_a_closed_consumer_ends_when_the_last_that_it_has_lent_is_settled_and_not_before() -> None:
    released: list[Inbox] = []
    heard: list[int] = []
    state: Any = SimpleNamespace(lock=threading.Lock(), changed=SimpleNamespace(notify_all=lambda: None))
    settlement: Any = SimpleNamespace(release=released.append)
    lender = Lender(state, settlement, lambda: heard.append(len(released)))
    inbox = Inbox()
    lender.consumer = SimpleNamespace(inbox=inbox)  # type: ignore[assignment]
    delivery: Any = None
    first, second = Entry(inbox, delivery, 0.0), Entry(inbox, delivery, 0.0)
    lender.lend([first, second])
    lender.returned([first])
    assert released == []  # it is open, and takes more
    third = Entry(inbox, delivery, 0.0)
    lender.lend([third])
    inbox.closed = True
    lender.returned([second])
    assert released == []  # one is still with a borrower
    lender.returned([third])
    assert released == [inbox]
    assert heard == [0, 0, 1]
