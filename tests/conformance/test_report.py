"""The HTML report: one file, whole without its script, with all that the script shows in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from jmsapi_conformance.document import Column, Document, DocumentError, Outcome, Suite, json_schema, merge, plain, read, write
from jmsapi_conformance.html import render
from jmsapi_conformance.inventory import load
from jmsapi_conformance.verdicts import Verdict

NASTY = '</script><b>it broke</b> {{title}} <!-- & "quoted"'
VOID = {"meta", "input", "br", "link", "img"}


def outcome(name: str, verdict: Verdict, *ids: str, reason: str = "", counts: bool = True, remark: str = "") -> Outcome:
    return Outcome(f"ch04_4_7_transactions.py::{name}", ids, verdict, reason, counts=counts, remark=remark)


OURS = Column(
    url="amqp://***@broker:5672",
    provider="amqp",
    broker="artemis",
    broker_version="9.8",
    tests=(
        outcome("test_one", Verdict.PASS, "4.4.7-1"),
        outcome("test_two", Verdict.FAIL, "4.4.7-1", reason=NASTY),
        outcome("test_new", Verdict.FAIL, "4.4.7-2", reason="not yet", counts=False),
        outcome("test_three", Verdict.REFUSED, "4.4.7-3", reason="no transactions"),
    ),
)
JAVA = Column(
    url="",
    provider="qpid-jms",
    broker="artemis",
    broker_version="9.8",
    tests=(
        outcome("test_one", Verdict.FAIL, "4.4.7-1", remark="it answers late"),
        outcome("test_x", Verdict.EMULATED, "4.4.7-3"),
    ),
    kind="foreign",
    title="qpid-jms 2.8",
)
DOCUMENT = Document(1, Suite("0.9", "2026.1"), (OURS, JAVA))


class Page(HTMLParser):
    """What a page consists of; a tag that is closed by another fails at once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            self.scripts.append(data)

    def rows(self) -> dict[str, dict[str, str]]:
        return {has["id"]: has for tag, has in self.tags if tag == "tr" and has.get("class") == "row"}

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(DOCUMENT))


def test_each_requirement_has_a_row_with_a_verdict_for_each_backend(page: Page) -> None:
    rows = page.rows()
    assert list(rows) == [one.id for one in load()]
    assert rows["4.4.7-1"]["data-verdicts"] == "ff"
    assert rows["4.4.7-2"]["data-verdicts"] == "nu", "what only reports decides nothing"
    assert rows["4.4.7-3"]["data-verdicts"] == "re"
    assert rows["4.4.7-4"]["data-verdicts"] == "uu"
    assert (rows["4.4.7-1"]["data-level"], rows["4.4.7-1"]["data-chapter"]) == ("must", "4")
    cells = [has for tag, has in page.tags if tag == "td" and has.get("class", "").startswith("v ")]
    assert len(cells) == 2 * len(rows)


def test_failures_that_no_row_can_show_are_named_beside_the_columns_counts() -> None:
    strays = [
        outcome(f"test_dies_{number}", Verdict.FAIL, *ids, reason=NASTY) for number, ids in enumerate([(), ("99.9-9",)] * 3)
    ]
    reporting = outcome("test_new", Verdict.FAIL, reason="not yet", counts=False)
    document = replace(DOCUMENT, certificates=(replace(OURS, tests=(*OURS.tests, *strays, reporting)), JAVA))
    text = render(document)
    assert Page(text).rows().keys() == Page(render(DOCUMENT)).rows().keys()
    (said,) = re.findall(r"<span class=.failing.>6 FAIL without a row:</span> (.*?)</p>", text)
    assert said.count("test_dies_") == 5
    assert said.endswith(", ...")
    assert "without a row" not in render(DOCUMENT)


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    for tag, has in page.tags:
        assert tag not in {"link", "img", "iframe"}
        assert "src" not in has
        assert not has.get("href", "#").startswith(("http", "//"))
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", render(DOCUMENT))


def test_what_a_test_says_cannot_break_the_page(page: Page) -> None:
    assert NASTY in page.data()["reasons"]
    assert "<b>it broke" not in render(DOCUMENT)


def test_an_opened_requirement_shows_its_text_its_tests_and_their_reasons(page: Page) -> None:
    data = page.data()
    requirement = data["requirements"]["4.4.7-3"]
    assert requirement["text"] == "Messages produced in a transaction are invisible to all consumers until commit."
    names = [data["tests"][number].partition("::")[2] for number in requirement["tests"]]
    assert names == ["test_three", "test_x"]
    ours, java = data["columns"]
    number = str(requirement["tests"][0])
    assert data["reasons"][ours["reasons"][number]] == "no transactions"
    assert (ours["verdicts"], java["verdicts"]) == ("pfFr.", "f...e")
    assert data["reasons"][java["remarks"]["0"]] == "it answers late"


def test_everything_that_is_operated_can_be_reached_by_keyboard_and_has_a_name(page: Page) -> None:
    openers = [has for tag, has in page.tags if tag == "button" and has.get("aria-expanded") == "false"]
    assert len(openers) == len(load())
    boxes = [has["value"] for tag, has in page.tags if tag == "input" and has["type"] == "checkbox"]
    assert boxes == ["p", "e", "r", "f", "n", "u", "0", "1"]
    assert all(not has.get("tabindex", "0").strip("-0") or has["id"] == "matrix" for _, has in page.tags)


def test_a_file_of_certificates_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(DOCUMENT, tmp_path / "new" / "file.json")
    assert read(tmp_path / "new" / "file.json") == DOCUMENT
    assert merge(DOCUMENT, [DOCUMENT]).certificates == (OURS, JAVA, OURS, JAVA)


def test_a_terse_file_says_the_same_without_times(tmp_path: Path) -> None:
    document = replace(DOCUMENT, certificates=(replace(OURS, tests=(*OURS.tests, outcome("test_of_none", Verdict.PASS))), JAVA))
    timed = [
        replace(column, tests=tuple(replace(test, seconds=1.5) for test in column.tests)) for column in document.certificates
    ]
    write(replace(document, certificates=tuple(timed)), tmp_path / "terse.json", terse=True)
    write(document, tmp_path / "whole.json")
    assert read(tmp_path / "terse.json") == document
    assert (tmp_path / "terse.json").stat().st_size < (tmp_path / "whole.json").stat().st_size * 0.8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "schema"),
        ({"certificates": [{"url": "x"}]}, "certificates.0.provider"),
        ({"suite": None}, "suite"),
    ],
)
def test_a_file_of_another_form_is_refused_with_the_place(tmp_path: Path, change: dict[str, object], said: str) -> None:
    (tmp_path / "file.json").write_text(json.dumps({**plain(DOCUMENT), **change}))
    with pytest.raises(DocumentError, match=said):
        read(tmp_path / "file.json")
    with pytest.raises(DocumentError, match="No such file"):
        read(tmp_path / "none.json")


def test_the_form_can_be_had_as_a_json_schema() -> None:
    schema = json_schema()
    assert set(schema["required"]) == {"schema", "suite", "certificates"}
    assert schema["$defs"]["Verdict"]["enum"] == [verdict.value for verdict in Verdict]
