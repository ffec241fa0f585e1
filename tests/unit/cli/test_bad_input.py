"""Every command with every kind of bad input: one line on standard error, a code of the table in the reference, no traceback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import jmsapi
from jmsapi.cli import _doctor, main
from jmsapi.cli._app import app
from jmsapi.cli._doctor import CODES
from jmsapi.testing import LoopbackServer

WITH_URL: Final[dict[str, tuple[str, ...]]] = {
    "send": ("send", "q", "x"),
    "receive": ("receive", "q", "--timeout", "50"),
    "request": ("request", "q", "x", "--timeout", "50"),
    "tail": ("tail", "q", "--queue", "-n", "1"),
    "browse": ("browse", "q"),
    "stat": ("stat", "q"),
    "purge": ("purge", "q", "--yes", "--wait", "10"),
    "move": ("move", "q", "b", "--wait", "10"),
    "copy": ("copy", "q", "b"),
    "replay-dlq": ("replay-dlq", "q", "--wait", "10"),
    "export": ("export", "q"),
    "import": ("import", "q"),
    "list": ("list",),
    "delete": ("delete", "q", "--yes"),
    "ping": ("ping",),
    "doctor": ("doctor",),
    "bench": ("bench", "-n", "5", "--trips", "1"),
    "capabilities": ("capabilities",),
    "demo": ("demo",),
}
"""A call of each command that takes the URL of a broker."""
NAMED: Final = ("send", "receive", "request", "browse", "stat", "purge", "move", "copy", "replay-dlq", "export", "import")
SELECTING: Final = ("receive", "tail", "browse", "stat", "purge", "move", "copy", "replay-dlq", "export")
HOSTILE: Final = "[bold]x[/nothing]\x1b]0;taken\x07ü\udcff"
BAD_URLS: Final = (
    "",
    "nonsense",
    "http://x",
    "stomp://h:port",
    "stomp://[::",
    "failover:(",
    "stomp://h?nooption=1",
    f"inproc:{HOSTILE}",
)
BAD_LINES: Final = (
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b"[]",
    b"\x00",
    b"1" * 5000,
    b'{"body": "x", "kind": "\\u001b]0;x"}',
    b'{"body": {"a": {"b": 1}}}',
    b'{"body": "\\ud800"}',
    b'{"body": 12345678901234567890123, "kind": "text"}',
    b'{"body": "x", "headers": {"JMSPriority": 99}}',
    b'{"body": "x", "headers": {"JMSPriority": true}}',
    b'{"body": "x", "headers": {"JMSDeliveryMode": 7}}',
    b'{"body": "x", "headers": {"JMSExpiration": 1e400}}',
    b'{"body": "x", "headers": {"JMSReplyTo": ""}}',
    b'{"body": "x", "properties": {"my-key": 1}}',
    b'{"body": "x", "properties": {"a": []}}',
    b'{"body": [1], "types": {"body": ["int", "int"]}}',
)


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    """Runs a command line in this process, and holds every outcome to the house's form."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capfd, self._monkeypatch = capfd, monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        code = main(arguments)
        out, err = self._capfd.readouterr()
        ran = Ran(code, out, err)
        assert "Traceback" not in ran.err, arguments
        assert not [one for one in ran.out + ran.err if not (one.isprintable() or one in "\n\t")], arguments
        return ran

    def refused(self, *arguments: str, code: int, stdin: bytes = b"") -> str:
        """Return the one line that says what is wrong."""
        ran = self(*arguments, stdin=stdin)
        assert ran.code == code, (arguments, ran)
        if arguments[0] == "doctor" and code != 2:
            faults = [line for line in ran.out.splitlines() if "FAULT" in line]
            assert len(faults) == 1
            return faults[0]
        assert ran.err.startswith("jmsapi: ")
        assert ran.err.count("\n") == 1, (arguments, ran.err)
        return ran.err


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv("JMSAPI_URL", raising=False)
    return Command(capfd, monkeypatch)


