"""``jmsapi run``: what it runs, how it ends, and what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jmsapi.cli import main

WAIT_S = 60
PROGRAM = """
import os, threading
import jmsapi
from jmsapi.listener import *

factory = jmsapi.connection_factory("inproc://run")


def listener(function):
    return JMSListenerProperty("destination", "q")(JMSListenerProperty("stopDeadlineMs", "600000")(JMSQueueListener()(function)))


@listener
def quick(text: str):
    os.write(1, b"called\\n")


@listener
def hanging(text: str):
    os.write(1, b"called\\n")
    threading.Event().wait(600)


both = [quick]
prepared = deploy(quick, factory=factory, start=False)
nothing = 5
none_of_them = []
deployment_of_none = deploy(factory=factory, start=False)
with factory.create_context() as context:
    context.create_producer().send(context.create_queue("q"), "text")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@contextmanager
def running(folder: Path, app: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command until its listener is called."""
    with subprocess.Popen(
        [sys.executable, "-m", "jmsapi.cli", "run", app, *options],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "JMSAPI_URL"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            line = program.stdout.readline()
            assert line == "called\n", program.communicate(timeout=WAIT_S)
            yield program
        finally:
            program.kill()


@pytest.mark.program
@pytest.mark.parametrize(
    ("app", "options", "number"),
    [("shop:both", ("--url", "inproc://run"), signal.SIGTERM), ("shop:prepared", (), signal.SIGINT)],
)
def test_a_signal_stops_in_order_and_each_step_has_a_line(
    folder: Path, app: str, options: tuple[str, ...], number: signal.Signals
) -> None:
    with running(folder, app, *options) as program:
        program.send_signal(number)
        _, err = program.communicate(timeout=WAIT_S)
    assert program.returncode == 0, err
    steps = [line.split(" INFO ")[1] for line in err.splitlines()]
    assert steps == [
        f"{app}: starts 1 endpoints",
        "shop.quick: takes messages from queue q, by 1 consumers",
        f"{app}: stops, {number.name}",
        "shop.quick: stops",
        "shop.quick: has stopped",
        f"{app}: has stopped",
    ]


@pytest.mark.program
def test_a_second_signal_ends_at_once(folder: Path) -> None:
    with running(folder, "shop:hanging", "--url", "inproc://run") as program:
        program.send_signal(signal.SIGTERM)
        assert program.stderr is not None
        for line in program.stderr:
            if "hanging: stops" in line:
                break
        program.send_signal(signal.SIGTERM)
        assert program.wait(WAIT_S) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("app", "code", "said"),
    [
        ("shop", 2, "not of the form MODULE:NAME"),
        ("shop:missing", 2, "has no 'missing'"),
        ("no_such_module:app", 2, "there is no module"),
        ("shop:nothing", 1, "cannot be deployed"),
        ("shop:none_of_them", 2, "nothing to run"),
        ("shop:deployment_of_none", 2, "nothing to run"),
    ],
)
def test_what_cannot_be_run_is_said_in_words(
    folder: Path, app: str, code: int, said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    assert main(["run", app, "--url", "inproc://run"]) == code
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    assert said in capfd.readouterr().err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines, in "),
        ("import no_such_module_either", "ModuleNotFoundError: No module named 'no_such_module_either', in "),
        ("def (", "SyntaxError: "),
        ("import sys; sys.exit(0)", "SystemExit: 0, in "),
        ("import jmsapi; jmsapi.connection_factory('nonsense://x')", "JMSException: "),
    ],
)
@pytest.mark.parametrize("options", [[], ["--verbose"]])
def test_a_module_that_cannot_be_imported_is_one_line_and_no_success(
    tmp_path: Path,
    source: str,
    said: str,
    options: list[str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "broken_shop.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["run", "broken_shop:app", *options]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert lines[-1].startswith(f"jmsapi: 'broken_shop' cannot be imported: {said}")
    assert ("Traceback" in lines[0]) == bool(options)
    assert options or len(lines) == 1


@pytest.mark.program
def test_an_endpoint_that_gives_up_ends_the_command_with_1(folder: Path) -> None:
    with (folder / "shop.py").open("a", encoding="utf-8") as file:
        file.write('once = JMSListenerProperty("connectionRetryLimit", "0")(hanging)\n')
    done = subprocess.run(
        [sys.executable, "-m", "jmsapi.cli", "run", "shop:once", "--url", "stomp://127.0.0.1:9"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "given up after 1 attempts" in done.stderr
    assert "as nothing is left to run" in done.stderr
