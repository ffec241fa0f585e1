"""One request and its reply, over a temporary queue that lives only for them."""

from __future__ import annotations

import logging
import uuid
from typing import Final, Protocol

from jmsapi.api import Destination, JMSContext, Message, TemporaryQueue
from jmsapi.errors import IllegalStateException, JMSException

__all__ = ["Requesting", "check_may_request", "exchange"]

_log: Final = logging.getLogger("jmsapi")


class Requesting(Protocol):
    """A context in which a request begins."""

    @property
    def transacted(self) -> bool:
        """Whether what it sends waits for a commit."""
        ...


def check_may_request(context: Requesting) -> None:
    """Refuse a context in which a request would wait for its commit.

    Raises:
        IllegalStateException: The context is transacted.
    """
    if context.transacted:
        raise IllegalStateException(
            "request: the context is transacted, so the request would wait for its commit; use a context that is not"
        )


def exchange(context: JMSContext, destination: Destination, body: object, timeout_ms: float | None) -> Message | None:
    """Send a request and wait for the reply; see ``JMSContext.request``.

    Args:
        context: Not transacted, and without a message listener.
        destination: Where the request goes.
        body: A message, or the body of one.
        timeout_ms: Longest wait; None or 0 for ever.
    """
    replies = context.create_temporary_queue()
    try:
        with context.create_consumer(replies) as consumer:
            producer = context.create_producer().set_jms_reply_to(replies)
            if not (isinstance(body, Message) and body.jms_correlation_id):
                producer.set_jms_correlation_id(uuid.uuid4().hex)
            producer.send(destination, body)
            return consumer.receive(timeout_ms=timeout_ms)
    finally:
        _delete(replies)


def _delete(replies: TemporaryQueue) -> None:
    try:
        replies.delete()
    except JMSException as error:
        # It ends with its connection at the latest, so the reply, or what went wrong before, is the better answer.
        if error.error_code != "closed":
            _log.warning("request: the temporary queue of the reply could not be deleted: %s", error)
