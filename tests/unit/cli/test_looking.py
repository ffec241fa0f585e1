"""``jmsapi browse``, ``stat`` and ``purge``: what they show, what they leave, and what a message cannot do to a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

import jmsapi
from jmsapi.cli import main
from jmsapi.spi import Address, DestinationKind, ErrorKind, MessageKind, PlainEnvelope, ProviderError
from jmsapi.testing import EmbeddedBroker, LoopbackServer
from jmsapi.testing.pytest_plugin import jms_broker, jms_clock
from jmsapi_inproc import registry
from jmsapi_inproc.broker import InProcessBroker
from jmsapi_inproc.messages import QueuedMessage
from jmsapi_inproc.queue import BrokerQueue

from ...peers.amqp_peer import AmqpPeer

__all__ = ["jms_broker", "jms_clock"]

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt\r\x00\x7f"
DEADLINE_S = 60


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(jms_broker: EmbeddedBroker, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("JMSAPI_URL", jms_broker.url)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> Ran:
        code = main(arguments)
        return Ran(code, *capfd.readouterr())

    return call


def fill(broker: EmbeddedBroker, count: int) -> None:
    for number in range(count):
        broker.queue("q").send(f"text {number}", properties={"number": number})


# ---------------------------------------------------------------- browse


def test_browse_shows_messages_and_leaves_them(run: Run, jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("q").send("a kettle", jms_type="order", properties={"total": 40}, priority=9, time_to_live_ms=60_000)
    ran = run("browse", "q")
    assert (ran.code, ran.err) == (0, "")
    row = next(line for line in ran.out.splitlines() if "kettle" in line)
    for part in ("order", "total=40", "priority 9", "expires", "'a kettle'", "2027-01-15"):
        assert part in row
    assert ran.out.splitlines()[-1] == "1 messages"
    assert len(jms_broker.queue("q").messages) == 1


def test_browse_shows_the_first_ones_and_says_that_there_are_more(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 60)
    assert run("browse", "q").out.splitlines()[-1] == "50 shown; there are more"
    assert run("browse", "q", "-n", "60").out.splitlines()[-1] == "60 messages"
    ran = run("browse", "q", "-n", "0")
    assert ran.out.splitlines()[-1] == "60 messages"
    assert "'text 59'" in ran.out


def test_browse_by_selector_as_json(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 5)
    ran = run("browse", "q", "--selector", "number > 2", "--json")
    assert [json.loads(line)["body"] for line in ran.out.splitlines()] == ["text 3", "text 4"]
    assert run("browse", "q", "--selector", "number >").code == 1


BODIES: dict[str, object] = {
    "text": "grüß €",
    "hostile": HOSTILE,
    "empty": "",
    "bytes": bytes(range(256)),
    "map": {"a": 1, "b": b"\x00", HOSTILE.replace("\x00", ""): HOSTILE},
    "stream": [1, "two", b"\x03", None, HOSTILE],
    "none": None,
}


def test_a_hundred_messages_of_every_kind_can_be_looked_at(run: Run, jms_broker: EmbeddedBroker) -> None:
    with jms_broker.connection_factory().create_context() as context:
        for index in range(100):
            queue = context.create_queue("q")
            if index % 8 == 7:
                context.create_producer().send(queue, context.create_object_message({"x": [index, HOSTILE]}))
            else:
                kind = list(BODIES)[index % 8 % 7]
                jms_broker.queue("q").send(BODIES[kind], jms_type=HOSTILE, properties={"p": HOSTILE}, correlation_id=HOSTILE)
    ran = run("browse", "q", "-n", "0")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "100 messages"
    assert_tame(ran.out)
    assert len(run("browse", "q", "-n", "0", "--json").out.splitlines()) == 100
    assert run("stat", "q").code == 0
    ran = run("purge", "q", "--yes", "--wait", "20")
    assert (ran.code, ran.out.split(" in ")[0]) == (0, "100 messages removed")
    jms_broker.queue("q").assert_empty()


def assert_tame(text: str) -> None:
    """Nothing of it steers a terminal but the colours that the table has itself."""
    own = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert [char for char in own if not char.isprintable() and char not in "\n\r\t"] == []


# ---------------------------------------------------------------- what cannot be read


def send_foreign(broker: EmbeddedBroker) -> None:
    """Send an object that this program does not load, between two that it can read."""
    with broker.connection_factory(object_allow="fractions.Fraction").create_context() as context:
        producer, queue = context.create_producer(), context.create_queue("q")
        for body in ("before", context.create_object_message(Fraction(1, 3)), "after"):
            producer.send(queue, body)


class Damaged:
    """An envelope of which some parts cannot be decoded once it lies in the queue."""

    def __init__(self, envelope: PlainEnvelope) -> None:
        self._envelope = envelope
        self.parts: set[str] = set()

    def __getattr__(self, part: str) -> Any:
        if part in self.parts:
            raise ProviderError(ErrorKind.FORMAT, f"no {part},\x1b[2J\nsecond line")
        return getattr(self._envelope, part)


def send_damaged(broker: EmbeddedBroker, *parts: str) -> None:
    with broker.connection_factory().create_context() as context:
        context.create_queue("q")
        envelope = Damaged(PlainEnvelope(MessageKind.TEXT, Address(DestinationKind.QUEUE, "q"), "text", message_id="ID:damaged"))
        place = broker_of(broker).resolve(Address(DestinationKind.QUEUE, "q"))
        assert isinstance(place, BrokerQueue)
        with broker_of(broker).lock:
            place.put(QueuedMessage(envelope, None))
        envelope.parts.update(parts)


def broker_of(broker: EmbeddedBroker) -> InProcessBroker:
    return registry._brokers[broker.url.removeprefix("inproc://")]  # pyright: ignore[reportPrivateUsage]


def test_a_body_that_cannot_be_read_is_said_to_be(run: Run, jms_broker: EmbeddedBroker) -> None:
    send_foreign(jms_broker)
    ran = run("browse", "q")
    assert (ran.code, ran.err) == (0, "")
    assert "cannot be read" in ran.out
    assert "'after'" in ran.out


@pytest.mark.parametrize("command", [("browse",), ("receive", "--browse", "-n", "0")])
def test_json_has_an_object_as_its_encoded_bytes_since_nothing_here_may_decode_it(
    run: Run, jms_broker: EmbeddedBroker, command: tuple[str, ...]
) -> None:
    send_foreign(jms_broker)
    ran = run(*command, "q", "--json")
    assert (ran.code, ran.err) == (0, "")
    before, foreign, after = map(json.loads, ran.out.splitlines())
    assert (before["body"], after["body"]) == ("before", "after")
    assert set(foreign["body"]) == {"encoded", "content_type"}
    assert "unreadable" not in foreign
    assert foreign["headers"]["JMSMessageID"].startswith("ID:")
    assert "unreadable" not in before


def test_bodies_are_browsed_past_one_that_cannot_be_read(run: Run, jms_broker: EmbeddedBroker) -> None:
    send_foreign(jms_broker)
    ran = run("receive", "--browse", "-n", "0", "q")
    assert (ran.code, ran.out) == (0, "before\nafter\n")
    assert re.fullmatch(r"jmsapi: the body of message ID:\S+ cannot be read: .*object_allow names no class.*\n", ran.err)


def test_receiving_ends_at_a_body_that_cannot_be_read_and_takes_neither_it_nor_what_is_behind_it(
    run: Run, jms_broker: EmbeddedBroker
) -> None:
    send_foreign(jms_broker)
    ran = run("receive", "q", "-n", "3")
    assert ran.code == 1
    assert re.fullmatch(r"jmsapi: the body of message ID:\S+ cannot be read: .* it goes back to its place\n", ran.err)
    assert len(ran.out.splitlines()) == 1
    left = jms_broker.queue("q").messages
    assert [type(message).__name__ for message in left] == ["ObjectMessageImpl", "TextMessageImpl"]


def test_as_json_an_object_that_cannot_be_decoded_is_received_whole(run: Run, jms_broker: EmbeddedBroker) -> None:
    send_foreign(jms_broker)
    ran = run("receive", "q", "-n", "3", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert [json.loads(line)["kind"] for line in ran.out.splitlines()] == ["text", "object", "text"]


PARTS = ("properties", "timestamp", "jms_type", "reply_to", "body")


@pytest.mark.parametrize("part", PARTS)
def test_any_other_part_that_cannot_be_read_hides_nothing_else(run: Run, jms_broker: EmbeddedBroker, part: str) -> None:
    fill(jms_broker, 1)
    send_damaged(jms_broker, part)
    table = run("browse", "q")
    assert (table.code, table.err) == (0, "")
    assert "'text 0'" in table.out
    assert ("cannot be read" in table.out) is (part != "reply_to")
    assert_tame(table.out)
    ran = run("browse", "q", "--json")
    assert (ran.code, ran.err) == (0, "")
    good, bad = map(json.loads, ran.out.splitlines())
    assert "unreadable" not in good
    name = {"timestamp": "JMSTimestamp", "jms_type": "JMSType", "reply_to": "JMSReplyTo"}
    assert list(bad["unreadable"]) == [name.get(part, part)]
    assert bad["headers"]["JMSMessageID"] == "ID:damaged"
    counted = run("stat", "q", "--json")
    assert (counted.code, json.loads(counted.out)["waiting"]) == (0, 2)


def test_what_the_output_cannot_say_is_escaped(
    jms_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jms_broker.queue("q").send("grüß €")
    with capfd.disabled(), tempfile.TemporaryFile() as file:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding="ascii", write_through=True))
        assert main(["receive", "--browse", "q", "--url", jms_broker.url]) == 0
        file.seek(0)
        assert file.read() == b"gr\\xfc\\xdf \\u20ac\n"


# ---------------------------------------------------------------- stat


def test_stat_counts_what_waits(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 3)
    jms_broker.queue("empty").send("x")
    jms_broker.queue("empty").take()
    ran = run("stat", "q", "empty", "--json")
    assert ran.code == 0
    q, empty = map(json.loads, ran.out.splitlines())
    assert q == {"queue": "q", "waiting": 3, "redelivered": 0, "oldest": jms_broker.clock.now_ms()}
    assert empty == {"queue": "empty", "waiting": 0, "redelivered": 0, "oldest": None}
    table = run("stat", "q", "empty").out
    assert "2027-01-15" in table
    assert json.loads(run("stat", "q", "--json", "-s", "number = 1").out)["waiting"] == 1


# ---------------------------------------------------------------- purge


def test_purge_asks_before_it_removes(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 2)
    ran = run("purge", "q")
    assert ran.code == 2
    assert "say --yes" in ran.err
    assert len(jms_broker.queue("q").messages) == 2


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 3, 2), ("y", 0, 0)])
def test_purge_removes_what_it_is_told_to(
    run: Run, jms_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    fill(jms_broker, 2)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    ran = run("purge", "q", "--wait", "20")
    assert ran.code == code
    assert "Remove all messages of queue 'q' on jmsapi in-process" in ran.out
    assert len(jms_broker.queue("q").messages) == left


def test_purge_takes_only_what_the_selector_picks_and_no_more_than_the_limit(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 250)
    assert run("purge", "q", "--yes", "-s", "number >= 240", "--wait", "20").out.startswith("10 messages removed in ")
    assert run("purge", "q", "--yes", "--limit", "100", "--wait", "20").out.startswith("100 messages removed in ")
    assert run("purge", "q", "--yes", "--limit", "1").out.startswith("1 messages removed in ")
    rest = [message.get_int_property("number") for message in jms_broker.queue("q").messages]
    assert rest == list(range(101, 240))


def test_purge_tells_what_was_removed_though_a_commit_fails(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 250)
    jms_broker.faults.fail("commit", nth=2)
    ran = run("purge", "q", "--yes", "--wait", "20")
    assert (ran.code, ran.out.split(" in ")[0]) == (1, "100 messages removed")
    assert ran.err.startswith("jmsapi: commit")
    assert len(jms_broker.queue("q").messages) == 150
    jms_broker.faults.assert_all_came()


def test_purge_leaves_what_it_has_not_committed_when_the_link_breaks(run: Run, jms_broker: EmbeddedBroker) -> None:
    fill(jms_broker, 150)
    jms_broker.faults.cut("commit", nth=2)
    ran = run("purge", "q", "--yes", "--wait", "20")
    assert (ran.code, ran.out.split(" in ")[0]) == (1, "100 messages removed")
    assert len(jms_broker.queue("q").messages) == 50


@pytest.mark.program
@pytest.mark.usefixtures("interruptible")
def test_a_purge_that_is_interrupted_removes_what_it_says() -> None:
    with LoopbackServer() as server, jmsapi.connection_factory(server.inproc_url).create_context() as context:
        queue = context.create_queue("q")
        for number in range(130):
            context.create_producer().send(queue, str(number))
        command = [sys.executable, "-m", "jmsapi.cli", "purge", "q", "--yes", "--wait", "60000"]
        command += ["--url", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            end = time.monotonic() + DEADLINE_S
            while list(context.create_browser(queue).enumeration):
                assert time.monotonic() < end
                time.sleep(0.02)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode not in (0, None)
        # All have come, and most often a hundred are committed by now; nobody outside can see when.
        removed = int(out.partition(" messages removed in ")[0])
        assert removed in (0, 100)
        assert "Traceback" not in err
        consumer = context.create_consumer(queue)
        assert [consumer.receive_body(str, 20_000) for _ in range(removed, 130)] == list(map(str, range(removed, 130)))


# ---------------------------------------------------------------- terminals


def on_a_terminal(url: str, *arguments: str) -> str:
    """Run the command with a terminal for its output, and return what that was sent."""
    ours, theirs = pty.openpty()
    try:
        environment = {**os.environ, "JMSAPI_URL": url, "COLUMNS": "200", "TERM": "xterm"}
        command = [sys.executable, "-m", "jmsapi.cli", *arguments]
        with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment) as process:
            os.close(theirs)
            theirs = -1
            parts: list[bytes] = []
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # its end, on Linux
                    break
                if not part:
                    break
                parts.append(part)
            assert process.wait(DEADLINE_S) == 0, b"".join(parts)
        return b"".join(parts).decode()
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


@pytest.mark.program
def test_a_message_does_not_steer_a_terminal() -> None:
    with LoopbackServer() as server, jmsapi.connection_factory(server.inproc_url).create_context() as context:
        queue = context.create_queue("q")
        # STOMP carries no NUL in a header.
        word = HOSTILE.replace("\x00", "")
        for body in (HOSTILE, HOSTILE.encode(), {"k": HOSTILE}):
            context.create_producer().set_jms_type(word).set_property("p", word).send(queue, body)
        for arguments in (("browse", "q"), ("browse", "q", "--json"), ("receive", "q", "-n", "3")):
            shown = on_a_terminal(server.url, *arguments)
            assert "owned" in shown
            assert_tame(shown)


def test_an_error_of_a_broker_does_not_steer_a_terminal(run: Run, jms_broker: EmbeddedBroker) -> None:
    jms_broker.faults.fail("create_browser", message=f"no {HOSTILE}\nsecond line")
    ran = run("browse", "q", "--create")
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1
    assert_tame(ran.err)


def test_the_name_of_a_broker_is_tame_wherever_ping_writes_it(run: Run) -> None:
    peer = AmqpPeer(f"odd {HOSTILE.replace(chr(0), '')}")
    try:
        ran = run("ping", "--url", f"{peer.url}?request_timeout_ms=500&close_timeout_ms=500")
        assert ran.out.startswith("amqp on ")
        assert "owned" in ran.out
        assert_tame(ran.out + ran.err)
    finally:
        peer.close()


# ---------------------------------------------------------------- what does not exist


@pytest.mark.parametrize(
    "command",
    [("stat",), ("browse",), ("receive",), ("receive", "--browse"), ("purge", "--yes"), ("export",), ("tail", "--queue")],
)
def test_looking_at_a_queue_does_not_make_it(run: Run, jms_broker: EmbeddedBroker, command: tuple[str, ...]) -> None:
    fill(jms_broker, 1)
    ran = run(*command, "wrong")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == "jmsapi: there is no queue 'wrong' on this broker; --create makes it\n"
    assert run("list", "--json").out == '{"queue": "q"}\n'


def test_a_queue_is_made_when_that_is_asked_for(run: Run, jms_broker: EmbeddedBroker) -> None:
    assert json.loads(run("stat", "new", "--create", "--json").out)["waiting"] == 0
    assert run("list", "--json").out == '{"queue": "new"}\n'
    assert run("stat", "new").code == 0


def test_a_broker_that_cannot_tell_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with LoopbackServer() as server:
        assert main(["stat", "new", "--url", server.url]) == 0
        told = capfd.readouterr().err
        assert (
            told == "jmsapi: loopback over stomp does not tell which queues it has: 'new' is empty, or was not there until now\n"
        )
        assert main(["stat", "new", "--create", "--url", server.url]) == 0
        assert capfd.readouterr().err == ""


# ---------------------------------------------------------------- wrong use


@pytest.mark.parametrize(
    "arguments",
    [
        ("browse",),
        ("browse", "q", "--limit", "-1"),
        ("browse", "q", "--limit", "x"),
        ("stat",),
        ("purge",),
        ("purge", "q", "--yes", "--wait", "0"),
    ],
)
def test_wrong_use_is_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2


@pytest.mark.parametrize("arguments", [("browse", "q"), ("stat", "q"), ("purge", "q", "--yes")])
def test_without_a_broker_it_says_so_in_one_line(arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    with LoopbackServer() as server:
        url = server.url
    assert main([*arguments, "--url", url]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("jmsapi: connect")


@pytest.mark.parametrize("command", ["browse", "stat"])
def test_a_queue_without_a_name_is_refused(run: Run, command: str) -> None:
    ran = run(command, "")
    assert ran.code == 1
    assert ran.err.startswith("jmsapi: ")
