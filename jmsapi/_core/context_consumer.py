"""The simplified API's consumer: a consumer that can also hand over bodies, and raises runtime exceptions.

Spec: 11.2.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.context import runtime
from jmsapi._core.ledger import Entry
from jmsapi.api import JMSConsumer, Message, MessageListenerLike
from jmsapi.errors import MessageFormatException
from jmsapi.spi import MessageKind

__all__ = ["JMSConsumerImpl"]

T = TypeVar("T")


class JMSConsumerImpl(JMSConsumer):
    """A consumer of one context.

    Args:
        consumer: The consumer that does the work.
    """

    def __init__(self, consumer: ConsumerImpl) -> None:
        self._consumer = consumer

    @property
    @runtime
    def message_selector(self) -> str | None:
        """Return the selector's text, or None; see JMSConsumer."""
        return self._consumer.message_selector

    @property
    @runtime
    def message_listener(self) -> MessageListenerLike | None:
        """Return the listener, or None; see JMSConsumer."""
        return self._consumer.message_listener

    @message_listener.setter
    @runtime
    def message_listener(self, message_listener: MessageListenerLike | None) -> None:
        self._consumer.message_listener = message_listener

    @runtime
    def receive(self, timeout_ms: float | None = None) -> Message | None:
        """Take the next message, waiting for one; see JMSConsumer."""
        return self._consumer.receive(timeout_ms)

    @runtime
    def receive_no_wait(self) -> Message | None:
        """Take a message if one is there; see JMSConsumer."""
        return self._consumer.receive_no_wait()

    @runtime
    def receive_body(self, body_type: type[T], timeout_ms: float | None = None) -> T | None:
        """Take the next message's body, waiting for one; see JMSConsumer."""
        return self._body(self._consumer.pull(timeout_ms, finish=False), body_type)

    @runtime
    def receive_body_no_wait(self, body_type: type[T]) -> T | None:
        """Take the body of a message if one is there; see JMSConsumer."""
        return self._body(self._consumer.pull_no_wait(finish=False), body_type)

    def __iter__(self) -> Iterator[Message]:
        """Iterate over messages as they come; ends when the consumer or its context is closed."""
        messages = iter(self._consumer)
        while (message := self._next(messages)) is not None:
            yield message

    @runtime
    def close(self) -> None:
        """Close the consumer; see JMSConsumer."""
        self._consumer.close()

    @runtime
    def _next(self, messages: Iterator[Message]) -> Message | None:
        return next(messages, None)

    def _body(self, entry: Entry | None, body_type: type[T]) -> T | None:
        if entry is None:
            return None
        try:
            message = self._consumer.session.message(entry)
            if entry.delivery.envelope.kind in (MessageKind.MESSAGE, MessageKind.STREAM):
                raise MessageFormatException("receive_body: a plain Message or a StreamMessage has no body to give; use receive")
            body = message.get_body(body_type)
            if body is None:
                raise MessageFormatException("receive_body: the message has no body; use receive")
        except BaseException:
            self._consumer.refuse_body(entry)
            raise
        self._consumer.finish(entry)
        return body
