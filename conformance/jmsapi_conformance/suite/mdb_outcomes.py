"""MDB-43 to MDB-62 What becomes of a message, and of the work of its callback, by transaction and by what the callback raises."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from jmsapi import ConnectionFactory, Message, Queue, Session
from jmsapi.listener import EJBException, MessageDrivenContext, MessageEndpoint
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import eventually, expect_nothing, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._deployed import KeptOn, RolledBack, Script, Watched, deployed, of_class

REQUIRED, NOT_SUPPORTED, BEAN = "Required", "NotSupported", "Bean"


@pytest.fixture
def sent(other_session: Session, names: Names) -> Queue:
    """Give the queue to which callbacks send."""
    return other_session.create_queue(names.queue())


def sending(sent: Queue, *, mark: str | None = None) -> Any:
    """Return what has a callback send a numbered message in its session, and mark the transaction of the first with a text."""
    calls: list[str | None] = []

    def then(message: Message, context: MessageDrivenContext) -> None:
        text = message.get_body(str)
        send_texts(context.session, sent, f"{text} {calls.count(text) + 1}")
        if mark == text and text not in calls:
            context.set_rollback_only()
        calls.append(text)

    return then


@requirement("MDB-44", "MDB-61")
@needs("transactions")
def test_an_application_exception_that_rolls_back_undoes_the_work_and_brings_the_message_back(
    factory: ConnectionFactory, queue: Queue, other_session: Session, sent: Queue
) -> None:
    script = Script({"m": [RolledBack("once")]}, sending(sent))
    with deployed(factory, script, queue):
        send_texts(other_session, queue, "m")
        seen = script.wait_for(2)
    assert [(one.text, one.redelivered) for one in seen] == [("m", False), ("m", True)]
    assert seen[1].count >= 2
    assert receive_texts(other_session.create_consumer(sent), 1) == ["m 2"]


@requirement("MDB-45")
@needs("transactions")
@pytest.mark.parametrize("error", [KeptOn("once"), None])
def test_a_transaction_that_is_marked_is_rolled_back_whatever_the_callback_raises(
    factory: ConnectionFactory, queue: Queue, other_session: Session, sent: Queue, error: BaseException | None
) -> None:
    script = Script({"m": [error]} if error is not None else None, sending(sent, mark="m"))
    with deployed(factory, script, queue):
        send_texts(other_session, queue, "m")
        assert script.wait_for_texts(2) == ["m", "m"]
    consumer = other_session.create_consumer(sent)
    assert receive_texts(consumer, 1) == ["m 2"]
    expect_nothing(consumer, other_session, sent)


@requirement("MDB-46")
@needs("transactions")
def test_an_application_exception_alone_commits_and_the_next_message_follows(
    factory: ConnectionFactory, queue: Queue, other_session: Session, sent: Queue
) -> None:
    script = Script({"first": [KeptOn("once")]}, sending(sent))
    with deployed(factory, script, queue):
        send_texts(other_session, queue, "first", "next")
        assert script.wait_for_texts(2) == ["first", "next"]
    assert receive_texts(other_session.create_consumer(sent), 2) == ["first 1", "next 1"]
    consumer = other_session.create_consumer(queue)
    expect_nothing(consumer, other_session, queue)


@requirement("MDB-47", "MDB-41")
@needs("transactions")
def test_a_system_exception_rolls_back_and_brings_the_message_back(
    factory: ConnectionFactory, queue: Queue, other_session: Session, sent: Queue
) -> None:
    script = Script({"m": [ValueError("once")]}, sending(sent))
    with deployed(factory, script, queue):
        send_texts(other_session, queue, "m")
        assert script.wait_for_texts(2) == ["m", "m"]
    assert receive_texts(other_session.create_consumer(sent), 1) == ["m 2"]


@requirement("MDB-43", "MDB-48", "MDB-49")
@needs("transactions")
def test_a_system_exception_is_wrapped_and_costs_the_instance_an_application_exception_does_not(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    system, application = ValueError("system"), KeptOn("application")
    script = Script({"1": [application], "2": [system]})
    raised: list[BaseException] = []

    def watched(endpoint: MessageEndpoint) -> MessageEndpoint:
        return Watched(endpoint, [], raised)

    with deployed(factory, of_class(script), queue, wrap=watched, on_error=script.told, maxInstances=1):
        send_texts(other_session, queue, "1", "2")
        seen = script.wait_for(3)
    assert [one.text for one in seen] == ["1", "2", "2"]
    assert seen[0].instance == seen[1].instance != seen[2].instance
    assert raised[0] is application
    assert isinstance(raised[1], EJBException)
    assert raised[1].__cause__ is system
    assert script.errors == raised


@requirement("MDB-50", "MDB-53", "MDB-59", "MDB-62")
@pytest.mark.parametrize("attribute", [NOT_SUPPORTED, BEAN])
@pytest.mark.parametrize("error", [RolledBack("once"), KeptOn("once"), ValueError("once")], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("mode", ["Auto-acknowledge", "Dups-ok-acknowledge"])
def test_without_a_container_transaction_whatever_is_raised_brings_the_message_back_at_once(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str, error: BaseException, mode: str
) -> None:
    script = Script({"first": [error]})
    terms: dict[str, Any] = {"transactionAttribute": attribute, "acknowledgeMode": mode}
    with deployed(factory, script, queue, start=False, **terms) as deployment:
        send_texts(other_session, queue, "first", "second")
        deployment.start()
        seen = script.wait_for(3)
    assert [(one.text, one.redelivered) for one in seen] == [("first", False), ("first", True), ("second", False)]
    consumer = other_session.create_consumer(queue)
    expect_nothing(consumer, other_session, queue)


@requirement("MDB-51", "MDB-56")
@pytest.mark.parametrize("attribute", [NOT_SUPPORTED, BEAN])
def test_without_a_container_transaction_too_a_system_exception_is_wrapped_and_costs_the_instance(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str
) -> None:
    error = ValueError("once")
    script = Script({"m": [error]})
    bean = of_class(script)
    with deployed(factory, bean, queue, on_error=script.told, transactionAttribute=attribute, maxInstances=1):
        send_texts(other_session, queue, "m", "next")
        seen = script.wait_for(3)
    assert [one.text for one in seen] == ["m", "m", "next"]
    assert seen[0].instance != seen[1].instance == seen[2].instance
    (told,) = script.errors
    assert isinstance(told, EJBException)
    assert told.__cause__ is error


@requirement("MDB-49", "MDB-51", "MDB-56")
@pytest.mark.parametrize("attribute", [pytest.param(REQUIRED, marks=needs("transactions")), NOT_SUPPORTED, BEAN])
def test_a_system_exception_is_logged_with_its_traceback(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = ValueError("once")
    with (
        caplog.at_level(logging.WARNING, logger="jmsapi"),
        deployed(factory, script := Script({"m": [error]}), queue, on_error=None, transactionAttribute=attribute) as deployment,
    ):
        send_texts(other_session, queue, "m")
        script.wait_for(2)
        (endpoint,) = deployment.health.endpoints
    logged = [one for one in caplog.records if one.exc_info is not None and one.exc_info[1] is error]
    assert len(logged) == 1
    assert logged[0].levelno >= logging.WARNING
    assert endpoint.name in logged[0].getMessage()


@requirement("MDB-52")
@pytest.mark.parametrize("attribute", [NOT_SUPPORTED, BEAN])
@pytest.mark.parametrize(
    ("property_value", "mode"),
    [("Auto-acknowledge", Session.AUTO_ACKNOWLEDGE), ("Dups-ok-acknowledge", Session.DUPS_OK_ACKNOWLEDGE)],
)
def test_without_a_container_transaction_the_session_acknowledges_as_the_activation_says(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str, property_value: str, mode: int
) -> None:
    modes: list[int] = []
    script = Script(then=lambda _, context: modes.append(context.session.acknowledge_mode))
    with deployed(factory, script, queue, transactionAttribute=attribute, acknowledgeMode=property_value):
        send_texts(other_session, queue, "1", "2", "3")
        script.wait_for(3)
    assert modes == [mode] * 3
    consumer = other_session.create_consumer(queue)
    expect_nothing(consumer, other_session, queue)


@requirement("12.1-6")
def test_without_an_acknowledge_mode_it_is_automatic(factory: ConnectionFactory, queue: Queue, other_session: Session) -> None:
    modes: list[int] = []
    script = Script(then=lambda _, context: modes.append(context.session.acknowledge_mode))
    with deployed(factory, script, queue, transactionAttribute=BEAN):
        send_texts(other_session, queue, "1")
        script.wait_for(1)
    assert modes == [Session.AUTO_ACKNOWLEDGE]


@requirement("MDB-54")
def test_a_user_transaction_that_is_left_open_is_rolled_back(
    factory: ConnectionFactory, queue: Queue, other_session: Session, sent: Queue, backend: Backend
) -> None:
    if not backend.capabilities.transactions:
        pytest.skip("the broker has no transactions")

    def then(message: Message, context: MessageDrivenContext) -> None:
        if message.jms_redelivered:
            return
        context.user_transaction.begin()
        send_texts(context.session, sent, "never")

    script = Script({"m": [ValueError("once")]}, then)
    with deployed(factory, script, queue, transactionAttribute=BEAN):
        send_texts(other_session, queue, "m")
        assert script.wait_for_texts(2) == ["m", "m"]
        eventually(lambda: len(script.errors) == 1, "one error")
    consumer = other_session.create_consumer(sent)
    expect_nothing(consumer, other_session, sent)


@requirement("MDB-55")
def test_what_a_callback_has_committed_itself_stays_committed(
    factory: ConnectionFactory, queue: Queue, other_session: Session, sent: Queue, backend: Backend
) -> None:
    if not backend.capabilities.transactions:
        pytest.skip("the broker has no transactions")

    def then(message: Message, context: MessageDrivenContext) -> None:
        context.user_transaction.begin()
        send_texts(context.session, sent, f"kept {message.jms_redelivered}")
        context.user_transaction.commit()

    script = Script({"m": [ValueError("once")]}, then)
    with deployed(factory, script, queue, transactionAttribute=BEAN):
        send_texts(other_session, queue, "m")
        assert script.wait_for_texts(2) == ["m", "m"]
    assert receive_texts(other_session.create_consumer(sent), 2) == ["kept False", "kept True"]


@requirement("MDB-60")
@needs("delivery_count_exact")
@pytest.mark.parametrize("attribute", [NOT_SUPPORTED, BEAN])
def test_the_delivery_count_is_one_higher_each_time(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str
) -> None:
    script = Script({"m": [ValueError("once"), ValueError("twice")]})
    with deployed(factory, script, queue, transactionAttribute=attribute):
        send_texts(other_session, queue, "m")
        assert [one.count for one in script.wait_for(3)] == [1, 2, 3]


@requirement("MDB-57")
@needs("transactions")
def test_after_delivery_follows_whatever_the_callback_raises(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    script, calls = Script({"m": [ValueError("once"), KeptOn("application")]}), list[str]()

    def watched(endpoint: MessageEndpoint) -> MessageEndpoint:
        return Watched(endpoint, calls, [])

    with deployed(factory, script, queue, wrap=watched):
        send_texts(other_session, queue, "m")
        script.wait_for(2)
    assert calls == ["before_delivery", "on_message", "after_delivery"] * 2


@requirement("MDB-58")
@pytest.mark.parametrize("attribute", [REQUIRED, NOT_SUPPORTED, BEAN])
def test_callbacks_that_raise_do_not_end_the_delivery(
    factory: ConnectionFactory, queue: Queue, other_session: Session, backend: Backend, attribute: str
) -> None:
    if attribute == REQUIRED and not backend.capabilities.transactions:
        pytest.skip("the broker has no transactions")
    texts = [str(number) for number in range(10)]
    script = Script({text: [ValueError("once")] for text in texts[::2]})
    with deployed(factory, script, queue, transactionAttribute=attribute) as deployment:
        send_texts(other_session, queue, *texts)
        seen = script.wait_for_texts(15)
        assert deployment.health.healthy
    assert [text for text in seen if int(str(text)) % 2] == texts[1::2]
    assert sorted(map(str, set(seen))) == texts