@pytest.fixture
def url(command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker with one message in the queue q; it is the one that ``command`` uses."""
    made = f"inproc://bad-{uuid.uuid4()}"
    with jmsapi.connection_factory(made).create_context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
        monkeypatch.setenv("JMSAPI_URL", made)
        yield made


def test_every_command_is_in_the_table() -> None:
    without_url = {"providers", "broker", "run", "selector", "pipeline"}
    names = {one.name for one in app.registered_commands} | {one.name for one in app.registered_groups}
    assert names == WITH_URL.keys() | without_url


@pytest.mark.parametrize("name", WITH_URL)
def test_a_url_that_is_none_or_leads_nowhere(command: Command, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = WITH_URL[name]
    if name != "demo":  # it has a broker of its own
        assert "JMSAPI_URL" in command.refused(*arguments, code=2)
    for bad in BAD_URLS:
        command.refused(*arguments, "--url", bad, code=CODES["url"] if name == "doctor" else 1)

    def listens(host: str, port: int) -> bool:
        return False

    monkeypatch.setattr(_doctor, "_listens", listens)
    nowhere = "stomp://me:secret@127.0.0.1:1"
    text = command.refused(*arguments, "--url", nowhere, code=CODES["broker-down"] if name == "doctor" else 1)
    assert "secret" not in text


@pytest.mark.parametrize("name", WITH_URL)
def test_a_wrong_password_and_a_wrong_wire(command: Command, name: str) -> None:
    with LoopbackServer(f"inproc://bad-{uuid.uuid4()}", user="me", password="secret") as server:
        place = server.url.rpartition("@")[2].removeprefix("stomp://")
        doctor = name == "doctor"
        text = command.refused(*WITH_URL[name], "--url", f"stomp://me:wrong@{place}", code=CODES["login"] if doctor else 1)
        assert "wrong" not in text.replace("wrong user", "")
        text = command.refused(*WITH_URL[name], "--url", f"amqp://me:secret@{place}", code=CODES["wrong-wire"] if doctor else 1)
        assert "this port speaks STOMP; your URL says AMQP" in text


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("name", WITH_URL)
def test_options_that_are_none(command: Command, name: str) -> None:
    assert "--nothing" in command.refused(*WITH_URL[name], "--nothing", code=2)
    assert f"see `jmsapi {name} -h`" in command.refused(*WITH_URL[name], "x", "y", "z", "--help-me", code=2)


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("name", SELECTING)
def test_a_bad_selector_is_marked_where_it_is_wrong(command: Command, name: str) -> None:
    ran = command(*WITH_URL[name], "--selector", "weight > AND b")
    said, selector, mark = ran.err.splitlines()
    assert ran.code == 1
    assert said.startswith("jmsapi: invalid selector: ")
    assert selector.index("AND") == mark.index("^")


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("name", NAMED)
def test_names_that_are_hostile_or_none(command: Command, name: str) -> None:
    _, _, *rest = WITH_URL[name]
    assert "the name of a queue" in command.refused(name, "", *rest, code=1)
    ran = command(name, HOSTILE.removesuffix("\udcff"), *rest)
    assert ran.code == {"send": 0, "import": 0, "request": 3}.get(name, 4)
    command(name, HOSTILE, *rest)


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize(
    "given", ["my-key=1", "=1", "a", "a:colour=1", "a:byte=300", "a:byte=", "a:int=\x1b", "[bold]x[/n]=1", "JMSFoo=1", "NULL=1"]
)
def test_a_property_that_is_none(command: Command, given: str) -> None:
    for arguments in (WITH_URL["send"], WITH_URL["request"]):
        command.refused(*arguments, "-p", given, code=2)


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_line_that_is_no_message_is_named_by_its_number(command: Command, url: str, tmp_path: Path, line: bytes) -> None:
    lines = b'{"body": "x"}\n' + line
    (tmp_path / "lines").write_bytes(lines)
    for arguments in (("import", "to", "--file", str(tmp_path / "lines")), ("import", "to"), ("send", "to", "--json")):
        assert "line 2" in command.refused(*arguments, code=2, stdin=lines)
    with jmsapi.connection_factory(url).create_context() as context:  # a transaction that fails sends none of its lines
        assert context.create_consumer(context.create_queue("to")).receive_body(str, 1000) == "x"
        assert context.create_consumer(context.create_queue("to")).receive_no_wait() is None


@pytest.mark.usefixtures("url")
def test_files_that_cannot_be_read_or_written(command: Command, tmp_path: Path) -> None:
    missing = str(tmp_path / "none" / "file")
    for arguments in (("import", "q"), ("export", "q"), ("export", "q", "--consume")):
        for file in (missing, str(tmp_path)):
            command.refused(*arguments, "--file", file, code=2)
    for file in (missing, str(tmp_path)):
        command.refused("pipeline", "check", file, code=2)
        command.refused("pipeline", "run", file, code=2)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    command.refused("pipeline", "check", str(tmp_path / "binary"), code=1)


def test_what_needs_no_url(command: Command) -> None:
    for arguments in (
        *(("broker", "nonsense"), ("broker", "--user", "x"), ("broker", "--port", "70000")),
        *(("run", "nothing"), ("run", "nothing:x"), ("run", ":"), ("run", "os:nothing")),
        *(("selector", "check"), ("selector", "nothing"), ("providers", "x"), ("nothing",), ("--nothing",)),
    ):
        command.refused(*arguments, code=2)
    for arguments in (("broker", "inproc:///none/x.db"), ("broker", "inproc:///etc/passwd"), ("run", "os:path")):
        command.refused(*arguments, code=1)


def test_an_import_that_began_behind_lines_goes_on_behind_them(command: Command, url: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"body": "x"}\n' * 30 + "{\n")
    err = command("import", "q", "--file", str(tmp_path / "lines"), "--skip", "20", "--url", url).err
    assert err.startswith("jmsapi: go on with --skip 20\n")


def test_an_export_leaves_files_that_are_there(command: Command, url: str, tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_text("kept\n")
    assert command("export", "none", "--file", str(file)).code == 4
    assert file.read_text() == "kept\n"
    # What it takes may have its only copy in a file, also when it is run again after a kill.
    err = command("export", "q", "--consume", "--wait", "10", "--file", str(file), "--url", url).err
    assert err.splitlines()[0] == f"jmsapi: {file} had lines in it; they are in {file}.1 now"
    assert (tmp_path / "messages.1").read_text() == "kept\n"
    assert json.loads(file.read_text())["body"] == "x"


_UNREAD: Final = """
import json, os, sys, jmsapi, jmsapi.config, jmsapi_inproc.options, rich.table, typer.rich_utils
from jmsapi.cli import _app, main

left = []
for arguments in json.loads(sys.argv[1]):
    reader, writer = os.pipe()
    os.close(reader)
    errors, tell = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writer, 1)
        os.dup2(tell, 2)
        with jmsapi.connection_factory("inproc://unread").create_context() as context:
            for number in range(3):
                context.create_producer().send(context.create_queue("q"), str(number))
            code = main(arguments)
        sys.exit(code)
    os.close(writer)
    os.close(tell)
    said = open(errors, "rb").read()
    left.append([arguments[0], os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()])
print(json.dumps(left))
"""


@pytest.mark.program
def test_a_reader_who_has_left_ends_every_command_quietly() -> None:
    quiet = {"send", "request", "import", "delete"}  # nothing to print, or nobody who answers
    calls = [list(arguments) for name, arguments in WITH_URL.items() if name not in quiet]
    calls += [["providers"], ["selector", "check", "a = 1"], ["move", "-h"], ["--version"]]
    environment = {**os.environ, "JMSAPI_URL": "inproc://unread"}
    ran = subprocess.run(
        [sys.executable, "-c", _UNREAD, json.dumps(calls)], env=environment, capture_output=True, timeout=300, check=True
    )
    left = json.loads(ran.stdout)
    assert left == [[arguments[0], 141, ""] for arguments in calls]
