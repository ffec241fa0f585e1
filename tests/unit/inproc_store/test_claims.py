"""Whose a stored broker's file is; files that were removed, replaced or cut, open and not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import jmsapi
from jmsapi import JMSContext, JMSRuntimeException
from jmsapi.spi import ProviderError
from jmsapi_inproc.store import file as store_file
from jmsapi_inproc.store import reader, schema

OPEN = """
import sys, jmsapi
try:
    with jmsapi.connection_factory(sys.argv[1]).create_context() as context:
        print("opened", context.create_consumer(context.create_queue("q")).receive_body(str, 1000))
except jmsapi.JMSRuntimeException as error:
    print(error.error_code, error)
"""
FORK = """
import os, sys, jmsapi
factory = jmsapi.connection_factory(sys.argv[1])
context = factory.create_context()
queue, producer = context.create_queue("q"), context.create_producer()
consumer = context.create_consumer(context.create_queue("r"))
producer.send(queue, "before")

def said(call):
    try:
        return call() or "done"
    except jmsapi.JMSRuntimeException as error:
        return str(error)

child = os.fork()
if not child:
    calls = (
        lambda: producer.send(queue, "from the child"),
        lambda: context.create_consumer(queue),
        lambda: context.create_queue("q") and context.create_producer().send(context.create_queue("new"), "x"),
        consumer.close,
        context.close,
        lambda: factory.create_context(),
    )
    for call in calls:
        print(said(call), flush=True)
    os._exit(0)
os.waitpid(child, 0)
producer.send(queue, "after")
context.close()
"""
ORPHAN = """
import os, sys, jmsapi
context = jmsapi.connection_factory(sys.argv[1]).create_context()
context.create_producer().send(context.create_queue("q"), "x")
if not os.fork():
    print("here", flush=True)
    sys.stdin.read()
