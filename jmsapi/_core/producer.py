"""A message producer: options, stamping, sending.

Spec: 4.6, 3.4 (who sets what), 4.12-1, 7.3-13, B.3.3-2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jmsapi._core import options_check as valid
from jmsapi._core.blocking_call_warning import warn_in_event_loop
from jmsapi._core.interrupted_close import close_when_possible
from jmsapi._core.message import snapshot, stamp, was_received
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.telemetry import observed_listener
from jmsapi._core.waiting import run
from jmsapi._not_copied import NotCopied
from jmsapi.api import CompletionListener, Destination, Message, MessageProducer
from jmsapi.errors import (
    IllegalStateException,
    InvalidDestinationException,
    MessageFormatException,
    UnsupportedOperationException,
)
from jmsapi.spi import PERSISTENT, Address, Handle, PlainEnvelope

__all__ = ["ProducerImpl", "SendOptions"]


@dataclass(slots=True)
class SendOptions:
    """How a producer sends; all of it is valid."""

    delivery_mode: int = PERSISTENT
    priority: int = 4
    time_to_live: int = 0
    delivery_delay: int = 0
    disable_message_id: bool = False
    disable_message_timestamp: bool = False


class ProducerImpl(NotCopied, MessageProducer):
    """A producer of one session.

    Args:
        session: Its session's parts.
        destination: Where it sends; None when each send names one.
        address: The same for the provider.
        handle: The producer at the provider.
    """

    def __init__(self, session: SessionParts, destination: Destination | None, address: Address | None, handle: Handle) -> None:
        self.session = session
        self.closed = False
        self.pending = 0
        """Sends whose answer, or whose completion listener, is still to come back. Guarded by the session's lock."""
        self._destination = destination
        self._address = address
        self._options = SendOptions()
        self.handle = handle
        self._listener: CompletionListener | None = None
        """The completion listener of the last send that had one: it need not be checked again."""

    # ---- options --------------------------------------------------------------------------------------------------
    @property
    def disable_message_id(self) -> bool:
        """Return the hint; see MessageProducer."""
        self.check_open()
        return self._options.disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, disable_message_id: bool) -> None:
        self.check_open()
        self._options.disable_message_id = bool(disable_message_id)

    @property
    def disable_message_timestamp(self) -> bool:
        """Return the hint; see MessageProducer."""
        self.check_open()
        return self._options.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, disable_message_timestamp: bool) -> None:
        self.check_open()
        self._options.disable_message_timestamp = bool(disable_message_timestamp)

    @property
    def delivery_mode(self) -> int:
        """Return the default delivery mode; see MessageProducer."""
        self.check_open()
        return self._options.delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, delivery_mode: int) -> None:
        self.check_open()
        self._options.delivery_mode = valid.delivery_mode(delivery_mode)

    @property
    def priority(self) -> int:
        """Return the default priority; see MessageProducer."""
        self.check_open()
        return self._options.priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self.check_open()
        self._options.priority = valid.priority(priority)

    @property
    def time_to_live(self) -> int:
        """Return the default time to live in milliseconds; see MessageProducer."""
        self.check_open()
        return self._options.time_to_live

    @time_to_live.setter
    def time_to_live(self, time_to_live: int) -> None:
        self.check_open()
        self._options.time_to_live = valid.time_to_live(time_to_live)

    @property
    def delivery_delay(self) -> int:
        """Return the delivery delay in milliseconds; see MessageProducer."""
        self.check_open()
        return self._options.delivery_delay

    @delivery_delay.setter
    def delivery_delay(self, delivery_delay: int) -> None:
        self.check_open()
        delay = valid.delivery_delay(delivery_delay)
        if delay:
            self.session.link.require("delivery_delay", "a delivery delay")
        self._options.delivery_delay = delay

    @property
    def destination(self) -> Destination | None:
        """Return where this producer sends, or None; see MessageProducer."""
        self.check_open()
        return self._destination

    # ---- sending --------------------------------------------------------------------------------------------------
    def send(
        self,
        destination_or_message: Destination | Message,
        message: Message | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None:
        """Send a message; see MessageProducer."""
        self.check_open()
        destination, address, content = self._target(destination_or_message, message)
        self.send_to(destination, address, content, self.options(delivery_mode, priority, time_to_live_ms), completion_listener)

    def options(self, mode: int | None, rank: int | None, ttl: int | None) -> SendOptions:
        """Return how to send: as this producer does, but for what one send says itself."""
        own = self._options
        if mode is None and rank is None and ttl is None:
            return own
        return replace(
            own,
            delivery_mode=own.delivery_mode if mode is None else valid.delivery_mode(mode),
            priority=own.priority if rank is None else valid.priority(rank),
            time_to_live=own.time_to_live if ttl is None else valid.time_to_live(ttl),
        )

    def send_to(
        self,
        destination: Destination,
        address: Address,
        message: Message,
        options: SendOptions,
        listener: CompletionListener | None,
    ) -> None:
        """Stamp and send; destination and options are settled."""
        if listener is not None and listener is not self._listener:
            valid.check_completion_listener(listener)
            self._listener = listener
        warn_in_event_loop()
        session = self.session
        envelope = self.stamped(destination, address, message, options)
        telemetry = session.link.telemetry
        if telemetry is None:
            session.send(self, envelope, message, listener)
            return
        operation = telemetry.sending(envelope, forwarded=was_received(message))
        try:
            session.send(self, envelope, message, observed_listener(operation, listener))
        except BaseException as error:
            operation.ended(error)
            raise
        if listener is None:
            operation.ended()

    def stamped(self, destination: Destination, address: Address, message: Message, options: SendOptions) -> PlainEnvelope:
        """Return what to send of a message, whose headers are set as a send sets them."""
        session = self.session
        now = session.link.clock.now_ms()
        life = options.time_to_live
        # Where the broker would give it an id, the sender would not know the one that receivers see.
        unnamed = options.disable_message_id and not session.link.capabilities.assigns_message_id
        envelope = snapshot(
            message,
            destination=address,
            message_id=None if unnamed else session.next_message_id(),
            timestamp=0 if options.disable_message_timestamp else now,
            delivery_mode=options.delivery_mode,
            priority=options.priority,
            expiration=valid.later(now, life) if life else 0,
            delivery_time=valid.later(now, options.delivery_delay),
            origin=session.link.origin,
            codec=session.connection.codec,
            user=session.link.capabilities.user,
        )
        stamp(message, envelope, destination)
        return envelope

    def _target(self, first: object, second: object) -> tuple[Destination, Address, Message]:
        if second is None and isinstance(first, Message):
            if self._destination is None or self._address is None:
                raise UnsupportedOperationException("send: this producer has no destination of its own, so each send names one")
            if self._address in self.session.connection.deleted:
                raise InvalidDestinationException(f"the temporary destination {self._address.name!r} is deleted")
            return self._destination, self._address, first
        if not isinstance(second, Message):
            raise MessageFormatException(f"send: a Message is wanted, not {type(first if second is None else second).__name__}")
        if self._destination is not None:
            raise UnsupportedOperationException("send: this producer has a destination of its own, so a send names none")
        if not isinstance(first, Destination):
            raise InvalidDestinationException(f"send: {first!r} is not a destination")
        return first, self.session.usable(first), second

    def close(self) -> None:
        """Close the producer, after its unfinished sends; see MessageProducer."""
        close_when_possible(lambda: run(self.session.close_producer_steps(self)), apart=self.session.link.closes_apart)

    def check_open(self) -> None:
        """Raise IllegalStateException when the producer is closed."""
        self.session.check_open()
        if self.closed:
            raise IllegalStateException("the producer is closed", "closed")
