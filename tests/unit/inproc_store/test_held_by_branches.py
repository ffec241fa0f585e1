"""What a prepared branch holds outlives expiry, restarts and other ends, and the branch takes out nothing else."""

from __future__ import annotations

import itertools
import random
import sqlite3
from contextlib import contextmanager

import pytest

import jmsapi
from jmsapi import DeliveryMode, JMSContext, Xid
from jmsapi.xa import TMENDRSCAN, TMNOFLAGS, TMSTARTRSCAN, TMSUCCESS, XA_OK, XA_RBOTHER, XAException

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
    file.change("UPDATE message SET expiration = 1 WHERE expiration > 0")


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_branch_whose_message_expires_takes_out_none_that_came_later(file, how):
    send(file, "expires", time_to_live=HOUR_MS)
    crashed = prepare(file, accept=1)
    expire(crashed)
    send(crashed, "sweeps", queue="elsewhere")
    assert in_the_file(crashed, "SELECT body FROM message WHERE key IN (SELECT key FROM branch_work)") == [("expires",)]
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
    monkeypatch.setattr("jmsapi_inproc.store.paging.MOST", 3)
    monkeypatch.setattr("jmsapi_inproc.store.partition.PAGE", 2)
    with file.context():
        send(file, "0", "1", delivery_mode=DeliveryMode.NON_PERSISTENT)
        send(file, *map(str, range(2, 12)))
        prepare(file, accept=2)
        finish(file, how)
        crashed = file.crashed()
        assert file.texts("q") == list(map(str, range(2 if how == "commit" else 0, 12)))
    assert crashed.texts("q") == list(map(str, range(2, 12)))


def test_a_passing_message_between_rows_that_are_only_in_the_file_is_not_read_from_there(file):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        producer, queue = context.create_producer(), context.create_queue("q")
        producer.send(queue, "1").send(queue, "2" * (1 << 16))
        producer.set_property("held", True).set_delivery_mode(DeliveryMode.NON_PERSISTENT).send(queue, "3")
        producer.clear_properties().set_delivery_mode(DeliveryMode.PERSISTENT).send(queue, "4")
        context.commit()
        with xa_context(file) as manager:
            manager.xa_resource.start(XID, TMNOFLAGS)
            with manager.create_consumer(queue, "held") as consumer:
                assert consumer.receive_body(str, 20_000) == "3"
            manager.xa_resource.end(XID, TMSUCCESS)
            assert manager.xa_resource.prepare(XID) == XA_OK
        assert [text[0] for text in file.texts("q")] == ["1", "2", "4"]
        finish(file, "rollback")
        assert file.texts("q") == ["3"]


def test_a_message_that_expires_before_the_branch_is_prepared_is_not_listed(file, monkeypatch):
    monkeypatch.setattr("jmsapi_inproc.store.store._SWEEP_MS", -1)
    send(file, "expires", time_to_live=HOUR_MS)
    with xa_context(file) as context:
        context.xa_resource.start(XID, TMNOFLAGS)
        assert context.create_consumer(context.create_queue("q")).receive_body(str, 20_000) == "expires"
        expire(file)
        send(file, "sweeps", queue="elsewhere")
        context.xa_resource.end(XID, TMSUCCESS)
        assert context.xa_resource.prepare(XID) == XA_OK
        crashed = file.crashed()
    assert in_the_file(crashed, "SELECT * FROM branch_work") == []
    send(crashed, "1", "2")
    finish(crashed, "commit")
    assert crashed.texts("q") == ["1", "2"]


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
    crashed.make_version_2()
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


class Model:
    """What must be in the queue ``q`` and in the prepared branches, by the letters and numbers of the messages' texts.

    A text begins with what becomes of the message: ``p`` stays, ``n`` is not PERSISTENT, ``e`` expires before the next start.
    """

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.branches: dict[Xid, tuple[set[str], set[str]]] = {}
        """By name, what was accepted and what was sent."""
        self.expired: set[str] = set()

    def restart(self, *, crash: bool) -> None:
        """Take out what does not outlive the process."""
        held = [text for accepted, sent in self.branches.values() for text in accepted | sent]
        self.expired |= {text for text in [*self.waiting, *held] if text[0] == "e"}
        self.waiting = {text for text in self.waiting if text[0] not in ("en" if crash else "e")}

    def finish(self, xid: Xid, how: str) -> None:
        """End a branch."""
        accepted, sent = self.branches.pop(xid)
        self.waiting |= (sent if how == "commit" else accepted) - self.expired


