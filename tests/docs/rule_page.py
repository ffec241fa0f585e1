"""Makes docs/where-is-each-rule.md: from each section of the specification to the modules that keep its rules, and to the tests.

A module says which requirements it keeps in its docstrings, in lines that begin with ``Spec:``.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import specification_pages

from jmsapi_conformance.inventory import Requirement, load, section_title

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "where-is-each-rule.md"
SOURCES = ("jmsapi", "providers", "selector")
_ID: Final = r"(?:\d+|[A-Z])(?:\.\d+)*|[A-Z]+\d*"
_NAMED: Final = re.compile(rf"\b({_ID})-(\d+)(?:\s+(?:to|-)\s+(?:{_ID})-(\d+))?")
_SECTION: Final = re.compile(r"(?:^|[\s,(])((?:\d+|[AB])\.\d+(?:\.\d+)*)(?=[\s,;:.)]|$)")
# Of the public review text to those of the final text, as the heads of the requirement files give them; the longest fits.
FINAL: Final = {
    "4.2": "5", "4.3": "6.1", "4.4": "6.2", "4.5": "8", "4.6": "7", "4.6.1": "7.2", "4.6.2": "7.3", "4.7": "7.7", "4.8": "7.8",
    "4.10": "9.1", "4.11": "9.2", "4.12": "7.9", "5": "4.1", "6": "4.2", "6.11.1": "8.3.1", "6.11.2": "8.3.2",
    "6.11.3": "8.3.3", "6.11.4": "8.3.4", "6.11.5": "4.2.4",
}  # fmt: skip


def final_section(section: str) -> str:
    """Return the final text's number of a section, or of the part that it belongs to; empty when the files give none."""
    parts = section.split(".")
    while parts:
        found = FINAL.get(".".join(parts))
        if found is not None:
            return found
        parts.pop()
    return ""


@cache
def kept() -> dict[str, set[str]]:
    """Return by section the modules that say they keep a rule of it."""
    sections = {one.id.rpartition("-")[0] for one in load()}
    found: dict[str, set[str]] = {}
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            for section in named_sections(path.read_text(encoding="utf-8")) & sections:
                found.setdefault(section, set()).add(str(path.relative_to(ROOT)))
    return found


def named_sections(source: str) -> set[str]:
    """Return the sections that the docstrings of a module name after ``Spec:``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        _, spec, rest = text.partition("Spec:")
        if spec:
            paragraph = rest.partition("\n\n")[0]
            found |= {match.group(1) for match in _NAMED.finditer(paragraph)}
            found |= {match.group(1) for match in _SECTION.finditer(paragraph)}
    return found


def pages() -> dict[Path, str]:
    """Return the text of the page."""
    lines = [
        "# Where is each rule?",
        "",
        "Each section of the specification, with the modules that keep its rules and the tests that hold a provider to them.",
        "Numbers are those of the public review text, by which requirements are named here (`4.4.11-3`); beside them stand those",
        "of the final text of JMS 2.0 (Jakarta Messaging), as far as they are known: the section, or the part it belongs to.",
        "",
        "| section | final text | about | kept in | tests |",
        "|---|---|---|---|---|",
    ]
    by_section: dict[str, list[Requirement]] = {}
    for one in load():
        by_section.setdefault(one.id.rpartition("-")[0], []).append(one)
    for section, requirements in by_section.items():
        modules = "<br>".join(f"[{module}](../{module})" for module in sorted(kept().get(section, ())))
        tests = sorted({test.partition("::")[0] for one in requirements for test in specification_pages.tested().get(one.id, ())})
        links = "<br>".join(f"[{test}](../conformance/jmsapi_conformance/suite/{test})" for test in tests)
        title = specification_pages.cell(section_title(requirements[0].id))
        lines.append(f"| {section} | {final_section(section)} | {title} | {modules} | {links} |")
    return {PAGE: specification_pages.GENERATED + "\n".join(lines) + "\n"}
