"""The HTML report of certificates in short, and of many columns."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from jmsapi_conformance.document import Column, Document, JudgedTest, Suite
from jmsapi_conformance.html import render
from jmsapi_conformance.verdicts import Verdict

WHOLE = Column(
    url="amqp://***@broker",
    provider="amqp",
    broker="artemis",
    broker_version="9.8",
    seconds=279.0,
    tests=(JudgedTest("ch04_7_delivery_mode.py::test_x", ("4.7-1",), Verdict.REFUSED, "no such thing"),),
)


def page(*columns: Column) -> str:
    return render(Document(1, Suite("0.9", "2026.1"), columns))


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_certificate_in_short_is_not_said_to_be_of_no_tests() -> None:
    text = page(WHOLE, WHOLE.without_tests())
    assert "1 tests in 279 s" in text
    assert "verdicts without their tests" in text
    assert "0 tests" not in text


def test_the_page_knows_which_columns_have_verdicts_only() -> None:
    text = page(WHOLE, WHOLE.without_tests())
    assert [column["short"] for column in data_of(text)["columns"]] == [False, True]
    assert re.search(r'id="4\.7-1"[^>]* data-verdicts="rr"', text)


def test_each_of_many_columns_can_be_hidden() -> None:
    many = [replace(WHOLE, title=f"broker {number}") for number in range(20)]
    text = page(*many)
    assert [number for number in range(20) if f".nocol-{number} .c{number} {{ display: none; }}" not in text] == []
