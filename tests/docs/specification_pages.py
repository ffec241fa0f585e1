"""Makes docs/specification/: a page for each chapter, from each section to its requirements and from these to their tests.

The tests are read from the suite's source, which is much faster than to collect them; ``test_pages.py`` compares some.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jmsapi_conformance.inventory import Requirement, chapter_of, chapter_title, load, section_title

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "conformance" / "jmsapi_conformance" / "suite"
FOLDER = ROOT / "docs" / "specification"
BACK = "../../conformance/jmsapi_conformance/suite/"
GENERATED = "<!-- Made by `make docs`; do not edit by hand. -->\n"


@cache
def tested() -> dict[str, list[str]]:
    """Return by requirement the tests that name it, as ``module.py::test``, parametrized ones once."""
    ids = {one.id for one in load()}
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SUITE.glob("*.py"))}
    values = {stem: dict(_values(tree)) for stem, tree in trees.items()}
    found: dict[str, list[str]] = {}
    for stem, tree in trees.items():
        names = dict(values[stem])
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("jmsapi_conformance.suite."):
                other = values.get(node.module.rpartition(".")[2], {})
                names.update({alias.name: other[alias.name] for alias in node.names if alias.name in other})
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named = dict.fromkeys(one for mark in node.decorator_list for one in _named(mark, names, ids, set()))
                for one in named:
                    found.setdefault(one, []).append(f"{stem}.py::{node.name}")
    return found


def _values(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Give what a module calls by a name: tables that marks are made of."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _named(expression: ast.AST, names: dict[str, ast.expr], ids: set[str], seen: set[str]) -> Iterator[str]:
    """Give the ids in a mark; a table's key may hold several, before a colon."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (word for word in node.value.partition(":")[0].split() if word in ids)
        elif isinstance(node, ast.Name) and node.id in names and node.id not in seen:
            seen.add(node.id)
            yield from _named(names[node.id], names, ids, seen)


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    chapters: dict[str, list[Requirement]] = {}
    for one in load():
        chapters.setdefault(chapter_of(one.id), []).append(one)
    result = {FOLDER / f"{chapter.lower()}.md": _chapter(chapter, found) for chapter, found in chapters.items()}
    result[FOLDER / "README.md"] = _index(chapters)
    return result


def _index(chapters: dict[str, list[Requirement]]) -> str:
    lines = [
        "# From the specification to the tests",
        "",
        "Every requirement of JMS 2.0 as the suite knows it, in words of our own, with the tests that hold a provider to it.",
        "A section is that of the specification's public review text; at the end stand series of later texts.",
        "`jmsapi-conformance` runs the tests against a broker of yours ([how](../../conformance/README.md)).",
        "",
        "| chapter | requirements | with a test of the suite | shown elsewhere | superseded |",
        "|---|---|---|---|---|",
    ]
    totals = [0, 0, 0, 0]
    for chapter, found in chapters.items():
        counts = [
            len(found),
            sum(one.id in tested() for one in found),
            sum(one.id not in tested() and bool(one.elsewhere) for one in found),
            sum(one.level == "superseded" for one in found),
        ]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        lines.append(f"| [{chapter_title(chapter)}]({chapter.lower()}.md) | " + " | ".join(map(str, counts)) + " |")
    lines.append("| together | " + " | ".join(map(str, totals)) + " |")
    return GENERATED + "\n".join(lines) + "\n"


def _chapter(chapter: str, found: list[Requirement]) -> str:
    lines = [f"# {chapter_title(chapter)}", "", "[All chapters](README.md)"]
    section = None
    for one in found:
        here = one.id.rpartition("-")[0]
        if here != section:
            section = here
            title = section_title(one.id)
            lines += ["", f"## {here} {title}".rstrip(), "", "| | level | requirement | tests |", "|---|---|---|---|"]
        lines.append(f'| <a id="{one.id.lower()}"></a>{one.id} | {one.level} | {cell(one.text)} | {_tests(one)} |')
    return GENERATED + "\n".join(lines) + "\n"


def _tests(one: Requirement) -> str:
    parts: list[str] = []
    for test in tested().get(one.id, ()):
        module, _, name = test.partition("::")
        parts.append(f"[{name.removeprefix('test_').replace('_', ' ')}]({BACK}{module})")
    if parts:
        return "<br>".join(parts)
    return f"*{cell(one.elsewhere)}*" if one.elsewhere else "*superseded*" if one.level == "superseded" else "*none yet*"


def cell(text: str) -> str:
    """Return text as a table's cell can have it."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
