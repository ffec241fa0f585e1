"""Requests and replies, over a session that notes what is done with it."""

from __future__ import annotations

from typing import Any

import pytest

from jmsapi.api import Message, Queue, QueueRequestor, QueueSession, TopicRequestor, TopicSession
from jmsapi.errors import (
    IllegalArgumentException,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
)


class Destination:
    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def delete(self) -> None:
        self.log.append(f"delete {self.name}")


class Sender:
    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def send(self, message: Any) -> None:
        self.log.append(f"send {message.body} to {self.name}, reply to {message.jms_reply_to.name}")

    publish = send


class Receiver:
    def __init__(self, log: list[str], name: str, replies: list[str]) -> None:
        self.log, self.name, self.replies = log, name, replies

    def receive(self) -> str | None:
        self.log.append(f"receive from {self.name}")
        return self.replies.pop(0) if self.replies else None


class Request:
    def __init__(self, body: str) -> None:
        self.body = body
        self.jms_reply_to: Any = None


class Session:
    """A session of either domain; only what a requestor may use is there."""

    def __init__(self, *, transacted: bool = False, fails_to_close: bool = False) -> None:
        self.log: list[str] = []
        self.transacted = transacted
        self.fails_to_close = fails_to_close
        self.replies = ["first", "second"]

    def make_destination(self) -> Destination:
        return Destination(self.log, "temporary")

    def make_sender(self, destination: Destination) -> Sender:
        return Sender(self.log, destination.name)

    def make_receiver(self, destination: Destination) -> Receiver:
        return Receiver(self.log, destination.name, self.replies)

    create_temporary_queue = create_temporary_topic = make_destination
    create_sender = create_publisher = make_sender
    create_receiver = create_subscriber = make_receiver

    def close(self) -> None:
        self.log.append("close")
        if self.fails_to_close:
            raise JMSException("link lost")


KINDS = pytest.mark.parametrize("kind", [QueueRequestor, TopicRequestor])


def make(kind: type[QueueRequestor] | type[TopicRequestor], session: Session) -> QueueRequestor | TopicRequestor:
    destination: Any = Destination(session.log, "shop")
    stand_in: Any = session
    return kind(stand_in, destination)


@pytest.mark.requirement("5.10-1", "5.10-2", "6.14-1", "6.14-2")
@KINDS
def test_each_request_goes_out_with_the_temporary_destination_and_gets_its_reply(kind: Any) -> None:
    session = Session()
    requestor = make(kind, session)
    requests: list[Any] = [Request("a"), Request("b")]
    assert [requestor.request(request) for request in requests] == ["first", "second"]
    assert session.log == [
        "send a to shop, reply to temporary",
        "receive from temporary",
        "send b to shop, reply to temporary",
        "receive from temporary",
    ]


@KINDS
def test_a_request_gives_none_when_the_session_is_closed_meanwhile(kind: Any) -> None:
    session = Session()
    session.replies.clear()
    request: Any = Request("a")
    assert make(kind, session).request(request) is None


@pytest.mark.requirement("B.2.19-3")
@KINDS
def test_closing_closes_the_session_and_then_deletes_the_temporary_destination_once(kind: Any) -> None:
    session = Session()
    with make(kind, session) as requestor:
        assert session.log == []
    assert session.log == ["close", "delete temporary"]
    requestor.close()
    assert session.log == ["close", "delete temporary"]


@KINDS
def test_the_temporary_destination_goes_even_if_the_session_fails_to_close(kind: Any) -> None:
    session = Session(fails_to_close=True)
    with pytest.raises(JMSException, match="link lost"):
        make(kind, session).close()
    assert session.log == ["close", "delete temporary"]


@pytest.mark.requirement("B.3.3-1")
@KINDS
def test_a_requestor_without_a_destination_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidDestinationException):
        kind(Session(), None)


@KINDS
def test_a_transacted_session_is_refused(kind: Any) -> None:
    with pytest.raises(IllegalStateException, match="not transacted"):
        make(kind, Session(transacted=True))


def test_a_queue_requestor_asks_only_for_what_the_spec_objects_have() -> None:
    for owner, used in (
        (QueueSession, ("transacted", "create_sender", "create_temporary_queue", "create_receiver", "close")),
        (TopicSession, ("transacted", "create_publisher", "create_temporary_topic", "create_subscriber", "close")),
        (Message, ("jms_reply_to",)),
        (Queue, ("queue_name",)),
    ):
        assert all(hasattr(owner, name) for name in used)


@KINDS
@pytest.mark.parametrize("nothing", [None, "session"])
def test_a_requestor_refuses_what_is_no_session_of_its_domain(kind: Any, nothing: Any) -> None:
    with pytest.raises(IllegalArgumentException, match=r"needs a (Queue|Topic)Session"):
        kind(nothing, Destination([], "shop"))


@KINDS
@pytest.mark.parametrize("nothing", [None, "question"])
def test_a_request_that_is_no_message_is_refused_and_nothing_is_sent(kind: Any, nothing: Any) -> None:
    session = Session()
    requestor = make(kind, session)
    with pytest.raises(MessageFormatException, match="a Message is wanted"):
        requestor.request(nothing)
    assert session.log == []
