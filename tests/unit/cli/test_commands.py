"""The command ``jmsapi``: what it prints, where, and with which exit code."""

import base64
import io
import json
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import jmsapi
from jmsapi.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Stdin:
    """Standard input that holds bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


class Command:
    """Runs the command in this process."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capfd, self._monkeypatch = capfd, monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Outcome:
        self._monkeypatch.setattr(sys, "stdin", Stdin(stdin))
        code = main(arguments)
        out, err = self._capfd.readouterr()
        return Outcome(code, out, err)


@pytest.fixture
def command(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    if "url" not in request.fixturenames:
        monkeypatch.delenv("JMSAPI_URL", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    return Command(capfd, monkeypatch)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    made = f"inproc://cli-{uuid.uuid4()}"
    monkeypatch.setenv("JMSAPI_URL", made)
    return made


# ---------------------------------------------------------------- send and receive


@pytest.mark.usefixtures("url")
def test_what_is_sent_is_received(command: Command) -> None:
    assert command("send", "q", "grüß €") == (0, "", "")
    assert command("receive", "q") == (0, "grüß €\n", "")


def test_the_url_can_be_an_option(command: Command) -> None:
    url = f"inproc://cli-{uuid.uuid4()}"
    assert command("send", "q", "text", "--url", url).code == 0
    assert command("receive", "q", "-u", url).out == "text\n"


def test_the_url_can_be_the_name_of_a_factory(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jmsapi.toml").write_text(f'[factories.main]\nurl = "inproc://cli-{uuid.uuid4()}"\n')
    monkeypatch.setenv("JMSAPI_CONFIG", str(tmp_path / "jmsapi.toml"))
    assert command("send", "q", "text", "--url", "main").code == 0
    assert command("receive", "q", "--url", "main").out == "text\n"


@pytest.mark.usefixtures("url")
def test_text_comes_from_standard_input(command: Command) -> None:
    assert command("send", "q", stdin=b"from stdin\nsecond line").code == 0
    assert command("receive", "q").out == "from stdin\nsecond line\n"
    assert command("send", "q", "-", "--lines", stdin=b"one\ntwo\n").code == 0
    assert command("receive", "q", "-n", "2").out == "one\ntwo\n"


def test_lines_are_sent_as_they_come(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, encoding="utf-8") as stdin, ThreadPoolExecutor(1) as threads:
        with os.fdopen(writer, "wb", buffering=0) as tail:
            monkeypatch.setattr(sys, "stdin", stdin)
            ended = threads.submit(lambda: main(["send", "q", "--lines"]))
            with jmsapi.connection_factory(url).create_context() as context:
                consumer = context.create_consumer(context.create_queue("q"))
                for line in (b"one\r\n", b"\n", "grün\n".encode()):
                    tail.write(line)
                    assert consumer.receive_body(str, 10_000) == line.decode().strip()
                tail.write(b"no end of line")
        assert ended.result(10) == 0
        with jmsapi.connection_factory(url).create_context() as context:
            assert context.create_consumer(context.create_queue("q")).receive_body(str, 1000) == "no end of line"


@pytest.mark.usefixtures("url")
def test_bytes_go_through_unchanged(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256))
    assert main(["send", "q", "--bytes", "x"]) == 0
    assert main(["receive", "q"]) == 0
    assert capfdbinary.readouterr().out == b"x"
    monkeypatch.setattr(sys, "stdin", Stdin(content))
    assert main(["send", "q", "--bytes"]) == 0
    assert main(["receive", "q"]) == 0
    assert capfdbinary.readouterr().out == content


@pytest.mark.usefixtures("url")
def test_standard_input_that_is_no_text_is_refused(command: Command) -> None:
    outcome = command("send", "q", stdin=b"\xff\xfe")
    assert outcome.code == 2
    assert "use --bytes" in " ".join(outcome.err.split())
    assert command("receive", "q", "--create", "--timeout", "50").code == 3


@pytest.mark.usefixtures("url")
def test_headers_and_typed_properties_are_sent_and_shown(command: Command) -> None:
    sent = command(
        *("send", "q", "text", "-p", "n:int=7", "-p", "flag:boolean=true", "-p", "x:double=1.5", "-p", "s=a=b:c"),
        *("--type", "kind", "--correlation-id", "c", "--reply-to", "answers", "--priority", "7", "--non-persistent"),
    )
    assert sent == (0, "", "")
    shown = json.loads(command("receive", "q", "--json", "-s", "n = 7 AND flag AND x > 1.4").out)
    assert shown["body"] == "text"
    assert shown["properties"].items() >= {"n": 7, "flag": True, "x": 1.5, "s": "a=b:c"}.items()
    headers = shown["headers"]
    assert headers["JMSMessageID"].startswith("ID:")
    assert (headers["JMSType"], headers["JMSCorrelationID"], headers["JMSReplyTo"]) == ("kind", "c", "answers")
    assert (headers["JMSPriority"], headers["JMSDeliveryMode"], headers["JMSDestination"]) == (7, 1, "q")


@pytest.mark.usefixtures("url")
def test_bytes_are_base64_in_json(command: Command) -> None:
    command("send", "q", "--bytes", stdin=b"\x00\xff")
    assert json.loads(command("receive", "q", "--json").out)["body"] == {"base64": base64.b64encode(b"\x00\xff").decode()}


def test_maps_and_streams_are_printed_as_json(command: Command, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, {"a": 1, "b": b"\x01"})
        stream = context.create_stream_message()
        stream.write_string("x")
        stream.write_long(2)
        context.create_producer().send(queue, stream)
        context.create_producer().send(queue, context.create_message())
    lines = command("receive", "q", "-n", "3").out.splitlines()
    assert [json.loads(line) for line in lines] == [{"a": 1, "b": {"base64": "AQ=="}}, ["x", 2], None]


@pytest.mark.usefixtures("url")
def test_a_count_repeats_a_message_and_none_too_few_is_code_3(command: Command) -> None:
    assert command("send", "q", "x", "-n", "3").code == 0
    outcome = command("receive", "q", "-n", "4", "--timeout", "50")
    assert (outcome.code, outcome.out) == (3, "x\nx\nx\n")
    assert outcome.err == "jmsapi: 3 of 4 messages came within 50 ms\n"


@pytest.mark.usefixtures("url")
def test_a_count_of_0_takes_all_there_are(command: Command) -> None:
    command("send", "q", "x", "-n", "3")
    assert command("receive", "q", "-n", "0", "--timeout", "50") == (0, "x\nx\nx\n", "")


@pytest.mark.usefixtures("url")
def test_browsing_leaves_messages_where_they_are(command: Command) -> None:
    command("send", "q", "--lines", stdin=b"1\n2\n3\n")
    assert command("receive", "q", "--browse", "-n", "0").out == "1\n2\n3\n"
    assert command("receive", "q", "--browse", "-n", "2").out == "1\n2\n"
    assert command("receive", "q", "-n", "3").out == "1\n2\n3\n"


@pytest.mark.usefixtures("url")
def test_a_durable_subscription_keeps_what_is_published(command: Command) -> None:
    durable = ("receive", "t", "--topic", "--durable", "s", "--client-id", "c", "--timeout", "50")
    assert command(*durable).code == 3
    assert command("send", "t", "kept", "--topic").code == 0
    assert command(*durable).out == "kept\n"


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("send", "q", "x", "-p", "n:int=seven"), "'seven' is no int"),
        (("send", "q", "x", "-p", "n:byte=200"), "'200' is no byte"),
        (("send", "q", "x", "-p", "n:integer=7"), "no property type"),
        (("send", "q", "x", "-p", "nothing"), "NAME=VALUE"),
        (("send", "q", "x", "--priority", "10"), "priority"),
        (("send", "q", "x", "--lines"), "leave the body out"),
        (("receive", "t", "--topic", "--browse"), "only a queue can be browsed"),
        (("receive", "q", "--durable", "s"), "--durable is for topics"),
        (("recieve", "q"), "No such command"),
    ],
)
def test_wrong_use_is_code_2_and_says_what_is_wrong(command: Command, arguments: tuple[str, ...], said: str) -> None:
    outcome = command(*arguments)
    assert outcome.code == 2
    assert said in " ".join(outcome.err.split())
    assert "Traceback" not in outcome.err


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ping", "--url", "stomp://user-name:s3cret@127.0.0.1:1"), "127.0.0.1:1"),
        (("ping", "--url", "stopm://user-name:s3cret@host"), "did you mean 'stomp'?"),
        (("ping", "--url", "inproc://x?prefech=1"), "did you mean 'prefetch'?"),
        (("ping", "--url", "nothing-of-that-name"), "nothing is registered"),
        (("send", "", "x", "--url", "inproc://x"), "queue"),
    ],
)
def test_a_jms_error_is_one_line_on_standard_error(
    command: Command, arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JMSAPI_CONFIG", raising=False)
    outcome = command(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("jmsapi: ")
    assert outcome.err.count("\n") == 1
    assert said in outcome.err
    assert "s3cret" not in outcome.err
    assert "user-name" not in outcome.err


# ---------------------------------------------------------------- looking around


@pytest.mark.usefixtures("url")
def test_ping_says_who_answers_and_how_fast(command: Command) -> None:
    outcome = command("ping")
    assert outcome.code == 0
    assert "inproc on jmsapi in-process: connected in" in outcome.out
    assert "a message there and back:" in outcome.out


def test_providers_are_listed_with_their_schemes(command: Command) -> None:
    outcome = command("providers")
    assert outcome.code == 0
    assert "stomp, stomp+ssl" in outcome.out
    assert "amqp, amqps" in outcome.out
    assert "ready" in outcome.out


def test_capabilities_lists_each_with_its_level(command: Command, url: str) -> None:
    outcome = command("capabilities")
    assert outcome.code == 0
    with jmsapi.connection_factory(url).create_context() as context:
        names = list(jmsapi.capabilities(context).supports())
    assert [name for name in names if name not in outcome.out] == []
    assert "native" in outcome.out


def test_the_version_is_told(command: Command) -> None:
    assert command("--version") == (0, f"jmsapi {jmsapi.__version__}\n", "")


def test_help_lists_the_commands(command: Command) -> None:
    outcome = command("--help")
    assert outcome.code == 0
    for name in ("demo", "send", "receive", "browse", "stat", "purge", "broker", "ping", "providers", "capabilities", "selector"):
        assert name in outcome.out


# ---------------------------------------------------------------- selectors


@pytest.mark.parametrize(
    ("properties", "truth", "code"),
    [(("-p", "n:int=7"), "TRUE", 0), (("-p", "n:int=5"), "FALSE", 3), ((), "UNKNOWN", 3)],
)
def test_a_selector_can_be_tried(command: Command, properties: tuple[str, ...], truth: str, code: int) -> None:
    assert command("selector", "match", "n > 5", *properties) == (code, f"{truth}\n", "")


def test_a_selector_can_be_explained(command: Command) -> None:
    outcome = command("selector", "explain", "n > 5 AND s LIKE 'a%'", "-p", "n:int=7")
    assert outcome.code == 0
    assert "TRUE     n > 5" in outcome.out
    assert "UNKNOWN  s LIKE 'a%'" in outcome.out


def test_a_selector_can_be_checked(command: Command) -> None:
    assert command("selector", "check", "b = 1 OR a IS NULL") == (0, "valid; reads a, b\n", "")
    outcome = command("selector", "check", "b = = 1")
    assert (outcome.code, outcome.out) == (1, "")
    assert "\n  b = = 1\n      ^" in outcome.err


# ---------------------------------------------------------------- demo


def test_the_demo_tells_its_story_and_ends_well(command: Command) -> None:
    outcome = command("demo")
    assert (outcome.code, outcome.err) == (0, "")
    assert "big orders  takes order 4" in outcome.out
    assert "abroad  takes order 5" in outcome.out
    assert "abroad  takes order 4" not in outcome.out
    assert "rolled back: nothing is shipped" in outcome.out
    assert "order 3 is packed and committed (delivery 2, marked redelivered: True)" in outcome.out
    assert outcome.out.count("parcel for order 3") == 1
    assert "shipped exactly once" in outcome.out


def test_the_demo_fails_when_the_broker_loses_a_message(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from jmsapi.cli import _demo

    monkeypatch.setattr(_demo, "DESKS", {"big orders": ("cyan", "total >= 1000", [4]), "abroad": ("magenta", "FALSE", [])})
    outcome = command("demo")
    assert outcome.code == 1
    assert "the desk 'big orders' got the orders [2" in outcome.err
    assert "not [4]" in outcome.err


# ---------------------------------------------------------------- without the extra


@pytest.mark.program
@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_the_command_names_the_line_that_installs_it(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom jmsapi.cli import main\nsys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "pip install 'jmsapi[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.program
def test_the_command_is_also_a_module() -> None:
    arguments = [sys.executable, "-W", "error", "-m", "jmsapi.cli", "selector", "match", "TRUE"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "TRUE\n", "")


def test_how_a_link_is_made_is_said_on_standard_error(command: Command) -> None:
    url = "failover:(stomp://me:s3cret@127.0.0.1:1)?startupMaxReconnectAttempts=2"
    done = command("send", "q", "hello", "--url", url)
    assert done.code != 0
    assert done.out == ""
    assert "jmsapi: attempt 1: stomp://127.0.0.1:1: connect to 127.0.0.1:1" in done.err
    assert "jmsapi: attempt 2: " in done.err
    assert "tried 2 times without success" in done.err
    assert "s3cret" not in done.err
