"""What happens on a disk that has no room at all: both of two things that belong together, or neither, and nothing is lost."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

import jmsapi_inproc
from jmsapi import (
    DeliveryMode,
    IllegalStateRuntimeException,
    InvalidDestinationRuntimeException,
    JMSContext,
    JMSError,
    ResourceAllocationRuntimeException,
)
from jmsapi_inproc.store import delayed as delayed_messages
from jmsapi_inproc.store import partition
from jmsapi_inproc.write_batch import WriteBatch

PATIENCE_S = 20


def wait_for(what):
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


@pytest.fixture
def subscribed(file):
    """A context; topic t has the shared durable subscription s, of which two messages wait."""
    with file.context() as context:
        topic = context.create_topic("t")
        context.create_shared_durable_consumer(topic, "s").close()
        for text in ("a", "b"):
            context.create_producer().send(topic, text)
        yield context


@contextlib.contextmanager
def held(file):
    """Let nothing be written for a while: what is asked for meanwhile waits together."""
    writer, entered, gate = file.store.writer, Event(), Event()
    commit = writer._commit

    def gated(batches):
        entered.set()
        assert gate.wait(PATIENCE_S)
        commit(batches)

    writer._commit = gated
    nothing = WriteBatch()
    nothing.sql("SELECT 1")
    writer.submit(nothing)
    try:
        assert entered.wait(PATIENCE_S)
        yield
    finally:
        writer._commit = commit
        gate.set()


def waiting(file):
    return len(file.store.writer._waiting)


# ---------------------------------------------------------------- a subscription in the place of another


@pytest.mark.parametrize(("topic", "selector"), [("t", "n = 1"), ("other", None)])
def test_a_subscription_that_cannot_be_replaced_stays_with_its_messages(file, subscribed, take_all, topic, selector):
    with file.no_room(), pytest.raises(ResourceAllocationRuntimeException, match="full"):
        subscribed.create_shared_durable_consumer(subscribed.create_topic(topic), "s", selector)
    subscribed.create_producer().send(subscribed.create_topic("t"), "c")
    subscribed.create_producer().send(subscribed.create_topic("other"), "not for s")
    assert file.places() == [("t", None)]
    with file.crashed().context() as context:
        assert take_all(context.create_shared_durable_consumer(context.create_topic("t"), "s")) == ["a", "b", "c"]
    with subscribed.create_shared_durable_consumer(subscribed.create_topic("t"), "s") as consumer:
        assert take_all(consumer) == ["a", "b", "c"]


def test_a_subscription_is_replaced_when_there_is_room_again(file, subscribed, take_all):
    with file.no_room(), pytest.raises(ResourceAllocationRuntimeException, match="full"):
        subscribed.create_shared_durable_consumer(subscribed.create_topic("t"), "s", "n = 1")
    topic = subscribed.create_topic("t")
    with subscribed.create_shared_durable_consumer(topic, "s", "n = 1") as consumer:
        subscribed.create_producer().send(topic, "no")
        subscribed.create_producer().set_property("n", 1).send(topic, "yes")
        assert take_all(consumer) == ["yes"]
    assert file.places() == [("t", "n = 1")]
    wait_for(lambda: file.rows() == 0)


@pytest.mark.parametrize("full", [False, True])
def test_what_is_published_while_a_subscription_is_being_replaced_is_in_the_one_that_stays(file, subscribed, take_all, full):
    topic, producer = subscribed.create_topic("t"), subscribed.create_producer()
    with file.context() as other, file.context() as sender, ThreadPoolExecutor(2) as pool:
        producer_too = sender.create_producer()
        only_place = (lambda statement: "place" in statement) if full else (lambda _: False)
        with file.no_room(only_place):
            with held(file):
                asked = pool.submit(other.create_shared_durable_consumer, topic, "s", "n = 1")
                wait_for(lambda: waiting(file) == 1)
                sent = pool.submit(producer_too.set_property("n", 1).send, topic, "meanwhile")
                wait_for(lambda: waiting(file) == 2)
                with pytest.raises(IllegalStateRuntimeException, match="active consumer"):
                    subscribed.unsubscribe("s")
            sent.result(PATIENCE_S)
            if full:
                with pytest.raises(ResourceAllocationRuntimeException, match="full"):
                    asked.result(PATIENCE_S)
            else:
                asked.result(PATIENCE_S).close()
        selector = None if full else "n = 1"
        producer.set_property("n", 1).send(topic, "after")
        with file.crashed().context() as context:
            left = take_all(context.create_shared_durable_consumer(context.create_topic("t"), "s", selector))
        assert left == (["a", "b", "meanwhile", "after"] if full else ["meanwhile", "after"])
        assert take_all(subscribed.create_shared_durable_consumer(topic, "s", selector)) == left


@pytest.mark.parametrize("refusals", [2, 3])
def test_of_two_consumers_that_replace_a_subscription_one_is_enough(file, subscribed, take_all, refusals):
    topic = subscribed.create_topic("t")
    refused: list[str] = []

    def full(statement):
        # Both together first, then each by itself.
        return "INTO place" in statement and len(refused) < refusals

    with file.context() as first, file.context() as second, ThreadPoolExecutor(2) as pool:
        with file.no_room(full) as refused:
            with held(file):
                asked = [pool.submit(one.create_shared_durable_consumer, topic, "s", "n = 1") for one in (first, second)]
                wait_for(lambda: waiting(file) == 2)
            errors = [one.exception(PATIENCE_S) for one in asked]
        assert sum(error is not None for error in errors) == (1 if refusals == 2 else 2)
        found = take_all(next(one for one in asked if one.exception() is None).result()) if refusals == 2 else None
        assert found in ([], None)
    assert file.places() == [("t", "n = 1" if refusals == 2 else None)]


# ---------------------------------------------------------------- its end


def test_a_subscription_that_cannot_be_ended_stays_with_its_messages_and_says_so(file, subscribed, take_all):
    topic = subscribed.create_topic("t")
    with file.no_room(), pytest.raises(ResourceAllocationRuntimeException, match="full"):
        subscribed.unsubscribe("s")
    subscribed.create_producer().send(topic, "c")
    with subscribed.create_shared_durable_consumer(topic, "s") as consumer:
        assert take_all(consumer) == ["a", "b", "c"]
    subscribed.unsubscribe("s")
    assert file.places() == []
    with pytest.raises(InvalidDestinationRuntimeException):
        subscribed.unsubscribe("s")


def test_while_it_is_written_that_a_subscription_ends_nobody_is_given_it(file, subscribed):
    with file.context() as other, ThreadPoolExecutor(1) as pool:
        with held(file):
            ends = pool.submit(subscribed.unsubscribe, "s")
            wait_for(lambda: waiting(file) == 1)
            with pytest.raises(IllegalStateRuntimeException, match="being written or ended"):
                other.create_shared_durable_consumer(other.create_topic("t"), "s")
        ends.result(PATIENCE_S)
        assert other.create_shared_durable_consumer(other.create_topic("t"), "s").receive_no_wait() is None


def test_messages_of_a_subscription_that_has_ended_are_gone_though_the_process_dies_before_they_are_taken_out(file):
    with file.context() as context:
        topic = context.create_topic("t")
        context.create_shared_durable_consumer(topic, "s").close()
        context.create_producer().send(topic, "left behind")
        context.create_producer().send(context.create_queue("q"), "kept")
        with file.no_room(lambda statement: "FROM message" in statement):
            context.unsubscribe("s")
            crashed = file.crashed()
            assert crashed.rows() == 2
            with crashed.context() as later:
                assert crashed.rows() == 1
                later.create_producer().send(later.create_queue("first place again"), "x")
            assert crashed.texts("first place again") == ["x"]
            assert crashed.texts("q") == ["kept"]
        # There is room again, and nobody writes anything.
        wait_for(lambda: file.rows() == 1)


def test_a_long_subscription_is_taken_out_a_part_at_a_time(file, monkeypatch):
    monkeypatch.setattr(partition, "_ERASED", 10)
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        topic = context.create_topic("t")
        context.create_shared_durable_consumer(topic, "s").close()
        for number in range(95):
            context.create_producer().send(topic, str(number))
        context.commit()
        before = file.store.writer.groups
        context.unsubscribe("s")
        wait_for(lambda: file.rows() == 0)
        assert file.store.writer.groups - before >= 10


# ---------------------------------------------------------------- what the broker does by itself


def test_a_delayed_message_that_falls_due_on_a_full_disk_comes_when_there_is_room_though_nothing_else_is_written(file):
    with file.context() as context:
        queue = context.create_queue("q")
        with context.create_consumer(queue) as consumer:
            with file.no_room(lambda statement: "due = NULL" in statement) as refused:
                context.create_producer().set_delivery_delay(100).send(queue, "late")
                wait_for(lambda: refused)
                assert consumer.receive_no_wait() is None
            assert consumer.receive_body(str, PATIENCE_S * 1000) == "late"


def test_what_expires_on_a_full_disk_is_taken_out_when_there_is_room(file):
    with file.context() as context:
        queue = context.create_queue("q")
        with file.no_room(lambda statement: statement.startswith("DELETE")) as refused:
            context.create_producer().set_time_to_live(100).send(queue, "short-lived")
            wait_for(lambda: refused)
            wait_for(lambda: list(context.create_browser(queue)) == [])
        wait_for(lambda: file.rows() == 0)


def test_what_is_owed_does_not_keep_others_from_being_written(file):
    with file.context() as context:
        queue, topic = context.create_queue("q"), context.create_topic("t")
        context.create_shared_durable_consumer(topic, "s").close()
        context.create_producer().send(topic, "x")
        with file.no_room(lambda statement: "FROM message" in statement) as refused:
            context.unsubscribe("s")
            wait_for(lambda: refused)
            context.create_producer().send(queue, "beside it")
        wait_for(lambda: file.rows() == 1)


def test_delayed_messages_that_are_only_in_the_file_come_though_a_subscription_with_others_has_ended(file, monkeypatch):
    monkeypatch.setattr(delayed_messages, "MOST", 2)
    with file.context() as context:
        topic, producer = context.create_topic("t"), context.create_producer()
        context.create_shared_durable_consumer(topic, "s").close()
        producer.set_delivery_delay(100_000)
        for number in range(6):
            producer.send(topic, str(number))
        producer.set_delivery_delay(200_000).send(context.create_queue("q"), "x")
        context.unsubscribe("s")
        broker = file.broker

        def delayed():
            with broker.lock:
                return [queue.name for _, queue in broker.context.scheduler.all_delayed()]

        wait_for(lambda: delayed() == ["q"])


def fails(message):
    raise ValueError(message.jms_message_id)


def test_a_dead_letter_for_which_there_is_no_room_stays_and_is_moved_once_when_there_is(file):
    with file.context(max_redeliveries=0) as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, "poison")
        with file.no_room() as refused:
            context.create_consumer(queue).message_listener = fails
            wait_for(lambda: sum("INTO message" in statement or "FROM message" in statement for statement in refused) > 2)
            with file.crashed().context() as later:
                assert [message.text for message in later.create_browser(later.create_queue("q"))] == ["poison"]
        with file.context() as other, other.create_consumer(other.create_queue("DLQ.q")) as letters:
            assert letters.receive_body(str, PATIENCE_S * 1000) == "poison"
            assert letters.receive_no_wait() is None
        wait_for(lambda: file.rows() == 0)


def test_what_is_not_persistent_is_said_to_be_left_out_when_the_broker_ends_on_a_full_disk(file, caplog):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.send(queue, "kept")
        producer.set_delivery_mode(DeliveryMode.NON_PERSISTENT).send(queue, "in memory")
        with file.no_room():
            context.close()
    assert "1 deferred changes are not written" in caplog.text
    assert file.texts("q") == ["kept"]


def test_a_temporary_queue_is_deleted_on_a_full_disk(file):
    with file.context() as context:
        queue = context.create_temporary_queue()
        with file.no_room() as refused:
            context.create_producer().send(queue, "x")
            queue.delete()
        assert refused == []
        with pytest.raises(InvalidDestinationRuntimeException):
            context.create_producer().send(queue, "y")


# ---------------------------------------------------------------- what is found when it is read


def test_a_row_that_holds_no_message_ends_the_connections_and_hides_nothing(file, monkeypatch):
    # As in a file that is too large for all rows to be checked when it is opened.
    monkeypatch.setattr("jmsapi_inproc.store.integrity.CHECKED_ROWS_BYTES", 0)
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
    with contextlib.closing(sqlite3.connect(file.path, isolation_level=None)) as connection:
        connection.execute("UPDATE message SET kind = 77")
    for look in (
        lambda context, queue: list(context.create_browser(queue)),
        lambda context, queue: context.create_consumer(queue).receive(PATIENCE_S * 1000),
    ):
        with file.context() as context, pytest.raises(JMSError) as error:
            look(context, context.create_queue("q"))
        assert error.value.error_code in ("connection", "closed")
        # Else the next connection may join the broker that is about to end.
        jmsapi_inproc.discard(file.path)
    with contextlib.closing(sqlite3.connect(file.path)) as connection:
        assert connection.execute("SELECT kind FROM message").fetchall() == [(77,)]
