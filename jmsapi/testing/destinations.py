"""Queues and topics of an embedded broker, as a test sees them: what came, and assertions about it.

What an application does it often does in threads of its own, so an assertion waits for what it asserts, ``within`` some seconds
of the machine's time; if it is there already it takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from jmsapi.api import Message
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import Address
from jmsapi.testing._criteria import ANY, Criteria
from jmsapi.testing._hand import Hand
from jmsapi.testing._record import Record
from jmsapi.testing._showing import table
from jmsapi.values import Value

__all__ = ["ANY", "WITHIN_S", "DestinationProbe", "QueueProbe", "TopicProbe"]

WITHIN_S: Final = 10.0
"""How long an assertion waits if it is not told: seconds."""


class DestinationProbe:
    """What a queue and a topic have in common.

    Args:
        address: Which.
        hand: The test's connection.
        record: What went through the broker.
        elsewhere: Says what other destinations were sent.
    Threads: any.
    """

    def __init__(self, address: Address, hand: Hand, record: Record, elsewhere: Callable[[Address], str]) -> None:
        self._address = address
        self._hand = hand
        self._record = record
        self._elsewhere = elsewhere

    @property
    def name(self) -> str:
        """The name of the queue or topic."""
        return self._address.name

    @property
    def received(self) -> list[Message]:
        """All messages that it was sent so far and that are committed, in order, whether somebody has taken them or not."""
        return [self._hand.message(sent.envelope) for sent in self._record.sent_to(self._address)]

    def send(
        self,
        body: object = None,
        *,
        jms_type: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        properties: Mapping[str, Value] | None = None,
        priority: int = 4,
        time_to_live_ms: int = 0,
        delay_ms: int = 0,
    ) -> None:
        """Send a message to the application, by the test's own hand: no fault meets it.

        Args:
            body: str, bytes, a dict (MapMessage), a list (StreamMessage), None (a message without a body), another object
                that an ObjectMessage takes, or a Message.
            jms_type: JMSType.
            correlation_id: JMSCorrelationID.
            reply_to: The name of the queue for an answer.
            properties: By name.
            priority: 0 to 9.
            time_to_live_ms: Of the broker's clock; 0: for ever.
            delay_ms: Of the broker's clock.
        """
        self._hand.send(
            self._address,
            body,
            jms_type=jms_type,
            correlation_id=correlation_id,
            reply_to=reply_to,
            properties=properties,
            priority=priority,
            time_to_live_ms=time_to_live_ms,
            delay_ms=delay_ms,
        )

    def assert_received(
        self,
        body: object = ANY,
        *,
        jms_type: object = ANY,
        correlation_id: object = ANY,
        properties: Mapping[str, Value] | None = None,
        selector: str | None = None,
        where: Callable[[Message], bool] | None = None,
        count: int | None = None,
        within: float = WITHIN_S,
    ) -> Message:
        """Assert that it was sent a message like this, and return the first one.

        Args:
            body: What the body is: text, bytes, a dict, a list, an object; None is the body of a message that has none.
            jms_type: What JMSType is, None too.
            correlation_id: What JMSCorrelationID is, None too.
            properties: Those it must have, among others.
            selector: A message selector that matches it.
            where: A test of the application's own.
            count: So many of them, no more; left out: at least one.
            within: Seconds of the machine to wait for it.
        Returns:
            The first such message.
        Raises:
            AssertionError: There is none, or another number of them; it shows what came instead, and why it is not that.
            InvalidSelectorException: The selector has no meaning.
            IllegalArgumentException: ``count`` is below 1.
        """
        __tracebackhide__ = True
        if count is not None and count < 1:
            raise IllegalArgumentException("assert_received: count is at least 1; assert_not_received says that none came")
        wanted = Criteria(body, jms_type, correlation_id, properties, selector, where)
        least = 1 if count is None else count

        def found() -> list[Message]:
            return [message for message in self._came() if wanted.why_not(message) is None]

        self._record.wait_for(lambda: len(found()) >= least, within)
        matching = found()
        if len(matching) < least or (count is not None and len(matching) != count):
            what = f"{wanted} within {within:g} s" if count is None else f"{wanted} {count} times, but {len(matching)} times"
            raise AssertionError(f"{self} was not sent {what}\n{self._story(wanted)}")
        return matching[0]

    def assert_received_bodies(self, *bodies: object, within: float = WITHIN_S) -> None:
        """Assert that it was sent messages with just these bodies, in this order, and no others.

        Args:
            bodies: As for ``assert_received``.
            within: Seconds of the machine to wait for so many.
        Raises:
            AssertionError: Others came, or in another order, or not so many; it shows them.
        """
        __tracebackhide__ = True
        wanted = [Criteria(body) for body in bodies]
        self._record.wait_for(lambda: len(self._came()) >= len(wanted), within)
        came = self._came()
        remarks = [
            (one.why_not(message) if one else "one too many")
            for one, message in zip([*wanted, *[None] * (len(came) - len(wanted))], came, strict=False)
        ]
        if len(came) == len(wanted) and not any(remarks):
            return
        asked = "\n".join(f"  {number}  {one}" for number, one in enumerate(wanted, 1)) or "  nothing"
        raise AssertionError(f"{self} was not sent just this:\n{asked}\nbut\n{self._shown(came, [one or '' for one in remarks])}")

    def assert_not_received(
        self,
        body: object = ANY,
        *,
        jms_type: object = ANY,
        correlation_id: object = ANY,
        properties: Mapping[str, Value] | None = None,
        selector: str | None = None,
        where: Callable[[Message], bool] | None = None,
    ) -> None:
        """Assert that it was sent no message like this until now; it does not wait, so ``wait_idle()`` comes first.

        Args:
            body: See ``assert_received``, as for all others.
            jms_type: JMSType.
            correlation_id: JMSCorrelationID.
            properties: Properties.
            selector: A message selector.
            where: A test of the application's own.
        Raises:
            AssertionError: There is one; it shows all that came.
        """
        __tracebackhide__ = True
        wanted = Criteria(body, jms_type, correlation_id, properties, selector, where)
        came = self._came()
        remarks = ["" if wanted.why_not(message) else "this" for message in came]
        if any(remarks):
            raise AssertionError(f"{self} was sent {wanted}, which it should not\n{self._shown(came, remarks)}")

    def _came(self) -> list[Message]:
        return self.received

    def _story(self, wanted: Criteria) -> str:
        came = self._came()
        return f"{self._shown(came, [wanted.why_not(message) or 'this' for message in came])}\n{self._elsewhere(self._address)}"

    def _shown(self, came: Sequence[Message], remarks: Sequence[str] = ()) -> str:
        return f"it was sent {len(came)}:\n{table(came, remarks)}" if came else "it was sent nothing"

    def __str__(self) -> str:
        return f"{'topic' if self._address.kind.is_topic else 'queue'} {self.name!r}"

    def __repr__(self) -> str:
        return f"<{self}, was sent {len(self.received)}>"


class TopicProbe(DestinationProbe):
    """A topic. What was published is known even if nobody subscribes."""


class QueueProbe(DestinationProbe):
    """A queue."""

    @property
    def messages(self) -> list[Message]:
        """The messages that wait here now, in the order of their delivery; none is taken."""
        return self._hand.waiting(self._address)

    def take(self, within: float = WITHIN_S) -> Message:
        """Take the first message off the queue, as the application that it is meant for would.

        Args:
            within: Seconds to wait for one.
        Raises:
            AssertionError: None came; it shows what the queue was sent.
        """
        __tracebackhide__ = True
        message = self._hand.take(self._address, within)
        if message is None:
            raise AssertionError(f"{self} has no message to take within {within:g} s\n{self._shown(self._came())}\n{self._now()}")
        return message

    def assert_empty(self, within: float = WITHIN_S) -> None:
        """Assert that nothing is left: no message waits here, none is held by a consumer, none is delayed.

        Args:
            within: Seconds of the machine to wait for that.
        Raises:
            AssertionError: There is something; it shows what.
        """
        __tracebackhide__ = True
        if not self._record.wait_for(lambda: not (self.messages or self._held() or self._delayed()), within):
            raise AssertionError(f"{self} is not empty within {within:g} s\n{self._now()}")

    def _held(self) -> list[Message]:
        return [self._hand.message(held.envelope) for held in self._record.held_of(self._address)]

    def _delayed(self) -> list[Message]:
        now = self._hand.now_ms()
        return [message for message in self.received if message.jms_delivery_time > now]

    def _came(self) -> list[Message]:
        # What the broker put here itself, a dead letter, was sent elsewhere.
        came = self.received
        known = {message.jms_message_id for message in came}
        return came + [message for message in self.messages if message.jms_message_id not in known]

    def _now(self) -> str:
        parts = [("wait on it", self.messages), ("consumers hold, unsettled", self._held()), ("are delayed", self._delayed())]
        return "\n".join(f"{words}: {len(messages)}\n{table(messages)}" for words, messages in parts if messages) or "it is empty"

    def _story(self, wanted: Criteria) -> str:
        return f"{super()._story(wanted)}\nnow {len(self.messages)} wait on it, {len(self._held())} are held by consumers"
