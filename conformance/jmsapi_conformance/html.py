"""The report of one or more certificates as one HTML file: no network, no other file, readable without a script."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

from jmsapi_conformance.brokers import INFO
from jmsapi_conformance.certificate import chapters_of
from jmsapi_conformance.document import Column, Document
from jmsapi_conformance.inventory import Requirement, chapter_of, chapter_title, load, section_title
from jmsapi_conformance.verdicts import Verdict

__all__ = ["render", "title_of"]

_VERDICTS: Final[dict[Verdict | None, tuple[str, str, str]]] = {
    Verdict.PASS: ("p", "✓", "PASS"),
    Verdict.EMULATED: ("e", "E", "EMULATED"),
    Verdict.REFUSED: ("r", "R", "REFUSED"),
    Verdict.FAIL: ("f", "✗", "FAIL"),
    Verdict.NOT_APPLICABLE: ("n", "–", "NOT APPLICABLE"),
    None: ("u", "", "not run"),
}
"""Letter in the page's data, sign in a cell (never colour alone), word."""
_MEANING: Final = {
    Verdict.PASS: "holds",
    Verdict.EMULATED: "holds, with something supplied by the client",
    Verdict.REFUSED: "not claimed, and refused by name",
    Verdict.FAIL: "does not hold",
    Verdict.NOT_APPLICABLE: "cannot be said here, for the reason given",
}
_STRAYS: Final = 5
"""How many failures that no row shows are named."""


def title_of(column: Column) -> str:
    """Return what a column is called: its own title, or provider and broker by the names that people know."""
    if not column.title and column.provider == "inproc":
        return "in process"
    brokers = {kind: info.title for kind, info in INFO.items()}
    if column.title or column.broker not in brokers:
        return column.heading
    return f"{column.provider.upper()} on {brokers[column.broker]} {column.broker_version}".strip()


def _short(column: Column, title: str) -> str:
    """Return a title for the head of a narrow column: without the version."""
    return title.removesuffix(f" {column.broker_version}").replace(" on ", " ")


def render(document: Document) -> str:
    """Return the page.

    Args:
        document: Its certificates are the columns, in this order.
    """
    columns = document.certificates
    titles = [title_of(column) for column in columns]
    verdicts = [column.verdicts() for column in columns]
    rows = load()
    parts = {
        "title": "JMS 2.0 conformance: " + ", ".join(titles),
        "about": f"Level {document.suite.level}, suite {document.suite.version}, {len(rows)} requirements",
        "cards": "\n".join(_card(column, title, found) for column, title, found in zip(columns, titles, verdicts, strict=True)),
        "chapters": _chapters(titles, verdicts),
        "chapter_options": "".join(
            f'<option value="{key}">{escape(chapter_title(key))}</option>'
            for key in dict.fromkeys(chapter_of(one.id) for one in rows)
        ),
        "level_options": "".join(f"<option>{level}</option>" for level in dict.fromkeys(one.level for one in rows)),
        "verdict_boxes": "".join(_box(letter, word, False) for letter, _, word in _VERDICTS.values()),
        "backend_boxes": "".join(_box(str(number), title, True) for number, title in enumerate(titles)),
        "count": f"{len(rows)} of {len(rows)} requirements",
        "columns": str(len(columns)),
        "headings": "".join(
            f'<th scope="col" class="b c{number} {column.kind}" title="{escape(title)}">'
            f"<span>{escape(_short(column, title))}</span></th>"
            for number, (column, title) in enumerate(zip(columns, titles, strict=True))
        ),
        "bodies": _bodies(rows, titles, verdicts),
        "legend": " ".join(
            f'<span><b class="key {_VERDICTS[one][0]}">{_VERDICTS[one][1]}</b> {_VERDICTS[one][2]}: {meaning}</span>'
            for one, meaning in _MEANING.items()
        ),
        "data": _embedded(_data(document, titles, rows)),
        "style": _read("style.css")
        + "".join(f".nocol-{number} .c{number} {{ display: none; }}\n" for number in range(len(columns))),
        "script": _read("script.js"),
    }
    # One pass over the template: what is put in may itself hold braces.
    pieces = _read("page.html").split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))


def _read(name: str) -> str:
    return (files("jmsapi_conformance") / "data" / "report" / name).read_text(encoding="utf-8")


def _box(value: str, label: str, checked: bool) -> str:
    return f'<label class="chip"><input type="checkbox" value="{value}"{" checked" * checked}>{escape(label)}</label>'


