"""Files that a stored broker refuses, brings up to date, or finds no room in."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from threading import Event

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import (
    InvalidDestinationRuntimeException,
    JMSContext,
    JMSException,
    JMSRuntimeException,
    ResourceAllocationRuntimeException,
)
from jmsapi import TransactionRolledBackRuntimeException as RolledBack
from jmsapi_inproc import registry
from jmsapi_inproc.store import schema
from jmsapi_inproc.store import store as stores
from jmsapi_inproc.store import writer as store_writer

OPEN = """
import sys, jmsapi
with jmsapi.connection_factory(sys.argv[1]).create_context() as context:
    context.create_producer().send(context.create_queue("q"), "x")
    print("open", flush=True)
    sys.stdin.read()
"""


def refused(file, words):
    before = {path: path.read_bytes() for path in file.path.parent.glob("broker.db*") if not path.name.endswith(".lock")}
    with pytest.raises(JMSRuntimeException, match=words) as raised:
        file.context()
    assert str(file.path) in str(raised.value)
    for path, content in before.items():
        assert path.read_bytes() == content, "a file that was refused was written to"
    return raised.value


def filled(file, n=50):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        for i in range(n):
            context.create_producer().send(context.create_queue("q"), f"{i:04}".ljust(500))
        context.commit()


def test_a_file_of_something_else_is_left_as_it_is(file):
    file.path.write_bytes(b"letters to my aunt\n" * 500)
    refused(file, "something else")
    database = file.path
    database.unlink()
    other = sqlite3.connect(database)
    other.execute("CREATE TABLE aunt (letter)")
    other.commit()
    other.close()
    refused(file, "something else")


def test_a_file_whose_end_is_missing_is_left_as_it_is(file):
    filled(file)
    with file.path.open("r+b") as open_file:
        open_file.truncate(file.path.stat().st_size // 2 // 4096 * 4096)
    refused(file, "damaged")


def test_a_file_that_is_damaged_inside_is_said_to_be_so_and_not_made_over(file):
    filled(file, 2000)
    content = bytearray(file.path.read_bytes())
    rng = random.Random(1)
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = rng.randbytes(64)
    file.path.write_bytes(content)
    refused(file, "(malformed|damaged|failed)")


def test_a_file_of_a_newer_version_is_left_as_it_is(file):
    filled(file)
    database = sqlite3.connect(file.path)
    database.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    database.close()
    refused(file, "newer jmsapi")


def test_a_folder_that_is_not_there_is_named(file):
    with pytest.raises(JMSRuntimeException, match="no folder"):
        jmsapi.connection_factory(f"inproc://{file.path.parent}/nowhere/x.db").create_context()


def test_a_file_of_version_1_is_brought_up_to_date(file):
    row = (
        1 << 46 | 5 << 42 | 1,
        None,
        0,
        0,
        4,
        5,
        "0q",
        "ID:1",
        1,
        None,
        None,
        2,
        None,
        1,
        None,
        None,
        '{"n":7}',
        "from version 1",
    )
    with closing(sqlite3.connect(file.path, isolation_level=None)) as writer:
        writer.executescript(f"{schema.STEPS[0]}; PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 1")
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO place (id, topic, name) VALUES (1, 0, 'q')")
        writer.execute(f"INSERT INTO message VALUES ({', '.join('?' * len(row))})", row)
    version = int.from_bytes(file.path.read_bytes()[60:64], "big")
    with file.context() as context:
        message = context.create_consumer(context.create_queue("q")).receive(20_000)
        assert (message.text, message.get_int_property("n"), message.jms_message_id) == ("from version 1", 7, "ID:1")
    assert version == 1
    assert int.from_bytes(file.path.read_bytes()[60:64], "big") == schema.SCHEMA_VERSION


@pytest.mark.program
def test_a_second_process_is_told_who_has_the_file_and_gets_it_when_that_dies(file):
    first = subprocess.Popen([sys.executable, "-c", OPEN, file.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout.readline() == "open\n"
        error = refused(file, f"open in process {first.pid}")
        assert error.error_code == "in-use"
        first.kill()
        first.wait(20)
    finally:
        first.kill()
        first.communicate(timeout=20)
    assert file.texts("q") == ["x"]


def test_a_full_disk_fails_sends_and_commits_and_the_broker_goes_on(file):
    with file.context() as context, file.context(JMSContext.SESSION_TRANSACTED) as transacted:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.send(queue, "before")
        file.limit(more_pages=5)
        with pytest.raises(ResourceAllocationRuntimeException, match="full"):
            producer.send(queue, "x" * 100_000)
        consumer = transacted.create_consumer(queue)
        assert consumer.receive_body(str, 20_000) == "before"
        transacted.create_producer().send(queue, "y" * 100_000)
        with pytest.raises(RolledBack, match="full"):
            transacted.commit()
        assert consumer.receive(20_000).jms_redelivered, "what a commit could not accept comes again"
        transacted.rollback()
        consumer.close()
        producer.send(queue, "small")
        file.limit(more_pages=1_000_000)
        producer.send(queue, "z" * 100_000)
    assert [text[:6] for text in file.texts("q")] == ["before", "small", "zzzzzz"]


@pytest.mark.parametrize("both", [False, True])
def test_a_subscription_for_which_there_was_no_room_ends_with_the_last_of_its_consumers(file, monkeypatch, take_all, both):
    asked, refusals = Event(), 0
    with file.context() as first, file.context() as second, file.context() as sender, ThreadPoolExecutor(1) as pool:
        topic, writer, carry_out = sender.create_topic("t"), file.store.writer, store_writer._execute

        def no_room(connection, verb, values):
            nonlocal refusals
            # Each consumer's is tried twice: with whatever else waits, and by itself.
            if "INTO place" not in str(values) or refusals == (4 if both else 2):
                carry_out(connection, verb, values)
                return
            refusals += 1
            if refusals == 1:
                # The second one asks while the first one's answer is still open.
                asked.set()
                with writer._changed:
                    assert writer._changed.wait_for(lambda: writer._waiting, 20)
            error = sqlite3.OperationalError("full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

        monkeypatch.setattr(store_writer, "_execute", no_room)
        refused = pool.submit(first.create_shared_durable_consumer, topic, "s")
        assert asked.wait(20)
        with pytest.raises(ResourceAllocationRuntimeException, match="full") if both else nullcontext():
            consumer = second.create_shared_durable_consumer(topic, "s")
        with pytest.raises(ResourceAllocationRuntimeException, match="full"):
            refused.result(20)
        sender.create_producer().send(topic, "x")
        if both:
            with pytest.raises(InvalidDestinationRuntimeException):
                sender.unsubscribe("s")
        else:
            assert consumer.receive_body(str, 20_000) == "x"
            consumer.close()
            sender.create_producer().send(topic, "y")
    with file.context() as context:
        found = take_all(context.create_shared_durable_consumer(context.create_topic("t"), "s"))
    assert found == ([] if both else ["y"])


def test_a_disk_that_fails_ends_the_connections_and_confirms_nothing(file, monkeypatch):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.send(queue, "before")

        def fail(*_):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error

        monkeypatch.setattr(store_writer, "_execute", fail)
        with pytest.raises(JMSRuntimeException, match="I/O error"):
            producer.send(queue, "lost?")
        monkeypatch.undo()
        registry.end(registry._brokers.get(Path(os.path.realpath(file.path))) or _Gone(), None)
    assert file.texts("q") == ["before"]


class _Gone:
    name = None


def test_closing_what_is_not_open_says_so(file):
    assert not jmsapi_inproc.discard(file.path)
    with pytest.raises(JMSException, match="file"):
        jmsapi.connection_factory(f"inproc://{file.path}/")


def test_an_empty_queue_is_forgotten_and_there_is_an_end_to_how_many_there_are(file, monkeypatch):
    with file.context() as context:
        for name in ("a", "b", "c"):
            context.create_producer().send(context.create_queue(name), "x")
        assert context.create_consumer(context.create_queue("b")).receive_body(str, 20_000) == "x"
    monkeypatch.setattr(stores, "MOST_QUEUES", 4)
    with file.context() as context:
        context.create_producer().send(context.create_queue("d"), "x")
        with pytest.raises(ResourceAllocationRuntimeException, match="no more"):
            context.create_producer().send(context.create_queue("e"), "x")
    assert [file.texts(name) for name in "abcd"] == [["x"], [], ["x"], ["x"]]
