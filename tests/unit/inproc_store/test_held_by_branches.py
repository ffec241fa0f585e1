"""What a prepared branch holds outlives expiry, restarts and other ends, and the branch takes out nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest

import jmsapi
from jmsapi import DeliveryMode, Xid
from jmsapi.xa import TMENDRSCAN, TMNOFLAGS, TMSTARTRSCAN, TMSUCCESS, XA_OK

XID = Xid(1, b"global", b"branch")
OTHER = Xid(1, b"global", b"other")
ALL = TMSTARTRSCAN | TMENDRSCAN
HOUR_MS = 3_600_000


@contextmanager
def xa_context(file):
    with jmsapi.connection_factory(file.url, checked=True).create_xa_context() as made:
        yield made


def send(file, *texts, queue="q", **settings):
    with file.context() as context:
        producer = context.create_producer()
        for name, value in settings.items():
            setattr(producer, name, value)
        for text in texts:
            producer.send(context.create_queue(queue), text)


def prepare(file, accept=0, sent=(), xid=XID, **settings):
    """Prepare a branch that accepts from ``q`` and sends to it; return what a crash then leaves."""
    with xa_context(file) as context:
        queue = context.create_queue("q")
        context.xa_resource.start(xid, TMNOFLAGS)
        with context.create_consumer(queue) as consumer:
            for _ in range(accept):
                assert consumer.receive(20_000) is not None
        producer = context.create_producer()
        for name, value in settings.items():
            setattr(producer, name, value)
        for text in sent:
            producer.send(queue, text)
        context.xa_resource.end(xid, TMSUCCESS)
        assert context.xa_resource.prepare(xid) == XA_OK
        return file.crashed()


def finish(file, how, xid=XID):
    with xa_context(file) as context:
        assert xid in context.xa_resource.recover(ALL)
        if how == "commit":
            context.xa_resource.commit(xid, False)
        else:
            context.xa_resource.rollback(xid)


def in_the_file(file, statement):
    """Run a statement in the file of a broker that is closed."""
    with sqlite3.connect(file.path) as database:
        found = database.execute(statement).fetchall()
    database.close()
    return found


def expire(file):
    """Let the time of all that expires be over."""
    in_the_file(file, "UPDATE message SET expiration = 1 WHERE expiration > 0")


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_branch_whose_message_expires_takes_out_none_that_came_later(file, how):
    send(file, "expires", time_to_live=HOUR_MS)
    crashed = prepare(file, accept=1)
    expire(crashed)
    send(crashed, "sweeps", queue="elsewhere")
    send(crashed, "1", "2")
    finish(crashed, how)
    assert crashed.texts("q") == ["1", "2"]
    assert in_the_file(crashed, "SELECT count(*) FROM message WHERE body = 'expires'") == [(0,)]


@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("there", ["in the file", "in memory"])
def test_a_passing_message_that_a_branch_holds_survives_a_crash_as_the_branch_does(file, how, there):
    with file.context() as keeps_open:
        send(file, "passing", delivery_mode=DeliveryMode.NON_PERSISTENT)
        if there == "in the file":
            keeps_open.close()
        crashed = prepare(file, accept=1)
    send(crashed, "1")
    send(crashed, "2")
    finish(crashed, how)
    assert crashed.texts("q") == (["1", "2"] if how == "commit" else ["passing", "1", "2"])


def test_a_passing_message_that_a_branch_has_given_back_goes_with_the_process(file):
    with file.context():
        send(file, "passing", delivery_mode=DeliveryMode.NON_PERSISTENT)
        prepare(file, accept=1)
        finish(file, "rollback")
        crashed = file.crashed()
        assert file.texts("q") == ["passing"]
    assert crashed.texts("q") == []


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_passing_message_that_a_branch_holds_survives_an_end_in_order(file, how):
    with file.context():
        send(file, "passing", delivery_mode=DeliveryMode.NON_PERSISTENT)
        prepare(file, accept=1, sent=["sent"], delivery_mode=DeliveryMode.NON_PERSISTENT)
    finish(file, how)
    assert file.texts("q") == (["sent"] if how == "commit" else ["passing"])


def test_a_passing_message_that_a_branch_has_sent_is_there_after_a_crash_and_its_commit(file):
    crashed = prepare(file, sent=["1", "2"], delivery_mode=DeliveryMode.NON_PERSISTENT)
    send(crashed, "first")
    finish(crashed, "commit")
    assert crashed.texts("q") == ["first", "1", "2"]


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_passing_message_goes_back_among_those_that_are_only_in_the_file(file, monkeypatch, how):
    monkeypatch.setattr("jmsapi_inproc.store_waiting.MOST", 3)
    monkeypatch.setattr("jmsapi_inproc.store.PAGE", 2)
    with file.context():
        send(file, "0", "1", delivery_mode=DeliveryMode.NON_PERSISTENT)
        send(file, *map(str, range(2, 12)))
        prepare(file, accept=2)
        finish(file, how)
        crashed = file.crashed()
        assert file.texts("q") == list(map(str, range(2 if how == "commit" else 0, 12)))
    assert crashed.texts("q") == list(map(str, range(2, 12)))


def test_another_branch_is_prepared_after_what_one_has_sent_expired(file):
    crashed = prepare(file, sent=["1", "2", "3"], time_to_live=HOUR_MS)
    expire(crashed)
    send(crashed, "sweeps", queue="elsewhere")
    prepare(crashed, sent=["new 1", "new 2"], xid=OTHER)
    finish(crashed, "commit")
    finish(crashed, "commit", OTHER)
    assert crashed.texts("q") == ["new 1", "new 2"]


def test_lines_without_rows_in_a_file_of_before_are_forgotten(file):
    send(file, "gone")
    crashed = prepare(file, accept=1, sent=["gone, too"] * 3)
    in_the_file(crashed, "DELETE FROM message")
    send(crashed, "1", "2")
    prepare(crashed, sent=["3"], xid=OTHER)
    finish(crashed, "commit")
    finish(crashed, "commit", OTHER)
    assert crashed.texts("q") == ["1", "2", "3"]
    assert in_the_file(crashed, "SELECT * FROM branch_work") == []


def test_a_durable_subscription_is_not_replaced_while_a_branch_holds_a_message_of_it(file):
    with xa_context(file) as manager:
        topic = manager.create_topic("t")
        manager.xa_resource.start(XID, TMNOFLAGS)
        with manager.create_shared_durable_consumer(topic, "s") as consumer:
            with file.context() as context:
                context.create_producer().send(topic, "held")
            assert consumer.receive(20_000) is not None
        manager.xa_resource.end(XID, TMSUCCESS)
        must_not_be_replaced(file)
        assert manager.xa_resource.prepare(XID) == XA_OK
        crashed = file.crashed()
        must_not_be_replaced(file)
    must_not_be_replaced(crashed)
    send(crashed, "1", "2")
    finish(crashed, "commit")
    assert crashed.texts("q") == ["1", "2"]
    with crashed.context() as context:
        context.create_shared_durable_consumer(context.create_topic("t"), "s", "n = 1").close()
        context.unsubscribe("s")


def must_not_be_replaced(file):
    with file.context() as context:
        for topic, selector in (("t", "n = 1"), ("other", None)):
            with pytest.raises(jmsapi.JMSRuntimeException, match="commit or roll back first") as raised:
                context.create_shared_durable_consumer(context.create_topic(topic), "s", selector)
            assert raised.value.error_code == "in-use"
        with pytest.raises(jmsapi.JMSRuntimeException, match="commit or roll back first"):
            context.unsubscribe("s")
        context.create_shared_durable_consumer(context.create_topic("t"), "s").close()
