"""11.4 Examples of the simplified API."""

import threading

import pytest

from jmsapi import JMSContext, JMSRuntimeException, Message, Queue, Session, TextMessage
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Recorder,
    expect_nothing,
    expect_nothing_for,
    outcome_of,
    receive,
    receive_text,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

NON_PERSISTENT = 1


@requirement("11.4.3-1")
def test_a_body_is_sent_with_property_mode_and_hint_in_one_chain(context: JMSContext, queue: Queue, session: Session) -> None:
    context.create_producer().set_property("foo", "bar").set_delivery_mode(NON_PERSISTENT).set_disable_message_timestamp(
        True
    ).send(queue, "text")
    message = receive(session.create_consumer(queue))
    assert text_of(message) == "text"
    assert message.get_string_property("foo") == "bar"
    assert message.jms_delivery_mode == NON_PERSISTENT


@requirement("11.4.7-1")
def test_a_listener_gets_messages_without_start(context: JMSContext, queue: Queue, other_session: Session) -> None:
    recorder = Recorder()
    context.create_consumer(queue).message_listener = recorder
    send_texts(other_session, queue, "1", "2")
    assert recorder.wait_for_texts(2) == ["1", "2"]


@requirement("11.4.9-1")
def test_two_contexts_of_a_connection_process_a_queue_in_two_threads(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    meeting = threading.Barrier(2)
    outcomes: list[BaseException | None] = []

    def meet(_: Message) -> None:
        outcomes.append(outcome_of(lambda: meeting.wait(PATIENCE_MS / 1000)))

    # One message ahead each, so that neither context takes both.
    first = connect.context(prefetch=1)
    recorders = [Recorder(meet), Recorder(meet)]
    with first.create_context(JMSContext.AUTO_ACKNOWLEDGE) as second:
        first.create_consumer(queue).message_listener = recorders[0]
        second.create_consumer(queue).message_listener = recorders[1]
        send_texts(other_session, queue, "1", "2")
        for recorder in recorders:
            recorder.wait_for(1)
    first.close()
    assert outcomes == [None, None]
    assert recorders[0].threads.isdisjoint(recorders[1].threads)


@requirement("11.4.10-1", "B.4.1-1")
@needs("transactions")
@pytest.mark.parametrize("to", ["queue", "topic"])
def test_receiving_and_forwarding_is_one_transaction(
    connect: Connect, queue: Queue, other_session: Session, names: Names, to: str
) -> None:
    target = other_session.create_queue(names.queue()) if to == "queue" else other_session.create_topic(names.topic())
    watch = other_session.create_consumer(target)
    send_texts(other_session, queue, "text")
    context = connect.context(session_mode=JMSContext.SESSION_TRANSACTED)
    consumer, producer = context.create_consumer(queue), context.create_producer()

    assert receive_text(consumer) == "text"
    producer.send(target, "forwarded")
    context.rollback()
    again = receive(consumer)
    assert (text_of(again), again.jms_redelivered) == ("text", True)
    expect_nothing(watch, other_session, target)

    producer.send(target, "forwarded")
    expect_nothing(watch, other_session, target)
    context.commit()
    assert receive_text(watch) == "forwarded"
    context.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("11.4.11-1")
@needs("temporary_queue")
def test_only_the_connection_of_a_temporary_queue_consumes_from_it(context: JMSContext, connect: Connect) -> None:
    temporary = context.create_temporary_queue()
    second = connect.context()
    with pytest.raises(JMSRuntimeException):
        second.create_consumer(temporary)
    second.create_producer().send(temporary, "text")
    third = context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
    assert third.create_consumer(temporary).receive_body(str, PATIENCE_MS) == "text"
    third.close()


@requirement("11.4.11-2", "11.4.11-3")
@needs("transactions", "temporary_queue")
def test_a_request_in_a_transaction_is_answered_after_its_commit(connect: Connect, context: JMSContext, queue: Queue) -> None:
    def answer(request: Message) -> None:
        assert isinstance(request, TextMessage)
        assert request.jms_reply_to is not None
        context.create_producer().set_jms_correlation_id(request.jms_message_id).send(request.jms_reply_to, f"re: {request.text}")

    context.create_consumer(queue).message_listener = Recorder(answer)
    requestor = connect.context(session_mode=JMSContext.SESSION_TRANSACTED)
    replies = requestor.create_temporary_queue()
    consumer = requestor.create_consumer(replies)
    request = requestor.create_text_message("request")
    request.jms_reply_to = replies
    requestor.create_producer().send(queue, request)
    expect_nothing_for(consumer)
    requestor.commit()
    reply = receive(consumer)
    assert text_of(reply) == "re: request"
    assert reply.jms_correlation_id == request.jms_message_id
    requestor.commit()
