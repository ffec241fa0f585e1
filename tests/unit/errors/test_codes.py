"""docs/errors.md has one entry for each code that the library gives, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from jmsapi import errors
from jmsapi.errors import JMSError

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "errors.md"
SOURCES = ("jmsapi", "selector", "providers")
KINDS = {name: kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type) and issubclass(kind, JMSError)}
WORD = re.compile(r"[a-z]+(-[a-z]+)*")


def codes_of_classes() -> set[str]:
    return {kind.default_error_code for kind in KINDS.values() if kind.default_error_code is not None}


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Codes in a file: what stands after an exception's text when it is made, or beside its class in a table."""
    for node in ast.walk(tree):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call):
            given += [word.value for word in node.keywords if word.arg == "error_code"]
            if name_of(node.func) in KINDS and "Feature" not in name_of(node.func):
                given += node.args[1:2]
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and name_of(node.elts[0]) in KINDS:
            given += node.elts[1:]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def codes_in_sources() -> set[str]:
    found: set[str] = set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*.py"):
            found.update(codes_in(ast.parse(path.read_text(encoding="utf-8"))))
    return found


def headings() -> list[str]:
    return re.findall(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    assert sorted(headings()) == sorted(codes_of_classes() | codes_in_sources())


def test_codes_are_words() -> None:
    assert all(WORD.fullmatch(code) for code in headings())


def test_each_entry_names_the_classes_that_have_its_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    entries = dict(zip(headings(), re.split(r"^### .+$", text, flags=re.MULTILINE)[1:], strict=True))
    for name, kind in KINDS.items():
        if kind.default_error_code is not None:
            assert f"`{name}`" in entries[kind.default_error_code], name


def test_a_code_is_found_in_a_call_and_in_a_table() -> None:
    source = """
raise JMSException("lost", "link-lost")
raise errors.JMSRuntimeException("x", error_code="in-doubt")
TABLE = {1: (JMSException, "timeout"), 2: (IllegalStateException, None)}
raise UnsupportedFeatureException("delays", "stomp")
"""
    assert sorted(codes_in(ast.parse(source))) == ["in-doubt", "link-lost", "timeout"]
