"""Receives messages as their wire brought them, many at a time, for who keeps them and has them read elsewhere.

No message object is made and nothing is decoded but whether a message has expired, so one that nobody can read is received like
any other.
"""

from __future__ import annotations

from collections.abc import Callable

from jmsapi._core.acknowledgement.ledger import CLIENT, TRANSACTED, Entry
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.interrupted_receive import returns_or_keeps
from jmsapi._core.timeouts import longest_wait
from jmsapi._core.wire_message import WireMessage
from jmsapi.errors import IllegalStateException
from jmsapi.spi import ProviderError, WireForm

__all__ = ["WireReceiver"]


class WireReceiver:
    """Receives for one consumer, which nobody else uses meanwhile.

    Args:
        consumer: Of a session that is transacted or in CLIENT_ACKNOWLEDGE.
    Raises:
        IllegalStateException: Its session acknowledges by itself.
    Threads: that of the session.
    """

    def __init__(self, consumer: ConsumerImpl) -> None:
        if consumer.session.mode not in (CLIENT, TRANSACTED):
            raise IllegalStateException("messages are received as they came only in CLIENT_ACKNOWLEDGE and in transactions")
        self._consumer = consumer
        self.in_hand = consumer.in_hand
        self._acknowledge: Callable[[], None] | None = None

    @returns_or_keeps
    def receive(self, most: int, most_bytes: int, timeout_ms: float) -> list[WireMessage]:
        """Take messages that are here, waiting for the first.

        Args:
            most: The most messages. Fewer are returned when no more are here, or many are.
            most_bytes: The most bytes; one message may exceed it.
            timeout_ms: Longest wait; 0 waits for ever.
        Returns:
            The messages in their order; none when time is up or another thread closed the consumer.
        Raises:
            IllegalStateException: The consumer is closed, or the session has a message listener.
            JMSException: The provider failed.
        """
        longest = longest_wait(timeout_ms, "receive")
        return self._receive(most_bytes, lambda more: self._consumer.pull_many(most, longest, more))

    @returns_or_keeps
    def receive_no_wait(self, most: int, most_bytes: int) -> list[WireMessage]:
        """Take messages that are here or that the broker has at hand, which is asked: none means that it has none.

        A wait alone does not tell: on a way that takes its time, more may come a moment after it is over.

        Args:
            most: See ``receive``.
            most_bytes: See ``receive``.
        Returns:
            See ``receive``.
        Raises:
            IllegalStateException: See ``receive``.
            JMSException: See ``receive``; also ``timeout``: the broker did not answer.
        """
        return self._receive(most_bytes, lambda more: self._consumer.pull_many(most, None, more, look=True))

    def _receive(self, most_bytes: int, pull: Callable[[Callable[[Entry], bool]], list[Entry]]) -> list[WireMessage]:
        forms: list[WireForm | None] = []
        size = 0

        def more(entry: Entry) -> bool:
            nonlocal size
            of = getattr(entry.delivery.envelope, "wire_form", None)
            form: WireForm | None = None if of is None else of()
            forms.append(form)
            if form is None:
                # Its size is not known before it is a message.
                return False
            size += len(form.data)
            return size < most_bytes

        entries = pull(more)
        if entries and self._acknowledge is None:
            # The first of those that wait knows if their connection was lost since.
            self._acknowledge = self._consumer.session.client.acknowledge_of(entries[0])
        return [self._wire_message(entry, form) for entry, form in zip(entries, forms, strict=True)]

    def _wire_message(self, entry: Entry, form: WireForm | None) -> WireMessage:
        _, envelope, count = entry.delivery
        if form is None:
            message = self._consumer.session.message(entry)
            return WireMessage(message.jms_message_id, message.jms_timestamp, count + entry.extra, "", b"", message)
        name, sent = None, 0
        try:
            name = envelope.message_id
            sent = envelope.timestamp
        except ProviderError:
            # Who reads it later is told what is wrong with it.
            pass
        return WireMessage(name, sent, count + entry.extra, form.how, form.data, None)

    def acknowledge(self) -> None:
        """Acknowledge all that the session has delivered, as ``Message.acknowledge`` does; nothing in a transaction.

        Raises:
            JMSException: See ``Message.acknowledge``.
        """
        acknowledge, self._acknowledge = self._acknowledge, None
        if acknowledge is not None:
            acknowledge()
