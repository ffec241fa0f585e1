"""``jmsapi move``, ``copy``, ``replay-dlq``, ``export``, ``import``, ``request`` and ``tail``, in process."""

from __future__ import annotations

import io
import json
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jmsapi
from jmsapi import JMSContext, Message
from jmsapi.cli import _transfer, main
from jmsapi.cli._message_json import NotAMessage, as_json, read_line, sending_of

from .message_texts import messages_of, settable


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def url() -> str:
    return f"inproc://transfer-{uuid.uuid4()}"


@pytest.fixture
def run(url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("JMSAPI_URL", url)

    def call(*arguments: str) -> Ran:
        code = main(arguments)
        return Ran(code, *capfd.readouterr())

    return call


def fill(url: str, name: str, count: int, **properties: Any) -> JMSContext:
    """Send; the context that is returned keeps the broker."""
    context = jmsapi.connection_factory(url).create_context()
    for number in range(count):
        producer = context.create_producer().set_property("number", number)
        for key, value in properties.items():
            producer.set_property(key, value)
        producer.send(context.create_queue(name), f"text {number}")
    return context


def browsed(context: JMSContext, name: str) -> list[Message]:
    with context.create_browser(context.create_queue(name)) as browser:
        return list(browser.enumeration)


def texts(context: JMSContext, name: str) -> list[str | None]:
    return [message.get_body(str) for message in browsed(context, name)]


def test_move_takes_all_or_some_and_keeps_their_order(run: Run, url: str) -> None:
    with fill(url, "a", 250) as context:
        assert run("move", "a", "b", "--selector", "number < 10", "--wait", "50").out.startswith("10 messages moved in ")
        assert run("move", "a", "b", "--limit", "5", "--wait", "50").code == 0
        moved = json.loads(run("move", "a", "b", "--json", "--wait", "50").out)
        assert (moved["messages"], moved["expired"]) == (235, 0)
        assert texts(context, "a") == []
        assert texts(context, "b") == [f"text {number}" for number in range(250)]


def test_copy_leaves_the_messages_and_reaches_another_broker(run: Run, url: str) -> None:
    other = f"inproc://transfer-{uuid.uuid4()}"
    with fill(url, "a", 3) as context, jmsapi.connection_factory(other).create_context() as there:
        assert run("copy", "a", "b").code == 0
        assert texts(context, "a") == texts(context, "b") == ["text 0", "text 1", "text 2"]
        assert run("copy", "a", "c", "--to-url", other, "--limit", "2").code == 0
        assert texts(there, "c") == ["text 0", "text 1"]
        assert run("copy", "a", "c", "--to-url", other, "--consume", "--wait", "50").code == 0
        assert texts(context, "a") == []
        assert len(texts(there, "c")) == 5


def test_a_queue_is_not_moved_to_itself(run: Run, url: str) -> None:
    with fill(url, "a", 1):
        assert run("move", "a", "a").code == 2
        assert run("copy", "a", "a").code == 2


def test_dead_letters_go_back_to_the_queue_that_they_name(run: Run, url: str) -> None:
    with fill(url, "dlq", 2, jmsapi_dead_letter_origin="orders", jmsapi_dead_letter_cause="ValueError: no") as context:
        fill(url, "dlq", 1, _AMQ_ORIG_QUEUE="parcels").close()
        fill(url, "dlq", 1).close()
        shown = json.loads(run("replay-dlq", "dlq", "--dry-run", "--json").out)
        assert shown == {"would_replay": {"orders": 2, "parcels": 1}, "left": {"they name no queue; --to gives one": 1}}
        assert len(texts(context, "dlq")) == 4
        done = run("replay-dlq", "dlq", "--cause", "ValueError", "--wait", "50")
        assert done.out.startswith("2 messages replayed")
        assert "2 stay where they were: their cause has no 'ValueError' in it" in done.err
        assert run("replay-dlq", "dlq", "--to", "rest", "--older-than", "3600", "--wait", "50").out.startswith("0 messages")
        assert run("replay-dlq", "dlq", "--to", "rest", "--wait", "50").out.startswith("2 messages")
        assert (texts(context, "orders"), texts(context, "parcels")) == (["text 0", "text 1"], ["text 0"])
        assert (texts(context, "rest"), texts(context, "dlq")) == (["text 0"], [])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_message_and_its_json_are_equal(seed: int, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        for sent in messages_of(context, seed):
            record = read_line(json.dumps(as_json(sent)))
            again = sending_of(context, record).message
            assert settable(again) == settable(sent)


def test_export_and_import_give_equal_messages(run: Run, url: str, tmp_path: Path) -> None:
    file = str(tmp_path / "messages.jsonl")
    with jmsapi.connection_factory(url).create_context() as context:
        sent: list[Message] = [one for seed in range(20) for one in messages_of(context, seed)]
        producer = context.create_producer().set_priority(7)
        for message in sent:
            producer.send(context.create_queue("a"), message)
        assert run("export", "a", "--file", file).code == 0
        assert run("import", "b", "--file", file).code == 0
        with (
            context.create_browser(context.create_queue("a")) as here,
            context.create_browser(context.create_queue("b")) as there,
        ):
            before, after = list(here.enumeration), list(there.enumeration)
        assert len(before) == len(after) == len(sent)
        assert [settable(message) for message in after] == [settable(message) for message in before]
        assert {message.jms_priority for message in after} == {7}
        assert run("export", "a", "--file", file, "--consume", "--wait", "50").code == 0
        assert texts(context, "a") == []
        assert len(Path(file).read_text().splitlines()) == len(sent)


def test_what_browse_prints_can_be_sent(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with fill(url, "a", 2) as context:
        lines = run("browse", "a", "--json").out
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(lines.encode())})())
        assert run("send", "b", "--json").code == 0
        assert texts(context, "b") == ["text 0", "text 1"]


