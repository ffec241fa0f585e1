"""10.3 Transactions of a container, and what sessions are without one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, ParamSpec

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    IllegalStateException,
    IllegalStateRuntimeException,
    JMSContext,
    Message,
    Queue,
    QueueConnectionFactory,
    Session,
    TopicConnectionFactory,
)
from jmsapi.listener import MessageDrivenContext, container_mode
from jmsapi.transactions import LocalTransactions
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import QUIET_MS, expect_nothing, receive, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._deployed import Script, deployed

MODES = (Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE)
OTHER = (Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED)


P = ParamSpec("P")


@pytest.fixture
def transactions() -> LocalTransactions:
    """Give the transactions of a container."""
    return LocalTransactions()


def contained(test: Callable[P, None]) -> Callable[P, None]:
    """Run a test as an application in a container; its fixtures are made outside."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        transactions = kwargs["transactions"]
        assert isinstance(transactions, LocalTransactions)
        with container_mode(transactions):
            test(*args, **kwargs)

    return run


@requirement("10.3-1", "10.3-3")
@needs("transactions")
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("simplified", [False, True], ids=["session", "context"])
@contained
def test_what_is_made_in_a_transaction_takes_part_in_it(
    transactions: LocalTransactions,
    factory: ConnectionFactory,
    queue: Queue,
    other_session: Session,
    commit: bool,
    simplified: bool,
) -> None:
    with transactions.begin() as transaction:
        if simplified:
            with factory.create_context() as context:
                context.create_producer().send(queue, "text")
        else:
            with factory.create_connection() as connection, connection.create_session() as session:
                send_texts(session, queue, "text")
        if not commit:
            transaction.set_rollback_only()
    consumer = other_session.create_consumer(queue)
    if commit:
        assert receive_text(consumer) == "text"
    else:
        expect_nothing(consumer, other_session, queue)


