"""The capability tables in the documentation are what the brokers answer."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import fields
from pathlib import Path

from jmsapi.spi import Capabilities, Support
from jmsapi_conformance.brokers import Broker
from jmsapi_conformance.document import read
from jmsapi_conformance.levels import LEVELS
from jmsapi_conformance.verdicts import Verdict

STALE = "the certificate is of an earlier provider: make certify"

_spec = importlib.util.spec_from_file_location("capability_table", Path(__file__).with_name("capability_table.py"))
assert _spec is not None
assert _spec.loader is not None
capability_table = importlib.util.module_from_spec(_spec)
sys.modules["capability_table"] = capability_table
_spec.loader.exec_module(capability_table)


def test_every_capability_has_a_row() -> None:
    known = Capabilities("p", "b").supports()
    assert set(capability_table.TITLES) == set(known)
    assert len(fields(Capabilities)) > len(known)


def test_a_broker_that_knows_duplicates_says_by_which_property(artemis: Broker, classic: Broker, rabbitmq: Broker) -> None:
    for broker in (artemis, classic, rabbitmq):
        for wire in capability_table.WIRES:
            has = capability_table.asked(broker.url(wire))
            assert bool(has.duplicate_detection) == (has.duplicate_property is not None), broker.kind


def test_the_certificates_are_whole_and_of_this_level() -> None:
    files = [read(path) for path in capability_table.CERTIFICATES.glob("*.json")]
    assert {document.suite.level for document in files} == {LEVELS[-1]}
    columns = capability_table.certificates()
    whole = [column for document in files for column in document.certificates]
    assert len(columns) == sum(not column.variant for column in whole) == 7
    for title, column in capability_table.certificates_with_options().items():
        assert not column.selection, title
    for title, column in columns.items():
        assert not column.selection, title
        assert len(column.requirements) > 800, title


def test_the_certificates_of_further_brokers_are_whole() -> None:
    columns = capability_table.further()
    assert list(columns) == ["Apache Qpid Broker-J AMQP"]
    for title, column in columns.items():
        assert not column.selection, title
        assert len(column.requirements) > 800, title
        assert Verdict.FAIL not in column.verdicts().values(), title


def test_the_certificate_says_what_the_broker_in_the_process_answers() -> None:
    assert capability_table.asked("inproc://capabilities").supports() == claimed("in process"), STALE


def test_the_certificates_say_what_the_brokers_answer(artemis: Broker, classic: Broker, rabbitmq: Broker) -> None:
    for broker in (artemis, classic, rabbitmq):
        for wire in capability_table.WIRES:
            title = capability_table.heading(broker.kind, wire)
            assert capability_table.asked(broker.url(wire)).supports() == claimed(title), f"{title}: {STALE}"


def claimed(title: str) -> dict[str, Support]:
    has: Capabilities = capability_table.claims(capability_table.certificates()[title])
    return dict(has.supports())
