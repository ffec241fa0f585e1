"""11.3.4 Scope of injected contexts; 11.3.5 what they refuse."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from jmsapi import (
    ConnectionFactory,
    IllegalStateRuntimeException,
    JMSContext,
    JMSPasswordCredential,
    JMSSessionMode,
    Queue,
    Session,
    TransactionRolledBackRuntimeException,
)
from jmsapi.injection import Inject, Injector
from jmsapi.transactions import LocalTransactions
from jmsapi_conformance.kit import QUIET_MS, receive_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._injected import closed, counted


@pytest.fixture
def counting(factory: ConnectionFactory) -> Iterator[Any]:
    """Give a factory that keeps what it makes."""
    yield from counted(factory)


# ---- 11.3.4 scopes


@requirement("11.3.4-1", "11.3.4-2", "11.3.2-1")
@needs("transactions")
@pytest.mark.parametrize("commit", [True, False])
def test_in_a_transaction_a_context_is_made_at_its_first_use_and_closed_with_the_transaction(counting: Any, commit: bool) -> None:
    transactions = LocalTransactions()
    context = Injector(counting, transactions=transactions).context()
    with transactions.begin():
        pass
    assert counting.made == []
    with transactions.begin() as transaction:
        context.create_message()
        assert len(counting.made) == 1
        assert not closed(counting.made[0])
        if not commit:
            transaction.set_rollback_only()
    assert closed(counting.made[0])
    with pytest.raises(IllegalStateRuntimeException):
        context.create_message()


@requirement("11.3.4-3")
@needs("transactions")
def test_in_a_transaction_those_that_are_annotated_alike_are_one(counting: Any, queue: Queue) -> None:
    transactions = LocalTransactions()
    injector = Injector(counting, transactions=transactions)
    alike = [injector.context(), injector.context(JMSSessionMode())]
    other = injector.context(JMSPasswordCredential(user_name="ann", password="x"))
    with transactions.begin():
        for context in alike:
            context.create_producer().send(queue, "text")
        assert len(counting.made) == 1
        other.create_producer().send(queue, "text")
        assert len(counting.made) == 2


@requirement("11.3.4-4", "11.3.4-5", "11.3.2-1")
def test_in_a_request_a_context_is_made_at_its_first_use_and_closed_with_the_request(counting: Any) -> None:
    injector = Injector(counting)
    context = injector.context()
    with injector.request():
        pass
    assert counting.made == []
    with pytest.raises(ZeroDivisionError), injector.request():
        context.create_message()
        assert len(counting.made) == 1
        raise ZeroDivisionError
    assert closed(counting.made[0])
    with pytest.raises(IllegalStateRuntimeException):
        context.create_message()


@requirement("11.3.4-6", "11.3.5-1")
def test_in_a_request_those_that_are_annotated_alike_are_one_and_keep_the_order(
    counting: Any, queue: Queue, other_session: Session
) -> None:
    injector = Injector(counting)
    one, other = injector.context(), injector.context()
    expected = [str(number) for number in range(10)]
    with injector.request():
        for number, text in enumerate(expected):
            (one if number % 2 else other).create_producer().send(queue, text)
    assert len(counting.made) == 1
    assert receive_texts(other_session.create_consumer(queue), 10) == expected


@requirement("11.3.4-7")
@needs("transactions")
def test_one_context_stands_for_another_in_each_transaction(counting: Any) -> None:
    transactions = LocalTransactions()
    injector = Injector(counting, transactions=transactions)
    context = injector.context()
    with injector.request():
        context.create_message()
        for _ in range(2):
            with transactions.begin():
                context.create_message()
        context.create_message()
    assert len(counting.made) == 3
    assert all(map(closed, counting.made))


@requirement("11.3.4-4")
def test_threads_and_tasks_have_requests_of_their_own(counting: Any) -> None:
    injector = Injector(counting)
    context = injector.context()
    seen: list[BaseException | None] = []

    def elsewhere() -> None:
        try:
            context.create_message()
        except IllegalStateRuntimeException as error:
            seen.append(error)
        with injector.request():
            context.create_message()

    @injector.inject
    async def task(jms: Annotated[JMSContext, Inject()]) -> None:
        # The threads have the context variables of the task, and so its request.
        await asyncio.to_thread(jms.create_message)
        await asyncio.to_thread(jms.create_message)

    async def both() -> None:
        await asyncio.gather(task(), task())

    with injector.request():
        context.create_message()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert (len(seen), len(counting.made)) == (1, 2)
    asyncio.run(both())
    assert len(counting.made) == 4
    assert all(map(closed, counting.made))


@requirement("11.3.2-1")
def test_a_web_frameworks_dependency_has_a_request_of_its_own(counting: Any, queue: Queue) -> None:
    dependency = Injector(counting).dependency(JMSSessionMode(JMSContext.DUPS_OK_ACKNOWLEDGE))()
    context = next(dependency)
    # Frameworks run the handler in another thread than the dependency.
    thread = threading.Thread(target=lambda: context.create_producer().send(queue, "text"))
    thread.start()
    thread.join()
    assert context.session_mode == JMSContext.DUPS_OK_ACKNOWLEDGE
    assert next(dependency, None) is None
    assert closed(counting.made[0])
    with pytest.raises(IllegalStateRuntimeException):
        context.create_message()


# ---- 11.3.5, 11.3.2 whose a context is


@requirement("11.3.5-2")
@pytest.mark.parametrize("name", ["start", "stop", "close", "commit", "rollback", "recover", "acknowledge"])
def test_an_injected_context_refuses_to_be_controlled(counting: Any, name: str) -> None:
    injector = Injector(counting)
    with injector.request():
        context = injector.context()
        with pytest.raises(IllegalStateRuntimeException):
            getattr(context, name)()
        with pytest.raises(IllegalStateRuntimeException), context:
            pass
        context.create_message()


@requirement("11.3.5-2")
@pytest.mark.parametrize(("name", "value"), [("client_id", "a"), ("exception_listener", None), ("auto_start", False)])
def test_an_injected_context_refuses_to_be_set_up(counting: Any, name: str, value: object) -> None:
    injector = Injector(counting)
    with injector.request():
        with pytest.raises(IllegalStateRuntimeException):
            setattr(injector.context(), name, value)
        getattr(injector.context(), name)


@requirement("11.3.5-3", "11.3.2-2")
@needs("transactions")
def test_a_context_of_a_factory_is_the_applications_own(counting: Any, factory: ConnectionFactory) -> None:
    injector = Injector(counting)
    with injector.request():
        context = factory.create_context()
        context.client_id = None if context.client_id else context.client_id or "conformance-injection"
        context.exception_listener = None
        context.auto_start = False
        context.start()
        context.recover()
        context.acknowledge()
        context.stop()
    assert not closed(context)
    context.close()
    with factory.create_context(session_mode=JMSContext.SESSION_TRANSACTED) as transacted:
        transacted.commit()
        transacted.rollback()


@requirement("10.3-1")
@needs("transactions")
def test_what_cannot_be_committed_is_told_and_the_rest_rolled_back(counting: Any, queue: Queue, other_session: Session) -> None:
    transactions = LocalTransactions()
    injector = Injector(counting, transactions=transactions)
    told: list[str] = []

    class Refuses:
        def commit(self) -> None:
            raise TransactionRolledBackRuntimeException("no room")

        def rollback(self) -> None:
            told.append("rollback")

        def close(self) -> None:
            told.append("close")

    with pytest.raises(TransactionRolledBackRuntimeException, match="no room"), transactions.begin() as transaction:
        transaction.join(Refuses())
        injector.context().create_producer().send(queue, "text")
    assert told == ["close"]
    assert closed(counting.made[0])
    assert other_session.create_consumer(queue).receive(QUIET_MS) is None
    with transactions.begin(), pytest.raises(IllegalStateRuntimeException), transactions.begin():
        pass
