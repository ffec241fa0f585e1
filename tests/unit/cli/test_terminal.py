"""What the command line prints: by one module, with nothing in it that steers a terminal, quiet when nobody reads."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jmsapi
from jmsapi.cli import _doctor, _messages, _providers, main
from jmsapi.cli._terminal import Progress
from jmsapi.spi import Capabilities

CLI = Path(jmsapi.__file__).parent / "cli"
HOSTILE = "[bold]x[/nothing] \x1b]0;taken\x07 \x9b2J"


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_only_one_module_prints(path: Path) -> None:
    if path.name in {"_terminal.py", "__init__.py"}:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"line {node.lineno}"
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] != "rich", f"line {node.lineno}"
        if isinstance(node, ast.Attribute) and node.attr in {"write", "echo", "secho"}:
            assert ast.unparse(node.value) not in {"sys.stdout", "sys.stderr", "typer"}, f"line {node.lineno}"


def hostile() -> Capabilities:
    """Return the capabilities of a broker that names itself by markup and control characters."""
    with jmsapi.connection_factory("inproc://hostile").create_connection() as connection:
        return jmsapi.capabilities(connection).with_(broker=HOSTILE, version=HOSTILE)


@pytest.mark.parametrize(
    ("module", "command"),
    [(_providers, "capabilities"), (_messages, "ping"), (_doctor, "doctor")],
    ids=lambda one: str(one)[-12:],
)
def test_a_brokers_name_is_neither_markup_nor_control(
    module: object, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    found = hostile()
    out = Terminal()
    monkeypatch.setattr(module.jmsapi, "capabilities", lambda _: found)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert main([command, "--url", f"inproc://terminal-{command}"]) == 0
    seen = out.getvalue()
    assert "[bold]x[/nothing]" in seen
    assert "\x07" not in seen
    assert "\x9b" not in seen
    assert "\x1b]0" not in seen


def test_a_selector_error_marks_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receive", "q", "--create", "--url", "inproc://caret", "-s", "weight > AND b"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("jmsapi: invalid selector: ")
    assert lines[1].index("AND") == lines[2].index("^")


def test_a_bad_property_name_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "q", "text", "-p", "my-key=1", "--url", "inproc://names"]) == 2
    err = capsys.readouterr().err
    assert "'my-key' cannot name a property" in err
    assert err.count("\n") == 1


@pytest.mark.program
def test_a_reader_who_leaves_ends_the_command_quietly() -> None:
    command = [sys.executable, "-m", "jmsapi.cli", "selector", "explain", " OR ".join(f"a = {n}" for n in range(4000))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), err) == (141, b"")


@pytest.mark.program
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_printed_for_a_shell_that_is_not_the_one_in_use(shell: str) -> None:
    assert "jmsapi" in completing(f"source_{shell}")


@pytest.mark.program
def test_each_suggestion_is_one_line() -> None:
    given = {"_TYPER_COMPLETE_ARGS": "jmsapi receive --", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    suggestions = completing("complete_fish", **given).splitlines()
    assert len(suggestions) > 10
    assert [one for one in suggestions if not one.startswith("--")] == []


def completing(instruction: str, **given: str) -> str:
    """Ask the command what a shell asks it."""
    environment = {**os.environ, "_JMSAPI_COMPLETE": instruction, "COLUMNS": "80", **given}
    command = [sys.executable, "-c", "import sys; from jmsapi.cli import main; sys.argv = ['jmsapi']; main()"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout


def test_help_has_a_short_name_and_completion_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == 0
    assert "--show-completion" in capsys.readouterr().out
    assert main(["move", "-h"]) == 0
    assert "--limit" in capsys.readouterr().out


def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    quiet, live = io.StringIO(), Terminal()
    for stream in (quiet, live):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress("messages", 10)
        progress.add(5)
        progress.end()
    assert quiet.getvalue() == ""
    assert "5 of 10 messages" in live.getvalue()
    assert live.getvalue().endswith("\r\x1b[K")
