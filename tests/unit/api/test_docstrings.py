"""Every public name explains itself, and the requirements it names exist."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

import jmsapi

ROOT = Path(jmsapi.__file__).parent
FILES = sorted([*(ROOT / "api").glob("*.py"), ROOT / "errors.py"])
DATA = files("jmsapi_conformance") / "data"
ID = re.compile(r"(?:[A-Z]\d*(?=[.-])|[A-Z]{2,}\d*|\d+)(?:\.\d+)*-\d+")
ORDER = ["", "Args:", "Returns:", "Raises:", "Threads:", "Spec:"]
HELPERS = {"__reduce__", "__post_init__"}

Named = ast.ClassDef | ast.FunctionDef


@cache
def inventory() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for part in (DATA / "requirements").iterdir():
        for entry in yaml.load(part.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            found[entry["id"]] = entry
    return found


def public(path: Path) -> Iterator[tuple[str, Named, str]]:
    """Give the public classes, functions and methods of a file with their docstrings; overloads and setters have none."""
    for top in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(top, Named) and not top.name.startswith("_"):
            yield top.name, top, ast.get_docstring(top) or ""
            for inner in top.body if isinstance(top, ast.ClassDef) else []:
                if isinstance(inner, ast.FunctionDef) and shown(inner):
                    yield f"{top.name}.{inner.name}", inner, ast.get_docstring(inner) or ""


def shown(method: ast.FunctionDef) -> bool:
    marks = {ast.unparse(mark) for mark in method.decorator_list}
    setter = any(mark.endswith(".setter") for mark in marks)
    private = method.name.startswith("_") and not method.name.startswith("__")
    return not (setter or private or "overload" in marks or method.name in HELPERS | {"__init__"})


def specs(text: str) -> str:
    return " ".join(re.findall(r"Spec: ((?:.|\n)*)", text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_public_name_has_a_docstring(path: Path) -> None:
    for name, _, text in public(path):
        first = text.partition("\n")[0]
        assert re.search(r"\.(?: Spec: .*)?$", first), f"{name}: {first!r}"


@pytest.mark.parametrize("path", [path for path in FILES if not path.stem.startswith("_")], ids=lambda path: path.stem)
def test_every_type_and_every_abstract_member_names_its_requirements(path: Path) -> None:
    for name, node, text in public(path):
        abstract = any("abstractmethod" in ast.unparse(mark) for mark in node.decorator_list)
        if "Java's exception" in text or name in {"JMSError", "PickledCause", "JMSError.default_error_code"}:
            continue
        if abstract or (isinstance(node, ast.ClassDef) and path.stem != "errors"):
            assert specs(text), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_requirement_named_exists(path: Path) -> None:
    for name, _, text in public(path):
        for requirement in ID.findall(specs(text)):
            assert requirement in inventory(), f"{name}: {requirement}"
        leftover = re.sub(r"\bto\b|[\s,.]", "", ID.sub("", specs(text)))
        assert leftover == "", f"{name}: {leftover!r} is no requirement"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_parts_of_a_docstring_stand_in_one_order(path: Path) -> None:
    for name, _, text in public(path):
        parts = [line.split(" ")[0] for line in text.splitlines() if line.split(" ")[0] in ORDER[1:]]
        assert parts == sorted(set(parts), key=ORDER.index), f"{name}: {parts}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_arguments_explained_are_the_arguments_there_are(path: Path) -> None:
    for name, node, text in public(path):
        section = re.search(r"^Args:\n((?:    .*\n?)+)", text, re.MULTILINE)
        if section is None or not isinstance(node, ast.FunctionDef):
            continue
        explained = re.findall(r"^    (\w+):", section.group(1), re.MULTILINE)
        assert explained == [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs) if arg.arg != "self"], name


def test_the_inventory_of_the_suite_says_what_its_sources_say() -> None:
    copied = json.loads((DATA / "requirements.json").read_text(encoding="utf-8"))["requirements"]
    assert [entry["id"] for entry in copied if entry["id"] not in inventory()] == []
    assert {entry["id"] for entry in copied} == set(inventory())
    for entry in copied:
        source = inventory()[entry["id"]]
        assert (entry["level"], entry["scope"]) == (source["level"], source["scope"]), entry["id"]
