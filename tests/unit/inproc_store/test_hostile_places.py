"""Who may read a store's files, and what somebody else may have put where they will be: links, other files, unusable paths."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

import jmsapi
from jmsapi import JMSError

SIBLINGS = (".lock", "-wal", "-shm", "-journal")
PRECIOUS = "precious data\n" * 10


def sibling(file, suffix):
    return file.path.with_name(file.path.name + suffix)


def modes(file):
    return {path.name: path.stat().st_mode & 0o777 for path in file.path.parent.glob("broker.db*")}


@contextlib.contextmanager
def umask(value):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def refused(file, words):
    with pytest.raises(JMSError, match=words) as raised:
        jmsapi.connection_factory(file.url).create_connection()
    assert str(file.path) in str(raised.value)


@pytest.fixture
def victim(file):
    path = file.path.with_name("precious.txt")
    path.write_text(PRECIOUS)
    yield path
    assert path.read_text() == PRECIOUS
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.fixture(params=[False, True], ids=["new", "there"])
def store(request, file):
    """A file that is not there, and one that is."""
    if request.param:
        file.texts("q")
        sibling(file, ".lock").unlink()
    return file


@pytest.mark.parametrize("mask", [0o022, 0o000, 0o777])
def test_all_files_of_a_store_are_their_owners_alone_whatever_the_umask(file, mask):
    with umask(mask):
        with file.context() as context:
            context.create_producer().send(context.create_queue("q"), "x")
            assert len(modes(file)) == 4
            assert set(modes(file).values()) == {0o600}
        assert set(modes(file).values()) == {0o600}


def test_a_rollback_journal_is_its_owners_alone(file, monkeypatch):
    seen = {}
    connect = sqlite3.connect

    class Connection(sqlite3.Connection):
        def executescript(self, script):
            super().executescript(script.replace("COMMIT", ""))
            seen.update(modes(file))
            self.execute("COMMIT")

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **given: connect(*args, factory=Connection, **given))
    with umask(0), file.context():
        assert seen["broker.db-journal"] == 0o600
        assert set(seen.values()) == {0o600}


def test_an_operator_may_give_others_rights_and_they_stay(file):
    file.texts("q")
    file.path.chmod(0o640)
    file.texts("q")
    assert modes(file)["broker.db"] == 0o640


def test_an_older_lock_file_that_all_may_read_is_closed_to_them(file):
    sibling(file, ".lock").write_text("12345")
    sibling(file, ".lock").chmod(0o644)
    with file.context():
        assert modes(file)["broker.db.lock"] == 0o600
        assert sibling(file, ".lock").read_text().strip() == str(os.getpid())


@pytest.mark.parametrize("suffix", SIBLINGS)
def test_no_symbolic_link_is_followed(store, victim, suffix):
    sibling(store, suffix).symlink_to(victim)
    refused(store, "symbolic link")


@pytest.mark.parametrize("suffix", SIBLINGS)
def test_a_symbolic_link_to_nothing_makes_no_file(store, suffix):
    target = store.path.with_name("made-by-a-link")
    sibling(store, suffix).symlink_to(target)
    refused(store, "symbolic link")
    assert not target.exists()


@pytest.mark.parametrize("suffix", SIBLINGS)
def test_a_file_with_another_name_is_not_written_to(store, victim, suffix):
    sibling(store, suffix).hardlink_to(victim)
    refused(store, "hard links")


def test_a_lock_file_that_is_something_else_is_left_as_it_is(file):
    sibling(file, ".lock").write_text(PRECIOUS)
    refused(file, "file of something else")
    assert sibling(file, ".lock").read_text() == PRECIOUS


@pytest.mark.parametrize("suffix", ["", *SIBLINGS])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused(store, suffix, make):
    sibling(store, suffix).unlink(missing_ok=True)
    make(sibling(store, suffix))
    refused(store, "not a regular file")


def test_a_link_that_takes_the_place_of_an_open_file_is_noticed(file):
    with file.context() as context:
        producer, queue = context.create_producer(), context.create_queue("q")
        producer.send(queue, "x")
        moved = file.path.with_name("moved")
        file.path.rename(moved)
        file.path.symlink_to(moved)
        with pytest.raises(JMSError, match="removed or replaced"):
            producer.send(queue, "y")
    file.path.unlink()
    moved.rename(file.path)


@pytest.mark.parametrize(
    "url",
    [
        "inproc:///tmp/a%00b.db",
        "inproc://./a%00b.db",
        "inproc:///tmp/%ED%A0%80.db",
        f"inproc:///tmp/{'x' * 300}.db",
        f"inproc:///tmp/{'x' * 250}.db",
        f"inproc:///{'x/' * 5000}x.db",
        "inproc:///dev/null",
        "inproc:///dev/full",
        "inproc:///dev/null/x.db",
        "inproc:///proc/self/mem",
        "inproc:///proc/nowhere.db",
        "inproc:///dev/fd/0",
        "inproc:///tmp",
    ],
)
def test_a_path_that_cannot_be_used_is_a_jms_exception(url):
    with pytest.raises(JMSError):
        jmsapi.connection_factory(url).create_connection()
    assert not [*Path("/tmp").glob("xxxxx*")], "files were made before the path was refused"


def test_a_lone_surrogate_in_a_path_is_a_jms_exception():
    with pytest.raises(JMSError):
        jmsapi.connection_factory("inproc:///tmp/\ud800.db").create_connection()


def test_a_folder_without_rights_is_a_jms_exception(file):
    if os.geteuid() == 0:
        pytest.skip("root may do everything")
    file.path.parent.chmod(0o500)
    try:
        refused(file, "cannot be opened")
    finally:
        file.path.parent.chmod(0o700)


def test_a_loop_of_links_is_a_jms_exception(file):
    file.path.symlink_to(file.path.with_name("other"))
    file.path.with_name("other").symlink_to(file.path)
    with pytest.raises(JMSError):
        jmsapi.connection_factory(file.url).create_connection()
