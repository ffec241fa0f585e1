"""Damage in the write-ahead log of a store whose process was killed: never fewer messages without an error that names the log."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3

import pytest

import jmsapi
from jmsapi import JMSContext
from jmsapi_inproc.store import log_check

TEXTS = [f"{i:04}".ljust(500) for i in range(40)]


def beside(file, end):
    return file.path.with_name(file.path.name + end)


@pytest.fixture
def killed(file):
    """A store as a process left it that was killed, with what SQLite knows of its log."""
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        for text in TEXTS:
            context.create_producer().send(context.create_queue("q"), text)
            context.commit()
        left = file.crashed()
        shutil.copy(beside(file, "-shm"), beside(left, "-shm"))
    return left


def refused(file):
    before = {path: path.read_bytes() for path in file.path.parent.iterdir() if ".lock" not in path.name}
    for _ in range(2):
        with pytest.raises(jmsapi.JMSRuntimeException, match=r"-wal had are as they were written.*it is left as it is"):
            file.context()
    assert {path: path.read_bytes() for path in file.path.parent.iterdir() if ".lock" not in path.name} == before


def test_what_a_killed_process_has_committed_is_there(killed):
    assert killed.texts("q") == TEXTS


def test_a_log_that_is_gone_is_missed(killed):
    content = beside(killed, "-wal").read_bytes()
    beside(killed, "-wal").unlink()
    refused(killed)
    beside(killed, "-wal").write_bytes(content)
    assert killed.texts("q") == TEXTS


def test_a_log_that_is_damaged_anywhere_is_refused(killed):
    log = beside(killed, "-wal")
    content, dice = log.read_bytes(), random.Random(20_261_129)
    frames = log_check._index_of(beside(killed, "-shm")).frames
    end = 32 + frames * (24 + 4096)
    for _ in range(12):
        changed = bytearray(content)
        changed[dice.randrange(end)] ^= 1 << dice.randrange(8)
        log.write_bytes(changed)
        refused(killed)
        os.truncate(log, dice.randrange(end))
        refused(killed)
    log.write_bytes(content)
    assert killed.texts("q") == TEXTS


def test_a_log_without_its_index_is_read_as_far_as_it_goes(killed):
    beside(killed, "-shm").unlink()
    os.truncate(beside(killed, "-wal"), beside(killed, "-wal").stat().st_size // 2)
    assert 0 < len(killed.texts("q")) < 40


def test_an_index_of_before_the_machine_was_started_is_not_asked(killed):
    beside(killed, "-wal").unlink()
    os.utime(beside(killed, "-shm"), (1, 1))
    assert killed.texts("q") == []


def test_a_log_that_is_in_the_file_already_may_be_gone(killed):
    copy = type(killed)(killed.path.with_name("copy.db"))
    with contextlib.closing(sqlite3.connect(killed.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint")
        for end in ("", "-shm"):
            shutil.copy(beside(killed, end), beside(copy, end))
    assert log_check._index_of(beside(copy, "-shm")).frames > 0
    assert copy.texts("q") == TEXTS


def test_a_log_that_was_begun_anew_is_a_later_one_than_its_index_knows(killed):
    old = beside(killed, "-shm").read_bytes()
    salts = int.from_bytes(old[32:36])
    earlier = old[:32] + (salts - 1 & 0xFFFFFFFF).to_bytes(4) + old[36:]
    earlier = earlier[:48] + earlier[:48] + old[96:]
    beside(killed, "-shm").write_bytes(earlier)
    assert log_check.lost_of_log(killed.path) is None
    assert killed.texts("q") == TEXTS
