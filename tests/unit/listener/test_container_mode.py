"""Sessions of a container that are used where it is not said what happens."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import jmsapi
from jmsapi import IllegalStateException, JMSContext, Message, MessageProducer
from jmsapi.injection import Injector
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, container_mode, deploy, message_driven_context
from jmsapi.pool import SessionPool
from jmsapi.transactions import LocalTransactions, Transaction

from .bench import a_bench, wait_until


def test_what_would_be_committed_at_another_time_than_it_seems_is_refused() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    transactions = LocalTransactions()
    with container_mode(transactions), factory.create_connection() as outside, outside.create_session() as alone:
        with transactions.begin():
            connection = factory.create_connection()
            session = connection.create_session()
            with pytest.raises(IllegalStateException, match="made outside of a transaction") as caught:
                alone.create_message()
            assert caught.value.error_code == "transaction"
        with pytest.raises(IllegalStateException, match="made in a transaction") as caught:
            session.create_message()
        assert caught.value.error_code == "transaction"
        connection.close()
        alone.create_message()


def test_a_session_takes_part_in_one_transaction_at_a_time() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    first, second = LocalTransactions(), LocalTransactions()

    class Either:
        of = first

        @property
        def current(self) -> Transaction | None:
            return self.of.current

    either = Either()
    with container_mode(either), first.begin(), factory.create_context() as context:
        context.create_message()
        with second.begin():
            either.of = second
            with pytest.raises(jmsapi.IllegalStateRuntimeException, match="another transaction"):
                context.create_message()
        either.of = first
        context.create_message()


def test_nonsense_in_place_of_a_mode_counts_as_none() -> None:
    with container_mode(), jmsapi.connection_factory("inproc://container-mode").create_connection() as connection:
        for mode in ("nonsense", 17, None):
            with connection.create_session(mode) as session:  # type: ignore[arg-type]
                assert session.acknowledge_mode == JMSContext.AUTO_ACKNOWLEDGE


def test_an_injected_context_keeps_to_the_rules_and_its_injector_commits_it() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    transactions = LocalTransactions()
    injector = Injector(factory, transactions=transactions)
    with container_mode(transactions):
        context = injector.context()
        with transactions.begin():
            queue = context.create_queue("injected")
            context.create_producer().send(queue, "one")
            with pytest.raises(jmsapi.JMSRuntimeException) as caught:
                context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
            assert caught.value.error_code == "container"
        with pytest.raises(ZeroDivisionError), transactions.begin():
            context.create_producer().send(queue, "undone")
            raise ZeroDivisionError
        with injector.request():
            consumer = context.create_consumer(queue)
            assert consumer.receive_body(str, 20_000) == "one"
            assert consumer.receive_no_wait() is None


def test_sessions_to_borrow_are_not_bound_by_the_container_that_needs_them_first() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    transactions = LocalTransactions()
    with (
        SessionPool(factory, sessions=2) as pool,
        container_mode(transactions),
        transactions.begin(),
        pool.session() as one,
        pool.session() as other,
    ):
        assert (one.transacted, other.transacted) == (False, False)


def test_a_context_of_an_injector_that_knows_of_no_transactions_joins_by_itself() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    transactions = LocalTransactions()
    injector = Injector(factory)
    context = injector.context()
    with container_mode(transactions), pytest.raises(ZeroDivisionError), transactions.begin():
        with injector.request():
            context.create_producer().send(context.create_queue("own-injector"), "undone")
        raise ZeroDivisionError
    with factory.create_context() as outside:
        assert outside.create_consumer(outside.create_queue("own-injector")).receive_no_wait() is None


def test_a_session_that_is_closed_in_a_transaction_gives_back_what_it_has_not_received_when_that_ends() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    transactions = LocalTransactions()
    with factory.create_context() as outside:
        queue = outside.create_queue("given-back")
        for text in ("one", "two"):
            outside.create_producer().send(queue, text)
        with container_mode(transactions):
            connection = factory.create_connection()
            with transactions.begin():
                connection.start()
                with connection.create_session() as session:
                    received = session.create_consumer(queue).receive(20_000)
                    assert received is not None
                    assert received.get_body(str) == "one"
        assert outside.create_consumer(queue).receive_body(str, 20_000) == "two"
        connection.close()


def test_a_connection_that_is_closed_in_a_transaction_has_its_session_closed_at_once_and_its_work_committed() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    transactions = LocalTransactions()
    with factory.create_context() as outside:
        queue = outside.create_queue("closed-in-a-transaction")
        with container_mode(transactions), transactions.begin():
            connection = factory.create_connection()
            session = connection.create_session()
            producer = session.create_producer(queue)
            producer.send(session.create_text_message("before"))
            late = session.create_text_message("after")
            connection.close()
            for use in (session.create_message, lambda: producer.send(late), connection.create_session):
                with pytest.raises(IllegalStateException) as caught:
                    use()
                assert caught.value.error_code == "closed"
        with outside.create_consumer(queue) as consumer:
            assert consumer.receive_body(str, 20_000) == "before"
            assert consumer.receive_no_wait() is None


def test_a_connection_with_distributed_transactions_is_its_users_own() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    assert isinstance(factory, jmsapi.XAConnectionFactory)
    with container_mode(), factory.create_xa_connection() as connection, connection.create_xa_session() as session:
        assert session.xa_resource is not None
        connection.stop()


def test_code_in_a_container_may_deploy() -> None:
    factory = jmsapi.connection_factory("inproc://container-mode")
    came = threading.Semaphore(0)

    @JMSQueueListener()
    @JMSListenerProperty("destination", "deployed-inside")
    def on_message(body: str) -> None:
        came.release()

    with container_mode(), deploy(on_message, factory=factory), factory.create_context() as context:
        context.create_producer().send(context.create_queue("deployed-inside"), "m")
        assert came.acquire(timeout=20)


def test_the_session_of_a_callback_is_refused_outside_of_the_transaction_it_was_got_in() -> None:
    raised: list[str | None] = []

    def refused(send: Callable[[], object]) -> None:
        with pytest.raises(IllegalStateException) as caught:
            send()
        raised.append(caught.value.error_code)

    def call(message: Message) -> None:
        container = message_driven_context()
        session = container.session
        alone = session.create_producer(session.create_queue("out"))
        container.user_transaction.begin()
        refused(lambda: alone.send(message))
        session = container.session
        inside = session.create_producer(session.create_queue("out"))
        inside.send(session.create_text_message("inside"))
        if message.get_body(str) == "rolled back":
            container.user_transaction.rollback()
        else:
            container.user_transaction.commit()
        refused(lambda: inside.send(message))
        refused(session.create_text_message)
        alone.send(container.session.create_text_message("alone"))
        container.user_transaction.begin()
        inside.send(container.session.create_text_message("again"))
        inside.close()
        container.user_transaction.commit()

    with a_bench() as bench:
        bench.send("committed", "rolled back")
        with bench.listening(call, transactionAttribute="Bean") as deployment:
            wait_until(lambda: deployment.health.endpoints[0].delivered == 2, "both are handled")
            assert deployment.health.endpoints[0].last_error is None
        assert raised == ["transaction"] * 6
        assert [text for text, _ in bench.left("out")] == ["inside", "alone", "again", "alone", "again"]


def test_the_session_of_a_callback_is_refused_once_the_callback_has_ended() -> None:
    kept: list[MessageProducer] = []

    def call(message: Message) -> None:
        session = message_driven_context().session
        kept.append(session.create_producer(session.create_queue("out")))
        if message.get_body(str) == "2":
            kept[0].send(message)

    with a_bench() as bench:
        bench.send("1")
        with bench.listening(call, transactionAttribute="Required") as deployment:
            wait_until(lambda: deployment.health.endpoints[0].delivered == 1, "the first is handled")
            with pytest.raises(IllegalStateException, match="callback that has ended"):
                kept[0].send(bench.session.create_text_message("between"))
            bench.send("2")
            wait_until(lambda: deployment.health.endpoints[0].delivered == 2, "the second is handled")
        assert [text for text, _ in bench.left("out")] == ["2"]