def test_a_bad_line_ends_an_import_with_its_number_and_the_way_on(run: Run, url: str, tmp_path: Path) -> None:
    good = json.dumps({"kind": "text", "body": "x"})
    (tmp_path / "file").write_text(f"{good}\n" * 150 + '{"kind": "text"}\n')
    with jmsapi.connection_factory(url).create_context() as context:
        done = run("import", "q", "--file", str(tmp_path / "file"))
        assert done.code == 2
        assert "line 151" in done.err
        assert "go on with --skip 100" in done.err
        assert len(texts(context, "q")) == 100


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{",
        '{"body": 5, "kind": "text"}',
        '{"body": "x", "kind": "unknown"}',
        '{"body": null, "unreadable": {"body": "broken"}}',
        '{"body": "x", "properties": {"a": 1}, "types": {"properties": {"a": "colour"}}}',
        '{"body": "x", "properties": {"a b": 1}}',
        '{"body": [1], "kind": "map"}',
        '{"body": {"base64": "?"}, "kind": "bytes"}',
        '{"body": "x", "headers": {"JMSPriority": "high"}}',
        '{"body": "x", "headers": []}',
    ],
)
def test_what_is_no_message_is_refused(line: str, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as context, pytest.raises(NotAMessage):
        sending_of(context, read_line(line))


def test_request_prints_the_reply(run: Run, url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue("ask"))

        def answer() -> None:
            message = consumer.receive(20_000)
            assert message is not None
            assert message.jms_reply_to is not None
            context.create_producer().send(message.jms_reply_to, f"got {message.get_body(str)}")

        thread = threading.Thread(target=answer)
        thread.start()
        assert run("request", "ask", "hello") == Ran(0, "got hello\n", "")
        thread.join(20)
    assert run("request", "ask", "hello", "--timeout", "50").code == 3


def test_tail_shows_a_queue_as_it_grows_and_leaves_it(run: Run, url: str) -> None:
    with fill(url, "a", 3) as context:
        done = run("tail", "a", "--queue", "-n", "3", "--json")
        assert [json.loads(line)["body"] for line in done.out.splitlines()] == ["text 0", "text 1", "text 2"]
        assert len(texts(context, "a")) == 3


def test_bench_prints_rates_and_leaves_nothing(run: Run) -> None:
    found = json.loads(run("bench", "--count", "20", "--trips", "5", "--json").out)
    assert found["send_per_s"] > 0
    assert found["round_trip_p50_ms"] <= found["round_trip_p100_ms"]


def test_a_file_of_messages_may_begin_with_a_byte_order_mark(run: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('\ufeff{"body": "one"}\n{"body": "two"}\n', encoding="utf-8")
    with jmsapi.connection_factory(url).create_context() as context:
        assert run("import", "q", "--file", str(tmp_path / "lines")).code == 0
        consumer = context.create_consumer(context.create_queue("q"))
        assert [consumer.receive_body(str, 20_000) for _ in range(2)] == ["one", "two"]


def test_an_export_that_is_interrupted_says_how_far_it_came(
    run: Run, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = _transfer._write
    batches: list[int] = []

    def interrupted(out: Any, messages: list[Message]) -> None:
        if batches:
            raise KeyboardInterrupt
        batches.append(len(messages))
        write(out, messages)

    monkeypatch.setattr(_transfer, "_write", interrupted)
    with fill(url, "q", 120):
        ran = run("export", "q", "--consume", "--wait", "100", "--file", str(tmp_path / "file"))
        assert ran.code == 130
        assert ran.err.startswith("jmsapi: 100 messages exported in ")


@pytest.mark.parametrize("command", ["move", "copy"])
def test_messages_are_not_sent_to_the_queue_they_are_in_by_another_url(command: str, run: Run) -> None:
    for url, to_url in (
        ("inproc://one", "inproc://one"),
        ("stomp://a@h/v", "failover:(stomp://g,stomp://b@h:61613/v)"),
        ("amqp://h?prefetch=1", "amqp://h:5672"),
    ):
        ran = run(command, "q", "q", "--url", url, "--to-url", to_url)
        assert ran.code == 2
        assert "SRC and DST are the same queue" in ran.err


def test_a_dead_letter_of_the_dead_letter_queue_stays(run: Run, url: str) -> None:
    with fill(url, "DLQ", 2, jmsapi_dead_letter_origin="DLQ"), fill(url, "DLQ", 1):
        ran = run("replay-dlq", "DLQ", "--to", "DLQ", "--json")
        assert (ran.code, json.loads(ran.out)["messages"]) == (0, 0)
        assert json.loads(ran.out)["left"] == {"they would go to the queue that they are in": 3}
