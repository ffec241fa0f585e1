"""The page about the log names every logger with the levels it has, and every line about a message says which."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logging.md").read_text(encoding="utf-8")
FOLDERS = ("jmsapi", "pyspark_jms", "selector", "providers")
LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "exception": "ERROR"}
# These loggers are given to the wires' common part, which writes under their names.
GIVEN = {"jmsapi.wire": ("jmsapi.amqp", "jmsapi.stomp", "jmsapi.testing")}


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}


def is_log(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_").lower() in ("log", "logger", "wire_log")


@cache
def calls(source: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and is_log(node.func.value)
    ]


def level(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return LEVELS[call.func.attr]


def in_the_tree() -> dict[str, set[str]]:
    """Every logger with the levels of the lines that are written by it."""
    found: dict[str, set[str]] = {}
    for path, source in sources().items():
        named = set(re.findall(r'^\w+(?:: Final)? = logging\.getLogger\("([\w.]+)"\)', source, flags=re.MULTILINE))
        levels = {level(call) for call in calls(source)}
        if path.parent == ROOT / "jmsapi" / "wire":
            for logger in GIVEN["jmsapi.wire"]:
                found.setdefault(logger, set()).update(levels)
            continue
        assert len(named) <= 1 or not levels, f"{path} has several loggers: {named}"
        for name in named:
            found.setdefault(name, set()).update(levels)
        assert named or not levels, f"{path} logs by a logger that this test does not see"
    return found


def on_the_page() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(jmsapi[\w.]*)` \| ([A-Z, ]+|) ?\|", PAGE, flags=re.MULTILINE)
    return {name: set(re.findall(r"[A-Z]+", levels)) for name, levels in rows}


def test_the_page_has_every_logger_with_its_levels() -> None:
    assert on_the_page() == in_the_tree()


@cache
def formats() -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{call.lineno}", call.args[0].value)
        for path, source in sources().items()
        for call in calls(source)
        if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    ]


def test_a_line_about_one_message_says_which() -> None:
    # Such a line has the label of the message, which begins with the word.
    about_one = re.compile(r"\b(a|the|this) (message|dead letter|delivery|letter)\b(?! listener| queue)")
    assert [where for where, text in formats() if about_one.search(text) and not re.search(r"message %s", text)] == []


def test_there_are_lines_to_look_at() -> None:
    assert len(formats()) > 80
