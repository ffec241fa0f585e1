"""The class ``TopicRequestor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi.api._closing import Closing
from jmsapi.errors import IllegalArgumentException, IllegalStateException, InvalidDestinationException, MessageFormatException

if TYPE_CHECKING:
    from jmsapi.api.message import Message
    from jmsapi.api.topic import Topic
    from jmsapi.api.topic_session import TopicSession

__all__ = ["TopicRequestor"]


class TopicRequestor(Closing):
    """Sends requests to a topic and waits for the reply to each, on a temporary topic of its own.

    Args:
        session: A session that is not transacted; the requestor closes it.
        topic: Where the requests go.
    Raises:
        InvalidDestinationException: There is no topic, or it is not valid.
        IllegalStateException: The session is closed, or transacted: a request would wait for its commit.
        IllegalArgumentException: The session is no TopicSession.
        JMSException: The provider failed.
    Threads: those of the session.
    Spec: 6.14-1, 6.14-2, B.2.19-3, B.3.3-1.
    """

    def __init__(self, session: TopicSession, topic: Topic) -> None:
        # Callers without a type checker may pass None, which create_publisher would take for "no fixed topic".
        if topic is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidDestinationException("a requestor needs the topic to send to; it got None")
        if not callable(getattr(session, "create_publisher", None)):
            raise IllegalArgumentException(f"a requestor needs a TopicSession, not {session!r}")
        if session.transacted:
            raise IllegalStateException(
                "a requestor needs a session that is not transacted; in this one a request would wait for its commit"
            )
        self._session = session
        self._sender = session.create_publisher(topic)
        self._replies = session.create_temporary_topic()
        self._receiver = session.create_subscriber(self._replies)
        self._closed = False

    def request(self, message: Message) -> Message | None:
        """Send a request and wait for its reply, without a limit.

        Args:
            message: The request; its ``jms_reply_to`` is set to the requestor's temporary topic.
        Returns:
            The first reply; None if another thread closed the session meanwhile.
        Raises:
            IllegalStateException: The session is closed.
            MessageFormatException: The request is no message.
            JMSException: The provider failed.
        Spec: 6.14-2.
        """
        if not hasattr(message, "jms_reply_to"):
            raise MessageFormatException(f"request: a Message is wanted, not {type(message).__name__}")
        message.jms_reply_to = self._replies
        self._sender.publish(message)
        return self._receiver.receive()

    def close(self) -> None:
        """Close the session and delete the temporary topic; closed already, do nothing.

        Raises:
            JMSException: The provider failed.
        Spec: B.2.19-3.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._session.close()
        finally:
            try:
                self._replies.delete()
            except IllegalStateException as error:
                # With a connection that is closed, its temporary topic is gone.
                if error.error_code != "closed":
                    raise
