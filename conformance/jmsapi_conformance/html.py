"""The report of one or more certificates as one HTML file: no network, no other file, readable without a script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
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
_VOID: Final = frozenset({"input"})
"""The elements in use here that have no end."""
_STRAYS: Final = 5
"""How many failures that no row shows are named."""


class _Html(str):
    """Text that is markup already; every other string is escaped wherever it is put into the page."""

    __slots__ = ()


def _join(parts: Iterable[str], between: str = "") -> _Html:
    """Return one piece of markup; parts that are plain text are escaped."""
    return _Html(between.join(part if isinstance(part, _Html) else escape(part) for part in parts))


def _tag(name: str, *children: str, **attributes: str | bool) -> _Html:
    """Return an element.

    Args:
        name: Its name.
        children: What it holds; plain text is escaped.
        attributes: Their values are escaped; True gives an attribute without a value, False none. ``class_`` is ``class``,
            and an underscore within a name is a hyphen.
    """
    written = ""
    for key, value in attributes.items():
        if value is not False:
            word = key.rstrip("_").replace("_", "-")
            written += f" {word}" if value is True else f' {word}="{escape(str(value))}"'
    end = "" if name in _VOID else f"</{name}>"
    return _Html(f"<{name}{written}>{_join(children)}{end}")


def title_of(column: Column) -> str:
    """Return what a column is called: its own title, or provider and broker by the names that people know."""
    if not column.title and column.provider == "inproc":
        return f"in process {column.variant}".strip()
    brokers = {kind: info.title for kind, info in INFO.items()}
    if column.title or column.broker not in brokers:
        return column.heading
    known = (column.provider.upper(), "on", brokers[column.broker], column.broker_version, column.variant)
    return " ".join(filter(None, known))


def _short(column: Column, title: str) -> str:
    """Return a title for the head of a narrow column: without the version."""
    version = f" {column.broker_version}"
    return (title.replace(version, "", 1) if column.broker_version else title).replace(" on ", " ", 1)


def render(document: Document) -> str:
    """Return the page. Nothing that stands in a certificate can become markup, style or script.

    Args:
        document: Its certificates are the columns, in this order. If each was made with ``-k``, the rows are those that were run.
    """
    columns = document.certificates
    titles = [title_of(column) for column in columns]
    verdicts = [column.verdicts() for column in columns]
    rows = _rows(document, verdicts)
    counts = [Counter(found.values()) for found in verdicts]
    style, script = _style(len(columns), counts), _Html(_read("script.js"))
    parts: dict[str, str] = {
        "policy": _policy(style, script),
        "title": "JMS 2.0 conformance: " + ", ".join(titles),
        "about": f"Level {document.suite.level}, suite {document.suite.version}, {_how_many(rows)}",
        "cards": _join((_card(*each, document.suite.level) for each in zip(columns, titles, verdicts, strict=True)), "\n"),
        "chapters": _chapters(columns, titles, verdicts),
        "chapter_options": _join(
            _tag("option", chapter_title(key), value=key) for key in dict.fromkeys(chapter_of(one.id) for one in rows)
        ),
        "level_options": _join(_tag("option", level) for level in dict.fromkeys(one.level for one in rows)),
        "verdict_boxes": _join(_box(letter, word, False) for letter, _, word in _VERDICTS.values()),
        "backend_boxes": _join(_box(str(number), title, True) for number, title in enumerate(titles)),
        "count": f"{len(rows)} of {len(rows)} requirements",
        "headings": _join(
            _tag("th", _tag("span", _short(column, title)), scope="col", class_=f"b c{number} {column.kind}", title=title)
            for number, (column, title) in enumerate(zip(columns, titles, strict=True))
        ),
        "bodies": _bodies(rows, titles, verdicts),
        "legend": _join(
            (
                _tag("span", _tag("b", _VERDICTS[one][1], class_=f"key {_VERDICTS[one][0]}"), f" {_VERDICTS[one][2]}: {meaning}")
                for one, meaning in _MEANING.items()
            ),
            " ",
        ),
        "data": _embedded(_data(document, titles, rows)),
        "style": style,
        "script": script,
    }
    # One pass over the template: what is put in may itself hold braces.
    pieces = _read("page.html").split("{{")
    filled = (_join([parts[name]]) + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))
    return pieces[0] + "".join(filled)


def _rows(document: Document, verdicts: Sequence[dict[str, Verdict]]) -> Sequence[Requirement]:
    """Return the requirements to show: all, or those that were run when each certificate is of a selection of tests."""
    if not document.certificates or not all(column.selection for column in document.certificates):
        return load()
    run = set[str]().union(*verdicts)
    return [one for one in load() if one.id in run]


def _how_many(rows: Sequence[Requirement]) -> str:
    whole = len(load())
    return f"{whole} requirements" if len(rows) == whole else f"the {len(rows)} of {whole} requirements that were run"


def _style(columns: int, counts: Iterable[Counter[Verdict]]) -> _Html:
    """Return the style sheet; what depends on the data is here too, so that no element needs a style of its own."""
    shares = sorted({count for found in counts for count in found.values()})
    own = [f"#matrix {{ --columns: {columns}; }}"]
    own += [f".nocol-{number} .c{number} {{ display: none; }}" for number in range(columns)]
    own += [f".bar .share-{count} {{ flex: {count}; }}" for count in shares]
    return _Html(_read("style.css") + "".join(f"{rule}\n" for rule in own))


def _policy(style: str, script: str) -> str:
    """Return the content security policy: this style sheet and this script by their hashes, nothing else, nothing loaded."""

    def hashed(text: str) -> str:
        # The template has each on lines of its own, and the line ends are part of the element.
        return "'sha256-" + base64.b64encode(hashlib.sha256(f"\n{text}\n".encode()).digest()).decode() + "'"

    return f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; base-uri 'none'; form-action 'none'"


def _read(name: str) -> str:
    return (files("jmsapi_conformance") / "data" / "report" / name).read_text(encoding="utf-8")


def _box(value: str, label: str, checked: bool) -> _Html:
    return _tag("label", _tag("input", type="checkbox", value=value, checked=checked), label, class_="chip")


def _card(column: Column, title: str, verdicts: dict[str, Verdict], level: str) -> _Html:
    counts = Counter(verdicts.values())
    words = [f"{counts[one]} {_VERDICTS[one][2].lower()}" for one in Verdict if counts[one] and one is not Verdict.FAIL]
    bar = [_tag("i", class_=f"{_VERDICTS[one][0]} share-{counts[one]}") for one in Verdict if counts[one]]
    lines: list[str] = [", ".join(words)]
    if counts[Verdict.FAIL]:
        lines.insert(0, _tag("span", f"{counts[Verdict.FAIL]} FAIL", class_="failing"))
    # No row shows these: the process ended under them, or their requirements are those of another suite.
    if strays := [test for test in column.failures() if not verdicts.keys() & set(test.requirements)]:
        said = "; ".join(f"{test.test}: {test.reason}" for test in strays[:_STRAYS]) + ", ..." * (len(strays) > _STRAYS)
        lines.insert(0, _join([_tag("span", f"{len(strays)} FAIL without a row:", class_="failing"), f" {said}"]))
    # A certificate in short has verdicts and no tests; how long its run took says nothing without them.
    run = f"{len(column.tests)} tests" if column.tests else "verdicts without their tests"
    run += f" in {column.seconds:.0f} s" if column.tests and column.seconds else ""
    if column.level not in ("", level):
        lines.append(f"level {column.level}")
    if column.selection:
        lines.append(_join(["only ", _tag("code", f"-k {column.selection}")]))
    if column.kind == "foreign":
        lines.append("another client, run through the same tests")
    return _tag(
        "article",
        _tag("h2", title),
        _tag("div", *bar, class_="bar", aria_hidden="true"),
        *(_tag("p", line) for line in lines if line),
        _tag("p", " · ".join(filter(None, [run, column.started[:10], column.url, _code_of(column)])), class_="run"),
        class_=f"card {column.kind}",
    )


def _code_of(column: Column) -> str:
    """Return which code was certified."""
    plus = "+" if column.commit.endswith("+") else ""
    return " ".join(filter(None, [column.version, f"at {column.commit[:10]}{plus}" if column.commit else ""]))


def _chapters(columns: Sequence[Column], titles: Sequence[str], verdicts: Sequence[dict[str, Verdict]]) -> _Html:
    counted = [chapters_of(found, only_run=bool(column.selection)) for column, found in zip(columns, verdicts, strict=True)]
    lines: list[str] = []
    for chapter in dict.fromkeys(chapter_of(one.id) for one in load()):
        if not any(chapter in found for found in counted):
            continue
        cells: list[str] = []
        for found in counted:
            here = found.get(chapter, {})
            held, failed = here.get(Verdict.PASS, 0) + here.get(Verdict.EMULATED, 0), here.get(Verdict.FAIL, 0)
            bad = f"{failed} FAIL, " if failed else ""
            share = [f"{bad}{held} ", _tag("small", f"of {sum(here.values())}")] if here else ["not run"]
            cells.append(_tag("td", *share, class_="bad" if failed else False))
        lines.append(_tag("tr", _tag("th", chapter_title(chapter), scope="row"), *cells))
    heads = [_tag("th", title, scope="col") for title in ("holds", *titles)]
    return _tag("div", _tag("table", _tag("thead", _tag("tr", *heads)), _tag("tbody", *lines)))


def _bodies(rows: Iterable[Requirement], titles: Sequence[str], verdicts: Sequence[dict[str, Verdict]]) -> _Html:
    bodies: dict[str, list[str]] = {}
    for one in rows:
        chapter = chapter_of(one.id)
        kinds = [_VERDICTS[found.get(one.id)] for found in verdicts]
        cells = [
            _tag(
                "td", sign, _tag("span", word, class_="hidden"), class_=f"v {letter} c{number}", title=f"{titles[number]}: {word}"
            )
            for number, (letter, sign, word) in enumerate(kinds)
        ]
        about = (_tag("b", one.id), _tag("small", one.level), _tag("span", one.text, class_="text"))
        bodies.setdefault(chapter, []).append(
            _tag(
                "tr",
                _tag("th", _tag("button", *about, type="button", aria_expanded="false"), scope="row"),
                *cells,
                class_="row",
                id=one.id,
                data_chapter=chapter,
                data_level=one.level,
                data_verdicts="".join(kind[0] for kind in kinds),
            )
        )
    head = partial(_tag, "th", scope="rowgroup", class_="chapter", colspan=str(len(titles) + 1))
    return _join(
        (_tag("tbody", _tag("tr", head(chapter_title(chapter))), "\n", _join(lines, "\n")) for chapter, lines in bodies.items()),
        "\n",
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


def _embedded(data: dict[str, Any]) -> _Html:
    """Return JSON that a script can read back, and in which nothing is markup."""
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&":
        written = written.replace(char, f"\\u{ord(char):04x}")
    return _Html(written)
