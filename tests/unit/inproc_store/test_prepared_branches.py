"""Prepared branches over a crash of a stored broker, and branches that sessions leave."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

import jmsapi
from jmsapi import JMSContext, Xid
from jmsapi.xa import TMENDRSCAN, TMNOFLAGS, TMSTARTRSCAN, TMSUCCESS, XA_OK, XAER_NOTA, XAException

XID = Xid(1, b"global", b"branch")
ALL = TMSTARTRSCAN | TMENDRSCAN


@contextmanager
def xa_context(file):
    with jmsapi.connection_factory(file.url, checked=True).create_xa_context() as made:
        yield made


@pytest.fixture
def prepared(file, take_all):
    """Give the file of a broker that crashed with a prepared branch: it has received one of two and sent one to a topic."""
    with file.context() as context:
        context.create_shared_durable_consumer(context.create_topic("t"), "s").close()
        for text in ("1", "2"):
            context.create_producer().send(context.create_queue("q"), text)
    with xa_context(file) as context:
        resource = context.xa_resource
        consumer = context.create_consumer(context.create_queue("q"))
        resource.start(XID, TMNOFLAGS)
        assert consumer.receive_body(str, 20_000) == "1"
        context.create_producer().send(context.create_topic("t"), "sent")
        resource.end(XID, TMSUCCESS)
        assert resource.prepare(XID) == XA_OK
        crashed = file.crashed()
        resource.rollback(XID)
    return crashed


def subscription(context, take_all):
    with context.create_shared_durable_consumer(context.create_topic("t"), "s") as consumer:
        return take_all(consumer)


def test_a_prepared_branch_is_committed_after_a_crash(prepared, take_all):
    with prepared.context() as context, xa_context(prepared) as manager:
        assert take_all(context.create_consumer(context.create_queue("q"))) == ["2"], (
            "what the branch has accepted is nobody else's"
        )
        assert subscription(context, take_all) == []
        assert manager.xa_resource.recover(ALL) == [XID]
        manager.xa_resource.commit(XID, False)
        again = prepared.crashed()
        assert subscription(context, take_all) == ["sent"]
    with again.context() as context, xa_context(again) as manager:
        assert manager.xa_resource.recover(ALL) == []
        assert subscription(context, take_all) == ["sent"]
    assert again.texts("q") == []


def test_a_prepared_branch_is_rolled_back_after_a_crash(prepared, take_all):
    with prepared.context() as context, xa_context(prepared) as manager:
        manager.xa_resource.rollback(XID)
        consumer = context.create_consumer(context.create_queue("q"))
        back = consumer.receive(20_000)
        assert (back.text, back.jms_redelivered) == ("1", True)
        assert take_all(consumer) == ["2"]
        assert subscription(context, take_all) == []
        assert manager.xa_resource.recover(ALL) == []
        with pytest.raises(XAException) as raised:
            manager.xa_resource.commit(XID, False)
        assert raised.value.xa_code == XAER_NOTA


def test_a_branch_that_is_not_prepared_is_forgotten_by_a_crash(file, take_all):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "there")
    with xa_context(file) as context:
        context.xa_resource.start(XID, TMNOFLAGS)
        assert context.create_consumer(context.create_queue("q")).receive_body(str, 20_000) == "there"
        context.create_producer().send(context.create_queue("q"), "dropped")
        context.xa_resource.end(XID, TMSUCCESS)
        crashed = file.crashed()
        context.xa_resource.rollback(XID)
    with xa_context(crashed) as context:
        assert context.xa_resource.recover(ALL) == []
    assert crashed.texts("q") == ["there"]


def test_what_becomes_of_a_closed_sessions_work_the_manager_says_later(file):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "there")
    factory = jmsapi.connection_factory(file.url, checked=True)
    with factory.create_xa_connection() as connection:
        connection.start()
        session = connection.create_xa_session()
        resource = session.xa_resource
        resource.start(XID, TMNOFLAGS)
        assert session.create_consumer(session.create_queue("q")).receive(20_000) is not None
        session.create_producer(session.create_queue("out")).send(session.create_text_message("sent"))
        session.close()
        resource.end(XID, TMSUCCESS)
        other = connection.create_xa_session().xa_resource
        assert other.prepare(XID) == XA_OK
        other.commit(XID, False)
    assert file.texts("q") == []
    assert file.texts("out") == ["sent"]


def test_outside_of_a_branch_an_xa_session_sends_and_receives_nothing(file):
    with xa_context(file) as context:
        queue = context.create_queue("q")
        consumer = context.create_consumer(queue)
        for attempt in (lambda: context.create_producer().send(queue, "x"), consumer.receive_no_wait):
            with pytest.raises(jmsapi.IllegalStateRuntimeException, match="branch") as raised:
                attempt()
            assert raised.value.error_code == "no-branch"
        with pytest.raises(jmsapi.IllegalStateRuntimeException, match="listener"):
            consumer.message_listener = print
    assert file.texts("q") == []


def test_a_message_accepted_in_a_branch_keeps_its_subscription_from_being_ended(file):
    with file.context() as context, xa_context(file) as manager:
        topic = context.create_topic("t")
        with manager.create_shared_durable_consumer(topic, "s") as consumer:
            context.create_producer().send(topic, "x")
            manager.xa_resource.start(XID, TMNOFLAGS)
            assert consumer.receive(20_000) is not None
            manager.xa_resource.end(XID, TMSUCCESS)
        with pytest.raises(jmsapi.IllegalStateRuntimeException, match="transaction"):
            context.unsubscribe("s")
        manager.xa_resource.commit(XID, True)
        context.unsubscribe("s")


def test_other_providers_have_no_xa_factory():
    for url in ("amqp://localhost", "stomp://localhost", "failover:(inproc://x)"):
        assert not isinstance(jmsapi.connection_factory(url), jmsapi.XAConnectionFactory)
    assert isinstance(jmsapi.connection_factory("inproc://x"), jmsapi.XAConnectionFactory)
    with jmsapi.connection_factory("inproc://x").create_context(JMSContext.AUTO_ACKNOWLEDGE) as context:
        assert jmsapi.capabilities(context).xa


def test_a_branch_that_is_not_prepared_outlives_the_last_connection(file):
    with xa_context(file) as context:
        context.xa_resource.start(XID, TMNOFLAGS)
        context.create_producer().send(context.create_queue("q"), "x")
        context.xa_resource.end(XID, TMSUCCESS)
    with xa_context(file) as context:
        context.xa_resource.commit(XID, True)
    assert file.texts("q") == ["x"]


def test_a_store_that_only_keeps_a_branch_has_no_thread(file):
    before = set(threading.enumerate())
    with xa_context(file) as context:
        context.xa_resource.start(XID, TMNOFLAGS)
        context.create_producer().send(context.create_queue("q"), "x")
        context.xa_resource.end(XID, TMSUCCESS)
        assert "jmsapi-store" in {thread.name for thread in set(threading.enumerate()) - before}
    assert "jmsapi-store" not in {thread.name for thread in set(threading.enumerate()) - before}
    with xa_context(file) as context:
        context.xa_resource.rollback(XID)
