"""Where a dead letter was: what Artemis says over each wire, and what is made of it."""

from __future__ import annotations

import pytest

from jmsapi_brokers.dead_letters import is_mark, notes_of, origin_of
from jmsapi_stomp.properties import property_lines, read_properties

TOLD = {"JMS_PY_type": "Text", "_AMQ_ORIG_QUEUE": "orders", "_AMQ_ORIG_ADDRESS": "orders", "_AMQ_ORIG_MESSAGE_ID": "7"}


def test_of_the_brokers_headers_those_of_a_dead_letter_are_properties() -> None:
    assert read_properties(TOLD) == {"_AMQ_ORIG_QUEUE": "orders", "_AMQ_ORIG_ADDRESS": "orders"}


def test_the_brokers_word_counts_not_a_senders() -> None:
    (line,) = property_lines({"_AMQ_ORIG_QUEUE": "payroll"}).splitlines()
    header, _, text = line.partition(":")
    assert (header, text) == ("JMS_PY_p__AMQ_ORIG_QUEUE", "payroll")
    for headers in ({**TOLD, header: text}, {header: text, **TOLD}):
        assert read_properties(headers)["_AMQ_ORIG_QUEUE"] == "orders"
    assert read_properties({"JMS_PY_type": "Text", header: text}) == {"_AMQ_ORIG_QUEUE": "payroll"}


def test_rabbitmq_notes_the_last_death_unless_it_was_the_end_of_a_delay() -> None:
    delay = {"x-last-death-queue": "jmsapi.delay.100.q.orders", "x-last-death-reason": "expired"}
    death = {"x-last-death-queue": "orders", "x-last-death-reason": "rejected"}
    assert notes_of({**delay, "x-opt-jms-dest": 0}) == {}
    assert notes_of(death) == death
    due = {"JMS_PY_type": "Text", "JMS_PY_due": "1"}
    assert read_properties({**due, **delay}) == {}
    assert read_properties({**due, **death}) == death


@pytest.mark.parametrize(
    ("properties", "origin"),
    [
        ({}, None),
        ({"_AMQ_ORIG_QUEUE": "orders", "_AMQ_ORIG_ADDRESS": "orders"}, "orders"),
        ({"_AMQ_ORIG_QUEUE": "me.sub", "_AMQ_ORIG_ADDRESS": "news"}, None),
        ({"_AMQ_ORIG_ADDRESS": "orders"}, "orders"),
        ({"original-destination": "/queue/orders"}, "orders"),
        ({"jmsapi_dead_letter_origin": "orders", "_AMQ_ORIG_QUEUE": "me.sub", "_AMQ_ORIG_ADDRESS": "news"}, "orders"),
        ({"original-destination": 7}, None),
        ({"x-first-death-queue": "jmsapi.delay.100.q.orders", "x-last-death-queue": "orders"}, "orders"),
        ({"x-last-death-queue": "jms.d.me.news"}, None),
    ],
)
def test_the_origin_is_a_queue_or_nothing(properties: dict[str, object], origin: str | None) -> None:
    assert origin_of(properties) == origin


def test_what_only_dead_letters_have() -> None:
    assert all(map(is_mark, ("_AMQ_ORIG_QUEUE", "jmsapi_dead_letter_message_id", "dlqDeliveryFailureCause")))
    assert all(map(is_mark, ("x-last-death-exchange", "x-first-death-reason", "x-death", "originalExpiration")))
    assert not any(map(is_mark, ("orders", "JMSXGroupID", "_AMQ_DUPL_ID")))
