"""What SQLite can never take fails what it belongs to, and nothing else waits, fails or ends."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future

import pytest

from jmsapi import InvalidSelectorRuntimeException, JMSContext, ResourceAllocationRuntimeException
from jmsapi import TransactionRolledBackRuntimeException as RolledBack
from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_inproc.write_batch import WriteBatch

NO_TEXT = "half of a pair: \ud800"


@pytest.fixture
def narrow(file):
    """A context whose file takes nothing above 100,000 bytes, as every file takes nothing above 1,000,000,000."""
    with file.context() as context:
        # Before anything is written: the connection is its thread's alone from then on.
        before = file.store.file.writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
        assert before > 100_000
        yield context


def test_a_message_too_big_for_the_file_is_refused_and_the_connections_go_on(file, narrow):
    queue, producer = narrow.create_queue("q"), narrow.create_producer()
    producer.send(queue, "before")
    with pytest.raises(ResourceAllocationRuntimeException, match="too big"):
        producer.send(queue, b"x" * 100_001)
    producer.send(queue, "after")
    assert file.texts("q") == ["before", "after"]


def test_a_transaction_with_a_message_too_big_is_rolled_back_as_a_whole(file, narrow):
    narrow.create_producer().send(narrow.create_queue("q"), "first")
    with file.context(JMSContext.SESSION_TRANSACTED) as transacted:
        queue, producer = transacted.create_queue("q"), transacted.create_producer()
        consumer = transacted.create_consumer(queue)
        assert consumer.receive_body(str, 20_000) == "first"
        producer.send(queue, "small")
        producer.send(queue, "x" * 100_001)
        with pytest.raises(RolledBack, match="too big"):
            transacted.commit()
        transacted.rollback()
        producer.send(queue, "second")
        transacted.commit()
    assert file.texts("q") == ["first", "second"]


def unfit(kind):
    batch = WriteBatch()
    if kind == "text":
        batch.sql("INSERT INTO place (id, topic, name) VALUES (1000, 1, ?)", NO_TEXT)
    elif kind == "number":
        batch.sql("INSERT INTO place (id, topic, name) VALUES (?, 1, 'x')", 1 << 63)
    elif kind == "type":
        batch.sql("INSERT INTO place (id, topic, name) VALUES (1000, 1, ?)", object())
    else:
        batch.sql("INSERT INTO place (id, topic, name) VALUES (1000, 1, NULL)")
    return batch


@pytest.mark.parametrize("kind", ["text", "number", "type", "constraint"])
def test_values_that_sqlite_cannot_take_fail_their_own_batch_among_others(file, kind):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "before")
        store = file.store
        bad, good = unfit(kind), WriteBatch()
        good.sql(
            "INSERT INTO place (id, topic, name, checksum) "
            "VALUES (1001, 1, 'good', record_checksum(1001, 1, 'good', NULL, NULL, 0, 0, NULL, 0))"
        )
        failed, written = bad.completion(), good.completion()
        # Both in one group.
        with store.writer._changed:
            store.submit(bad)
            store.submit(good)
        error = failed.exception(20)
        assert isinstance(error, ProviderError)
        assert error.kind is ErrorKind.RESOURCE
        assert written.result(20) is None
        context.create_producer().send(context.create_queue("q"), "after")
    assert file.texts("q") == ["before", "after"]


class _Stubborn(Future):
    def set_result(self, result):
        raise RuntimeError("nobody is there")


def test_who_cannot_be_told_keeps_nobody_else_waiting(file, caplog):
    with file.context() as context:
        store = file.store
        first, second, third = WriteBatch(), WriteBatch(), WriteBatch()
        first.future = _Stubborn()
        for batch in (first, second, third):
            batch.sql("DELETE FROM place WHERE id = 1000")
        second.completion().cancel()
        with store.writer._changed:
            for batch in (first, second, third):
                written = batch.completion()
                store.submit(batch)
        assert written.result(20) is None
        context.create_producer().send(context.create_queue("q"), "after")
    assert "a result could not be reported" in caplog.text
    assert file.texts("q") == ["after"]


def test_a_failure_that_nobody_thought_of_ends_the_connections_and_keeps_nobody_waiting(file, monkeypatch):
    with file.context() as context:
        store = file.store
        monkeypatch.setattr(store.writer, "_goes_on", lambda _: 1 / 0)
        bad = unfit("text")
        failed = bad.completion()
        store.submit(bad)
        assert failed.exception(20).kind is ErrorKind.IN_DOUBT
        late = WriteBatch()
        late.sql("DELETE FROM place WHERE id = 1000")
        done = late.completion()
        store.submit(late)
        assert done.exception(20).kind is ErrorKind.CONNECTION
        del context
    assert file.texts("q") == []


def test_a_selector_with_half_of_a_surrogate_pair_is_no_selector(file):
    with file.context() as context:
        topic, queue = context.create_topic("t"), context.create_queue("q")
        for create in (
            lambda: context.create_shared_durable_consumer(topic, "s", f"a = '{NO_TEXT}'"),
            lambda: context.create_consumer(queue, f"a = '{NO_TEXT}'"),
            lambda: context.create_browser(queue, f"a = '{NO_TEXT}'"),
        ):
            with pytest.raises(InvalidSelectorRuntimeException, match="surrogate"):
                create()
        context.create_shared_durable_consumer(topic, "s", "a = '\U0001f600'").close()
