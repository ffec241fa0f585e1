"""8.3 Distributed transactions: the XA interfaces and the resource behind them."""

from __future__ import annotations

import pytest

import jmsapi
from jmsapi import (
    ConnectionFactory,
    JMSContext,
    Session,
    TransactionInProgressException,
    TransactionInProgressRuntimeException,
    XAConnection,
    XAConnectionFactory,
    XAJMSContext,
    XAResource,
    XASession,
)
from jmsapi.xa import (
    TMENDRSCAN,
    TMFAIL,
    TMJOIN,
    TMNOFLAGS,
    TMRESUME,
    TMSTARTRSCAN,
    TMSUCCESS,
    TMSUSPEND,
    XA_OK,
    XA_RBROLLBACK,
    XA_RDONLY,
    XAER_DUPID,
    XAER_INVAL,
    XAER_NOTA,
    XAER_PROTO,
    XAException,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import PATIENCE_MS, receive, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._branches import code_of, new_xid, waiting, xa_connection, xa_factory, xa_session
from jmsapi_conformance.suite._credentials import credentials_of

__all__ = ["xa_connection", "xa_factory", "xa_session"]


@requirement("8.3-1")
def test_distributed_work_needs_the_xa_interfaces(backend: Backend, factory: ConnectionFactory) -> None:
    assert isinstance(factory, XAConnectionFactory) == bool(backend.capabilities.xa)
    if isinstance(factory, XAConnectionFactory):
        with factory.create_xa_connection() as connection:
            assert isinstance(connection.create_xa_session().xa_resource, XAResource)


@needs("xa")
@requirement("8.3.1-1")
def test_the_factory_creates_xa_connections_and_contexts(xa_factory: XAConnectionFactory) -> None:
    with xa_factory.create_xa_connection() as connection, xa_factory.create_xa_context() as context:
        assert isinstance(connection, XAConnection)
        assert isinstance(context, XAJMSContext)


@needs("xa")
@requirement("8.3.1-2")
def test_the_factory_takes_a_user_as_any_other(xa_factory: XAConnectionFactory, backend: Backend) -> None:
    # Where the URL has no credentials nobody checks them.
    user, password = (given or "guest" for given in credentials_of(backend))
    with xa_factory.create_xa_connection(user, password) as connection:
        assert isinstance(connection, XAConnection)
    with xa_factory.create_xa_context(user, password) as context:
        assert isinstance(context, XAJMSContext)


@needs("xa")
@requirement("8.3.1-3")
def test_the_factory_is_found_by_name(xa_factory: XAConnectionFactory, names: Names) -> None:
    name = names.queue()
    assert isinstance(xa_factory, ConnectionFactory)
    jmsapi.register_object(name, xa_factory)
    try:
        assert jmsapi.lookup(name, XAConnectionFactory) is xa_factory
    finally:
        jmsapi.register_object(name, None)


@needs("xa")
@requirement("8.3.2-1")
def test_an_xa_connection_is_a_connection_with_xa_sessions(xa_connection: XAConnection) -> None:
    assert isinstance(xa_connection, jmsapi.Connection)
    assert isinstance(xa_connection.create_session(), Session)
    assert isinstance(xa_connection.create_xa_session(), XASession)


@needs("xa")
@requirement("8.3.3-1", "8.3.3-2")
def test_what_is_sent_in_a_branch_is_there_when_it_is_committed(
    xa_session: XASession, other_session: Session, names: Names
) -> None:
    session, resource, xid = xa_session.session, xa_session.xa_resource, new_xid()
    queue = session.create_queue(names.queue())
    resource.start(xid, TMNOFLAGS)
    send_texts(session, queue, "a")
    resource.end(xid, TMSUCCESS)
    assert resource.prepare(xid) == XA_OK
    assert waiting(other_session, queue) == []
    resource.commit(xid, False)
    assert text_of(receive(other_session.create_consumer(queue))) == "a"


@needs("xa")
@requirement("8.3.3-3")
def test_a_rollback_drops_what_was_sent_and_gives_back_what_was_received(
    xa_session: XASession, other_session: Session, names: Names
) -> None:
    session, resource, xid = xa_session.session, xa_session.xa_resource, new_xid()
    queue, target = session.create_queue(names.queue()), session.create_queue(names.queue())
    send_texts(other_session, queue, "there")
    with session.create_consumer(queue) as consumer:
        resource.start(xid, TMNOFLAGS)
        send_texts(session, target, "sent")
        assert text_of(receive(consumer)) == "there"
        resource.end(xid, TMSUCCESS)
        resource.prepare(xid)
        resource.rollback(xid)
    again = receive(other_session.create_consumer(queue))
    assert (text_of(again), again.jms_redelivered) == ("there", True)
    assert waiting(other_session, target) == []


@needs("xa")
@requirement("8.3.3-4", "4.4.7-8", "7.3-28")
def test_an_xa_session_is_transacted_and_ends_nothing_itself(xa_session: XASession, xa_factory: XAConnectionFactory) -> None:
    xid = new_xid()
    xa_session.xa_resource.start(xid, TMNOFLAGS)
    for session in (xa_session, xa_session.session):
        assert session.transacted is True
        for end in (session.commit, session.rollback):
            with pytest.raises(TransactionInProgressException):
                end()
    xa_session.xa_resource.end(xid, TMSUCCESS)
    xa_session.xa_resource.rollback(xid)
    with xa_factory.create_xa_context() as context:
        assert context.transacted is True
        for finish in (context.commit, context.rollback):
            with pytest.raises(TransactionInProgressRuntimeException):
                finish()


@needs("xa")
@requirement("8.3.4-1", "8.3.4-2")
def test_a_context_works_inside_the_branch_of_its_resource(
    xa_factory: XAConnectionFactory, other_session: Session, names: Names
) -> None:
    with xa_factory.create_xa_context() as xa_context:
        context, resource = xa_context.context, xa_context.xa_resource
        assert isinstance(context, JMSContext)
        queue = context.create_queue(names.queue())
        for text, commit in (("dropped", False), ("kept", True)):
            xid = new_xid()
            resource.start(xid, TMNOFLAGS)
            context.create_producer().send(queue, text)
            resource.end(xid, TMSUCCESS)
            if commit:
                resource.commit(xid, True)
            else:
                resource.rollback(xid)
                assert waiting(other_session, queue) == []
        xid = new_xid()
        resource.start(xid, TMNOFLAGS)
        assert context.create_consumer(queue).receive_body(str, PATIENCE_MS) == "kept"
        resource.end(xid, TMSUCCESS)
        resource.commit(xid, True)
    assert waiting(other_session, queue) == []


@needs("xa")
@requirement("8.3.5-1")
def test_branches_interleave_on_one_session(xa_session: XASession, other_session: Session, names: Names) -> None:
    session, resource = xa_session.session, xa_session.xa_resource
    queue = session.create_queue(names.queue())
    first, second = new_xid(), new_xid()
    for xid, text in ((first, "first"), (second, "second")):
        resource.start(xid, TMNOFLAGS)
        send_texts(session, queue, text)
        resource.end(xid, TMSUCCESS)
    resource.commit(second, True)
    resource.rollback(first)
    assert waiting(other_session, queue) == ["second"]


@needs("xa")
@requirement("8.3.5-1")
def test_work_is_suspended_resumed_and_joined(xa_connection: XAConnection, other_session: Session, names: Names) -> None:
    one, other = xa_connection.create_xa_session(), xa_connection.create_xa_session()
    queue = one.create_queue(names.queue())
    xid, between = new_xid(), new_xid()
    one.xa_resource.start(xid, TMNOFLAGS)
    send_texts(one, queue, "1")
    one.xa_resource.end(xid, TMSUSPEND)
    one.xa_resource.start(between, TMNOFLAGS)
    one.xa_resource.end(between, TMSUCCESS)
    assert one.xa_resource.prepare(between) == XA_RDONLY
    with pytest.raises(XAException) as raised:
        one.xa_resource.prepare(xid)
    assert code_of(raised) == XAER_PROTO
    one.xa_resource.start(xid, TMRESUME)
    send_texts(one, queue, "2")
    one.xa_resource.end(xid, TMSUCCESS)
    other.xa_resource.start(xid, TMJOIN)
    send_texts(other, queue, "3")
    other.xa_resource.end(xid, TMSUCCESS)
    other.xa_resource.commit(xid, True)
    assert waiting(other_session, queue) == ["1", "2", "3"]


@needs("xa")
@requirement("8.3.5-1")
def test_calls_that_do_not_fit_raise_the_codes_of_the_standard(xa_session: XASession, names: Names) -> None:
    session, resource = xa_session.session, xa_session.xa_resource
    queue, xid, unknown = session.create_queue(names.queue()), new_xid(), new_xid()
    wrong: list[tuple[int, object]] = []

    def refused(code: int, call: object, *arguments: object) -> None:
        assert callable(call)
        with pytest.raises(XAException) as raised:
            call(*arguments)
        wrong.append((code, code_of(raised)))

    for call in (resource.prepare, resource.rollback, resource.forget):
        refused(XAER_NOTA, call, unknown)
    refused(XAER_NOTA, resource.commit, unknown, True)
    refused(XAER_NOTA, resource.end, unknown, TMSUCCESS)
    refused(XAER_NOTA, resource.start, unknown, TMJOIN)
    refused(XAER_INVAL, resource.start, unknown, TMSUCCESS)
    resource.start(xid, TMNOFLAGS)
    refused(XAER_PROTO, resource.start, unknown, TMNOFLAGS)
    refused(XAER_PROTO, resource.prepare, xid)
    refused(XAER_INVAL, resource.end, xid, TMJOIN)
    send_texts(session, queue, "x")
    resource.end(xid, TMSUCCESS)
    refused(XAER_PROTO, resource.end, xid, TMSUCCESS)
    refused(XAER_DUPID, resource.start, xid, TMNOFLAGS)
    refused(XAER_PROTO, resource.start, xid, TMRESUME)
    refused(XAER_PROTO, resource.commit, xid, False)
    assert resource.prepare(xid) == XA_OK
    refused(XAER_PROTO, resource.prepare, xid)
    refused(XAER_PROTO, resource.start, xid, TMJOIN)
    refused(XAER_PROTO, resource.commit, xid, True)
    refused(XAER_PROTO, resource.forget, xid)
    resource.rollback(xid)
    refused(XAER_NOTA, resource.rollback, xid)
    resource.start(xid, TMNOFLAGS)
    resource.end(xid, TMFAIL)
    refused(XA_RBROLLBACK, resource.prepare, xid)
    refused(XAER_NOTA, resource.rollback, xid)
    assert [got for _, got in wrong] == [code for code, _ in wrong]


@needs("xa")
@requirement("8.3.5-2")
def test_a_prepared_branch_is_found_and_finished_by_another_connection(
    xa_factory: XAConnectionFactory, other_session: Session, names: Names
) -> None:
    xid, name = new_xid(), names.queue()
    with xa_factory.create_xa_connection() as connection:
        xa_session = connection.create_xa_session()
        xa_session.xa_resource.start(xid, TMNOFLAGS)
        send_texts(xa_session, xa_session.create_queue(name), "x")
        xa_session.xa_resource.end(xid, TMSUCCESS)
        xa_session.xa_resource.prepare(xid)
    with xa_factory.create_xa_connection() as connection:
        resource = connection.create_xa_session().xa_resource
        assert xid in resource.recover(TMSTARTRSCAN)
        assert xid not in resource.recover(TMENDRSCAN)
        resource.commit(xid, False)
        assert xid not in resource.recover(TMSTARTRSCAN | TMENDRSCAN)
        with pytest.raises(XAException) as raised:
            resource.recover(TMNOFLAGS)
        assert code_of(raised) == XAER_INVAL
    assert waiting(other_session, other_session.create_queue(name)) == ["x"]


@needs("xa")
@requirement("8.3.5-3")
def test_receiving_is_no_part_of_the_branch_that_sent(xa_session: XASession, other_session: Session, names: Names) -> None:
    session, resource = xa_session.session, xa_session.xa_resource
    queue, sending, receiving = session.create_queue(names.queue()), new_xid(), new_xid()
    resource.start(sending, TMNOFLAGS)
    send_texts(session, queue, "x")
    resource.end(sending, TMSUCCESS)
    resource.commit(sending, True)
    with session.create_consumer(queue) as consumer:
        resource.start(receiving, TMNOFLAGS)
        assert text_of(receive(consumer)) == "x"
        resource.end(receiving, TMSUCCESS)
        resource.rollback(receiving)
    assert text_of(receive(other_session.create_consumer(queue))) == "x"


@needs("xa")
@requirement("8.3.5-4")
def test_a_branch_does_not_receive_what_it_sent(xa_session: XASession, names: Names) -> None:
    session, resource, xid = xa_session.session, xa_session.xa_resource, new_xid()
    queue = session.create_queue(names.queue())
    with session.create_consumer(queue) as consumer:
        resource.start(xid, TMNOFLAGS)
        send_texts(session, queue, "x")
        assert consumer.receive_no_wait() is None
        resource.end(xid, TMSUCCESS)
        resource.rollback(xid)