os._exit(0)
"""
ENDS = ("", "-wal", "-journal")


def second_process(url):
    """Say what another process finds that opens the file."""
    return subprocess.run([sys.executable, "-c", OPEN, url], capture_output=True, text=True, timeout=120, check=True).stdout


def beside(file, end):
    return file.path.with_name(file.path.name + end)


def contents(file):
    return {end: beside(file, end).read_bytes() for end in ENDS if beside(file, end).exists()}


def refused(file, words):
    before = contents(file)
    with pytest.raises(JMSRuntimeException, match=words) as raised:
        file.context()
    assert contents(file) == before, "a file that was refused was written to, removed or made"
    return raised.value


@pytest.fixture
def crashed(file):
    """A file as a process left it that was killed: what is in it is in its log."""
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        for i in range(50):
            context.create_producer().send(context.create_queue("q"), f"{i:04}".ljust(500))
        context.commit()
        left = file.crashed()
    assert beside(left, "-wal").stat().st_size > 20_000
    return left


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_is_empty_or_gone_beside_its_log_is_refused_and_the_log_stays(crashed, gone):
    content = crashed.path.read_bytes()
    crashed.path.unlink()
    if not gone:
        crashed.path.touch()
    refused(crashed, "damaged.*-wal belongs to it; it is left as it is")
    crashed.path.write_bytes(content)
    assert len(crashed.texts("q")) == 50


def test_a_file_that_is_cut_beside_its_log_is_refused_and_both_stay(crashed):
    content = crashed.path.read_bytes()
    os.truncate(crashed.path, len(content) // 2)
    refused(crashed, "its end is missing")
    crashed.path.write_bytes(content)
    assert len(crashed.texts("q")) == 50


def test_a_file_whose_log_was_being_carried_into_it_is_whole(crashed):
    copy = crashed.path.with_name("copy.db")
    for end in ("", "-wal"):
        shutil.copy(beside(crashed, end), copy.with_name(copy.name + end))
    sqlite3.connect(copy).execute("PRAGMA wal_checkpoint").connection.close()
    size = crashed.path.stat().st_size
    assert copy.stat().st_size > size
    with crashed.path.open("r+b") as file:
        # The first page tells the new length; then the process was killed.
        file.write(copy.read_bytes()[:4096])
    assert len(crashed.texts("q")) == 50


def test_a_file_of_a_newer_version_keeps_its_log(crashed):
    log = beside(crashed, "-wal")
    kept = crashed.path.with_name("kept")
    database = sqlite3.connect(crashed.path)
    database.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    shutil.copy(log, kept)
    shutil.copy(crashed.path, kept.with_suffix(".db"))
    database.close()
    shutil.copy(kept, log)
    shutil.copy(kept.with_suffix(".db"), crashed.path)
    refused(crashed, "newer jmsapi")


def test_a_file_that_cannot_be_read_keeps_its_log(crashed, monkeypatch):
    def damaged(*_):
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(reader.Reader, "highest", damaged)
    refused(crashed, "malformed")
    monkeypatch.undo()
    assert len(crashed.texts("q")) == 50


def test_a_file_that_was_being_made_is_made_again(file):
    with file.context():
        pass
    content = file.path.read_bytes()
    # As a process leaves it that is killed between the first page and the others.
    file.path.write_bytes(content[:4096])
    page, length = len(content[:4096]), 512
    header = bytes.fromhex("d9d505f920a163d7") + b"".join(n.to_bytes(4, "big") for n in (0, 1, 0, length, page))
    beside(file, "-journal").write_bytes(header.ljust(length, b"\0"))
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
    assert file.texts("q") == ["x"]


def make_folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [make_folder, getattr(os, "mkfifo", None)])
def test_what_is_no_file_is_said_to_be_none_and_nothing_is_made_beside_it(file, make):
    if make is None:
        pytest.skip("no pipes here")
    make(file.path)
    with pytest.raises(JMSRuntimeException, match="it is not a regular file"):
        file.context()
    assert list(file.path.parent.iterdir()) == [file.path]


@pytest.mark.parametrize("name", ["x" * 300, "x/y"])
def test_a_name_that_cannot_be_one_of_a_file_is_refused_in_words(file, name):
    Path(file.path.parent, "x").touch()
    with pytest.raises(JMSRuntimeException, match=r"cannot be opened|no folder"):
        jmsapi.connection_factory(f"inproc://{file.path.parent}/{name}").create_context()


def test_a_file_that_cannot_be_read_later_keeps_its_log(file):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
        opened = file.store
        opened.file.reader.execute("ATTACH ':memory:' AS other")
        before = contents(file)
        with pytest.raises(ProviderError, match="reading failed"):
            list(opened.reader.query("SELECT * FROM other.message"))
        with store_file._changed:
            assert store_file._changed.wait_for(lambda: not store_file._held, 20)
    assert contents(file) == before
    assert file.texts("q") == ["x"]


@pytest.mark.skipif(os.name == "nt", reason="needs a device")
def test_a_device_is_no_file():
    assert Path(os.devnull).is_char_device()
    with pytest.raises(JMSRuntimeException, match="it is not a regular file"):
        jmsapi.connection_factory(f"inproc://{os.devnull}").create_context()


@pytest.mark.program
def test_a_copy_of_the_folder_does_not_let_a_second_process_in(file):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
        shutil.copytree(file.path.parent, file.path.with_name("backup"))
        found = second_process(file.url)
        assert found.startswith(f"in-use connect: the store {file.path}: it is open in process {os.getpid()}")
        assert context.create_consumer(context.create_queue("q")).receive_body(str, 20_000) == "x"


@pytest.mark.program
def test_without_the_file_of_the_lock_a_second_process_is_not_let_in_either(file):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
        beside(file, ".lock").unlink()
        assert second_process(file.url).startswith("in-use")
    assert file.texts("q") == ["x"]


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "link"), reason="needs hard links")
def test_another_name_of_a_file_does_not_open_it_again(file):
    other = file.path.with_name("other.db")
    with file.context() as context:
        os.link(file.path, other)
        with pytest.raises(JMSRuntimeException, match="another of its names"):
            jmsapi.connection_factory(f"inproc://{other}").create_context()
        assert second_process(f"inproc://{other}").startswith("in-use")
        context.create_producer().send(context.create_queue("q"), "x")
    assert file.texts("q") == ["x"]


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
@pytest.mark.parametrize("end", ["", "-wal", ".lock"])
@pytest.mark.parametrize("replaced", [False, True])
def test_what_is_written_to_a_file_that_was_removed_is_not_confirmed(file, end, replaced):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.send(queue, "before")
        name = beside(file, end)
        if replaced:
            shutil.copy(name, name.with_suffix(".new"))
            name.with_suffix(".new").replace(name)
        else:
            name.unlink()
        with pytest.raises(JMSRuntimeException, match="removed or replaced") as raised:
            producer.send(queue, "nowhere")
        assert raised.value.error_code == "in-doubt"


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
def test_a_file_that_takes_the_place_of_an_open_one_keeps_its_log(file, crashed):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
        for end in ("", "-wal"):
            beside(crashed, end).replace(beside(file, end))
        before = contents(file)
        with pytest.raises(JMSRuntimeException, match="removed or replaced"):
            context.create_producer().send(context.create_queue("q"), "nowhere")
    assert contents(file) == before
    beside(file, "-shm").unlink()
    assert len(file.texts("q")) == 50


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_whose_the_connection_is_and_leaves_the_file_alone(file):
    script = [sys.executable, "-W", "ignore", "-c", FORK, file.url]
    parent = subprocess.run(script, capture_output=True, text=True, timeout=120, check=True)
    send, consume, other, close_consumer, close, new = parent.stdout.splitlines()
    for answer in (send, consume, other):
        assert "the connection belongs to process" in answer
        assert "this is its child" in answer
    assert close_consumer == close == "done"
    assert "it is open in process" in new
    assert file.texts("q") == ["before", "after"]


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_outlives_its_parent_does_not_keep_the_store(file):
    script = [sys.executable, "-W", "ignore", "-c", ORPHAN, file.url]
    parent = subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline() == "here\n"
        parent.wait(20)
        assert file.texts("q") == ["x"]
    finally:
        parent.kill()
        parent.communicate(timeout=20)
