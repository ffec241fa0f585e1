"""``JMSContext.request``: a request, its reply, and what is left of both."""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import jmsapi
from jmsapi import (
    IllegalArgumentException,
    IllegalStateRuntimeException,
    InvalidDestinationException,
    InvalidDestinationRuntimeException,
    JMSContext,
    Message,
    Queue,
    TextMessage,
)
from jmsapi._core.container import ContainerRules, enter_container, leave_container
from jmsapi.injection import Inject, Injector
from jmsapi_conformance.kit import PATIENCE_MS, finish, in_thread, must_wait

FACTORY = jmsapi.connection_factory("inproc://requests", checked=True)


@pytest.fixture
def context() -> Iterator[JMSContext]:
    with FACTORY.create_context() as made:
        yield made


@pytest.fixture
def other() -> Iterator[JMSContext]:
    with FACTORY.create_context() as made:
        yield made


def echoing(other: JMSContext, queue: Queue) -> list[Message]:
    """Have requests answered as Java programs do, by a listener; return them."""
    seen: list[Message] = []
    answerer = other.create_context(JMSContext.AUTO_ACKNOWLEDGE)

    def answer(message: Message) -> None:
        seen.append(message)
        reply_to = message.jms_reply_to
        assert reply_to is not None and isinstance(message, TextMessage)
        reply = answerer.create_text_message(f"re: {message.text}")
        reply.jms_correlation_id = message.jms_correlation_id
        answerer.create_producer().send(reply_to, reply)

    other.create_consumer(queue).message_listener = answer
    return seen


def test_a_request_gets_its_reply(context: JMSContext, other: JMSContext) -> None:
    queue = context.create_queue("answered")
    seen = echoing(other, queue)
    first = context.request(queue, "one", timeout_ms=PATIENCE_MS)
    second = context.request(queue, context.create_text_message("two"), timeout_ms=timedelta(milliseconds=PATIENCE_MS))
    assert first is not None and second is not None
    assert [first.get_body(str), second.get_body(str)] == ["re: one", "re: two"]
    ids = [message.jms_correlation_id for message in seen]
    assert [first.jms_correlation_id, second.jms_correlation_id] == ids
    assert len(set(ids)) == 2 and all(ids)
    assert len({message.jms_reply_to for message in seen}) == 2


def test_a_correlation_id_that_a_request_has_is_kept(context: JMSContext, other: JMSContext) -> None:
    queue = context.create_queue("of a number of its own")
    echoing(other, queue)
    message = context.create_text_message("mine")
    message.jms_correlation_id = "order 7"
    reply = context.request(queue, message, timeout_ms=PATIENCE_MS)
    assert reply is not None and reply.jms_correlation_id == "order 7"


def test_a_reply_that_comes_late_is_not_left(context: JMSContext, other: JMSContext) -> None:
    queue = context.create_queue("answered late")
    assert context.request(queue, "hello?", timeout_ms=20) is None
    request = other.create_consumer(queue).receive(PATIENCE_MS)
    assert request is not None and request.jms_reply_to is not None
    with pytest.raises(InvalidDestinationRuntimeException):
        other.create_producer().send(request.jms_reply_to, "too late")


def test_a_listener_may_request_and_a_listening_context_too(context: JMSContext, other: JMSContext) -> None:
    queue, asking = context.create_queue("asked by a listener"), context.create_queue("asks")
    echoing(other, queue)
    found: list[Message | None] = []
    done = threading.Event()

    def ask(message: Message) -> None:
        found.append(context.request(queue, "from a listener", timeout_ms=PATIENCE_MS))
        done.set()

    context.create_consumer(asking).message_listener = ask
    other.create_context(JMSContext.AUTO_ACKNOWLEDGE).create_producer().send(asking, "go")
    assert done.wait(PATIENCE_MS / 1000)
    beside = context.request(queue, "beside", timeout_ms=PATIENCE_MS)
    assert [one and one.get_body(str) for one in (*found, beside)] == ["re: from a listener", "re: beside"]


def test_closing_the_context_ends_a_request(context: JMSContext) -> None:
    waiting = must_wait(lambda: context.request(context.create_queue("never answered"), "?"))
    context.close()
    assert finish(waiting) is None


def test_a_closed_or_a_transacted_context_refuses_a_request(context: JMSContext) -> None:
    queue = context.create_queue("not asked")
    with (
        context.create_context(JMSContext.SESSION_TRANSACTED) as transacted,
        pytest.raises(IllegalStateRuntimeException, match="wait for its commit"),
    ):
        transacted.request(queue, "?", timeout_ms=1)
    context.close()
    with pytest.raises(IllegalStateRuntimeException, match="closed"):
        context.request(queue, "?", timeout_ms=1)


def test_what_is_no_timeout_sends_nothing(context: JMSContext, other: JMSContext) -> None:
    queue = context.create_queue("sent nothing")
    with pytest.raises(IllegalArgumentException, match="request: a timeout"):
        context.request(queue, "?", timeout_ms=-1)
    assert other.create_consumer(queue).receive_no_wait() is None


def test_a_reply_is_given_although_its_queue_cannot_be_deleted(
    context: JMSContext, other: JMSContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = context.create_queue("answered, but not cleaned up")
    echoing(other, queue)

    def refuse(self: Any, address: object) -> None:
        raise InvalidDestinationException("deleted by somebody else")

    monkeypatch.setattr("jmsapi._core.connection.ConnectionImpl.delete_temporary", refuse)
    with caplog.at_level(logging.WARNING, "jmsapi"):
        reply = context.request(queue, "one", timeout_ms=PATIENCE_MS)
    assert reply is not None
    assert "deleted by somebody else" in caplog.text


def _injected(queue: Queue) -> Message | None:
    from typing import Annotated

    injector = Injector(FACTORY)

    @injector.inject
    def ask(jms: Annotated[JMSContext, Inject()]) -> Message | None:
        return jms.request(queue, "one", timeout_ms=PATIENCE_MS)

    return ask()


def _managed(queue: Queue) -> Message | None:
    token = enter_container(ContainerRules())
    try:
        with FACTORY.create_context() as managed:
            return managed.request(queue, "one", timeout_ms=PATIENCE_MS)
    finally:
        leave_container(token)


@pytest.mark.parametrize("ask", [_injected, _managed])
def test_an_injected_and_a_managed_context_request(
    context: JMSContext, other: JMSContext, ask: Callable[[Queue], Message | None]
) -> None:
    queue = context.create_queue(f"asked in a container: {ask.__name__}")
    echoing(other, queue)
    reply = finish(in_thread(lambda: ask(queue)))
    assert reply is not None and reply.get_body(str) == "re: one"
