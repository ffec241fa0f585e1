"""The ledger where the broker hands out again what failed: its count decides when the limit is reached."""

from __future__ import annotations

import pytest

from jmsapi._core.acknowledgement.ledger import AUTO, CLIENT, DUPS_OK, TRANSACTED, Inbox, Ledger
from jmsapi.spi import Address, Delivery, DestinationKind, MessageKind, PlainEnvelope, Tag

ENVELOPE = PlainEnvelope(MessageKind.MESSAGE, Address(DestinationKind.QUEUE, "q"))


@pytest.mark.parametrize("mode", [AUTO, DUPS_OK])
@pytest.mark.parametrize(("limit", "count", "given_up"), [(2, 1, 0), (2, 2, 0), (2, 3, 1), (0, 1, 1), (-1, 1, 0), (-1, 9, 0)])
def test_what_a_listener_failed_on_goes_back_until_the_broker_has_counted_to_the_limit(
    mode: int, limit: int, count: int, given_up: int
) -> None:
    ledger, inbox, tag = Ledger(mode, max_redeliveries=limit, batch=10), Inbox(), Tag()
    ledger.file(inbox, [Delivery(tag, ENVELOPE, count)], 0.0)
    entry = ledger.take(inbox)
    assert entry is not None
    plan = ledger.listener_failed_at_broker(entry)
    assert (plan.rejected, plan.failed) == (([tag], []) if given_up else ([], [tag]))
    assert plan.accepted == plan.released == []


@pytest.mark.parametrize("mode", [CLIENT, TRANSACTED])
def test_what_the_application_acknowledges_itself_stays_with_it(mode: int) -> None:
    ledger, inbox = Ledger(mode, max_redeliveries=0, batch=10), Inbox()
    ledger.file(inbox, [Delivery(Tag(), ENVELOPE, 5)], 0.0)
    entry = ledger.take(inbox)
    assert entry is not None
    plan = ledger.listener_failed_at_broker(entry)
    assert plan.rejected == plan.failed == plan.accepted == plan.released == []
