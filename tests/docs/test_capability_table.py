"""The capability tables in the documentation are what the brokers answer."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from jmsapi.spi import Capabilities

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


@pytest.mark.broker
def test_the_tables_say_what_the_brokers_answer(
    amqp_artemis_url: str,
    amqp_classic_url: str,
    amqp_rabbitmq_url: str,
    stomp_artemis_url: str,
    stomp_classic_url: str,
    stomp_rabbitmq_url: str,
) -> None:
    urls = {
        ("artemis", "amqp"): amqp_artemis_url,
        ("classic", "amqp"): amqp_classic_url,
        ("rabbitmq", "amqp"): amqp_rabbitmq_url,
        ("artemis", "stomp"): stomp_artemis_url,
        ("classic", "stomp"): stomp_classic_url,
        ("rabbitmq", "stomp"): stomp_rabbitmq_url,
    }
    for path, text in capability_table.pages(urls).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: python tests/docs/capability_table.py"
