"""The HTML report: one file, whole without its script, with all that the script shows in it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from jmsapi_conformance.document import Column, Document, DocumentError, JudgedTest, Suite, json_schema, merge, plain, read, write
from jmsapi_conformance.html import render
from jmsapi_conformance.inventory import load
from jmsapi_conformance.report import print_matrix
from jmsapi_conformance.verdicts import Verdict

# As an attribute's value, as the text of an element, in JSON, in a title: none of them may let it out.
HOSTILE = "</title></style></script><script>document.documentElement.dataset.taken = 1</script>"
HOSTILE += (
    '<img src=x onerror="document.documentElement.dataset.taken = 2">"\' onmouseover=alert(3) x=\' \\u003c {{data}} <!-- \x1b[31m'
)
NASTY = '</script><b>it broke</b> {{title}} <!-- & "quoted"'
VOID = {"meta", "input", "br", "link", "img"}


def outcome(name: str, verdict: Verdict, *ids: str, reason: str = "", counts: bool = True, remark: str = "") -> JudgedTest:
    return JudgedTest(f"ch04_4_7_transactions.py::{name}", ids, verdict, reason, counts=counts, remark=remark)


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


def hostile_document() -> Document:
    """A document whose every text is an attack."""
    test = JudgedTest(HOSTILE, ("4.4.7-1", HOSTILE), Verdict.FAIL, HOSTILE, (HOSTILE,), remark=HOSTILE)
    texts = dict.fromkeys(("url", "provider", "broker", "broker_version", "started", "selection", "title", "level"), HOSTILE)
    column = Column(**texts, tests=(test,), seconds=1.0, kind="foreign")  # type: ignore[arg-type]
    untitled = replace(column, title="", tests=(replace(test, requirements=()),))
    return Document(1, Suite(HOSTILE, HOSTILE), (column, untitled))


def test_no_text_of_a_certificate_becomes_markup() -> None:
    page, own = Page(render(hostile_document())), Page(render(DOCUMENT))
    assert {tag for tag, _ in page.tags} - {"code"} <= {tag for tag, _ in own.tags}
    assert [has for tag, has in page.tags if tag == "script"] == [has for tag, has in own.tags if tag == "script"]
    known = {name for _, has in own.tags for name in has}
    assert {name for _, has in page.tags for name in has} <= known
    assert not [name for name in known if name.startswith("on") or name == "style"]
    assert page.scripts[1] == own.scripts[1]
    assert page.data()["columns"][0]["title"] == HOSTILE


def policy_of(page: Page) -> str:
    return next(has["content"] for tag, has in page.tags if has.get("http-equiv") == "Content-Security-Policy")


def test_the_policy_lets_in_this_style_sheet_and_this_script_and_nothing_else() -> None:
    text = render(DOCUMENT)
    hashes = {
        name: base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        for name, content in re.findall(r"<(style|script)>(.*?)</", text, re.DOTALL)
    }
    assert policy_of(Page(text)) == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )


def browsed(text: str, folder: Path, fragment: str = "") -> str:
    """Return the page as it stands in a browser once its script has run."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium on the PATH")
    (folder / "page.html").write_text(text, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}"]
    url = (folder / "page.html").as_uri() + fragment
    done = subprocess.run([browser, *options, "--virtual-time-budget=2000", "--dump-dom", url], capture_output=True, timeout=100)
    return done.stdout.decode()


@pytest.mark.timeout(120)
def test_in_a_browser_the_page_works_and_what_is_hostile_does_not(tmp_path: Path) -> None:
    seen = browsed(render(hostile_document()), tmp_path, "#4.4.7-1")
    assert "data-taken" not in seen
    assert 'aria-expanded="true"' in seen, "the page's own script has run and opened the row"
    assert "How to see it" in seen


@pytest.mark.timeout(120)
def test_in_a_browser_the_policy_stops_a_script_that_got_in(tmp_path: Path) -> None:
    taken = "document.documentElement.dataset.taken = 1"
    attacked = render(DOCUMENT).replace("<main>", f"<main><script>{taken}</script><img src=x onerror='{taken}'>")
    seen = browsed(attacked, tmp_path, "#4.4.7-1")
    assert 'aria-expanded="true"' in seen
    assert "data-taken" not in seen
    assert "data-taken" in browsed(attacked.replace("Content-Security-Policy", "nothing"), tmp_path), "without it, it would run"


def test_of_a_selection_of_tests_only_what_was_run_is_shown() -> None:
    chosen = replace(OURS, selection="transactions")
    page = Page(render(replace(DOCUMENT, certificates=(chosen,))))
    assert list(page.rows()) == ["4.4.7-1", "4.4.7-2", "4.4.7-3"]
    text = render(replace(DOCUMENT, certificates=(chosen,)))
    assert f"the 3 of {len(load())} requirements that were run" in text
    assert "<small>of 3</small>" in text
    assert len(Page(render(replace(DOCUMENT, certificates=(chosen, JAVA)))).rows()) == len(load())


@pytest.mark.parametrize("selection", ["", "transactions"])
def test_the_tables_of_a_selection_count_what_was_run_and_steer_no_terminal(selection: str) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=False, width=150)
    hostile = replace(OURS, broker="\x1b]0;taken\x07[bold]", selection=selection)
    print_matrix(replace(DOCUMENT, certificates=(hostile, replace(JAVA, selection=selection))), console)
    seen = out.getvalue()
    assert "\x1b" not in seen
    assert "\\x1b]0;taken\\x07[bold]" in seen
    assert (f" of {len(load())}" in seen) is (selection == "")
    assert ("1 FAIL 0 of 3" in seen) is (selection != "")


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
    ours, java = (replace(column, level=DOCUMENT.suite.level) for column in (OURS, JAVA))
    assert merge(DOCUMENT, [DOCUMENT]).certificates == (ours, java, ours, java)


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