def replace_by(file, crashed):
    """Let the crashed file be the file."""
    for end in ("", "-wal", "-shm"):
        there, source = (one.path.with_name(one.path.name + end) for one in (file, crashed))
        there.unlink(missing_ok=True)
        if source.exists():
            source.rename(there)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_branches_outlive_nothing_is_lost_or_comes_twice(file, seed, monkeypatch):
    monkeypatch.setattr("jmsapi_inproc.store.paging.MOST", 3)
    monkeypatch.setattr("jmsapi_inproc.store.partition.PAGE", 2)
    rng, model, count, numbers = random.Random(seed), Model(), 0, itertools.count()
    settings = {"p": {}, "n": {"delivery_mode": DeliveryMode.NON_PERSISTENT}, "e": {"time_to_live": HOUR_MS}}

    def made(most):
        nonlocal count
        kind = rng.choice("pne")
        texts = [f"{kind}{count + i}" for i in range(rng.randint(0, most))]
        count += len(texts)
        return texts, settings[kind]

    opened = file.context()
    for _ in range(60):
        what = rng.choice(("send", "send", "prepare", "prepare", "finish", "take", "crash", "end"))
        if what == "send":
            texts, how = made(6)
            send(file, *texts, **how)
            model.waiting.update(texts)
        elif what == "prepare":
            texts, how = made(3)
            before = in_queue(file)
            accept = min(len(before), rng.randint(0, 3))
            if accept or texts:
                xid = Xid(1, b"global", str(next(numbers)).encode())
                prepare(file, accept, texts, xid, **how)
                model.branches[xid] = (set(before[:accept]), set(texts))
                model.waiting.difference_update(before[:accept])
        elif what == "finish" and model.branches:
            xid, how = rng.choice(list(model.branches)), rng.choice(("commit", "rollback"))
            finish(file, how, xid)
            model.finish(xid, how)
        elif what == "take" and model.waiting:
            with file.context(JMSContext.SESSION_TRANSACTED) as context:
                model.waiting.remove(context.create_consumer(context.create_queue("q")).receive_body(str, 20_000))
                context.commit()
        elif what in ("crash", "end"):
            crashed = file.crashed()
            opened.close()
            if what == "crash":
                replace_by(file, crashed)
            expire(file)
            opened = file.context()
            model.restart(crash=what == "crash")
        found = in_queue(file)
        assert (sorted(found), what) == (sorted(model.waiting), what)
    for xid in list(model.branches):
        finish(file, "rollback", xid)
        model.finish(xid, "rollback")
    assert sorted(file.texts("q")) == sorted(model.waiting)
    opened.close()
    assert in_the_file(file, "SELECT * FROM branch_work") == in_the_file(file, "SELECT * FROM branch") == []


def in_queue(file):
    """Return what waits, as the next consumer will get it."""
    with file.context() as context, context.create_browser(context.create_queue("q")) as browser:
        return [message.text for message in browser]


def test_a_passing_message_goes_back_once_when_there_is_no_room_to_prepare(file):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.set_delivery_mode(DeliveryMode.NON_PERSISTENT).send(queue, "passing")
        with xa_context(file) as manager:
            manager.xa_resource.start(XID, TMNOFLAGS)
            with manager.create_consumer(queue) as consumer:
                assert consumer.receive_body(str, 20_000) == "passing"
            manager.create_producer().send(queue, "y" * 1_000_000)
            manager.xa_resource.end(XID, TMSUCCESS)
            file.limit(more_pages=20)
            with pytest.raises(XAException) as raised:
                manager.xa_resource.prepare(XID)
            assert raised.value.xa_code == XA_RBOTHER
            assert manager.xa_resource.recover(ALL) == []
        file.limit(more_pages=1_000_000)
        producer.send(queue, "later")
        crashed = file.crashed()
        assert file.texts("q") == ["passing", "later"]
    assert crashed.texts("q") == []
