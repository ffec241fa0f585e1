"""The capability tables in the documentation are what the brokers answer."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import fields
from pathlib import Path

from jmsapi.spi import Capabilities
from jmsapi_conformance.brokers import Broker

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


def test_the_tables_say_what_the_brokers_answer(artemis: Broker, classic: Broker, rabbitmq: Broker) -> None:
    brokers = {"artemis": artemis, "classic": classic, "rabbitmq": rabbitmq}
    urls = {(kind, wire): broker.url(wire) for kind, broker in brokers.items() for wire in capability_table.WIRES}
    for path, text in capability_table.pages(urls).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: python tests/docs/capability_table.py"
