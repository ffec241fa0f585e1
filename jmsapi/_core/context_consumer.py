"""The simplified API's consumer: a consumer that can also hand over bodies, and raises runtime exceptions.

Spec: 11.2.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from jmsapi._core.acknowledgement.ledger import Entry
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.interrupted_receive import ReceivedMessages, returns_or_keeps
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.timeouts import longest_wait, warns_of_seconds
from jmsapi._not_copied import NotCopied
from jmsapi.api import JMSConsumer, Message, MessageListenerLike
from jmsapi.errors import MessageFormatException
from jmsapi.spi import MessageKind
from jmsapi.values import Timeout

__all__ = ["JMSConsumerImpl", "body_of"]

T = TypeVar("T")


class JMSConsumerImpl(NotCopied, JMSConsumer):
    """A consumer of one context.

    Args:
        consumer: The consumer that does the work.
    """

    def __init__(self, consumer: ConsumerImpl) -> None:
        self._consumer = consumer
        self.in_hand = consumer.in_hand

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

    @returns_or_keeps
    @warns_of_seconds
    @runtime
    def receive(self, timeout_ms: Timeout | None = None) -> Message | None:
        """Take the next message, waiting for one; see JMSConsumer."""
        return self._consumer.next_within(timeout_ms)

    @returns_or_keeps
    @runtime
    def receive_no_wait(self) -> Message | None:
        """Take a message if one is there; see JMSConsumer."""
        return self._consumer.next_at_hand()

    @returns_or_keeps
    @warns_of_seconds
    @runtime
    def receive_body(self, body_type: type[T], timeout_ms: Timeout | None = None) -> T | None:
        """Take the next message's body, waiting for one; see JMSConsumer."""
        return body_of(self._consumer, self._consumer.pull(longest_wait(timeout_ms, "receive_body"), finish=False), body_type)

    @returns_or_keeps
    @runtime
    def receive_body_no_wait(self, body_type: type[T]) -> T | None:
        """Take the body of a message if one is there; see JMSConsumer."""
        return body_of(self._consumer, self._consumer.pull_no_wait(finish=False), body_type)

    def __iter__(self) -> Iterator[Message]:
        """Iterate over messages as they come; ends when the consumer or its context is closed."""
        return ReceivedMessages(self._next_message, self.in_hand)

    @runtime
    def close(self) -> None:
        """Close the consumer; see JMSConsumer."""
        self._consumer.close()

    @runtime
    def _next_message(self) -> Message | None:
        return self._consumer.next_message()


def body_of(consumer: ConsumerImpl, entry: Entry | None, body_type: type[T]) -> T | None:
    """Return the body of what was received, and acknowledge it; see JMSConsumer."""
    if entry is None:
        return None
    try:
        message = consumer.session.message(entry)
        if entry.delivery.envelope.kind in (MessageKind.MESSAGE, MessageKind.STREAM):
            raise MessageFormatException("receive_body: a plain Message or a StreamMessage has no body to give; use receive")
        body = message.get_body(body_type)
        if body is None:
            raise MessageFormatException("receive_body: the message has no body; use receive")
    except BaseException:
        consumer.session.settlement.refuse_body(entry)
        consumer.in_hand.refused(entry)
        raise
    consumer.session.settlement.finish(entry)
    return body
