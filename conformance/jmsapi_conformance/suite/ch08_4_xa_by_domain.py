"""8.4 The XA interfaces of the domains, and what both domains do in one branch."""

from __future__ import annotations

import pytest

from jmsapi import (
    InvalidDestinationException,
    JMSException,
    QueueConnection,
    QueueConnectionFactory,
    QueueSession,
    Session,
    TopicConnection,
    TopicConnectionFactory,
    TopicSession,
    XAConnection,
    XAConnectionFactory,
    XAQueueConnection,
    XAQueueConnectionFactory,
    XAQueueSession,
    XASession,
    XATopicConnection,
    XATopicConnectionFactory,
    XATopicSession,
)
from jmsapi.xa import TMNOFLAGS, TMSUCCESS
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import receive, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._branches import new_xid, xa_connection, xa_factory, xa_session

__all__ = ["xa_connection", "xa_factory", "xa_session"]


@needs("xa", "shared_durable_subscription")
@requirement("SHS-45")
def test_an_xa_session_shares_subscriptions_like_any_other(xa_session: XASession, other_session: Session, names: Names) -> None:
    session, resource, xid, subscription = xa_session.session, xa_session.xa_resource, new_xid(), names.subscription()
    topic = session.create_topic(names.topic())
    with (
        session.create_shared_consumer(topic, names.subscription()),
        session.create_shared_durable_consumer(topic, subscription) as one,
    ):
        send_texts(other_session, topic, "x")
        resource.start(xid, TMNOFLAGS)
        assert text_of(receive(one)) == "x"
        resource.end(xid, TMSUCCESS)
        with other_session.create_shared_durable_consumer(topic, subscription) as other:
            assert other.receive_no_wait() is None
            one.close()
            resource.rollback(xid)
            again = receive(other)
            assert (text_of(again), again.jms_redelivered) == ("x", True)
            assert other.receive_no_wait() is None


@needs("xa", "shared_durable_subscription", "shared_unsubscribe")
@requirement("6.11.4-6")
@pytest.mark.parametrize("prepared", [False, True])
def test_unsubscribing_is_an_error_while_a_branch_holds_a_message_without_a_consumer(
    xa_session: XASession, other_session: Session, names: Names, prepared: bool
) -> None:
    session, resource, xid, name = xa_session.session, xa_session.xa_resource, new_xid(), names.subscription()
    topic = session.create_topic(names.topic())
    with session.create_shared_durable_consumer(topic, name) as consumer:
        send_texts(other_session, topic, "x")
        resource.start(xid, TMNOFLAGS)
        assert text_of(receive(consumer)) == "x"
        resource.end(xid, TMSUCCESS)
    if prepared:
        resource.prepare(xid)
    with pytest.raises(JMSException):
        other_session.unsubscribe(name)
    resource.rollback(xid)
    with other_session.create_shared_durable_consumer(topic, name) as consumer:
        assert text_of(receive(consumer)) == "x"
    other_session.unsubscribe(name)


@requirement("8.4-1")
@pytest.mark.parametrize(
    ("kind", "bases"),
    [
        (XAQueueConnectionFactory, (XAConnectionFactory, QueueConnectionFactory)),
        (XATopicConnectionFactory, (XAConnectionFactory, TopicConnectionFactory)),
        (XAQueueConnection, (XAConnection, QueueConnection)),
        (XATopicConnection, (XAConnection, TopicConnection)),
        (XAQueueSession, (XASession,)),
        (XATopicSession, (XASession,)),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_interfaces_of_the_domains_derive_from_the_common_ones(kind: type, bases: tuple[type, ...]) -> None:
    assert all(issubclass(kind, base) for base in bases)


@needs("xa")
@requirement("8.4-1")
def test_the_domains_have_their_own_xa_sessions(xa_factory: XAConnectionFactory, names: Names) -> None:
    assert isinstance(xa_factory, XAQueueConnectionFactory)
    assert isinstance(xa_factory, XATopicConnectionFactory)
    with xa_factory.create_xa_queue_connection() as queues, xa_factory.create_xa_topic_connection() as topics:
        assert isinstance(queues, XAQueueConnection)
        assert isinstance(topics, XATopicConnection)
        queue_session, topic_session = (
            queues.create_xa_queue_session().queue_session,
            topics.create_xa_topic_session().topic_session,
        )
        assert isinstance(queue_session, QueueSession)
        assert isinstance(topic_session, TopicSession)
        queue, topic = queue_session.create_queue(names.queue()), topic_session.create_topic(names.topic())
        queue_session.create_receiver(queue).close()
        topic_session.create_subscriber(topic).close()
        with pytest.raises(InvalidDestinationException):
            queue_session.create_sender(topic)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@needs("xa")
@requirement("8.4-2")
def test_a_queue_and_a_topic_take_part_in_one_branch(xa_session: XASession, connect: Connect, names: Names) -> None:
    session, resource, xid = xa_session.session, xa_session.xa_resource, new_xid()
    other = connect().create_session()
    queue, topic = session.create_queue(names.queue()), session.create_topic(names.topic())
    with other.create_consumer(queue) as from_queue, other.create_consumer(topic) as from_topic:
        resource.start(xid, TMNOFLAGS)
        for destination in (queue, topic):
            send_texts(session, destination, "x")
        resource.end(xid, TMSUCCESS)
        assert from_queue.receive_no_wait() is None
        assert from_topic.receive_no_wait() is None
        resource.commit(xid, True)
        assert [text_of(receive(one)) for one in (from_queue, from_topic)] == ["x", "x"]
