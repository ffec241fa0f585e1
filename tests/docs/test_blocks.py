"""Every block of code in the pages: Python compiles and names what there is, what stands alone runs, the rest can be read.

The generated pages below docs/reference and docs/specification have tests of their own.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import typer
import yaml  # type: ignore[import-untyped]

import jmsapi
from jmsapi.cli._app import app

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "conformance" / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"reference", "specification"} & set(path.parts)),
]
NOT_RUN: Final[dict[str, str]] = {"docs/injection.md: from jmsapi.injection import Injector": "goes on from the block before it"}
"""Of the programs that make a connection in process: the page and first line of one that is not run, and why."""


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^( *)```(\w+)\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            body = "".join(one.removeprefix(match[1]) for one in match[3].splitlines(keepends=True))
            found.append(Block(str(page.relative_to(ROOT)), line, match[2], body))
    return [block for block in found if block.language in languages]


def standing_alone() -> list[Block]:
    return [block for block in blocks("python") if re.search(r"connection_factory\(\"inproc://", block.text)]


def test_every_language_of_a_block_is_looked_at() -> None:
    looked_at = {"python", "toml", "json", "yaml", "sh", "text", "ini", "java", "mermaid", "dockerfile", "sql", "xml", "console"}
    assert {block.language for page in PAGES for block in blocks(*_languages(page))} <= looked_at


def _languages(page: Path) -> set[str]:
    return set(re.findall(r"^ *```(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_compiles_and_names_what_there_is(block: Block) -> None:
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "jmsapi":
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}"), name.name
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "jmsapi":
                    importlib.import_module(name.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jmsapi":
            assert hasattr(jmsapi, node.attr) or importlib.util.find_spec(f"jmsapi.{node.attr}"), node.attr


@pytest.mark.program
@pytest.mark.parametrize("block", standing_alone(), ids=str)
def test_what_stands_alone_runs(block: Block, tmp_path: Path) -> None:
    why = NOT_RUN.get(f"{block.page}: {block.text.splitlines()[0]}")
    if why is not None:
        pytest.skip(why)
    (tmp_path / "program.py").write_text(block.text, encoding="utf-8")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", blocks("toml", "json", "yaml"), ids=str)
def test_settings_can_be_read(block: Block) -> None:
    read: dict[str, Callable[[str], object]] = {"toml": tomllib.loads, "json": json.loads, "yaml": _yaml}
    read[block.language](block.text)


def _yaml(text: str) -> object:
    return list(yaml.safe_load_all(text))


@pytest.mark.program
@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_commands_can_be_read_and_their_options_exist(block: Block) -> None:
    assert subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False).stderr == ""
    group: Any = typer.main.get_command(app)
    commands: dict[str, Any] = group.commands
    for line in block.text.replace("\\\n", " ").splitlines():
        for name, rest in re.findall(r"(?:^|[|;&(] *)jmsapi ([a-z][\w-]*)([^|;&#]*)", line):
            command: Any = commands[name]
            each: dict[str, Any] = getattr(command, "commands", {"": command})
            for option in re.findall(r"(?<=\s)(--[a-z][\w-]*)", rest):
                known = {one for part in each.values() for one in _options(part)}
                assert option in known | {"--help"}, f"{name} {option}"


def _options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
