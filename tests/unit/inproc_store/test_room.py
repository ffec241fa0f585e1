"""How much room a store leaves, and needs, so that what is in it can be taken out of a full disk."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from jmsapi import JMSContext, ResourceAllocationRuntimeException
from jmsapi import TransactionRolledBackRuntimeException as RolledBack
from jmsapi_inproc.store import file as store_file

DISK = 24_000_000
TEXT = "x" * 50_000


def used(folder):
    return sum(each.stat().st_size for each in folder.iterdir())


@pytest.fixture
def small_disk(file, monkeypatch):
    """Has the folder of the file be a disk of its own, as far as a store asks."""
    shutil_usage = type(shutil.disk_usage("/"))

    def usage(folder):
        taken = used(Path(folder))
        return shutil_usage(DISK, taken, max(0, DISK - taken))

    monkeypatch.setattr(store_file.shutil, "disk_usage", usage)


@contextlib.contextmanager
def asking(file):
    """A connection of its own: the writer's is its thread's alone."""
    with contextlib.closing(sqlite3.connect(file.path, timeout=20, isolation_level=None)) as connection:
        yield connection


def carry_over(file):
    """Have the log carried into the file; return 1 if somebody is in the way, and else 0."""
    with asking(file) as connection:
        return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


def filled(producer, queue):
    """Send until there is no room; return how many were taken."""
    for number in range(2 * DISK // len(TEXT)):
        try:
            producer.send(queue, TEXT)
        except ResourceAllocationRuntimeException:
            return number
    raise AssertionError("nothing was refused")


@pytest.mark.usefixtures("small_disk")
def test_what_is_there_when_new_messages_are_refused_can_be_taken_out_without_more_room(file):
    with file.context() as context:
        queue = context.create_queue("q")
        sent = filled(context.create_producer(), queue)
        assert sent > 50
        # The file grows by what the log has for it, and the log until it is carried over.
        with context.create_consumer(queue) as consumer:
            for _ in range(sent):
                message = consumer.receive(20_000)
                assert not message.jms_redelivered
                assert used(file.path.parent) < DISK
            # The last acknowledgement is written when there is an answer.
            assert consumer.receive_no_wait() is None
        assert carry_over(file) == 0
        assert used(file.path.parent) < DISK
        assert filled(context.create_producer(), queue) > sent // 2, "there is room again"


@pytest.mark.usefixtures("small_disk")
def test_a_transaction_for_which_there_is_no_room_is_rolled_back_and_a_smaller_one_is_not(file):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.send(queue, "small")
        context.commit()
        for _ in range(DISK // 2 // len(TEXT)):
            producer.send(queue, TEXT)
        with pytest.raises(RolledBack, match="full"):
            context.commit()
        producer.send(queue, "smaller")
        context.commit()
    assert file.texts("q") == ["small", "smaller"]


def test_a_disk_that_does_not_tell_how_large_it_is_takes_messages(file, monkeypatch):
    unknown = type(shutil.disk_usage("/"))(0, 0, 0)
    monkeypatch.setattr(store_file.shutil, "disk_usage", lambda _: unknown)
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
    assert file.texts("q") == ["x"]


def test_taking_out_a_large_message_needs_little_room(file):
    size = 5_000_000
    with file.context() as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, b"x" * size)
        assert carry_over(file) == 0
        with context.create_consumer(queue) as consumer:
            assert len(consumer.receive_body(bytes, 20_000)) == size
            assert consumer.receive_no_wait() is None
        with asking(file) as connection:
            assert connection.execute("SELECT count(*) FROM message").fetchone() == (0,)
        assert file.path.with_name(file.path.name + "-wal").stat().st_size < size // 10


def test_nothing_that_is_half_read_keeps_the_log_from_being_used_again(file):
    with file.context(JMSContext.SESSION_TRANSACTED) as context, file.context() as other:
        queue, producer = context.create_queue("q"), context.create_producer()
        # So many, and so large, that they are only in the file and each reading ends before all is read.
        for _ in range(30):
            producer.send(queue, TEXT * 10)
        context.commit()
        store = file.store
        with other.create_browser(queue) as browser:
            half_read = iter(browser)
            next(half_read)
            with context.create_consumer(queue) as consumer:
                assert consumer.receive(20_000) is not None
                with file.broker.lock:
                    assert store.reader.row(0) is None
                other.create_producer().send(queue, "one more commit")
                assert carry_over(file) == 0
                next(half_read)
                context.rollback()
