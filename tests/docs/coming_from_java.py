"""Makes the tables of docs/coming-from-java.md: every type and member of the Java API and its Python form, from api.yaml."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from capability_table import replaced

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-java.md"
BEGIN, END = "<!-- api -->", "<!-- /api -->"
DOMAINS = {"common": "Both domains", "ptp": "Queues only", "pubsub": "Topics only"}


def pages() -> dict[Path, str]:
    """Return the page with its tables renewed."""
    source = (files("jmsapi_conformance") / "data" / "api.yaml").read_text(encoding="utf-8")
    data = yaml.load(source, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {PAGE: replaced(PAGE.read_text(encoding="utf-8"), tables(data), BEGIN, END)}


def tables(data: dict[str, Any]) -> str:
    """Return everything between the marks."""
    parts = ["### Values\n", "| Java | Python | |", "|---|---|---|"]
    for one in data["type_map"]:
        note = text(one.get("python_note") or one.get("range") or "")
        if "accepts" in one:
            note = f"takes {code(one['accepts'])}"
        if "wrapper" in one:
            note += f"{'; ' if note else ''}as a property or in a body that keeps types: {code('jmsapi.' + one['wrapper'])}"
        parts.append(f"| {code(one['java'])} | {code(one['python'])} | {note} |")
    parts += ["", "### Exceptions of Java itself\n", "| Java | Python |", "|---|---|"]
    parts += [f"| {code(one['java'])} | {code(one['python'])} |" for one in data["java_exceptions"]]
    for one in sorted(data["types"], key=lambda one: one["name"]):
        parts += ["", *_type(one)]
    return "\n".join(parts)


def code(text: str) -> str:
    """Return text as code that may stand in a table."""
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def _type(one: dict[str, Any]) -> list[str]:
    words = [one["kind"], DOMAINS[one["domain"]].lower(), f"since JMS {one['since']}"]
    words += ["optional"] if one.get("optional") else []
    words += [one["status"]] if one.get("status") else []
    words += ["a context manager"] if one.get("context_manager") else []
    lines = [f"### {one['name']}\n", f"{', '.join(words)}. {code(one['python'])}"]
    if one.get("python_note"):
        lines[-1] += f": {text(one['python_note'])}"
    rows: list[tuple[str, str, str]] = []
    for constant in one.get("constants", ()):
        rows.append((code(f"{constant['name']} = {constant['value']}"), code(constant["python"]), ""))
    for constructor in one.get("constructors", ()):
        rows.append((code(_call(one["name"], constructor)), code(one["python_init"]), ""))
    for element in one.get("elements", ()):
        default = f" default {element['default']}" if "default" in element else ""
        rows.append((code(f"{element['type']} {element['java']}(){default}"), code(element["python_name"]), ""))
    for method in one.get("methods", ()):
        rows.append(("<br>".join(_java(method)), code(method["python"]), _differs(method)))
    for added in one.get("additions", ()):
        note = text(added.get("python_note", ""))
        extra = "not in JMS" if added.get("beyond_jms") else "Python's form of the same"
        rows.append(("", code(added["python"]), "; ".join(filter(None, [extra, note]))))
    if rows:
        lines += ["", "| Java | Python | what differs |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return lines


def _java(method: dict[str, Any]) -> list[str]:
    return [code(f"{overload['returns']} {_call(method['java'], overload)}") for overload in method["overloads"]]


def _call(name: str, overload: dict[str, Any]) -> str:
    arguments = ", ".join(f"{kind} {word}" for kind, word in zip(overload["params"], overload["names"], strict=True))
    return f"{name}({arguments})"


def _differs(method: dict[str, Any]) -> str:
    notes: list[str] = []
    if method["python_kind"] == "property":
        notes.append("property" if method.get("access") == "rw" else "read-only property")
    if method.get("fluent_name"):
        notes.append(f"also {code(method['fluent_name'] + '(...)')}, which returns the producer")
    if method.get("merge"):
        notes.append(text(method["merge"]))
    if method.get("python_note"):
        notes.append(text(method["python_note"]))
    if method.get("unit"):
        notes.append(text(f"in {method['unit']}"))
    if method.get("optional"):
        notes.append("optional in JMS")
    if method.get("provider_only"):
        notes.append("for providers, not for applications")
    return "; ".join(notes)


def text(words: str) -> str:
    """Return words as a table's cell can have them."""
    return " ".join(str(words).split()).replace("|", "\\|").replace("<", "&lt;").replace("__", "\\_\\_")
