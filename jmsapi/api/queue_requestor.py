"""The class ``QueueRequestor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi.api._closing import Closing
from jmsapi.errors import IllegalArgumentException, IllegalStateException, InvalidDestinationException, MessageFormatException

if TYPE_CHECKING:
    from jmsapi.api.message import Message
    from jmsapi.api.queue import Queue
    from jmsapi.api.queue_session import QueueSession

__all__ = ["QueueRequestor"]


class QueueRequestor(Closing):
    """Sends requests to a queue and waits for the reply to each, on a temporary queue of its own.

    Args:
        session: A session that is not transacted; the requestor closes it.
        queue: Where the requests go.
    Raises:
        InvalidDestinationException: There is no queue, or it is not valid.
        IllegalStateException: The session is closed, or transacted: a request would wait for its commit.
        IllegalArgumentException: The session is no QueueSession.
        JMSException: The provider failed.
    Threads: those of the session.
    Spec: 5.10-1, 5.10-2, B.2.19-3, B.3.3-1.
    """

    def __init__(self, session: QueueSession, queue: Queue) -> None:
        # Callers without a type checker may pass None, which create_sender would take for "no fixed queue".
        if queue is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidDestinationException("a requestor needs the queue to send to; it got None")
        if not callable(getattr(session, "create_sender", None)):
            raise IllegalArgumentException(f"a requestor needs a QueueSession, not {session!r}")
        if session.transacted:
            raise IllegalStateException(
                "a requestor needs a session that is not transacted; in this one a request would wait for its commit"
            )
        self._session = session
        self._sender = session.create_sender(queue)
        self._replies = session.create_temporary_queue()
        self._receiver = session.create_receiver(self._replies)
        self._closed = False

    def request(self, message: Message) -> Message | None:
        """Send a request and wait for its reply, without a limit.

        Args:
            message: The request; its ``jms_reply_to`` is set to the requestor's temporary queue.
        Returns:
            The first reply; None if another thread closed the session meanwhile.
        Raises:
            IllegalStateException: The session is closed.
            MessageFormatException: The request is no message.
            JMSException: The provider failed.
        Spec: 5.10-2.
        """
        if not hasattr(message, "jms_reply_to"):
            raise MessageFormatException(f"request: a Message is wanted, not {type(message).__name__}")
        message.jms_reply_to = self._replies
        self._sender.send(message)
        return self._receiver.receive()

    def close(self) -> None:
        """Close the session and delete the temporary queue; closed already, do nothing.

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
                # With a connection that is closed, its temporary queue is gone.
                if error.error_code != "closed":
                    raise
