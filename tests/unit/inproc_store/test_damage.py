"""Damage in a store's file, wherever it is: an error that names the file, and never fewer or other messages."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import DeliveryMode, JMSContext, JMSError, Xid
from jmsapi.xa import TMNOFLAGS, TMSTARTRSCAN, TMSUCCESS
from jmsapi_inproc.store import integrity
from jmsapi_inproc.store.schema import add_functions

PATIENCE_MS = 20_000
XID = Xid(1, b"global", b"branch")
EXPECTED = {
    "q": ["0", "1", "2", "3", "4", "passing"],
    "other": ["alone"],
    "s": ["copy"],
    "branch": ["prepared"],
    "delayed": ["late"],
}


def fill(file):
    """Make a store with a row of every kind: two queues, a subscription, delayed and passing messages, a prepared branch."""
    with file.context() as context:
        context.create_shared_durable_consumer(context.create_topic("t"), "s").close()
        producer = context.create_producer()
        producer.send(context.create_queue("q"), "held")
        with xa_context(file) as xa:
            xa.xa_resource.start(XID, TMNOFLAGS)
            assert xa.create_consumer(xa.create_queue("q")).receive_body(str, PATIENCE_MS) == "held"
            xa.create_producer().send(xa.create_queue("branch"), "prepared")
            xa.xa_resource.end(XID, TMSUCCESS)
            xa.xa_resource.prepare(XID)
        for i in range(5):
            producer.set_property("n", i).send(context.create_queue("q"), str(i))
        producer.clear_properties().send(context.create_queue("other"), "alone")
        producer.send(context.create_topic("t"), "copy")
        producer.set_delivery_mode(DeliveryMode.NON_PERSISTENT).send(context.create_queue("q"), "passing")
        producer.set_delivery_mode(DeliveryMode.PERSISTENT).delivery_delay = 400
        producer.send(context.create_queue("delayed"), "late")


def xa_context(file):
    return jmsapi.connection_factory(file.url).create_xa_context()


def found(file):
    """Return all that is in the store, by queue; the prepared branch is committed."""
    with xa_context(file) as context:
        for xid in context.xa_resource.recover(TMSTARTRSCAN):
            context.xa_resource.commit(xid, False)
    with file.context(JMSContext.DUPS_OK_ACKNOWLEDGE) as context:
        texts = {}
        for name in ("q", "other", "branch", "s", "delayed"):
            if name == "s":
                consumer = context.create_shared_durable_consumer(context.create_topic("t"), "s")
            else:
                consumer = context.create_consumer(context.create_queue(name))
            texts[name] = []
            # What is not there yet is waited for only where something is delayed.
            take = (lambda c: c.receive(2000)) if name == "delayed" else (lambda c: c.receive_no_wait())
            while (message := take(consumer)) is not None:
                texts[name].append(message.text)
                if name == "delayed":
                    break
        return texts


@pytest.fixture
def filled(file):
    fill(file)
    return file


def change(file, statement, *values):
    with contextlib.closing(sqlite3.connect(file.path, isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount == 1


def refused(file):
    """The file is refused, twice, and left as it is."""
    before = file.path.read_bytes()
    for _ in range(2):
        with pytest.raises(JMSError, match="damaged") as raised:
            file.context()
        assert str(file.path) in str(raised.value)
        assert file.path.read_bytes() == before


def test_what_is_undamaged_is_all_there(filled):
    assert found(filled) == EXPECTED


@pytest.mark.parametrize("number", [1 << 62, 1 << 40, 77, -1])
def test_a_queue_whose_number_was_changed_is_damage(filled, number):
    change(filled, "UPDATE place SET id = ? WHERE name = 'other'", number)
    refused(filled)


@pytest.mark.parametrize(
    ("table", "row", "column", "value"),
    [
        ("place", "name = 'q'", "name", "'r'"),
        ("place", "name = 'q'", "topic", "1"),
        ("place", "name = 'q'", "grouped", "1"),
        ("place", "name = 't'", "topic", "0"),
        ("place", "name = 't'", "client_id", "'c'"),
        ("place", "name = 't'", "subscription", "'r'"),
        ("place", "name = 't'", "shared", "0"),
        ("place", "name = 't'", "no_local", "1"),
        ("place", "name = 't'", "selector", "'FALSE'"),
        ("place", "name = 't'", "checksum", "NULL"),
        ("place", "id = 0", "id", "99"),
        ("message", "body = '0'", "body", "'1'"),
        ("message", "body = '0'", "properties", "'{\"n\":1}'"),
        ("message", "body = '0'", "expiration", "1"),
        ("message", "body = '0'", "delivery_mode", "1"),
        ("message", "body = '0'", "priority", "9"),
        ("message", "body = '0'", "count", "100"),
        ("message", "body = '0'", "kind", "3"),
        ("message", "body = '0'", "key", "key + 1000"),
        ("message", "body = '0'", "key", "key - (key >> 46 << 46)"),
        ("message", "body = '0'", "key", "key | 15 << 42"),
        ("message", "body = '0'", "key", "(key >> 46 << 46) | 12 << 42 | 1"),
        ("message", "body = '0'", "key", "key + (5 << 46)"),
        ("message", "body = '0'", "due", "9000000000000"),
        ("message", "body = 'late'", "due", "9000000000000"),
        ("message", "body = 'late'", "due", "NULL"),
        ("message", "body = 'prepared'", "key", "key + 1000"),
        ("message", "body = 'held'", "key", "key + 1000"),
        ("branch", "TRUE", "id", "id + 1"),
        ("branch", "TRUE", "global_id", "x'00'"),
        ("branch_work", "sent = 1", "sent", "0"),
        ("branch_work", "sent = 0", "sent", "1"),
        ("branch_work", "sent = 1", "key", "key + 1000"),
        ("branch_work", "sent = 0", "branch", "branch + 1"),
    ],
)
def test_a_row_that_was_changed_is_damage(filled, table, row, column, value):
    change(filled, f"UPDATE {table} SET {column} = {value} WHERE {row}")
    refused(filled)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM place WHERE name = 'other'",
        "DELETE FROM place WHERE name = 't'",
        "DELETE FROM branch",
        "DELETE FROM branch_work WHERE sent = 1",
        "DELETE FROM message WHERE body = 'held'",
        "INSERT INTO erasing SELECT id FROM place WHERE name = 'q'",
    ],
)
def test_a_row_to_which_others_belong_is_missed(filled, statement):
    change(filled, statement)
    refused(filled)


@pytest.mark.parametrize("what", ["expiration = 1", "delivery_mode = 1", "body = 'x'", "properties = NULL"])
def test_in_a_file_too_large_to_check_it_all_a_changed_message_is_found_when_it_is_read_and_not_deleted(file, monkeypatch, what):
    monkeypatch.setattr(integrity, "CHECKED_ROWS_BYTES", 0)
    monkeypatch.setattr(integrity, "CHECKED_PAGES_BYTES", 0)
    with file.context() as context:
        context.create_producer().set_property("n", 1).send(context.create_queue("q"), "first")
        crashed = file.crashed()
    change(crashed, f"UPDATE message SET {what}")
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            context = stack.enter_context(crashed.context())
            # This deletes what has expired.
            context.create_producer().send(context.create_queue("other"), "x")
            with pytest.raises(JMSError) as raised:
                context.create_consumer(context.create_queue("q")).receive(PATIENCE_MS)
            assert "checksum" in str(raised.value) or raised.value.error_code in ("connection", "closed")
        # Otherwise the next connection may join the broker that is about to end.
        jmsapi_inproc.discard(crashed.path)


def test_a_message_whose_count_and_place_have_changed_in_order_is_sound(file):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        producer, queue = context.create_producer(), context.create_queue("q")
        producer.set_property("JMSXGroupID", "g").send(queue, "grouped")
        producer.clear_properties().delivery_delay = 1
        producer.send(queue, "delayed")
        context.commit()
        for _ in range(3):
            consumer = context.create_consumer(queue)
            assert {consumer.receive(PATIENCE_MS).text for _ in range(2)} == {"grouped", "delayed"}
            context.rollback()
            consumer.close()
    with file.context() as context:
        consumer = context.create_consumer(queue)
        counts = [consumer.receive(PATIENCE_MS).get_int_property("JMSXDeliveryCount") for _ in range(2)]
        assert counts == [4, 4]


def test_a_file_of_version_2_gets_checksums(filled):
    filled.make_version_2()
    filled.path.chmod(0o644)
    with filled.context():
        assert filled.path.stat().st_mode & 0o777 == 0o600, "the older version let everybody read it"
    with contextlib.closing(sqlite3.connect(filled.path)) as connection:
        assert connection.execute("SELECT count(*) FROM message WHERE checksum IS NULL").fetchone() == (0,)
    change(filled, "UPDATE message SET body = 'x' WHERE body = '0'")
    refused(filled)


def test_what_a_file_of_version_2_has_is_all_there_afterwards(filled):
    filled.make_version_2()
    assert found(filled) == EXPECTED


def test_a_queue_that_was_being_erased_when_the_process_ended_is_no_damage(file, monkeypatch):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        context.create_shared_durable_consumer(context.create_topic("t"), "s").close()
        for i in range(30):
            context.create_producer().send(context.create_topic("t"), str(i))
        context.create_producer().send(context.create_queue("q"), "kept")
        context.commit()
        monkeypatch.setattr("jmsapi_inproc.store.partition._ERASED", 10)
        with file.no_room(lambda statement: statement.startswith("DELETE FROM message")):
            context.unsubscribe("s")
            crashed = file.crashed()
    assert crashed.rows() == 31
    assert crashed.texts("q") == ["kept"]
    assert crashed.rows() == 0


def flips(content, seed, n):
    """Give places of bits, most of them where there is something."""
    rng = random.Random(seed)
    used = [at for at, byte in enumerate(content) if byte or at % 4096 < 64]
    for _ in range(n):
        yield rng.choice(used), 1 << rng.randrange(8)


@pytest.mark.parametrize("seed", range(4))
def test_a_bit_that_has_flipped_anywhere_is_an_error_or_changes_nothing(filled, seed):
    content = filled.path.read_bytes()
    errors = 0
    for at, bit in flips(content, seed, 200):
        damaged = bytearray(content)
        damaged[at] ^= bit
        filled.path.write_bytes(damaged)
        for end in ("-wal", "-shm"):
            filled.path.with_name(filled.path.name + end).unlink(missing_ok=True)
        try:
            assert found(filled) == EXPECTED, f"bit {bit:#x} of byte {at}"
        except JMSError as error:
            assert str(filled.path) in str(error), f"bit {bit:#x} of byte {at}"
            errors += 1
        jmsapi_inproc.discard(filled.path)
    assert errors > 100


def test_the_check_of_a_file_finds_it_sound_after_each_way_of_using_it(filled):
    copy = filled.path.with_name("copy.db")
    shutil.copy(filled.path, copy)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        add_functions(connection)
        assert integrity.damage_of(connection, copy.stat().st_size) is None
