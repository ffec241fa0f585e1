"""Certificates of different levels in one report."""

from __future__ import annotations

from pathlib import Path

from jmsapi_conformance.document import Column, Document, JudgedTest, Suite, merge, read, write
from jmsapi_conformance.html import render
from jmsapi_conformance.verdicts import Verdict


def of_level(level: str) -> Document:
    tests = (JudgedTest("ch04_7_delivery_mode.py::test_x", ("4.7-1",), Verdict.PASS),)
    return Document(1, Suite("0.9", level), (Column("", "amqp", "artemis", "9.8", tests, title=f"of {level}"),))


def test_a_certificate_of_another_level_says_so_in_a_report(tmp_path: Path) -> None:
    both = merge(of_level("2026.1"), [of_level("2026.1"), of_level("2027.1")])
    assert [column.level for column in both.certificates] == ["2026.1", "2026.1", "2027.1"]
    page = render(both)
    assert "Level 2026.1, suite 0.9" in page
    assert page.count("<p>level 2027.1</p>") == 1
    write(both, tmp_path / "both.json")
    again = merge(of_level("2027.1"), [read(tmp_path / "both.json")])
    assert [column.level for column in again.certificates] == ["2027.1", "2026.1", "2026.1", "2027.1"]
