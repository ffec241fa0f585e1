"""2.10 Request/reply."""

import pytest

from jmsapi import Destination, Message, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import receive, receive_all, receive_text, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._two_apis import client_of, each_api


@requirement("2.10-1")
@pytest.mark.parametrize("refers_by", ["message id", "correlation id"])
def test_each_open_request_finds_its_reply_on_a_common_queue(
    session: Session, queue: Queue, other_session: Session, names: Names, refers_by: str
) -> None:
    replies = session.create_queue(names.queue())
    open_requests: dict[str | None, str] = {}
    for number in range(5):
        request = session.create_text_message(f"question {number}")
        request.jms_reply_to = replies
        if refers_by == "correlation id":
            request.jms_correlation_id = f"request {number}"
        session.create_producer(queue).send(request)
        key = request.jms_message_id if refers_by == "message id" else request.jms_correlation_id
        open_requests[key] = f"question {number}"
    assert len(open_requests) == 5

    for received in reversed(receive_all(other_session.create_consumer(queue), 5)):
        answer(other_session, received)

    found = {reply.jms_correlation_id: text_of(reply) for reply in receive_all(session.create_consumer(replies), 5)}
    assert found == {key: f"answer to {question}" for key, question in open_requests.items()}


@requirement("2.10-2")
@each_api
@pytest.mark.parametrize(
    "kind", [pytest.param("queue", marks=needs("temporary_queue")), pytest.param("topic", marks=needs("temporary_topic"))]
)
def test_a_temporary_destination_of_each_kind_takes_the_replies(
    connect: Connect, queue: Queue, other_session: Session, kind: str, api: str
) -> None:
    client = client_of(connect, api)
    replies: Destination = client.create_temporary_queue() if kind == "queue" else client.create_temporary_topic()
    consumer, responder = client.create_consumer(replies), other_session.create_consumer(queue)
    for number in range(3):
        request = client.create_text_message(f"question {number}")
        request.jms_reply_to = replies
        if isinstance(client, Session):
            client.create_producer(queue).send(request)
        else:
            client.create_producer().send(queue, request)
        received = receive(responder)
        answer(other_session, received)
        assert receive_text(consumer) == f"answer to question {number}"


def answer(session: Session, request: Message) -> None:
    """Send a reply to where the request wants it, referring to the request."""
    assert request.jms_reply_to is not None
    reply = session.create_text_message(f"answer to {text_of(request)}")
    reply.jms_correlation_id = request.jms_correlation_id or request.jms_message_id
    session.create_producer(request.jms_reply_to).send(reply)