def _card(column: Column, title: str, verdicts: dict[str, Verdict]) -> str:
    counts = Counter(verdicts.values())
    words = [f"{counts[one]} {_VERDICTS[one][2].lower()}" for one in Verdict if counts[one] and one is not Verdict.FAIL]
    bar = "".join(f'<i class="{_VERDICTS[one][0]}" style="flex:{counts[one]}"></i>' for one in Verdict if counts[one])
    lines = [", ".join(words)]
    if counts[Verdict.FAIL]:
        lines.insert(0, f'<span class="failing">{counts[Verdict.FAIL]} FAIL</span>')
    # No row shows these: the process ended under them, or their requirements are those of another suite.
    if strays := [test for test in column.failures() if not verdicts.keys() & set(test.requirements)]:
        said = "; ".join(f"{test.test}: {test.reason}" for test in strays[:_STRAYS]) + ", ..." * (len(strays) > _STRAYS)
        lines.insert(0, f'<span class="failing">{len(strays)} FAIL without a row:</span> {escape(said)}')
    # A certificate in short has verdicts and no tests; how long its run took says nothing without them.
    run = f"{len(column.tests)} tests" if column.tests else "verdicts without their tests"
    run += f" in {column.seconds:.0f} s" if column.tests and column.seconds else ""
    about = escape(" · ".join(filter(None, [run, column.started[:10], column.url])))
    if column.level:
        lines.append(f"level {escape(column.level)}")
    if column.selection:
        lines.append(f"only <code>-k {escape(column.selection)}</code>")
    if column.kind == "foreign":
        lines.append("another client, run through the same tests")
    paragraphs = "".join(f"<p>{line}</p>" for line in lines if line) + f'<p class="run">{about}</p>'
    head = f'<h2>{escape(title)}</h2><div class="bar" aria-hidden="true">{bar}</div>'
    return f'<article class="card {column.kind}">{head}{paragraphs}</article>'


def _chapters(titles: Sequence[str], verdicts: Sequence[dict[str, Verdict]]) -> str:
    counted = [chapters_of(found) for found in verdicts]
    lines: list[str] = []
    for chapter in dict.fromkeys(chapter_of(one.id) for one in load()):
        cells: list[str] = []
        for found in counted:
            here = found[chapter]
            held, failed = here.get(Verdict.PASS, 0) + here.get(Verdict.EMULATED, 0), here.get(Verdict.FAIL, 0)
            bad = f"{failed} FAIL, " if failed else ""
            cells.append(f"<td{' class=bad' * bool(failed)}>{bad}{held} <small>of {sum(here.values())}</small></td>")
        lines.append(f'<tr><th scope="row">{escape(chapter_title(chapter))}</th>{"".join(cells)}</tr>')
    heads = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    return f'<div><table><thead><tr><th scope="col">holds</th>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _bodies(rows: Iterable[Requirement], titles: Sequence[str], verdicts: Sequence[dict[str, Verdict]]) -> str:
    bodies: dict[str, list[str]] = {}
    for one in rows:
        chapter = chapter_of(one.id)
        kinds = [_VERDICTS[found.get(one.id)] for found in verdicts]
        cells = "".join(
            f'<td class="v {letter} c{number}" title="{escape(titles[number])}: {word}">{sign}'
            f'<span class="hidden">{word}</span></td>'
            for number, (letter, sign, word) in enumerate(kinds)
        )
        bodies.setdefault(chapter, []).append(
            f'<tr class="row" id="{one.id}" data-chapter="{chapter}" data-level="{one.level}"'
            f' data-verdicts="{"".join(kind[0] for kind in kinds)}"><th scope="row"><button type="button" aria-expanded="false">'
            f'<b>{one.id}</b><small>{one.level}</small><span class="text">{escape(one.text)}</span></button></th>{cells}</tr>'
        )
    return "\n".join(
        f'<tbody><tr><th scope="rowgroup" class="chapter" colspan="{len(titles) + 1}">'
        f"{escape(chapter_title(chapter))}</th></tr>\n" + "\n".join(lines) + "</tbody>"
        for chapter, lines in bodies.items()
    )


def _data(document: Document, titles: Sequence[str], rows: Iterable[Requirement]) -> dict[str, Any]:
    """Return what the script shows of an opened requirement; texts that come again and again stand once."""
    tests: dict[str, int] = {}
    reasons: dict[str, int] = {}
    tested: dict[str, set[int]] = {}
    columns: list[dict[str, Any]] = []
    for column in document.certificates:
        for test in column.tests:
            number = tests.setdefault(test.test, len(tests))
            for one in test.requirements:
                tested.setdefault(one, set()).add(number)
    for column, title in zip(document.certificates, titles, strict=True):
        letters = ["."] * len(tests)
        said: dict[int, int] = {}
        remarks: dict[int, int] = {}
        for test in column.tests:
            number, letter = tests[test.test], _VERDICTS[test.verdict][0]
            # A capital: it only reports.
            letters[number] = letter if test.counts else letter.upper()
            for text, where in ((test.reason, said), (test.remark, remarks)):
                if text:
                    where[number] = reasons.setdefault(text, len(reasons))
        columns.append(
            {"title": title, "verdicts": "".join(letters), "reasons": said, "remarks": remarks, "short": not column.tests}
        )
    return {
        "verdicts": {letter: {"sign": sign, "word": word} for letter, sign, word in _VERDICTS.values()},
        "columns": columns,
        "tests": list(tests),
        "reasons": list(reasons),
        "requirements": {
            one.id: {
                "section": section_title(one.id),
                "text": one.text,
                "level": one.level,
                "scope": one.scope,
                "api": ", ".join(one.api),
                "test": one.test,
                "note": one.note,
                "elsewhere": one.elsewhere,
                "tests": sorted(tested.get(one.id, ())),
            }
            for one in rows
        },
    }


def _embedded(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