@requirement("10.3-1")
@needs("transactions")
@contained
def test_what_is_closed_before_the_end_is_closed_and_still_takes_part(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    with transactions.begin():
        connection = factory.create_connection()
        session = connection.create_session()
        send_texts(session, queue, "one")
        session.close()
        with pytest.raises(IllegalStateException):
            session.create_message()
        second = connection.create_session()
        send_texts(second, queue, "two")
        connection.close()
        for closed in (second.create_message, connection.create_session):
            with pytest.raises(IllegalStateException) as caught:
                closed()
            assert caught.value.error_code == "closed"
    assert sorted(str(text) for text in receive_texts(other_session.create_consumer(queue), 2)) == ["one", "two"]


@requirement("10.3-1", "10.3-3")
@needs("transactions")
@contained
def test_an_error_of_the_application_rolls_back_what_all_sessions_did(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    with pytest.raises(ZeroDivisionError), transactions.begin():
        with factory.create_context() as one, factory.create_context() as other:
            one.create_producer().send(queue, "one")
            other.create_producer().send(queue, "other")
        raise ZeroDivisionError
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("10.3-1", "10.3-3")
@needs("transactions")
@pytest.mark.parametrize(("attribute", "calls"), [("Required", 3), ("Bean", 2)])
def test_it_is_the_same_whether_the_container_demarcates_or_the_application(
    factory: ConnectionFactory, queue: Queue, names: Names, other_session: Session, attribute: str, calls: int
) -> None:
    sent, numbers = other_session.create_queue(names.queue()), itertools.count(1)

    def then(_: Message, context: MessageDrivenContext) -> None:
        number = next(numbers)
        if attribute == "Bean":
            context.user_transaction.begin()
        with factory.create_context() as made:
            made.create_producer().send(sent, f"call {number}")
        if attribute == "Bean":
            context.user_transaction.rollback() if number == 1 else context.user_transaction.commit()
        elif number == 1:
            context.set_rollback_only()

    script = Script(then=then)
    with deployed(factory, script, queue, transactionAttribute=attribute):
        send_texts(other_session, queue, "one", "two")
        script.wait_for(calls)
    for error in script.errors:
        raise error.__cause__ or error
    expected = [f"call {number}" for number in range(2, calls + 1)]
    assert sorted(map(str, receive_texts(other_session.create_consumer(sent), calls - 1))) == expected


@requirement("10.3-2")
@needs("transactions")
@pytest.mark.parametrize("mode", [Session.CLIENT_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
@contained
def test_in_a_transaction_the_parameters_have_no_meaning(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session, mode: int
) -> None:
    send_texts(other_session, queue, "text")
    for again in (True, False):
        with transactions.begin() as transaction, factory.create_connection() as connection:
            connection.start()
            assert receive_text(connection.create_session(mode).create_consumer(queue)) == "text"
            if again:
                transaction.set_rollback_only()
    with transactions.begin() as transaction, factory.create_context(session_mode=mode) as context:
        context.create_producer().send(queue, "undone")
        transaction.set_rollback_only()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("10.3-4")
@contained
def test_without_a_transaction_a_session_acknowledges_by_itself(
    transactions: LocalTransactions, factory: ConnectionFactory
) -> None:
    with factory.create_connection() as connection, connection.create_session() as session:
        assert (session.transacted, session.acknowledge_mode) == (False, Session.AUTO_ACKNOWLEDGE)
    with factory.create_context() as context:
        assert (context.transacted, context.session_mode) == (False, JMSContext.AUTO_ACKNOWLEDGE)


@requirement("10.3-5")
@pytest.mark.parametrize("mode", MODES)
@contained
def test_without_a_transaction_two_modes_may_be_asked_for(
    transactions: LocalTransactions, factory: ConnectionFactory, mode: int
) -> None:
    with factory.create_connection() as connection:
        with connection.create_session(mode) as session:
            assert session.acknowledge_mode == mode
        with connection.create_session(False, mode) as session:
            assert session.acknowledge_mode == mode
    with factory.create_context(session_mode=mode) as context:
        assert context.session_mode == mode


@requirement("10.3-6")
@pytest.mark.parametrize("mode", OTHER)
@contained
def test_without_a_transaction_a_context_has_no_other_mode(
    transactions: LocalTransactions, factory: ConnectionFactory, mode: int
) -> None:
    with factory.create_context(session_mode=mode) as context:
        context.create_message()
        assert (context.session_mode, context.transacted) == (JMSContext.AUTO_ACKNOWLEDGE, False)


_FORMS: list[Callable[[Any], Session]] = [
    lambda connection: connection.create_session(Session.CLIENT_ACKNOWLEDGE),
    lambda connection: connection.create_session(Session.SESSION_TRANSACTED),
    lambda connection: connection.create_session(True, 0),
    lambda connection: connection.create_session(False, Session.CLIENT_ACKNOWLEDGE),
    lambda connection: connection.create_session(transacted=True),
]


@requirement("10.3-7", "10.3-9")
@pytest.mark.parametrize("create", _FORMS, ids=["client", "transacted", "true", "false client", "named"])
@contained
def test_without_a_transaction_a_session_has_no_other_mode(
    transactions: LocalTransactions, factory: ConnectionFactory, create: Callable[[Connection], Session]
) -> None:
    with factory.create_connection() as connection, create(connection) as session:
        assert (session.transacted, session.acknowledge_mode) == (False, Session.AUTO_ACKNOWLEDGE)


@requirement("10.3-9")
@pytest.mark.parametrize("mode", OTHER)
@contained
def test_the_sessions_of_one_domain_have_no_other_mode_either(
    transactions: LocalTransactions, factory: ConnectionFactory, mode: int
) -> None:
    assert isinstance(factory, QueueConnectionFactory)
    assert isinstance(factory, TopicConnectionFactory)
    transacted = mode == Session.SESSION_TRANSACTED
    with factory.create_queue_connection() as queues, queues.create_queue_session(transacted, mode) as of_queues:
        assert (of_queues.transacted, of_queues.acknowledge_mode) == (False, Session.AUTO_ACKNOWLEDGE)
    with factory.create_topic_connection() as topics, topics.create_topic_session(transacted, mode) as of_topics:
        assert (of_topics.transacted, of_topics.acknowledge_mode) == (False, Session.AUTO_ACKNOWLEDGE)


def refuses_to_end(factory: ConnectionFactory, queue: Queue, text: str) -> None:
    """No session or context that asks for a local transaction has one: what it sends is sent, or part of the global one."""
    with factory.create_connection() as connection, connection.create_session(True, 0) as session:
        send_texts(session, queue, text)
        for method in (session.commit, session.rollback):
            with pytest.raises(IllegalStateException):
                method()
    with factory.create_context(session_mode=JMSContext.SESSION_TRANSACTED) as context:
        context.create_producer().send(queue, text)
        for refused in (context.commit, context.rollback):
            with pytest.raises(IllegalStateRuntimeException):
                refused()


@requirement("10.3-8")
@needs("transactions")
@contained
def test_there_is_no_local_transaction_with_one_or_without(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    refuses_to_end(factory, queue, "at once")
    with transactions.begin() as transaction:
        refuses_to_end(factory, queue, "never")
        transaction.set_rollback_only()
    with transactions.begin():
        refuses_to_end(factory, queue, "committed")
    consumer = other_session.create_consumer(queue)
    assert receive_texts(consumer, 4) == ["at once", "at once", "committed", "committed"]
    expect_nothing(consumer, other_session, queue)


@requirement("10.3-8")
@needs("transactions")
@contained
def test_to_acknowledge_has_no_effect(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session, backend: Backend
) -> None:
    send_texts(other_session, queue, "text")
    for again in (True, False):
        with transactions.begin() as transaction, factory.create_connection() as connection:
            connection.start()
            message = receive(connection.create_session(Session.CLIENT_ACKNOWLEDGE).create_consumer(queue))
            assert message.jms_redelivered is not again or not backend.capabilities.redelivered_flag
            message.acknowledge()
            if again:
                transaction.set_rollback_only()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("10.3-8")
@contained
def test_without_a_transaction_nobody_need_acknowledge(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "1", "2")
    with factory.create_connection() as connection:
        connection.start()
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer(queue)
        first = receive(consumer)
        session.recover()
        assert (text_of(first), receive_text(consumer)) == ("1", "2")
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("10.3-11")
def test_there_are_forms_without_parameters_of_sessions(factory: ConnectionFactory, connect: Connect) -> None:
    with connect().create_session() as session:
        assert session.acknowledge_mode == Session.AUTO_ACKNOWLEDGE
    with factory.create_context() as context:
        assert context.session_mode == JMSContext.AUTO_ACKNOWLEDGE


@requirement("10.3-12")
@needs("transactions")
@contained
def test_a_session_takes_part_in_later_transactions_too(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    consumer = other_session.create_consumer(queue)
    with transactions.begin():
        connection = factory.create_connection()
        session = connection.create_session()
        producer = session.create_producer(queue)
        producer.send(session.create_text_message("one"))
    assert receive_text(consumer) == "one"
    with transactions.begin() as transaction:
        producer.send(session.create_text_message("undone"))
        transaction.set_rollback_only()
    with transactions.begin():
        producer.send(session.create_text_message("three"))
        assert consumer.receive(QUIET_MS) is None
    assert receive_text(consumer) == "three"
    connection.close()


@requirement("10.3-13")
@needs("transactions")
@contained
def test_a_request_leaves_only_at_the_end_so_no_reply_comes_before(
    transactions: LocalTransactions, factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    responder = other_session.create_consumer(queue)
    with transactions.begin(), factory.create_context() as context:
        reply_to = context.create_temporary_queue()
        context.create_producer().set_jms_reply_to(reply_to).send(queue, "request")
        assert context.create_consumer(reply_to).receive(QUIET_MS) is None
        assert responder.receive_no_wait() is None
    assert receive_text(responder) == "request"
