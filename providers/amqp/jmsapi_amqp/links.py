"""Sending and receiving links. All of it runs on the I/O thread; the outside knows a link by its handle.

Rules: a link answers each send it was given exactly once, also when it ends. A receiver gives nothing without credit. The
engine's pointers die with ``Session``, link or connection, so a record forgets them when it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from jmsapi.spi import Address, Delivery, ErrorKind, Handle, Outcome, ProviderError, Tag
from jmsapi_amqp import engine
from jmsapi_amqp.codec import envelope_of, quick_delivery_count
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.outcomes import Answer
from jmsapi_amqp.tasks import Promise

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["AmqpTag", "Ask", "ReceiverLink", "Routed", "SenderLink", "WireSession"]

SLICE: Final = 1 << 17
"""Bytes of one large message given to the engine at a time, so that other links get their turn between."""
BACKLOG: Final = 1 << 19
"""Bytes waiting for the socket above which large messages pause."""


class AmqpTag(Tag):
    """Names a delivery by a number of its connection."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"AmqpTag({self.number})"


class Ask(NamedTuple):
    """A send of the provider's own (transactions, management), answered by state and its data."""

    answered: Callable[[int, object], None]
    failed: Callable[[ProviderError], None]


class Routed:
    """The token of a message that goes through a link for any destination, with the kind of its own."""

    __slots__ = ("token", "topic")

    def __init__(self, token: object, topic: bool) -> None:
        self.token = token
        self.topic = topic


@dataclass(slots=True, eq=False)
class WireSession:
    """One AMQP session and the links on it."""

    pointer: Pointer | None
    transacted: bool = False
    users: int = 1
    """Sessions of the application that share it."""
    opened: Promise[None] = field(default_factory=Promise[None])
    links: dict[int, SenderLink | ReceiverLink] = field(default_factory=dict[int, "SenderLink | ReceiverLink"])
    owners: list[Handle] = field(default_factory=list[Handle])
    """The sessions of the application that hear when the broker ends it."""


class _Link:
    """What both directions share."""

    def __init__(self, connection: Connection, number: int, pointer: Pointer, session: WireSession, asked: str) -> None:
        self.connection = connection
        self.number = number
        self.pointer: Pointer | None = pointer
        self.session = session
        self.asked = asked
        self.handle: Handle | None = None
        self.opened: Promise[None] = Promise()
        self.closed: Promise[None] = Promise()
        self.has_selector = False
        self.keeps = False
        """Detached rather than closed at the end: closing would delete a durable subscription."""
        self.own_session = False
        """The session was opened for this link alone and ends with it."""
        self.leaving = False
        """We have asked for its end."""
        self.on_end: Callable[[ProviderError], None] | None = None

    def end(self, error: ProviderError) -> None:
        """Forget the engine's link; nothing more will come of it."""
        self.pointer = None
        self.opened.fail(error)
        self.closed.keep(None)
        if self.on_end is not None:
            self.on_end(error)


class SenderLink(_Link):
    """A link we send on."""

    def __init__(self, connection: Connection, number: int, pointer: Pointer, session: WireSession, asked: str) -> None:
        super().__init__(connection, number, pointer, session, asked)
        self.waiting: deque[tuple[bytes, bytes | None, object]] = deque()
        """Messages without credit: bytes, transactional state, token."""
        self.unanswered: dict[Pointer, object] = {}
        self.topic: bool | None = None
        """Whether what is sent goes to a topic; None when each message says."""
        self.anonymous = False
        self.paused = 0
        """How many things must be done before the next message may go."""
        self.settles = False
        """Sends are settled as they go: the peer never answers (RabbitMQ's management)."""
        self.idle: Promise[None] | None = None
        """Kept when the next message is answered."""
        self._serial = 0
        self._large: tuple[Pointer, memoryview] | None = None

    def offer(self, raw: bytes, state: bytes | None, token: object) -> None:
        """Send a message now or when there is credit."""
        pointer = self.pointer
        if pointer is None:
            self._answer(token, ProviderError(ErrorKind.CLOSED, f"{self.asked}: the producer is closed"))
            return
        if self.paused or self.waiting or self._large is not None or engine.link_credit(pointer) <= 0:
            self.waiting.append((raw, state, token))
        else:
            self._put(pointer, raw, state, token)

    def pump(self) -> None:
        """Send what waits, as credit and the socket's backlog allow."""
        pointer = self.pointer
        if pointer is None or self.paused:
            return
        if self._large is not None and not self._continue(pointer):
            return
        waiting = self.waiting
        if not waiting:
            return
        credit = engine.link_credit(pointer)
        while waiting and credit > 0:
            raw, state, token = waiting.popleft()
            self._put(pointer, raw, state, token)
            credit -= 1
            if self._large is not None:
                return

    def _put(self, pointer: Pointer, raw: bytes, state: bytes | None, token: object) -> None:
        self._serial = serial = (self._serial + 1) & 0xFFFF_FFFF
        delivery = engine.new_delivery(pointer, serial.to_bytes(4))
        if state is not None:
            engine.data_decode(engine.disposition_data(engine.delivery_local(delivery)), state)
            engine.delivery_update(delivery, engine.TRANSACTIONAL)
        if not self.settles:
            self.unanswered[delivery] = token
        if len(raw) <= SLICE:
            engine.link_send(pointer, raw)
            engine.link_advance(pointer)
            if self.settles:
                engine.delivery_settle(delivery)
            return
        self._large = (delivery, memoryview(raw))
        self._continue(pointer)

    def _continue(self, pointer: Pointer) -> bool:
        """Give the engine more of a large message; True when it has all of it."""
        if self._large is None:
            return True
        delivery, rest = self._large
        while rest:
            if engine.transport_pending(self.connection.transport) > BACKLOG:
                self._large = (delivery, rest)
                self.connection.large.add(self)
                return False
            engine.link_send(pointer, rest[:SLICE])
            rest = rest[SLICE:]
        engine.link_advance(pointer)
        self._large = None
        self.connection.large.discard(self)
        return True

    def updated(self, delivery: Pointer) -> None:
        """Take the peer's answer to one message."""
        state = engine.delivery_remote_state(delivery)
        settled = engine.delivery_settled(delivery)
        if state == 0 and not settled:
            return
        answer = None if state == engine.ACCEPTED else Answer(delivery, state)
        decided = answer is None or answer.decides
        if not decided and not settled:
            return
        token = self.unanswered.pop(delivery, None)
        if token is None:
            return
        if self.idle is not None:
            self.idle.keep(None)
        if not decided:
            engine.delivery_settle(delivery)
            text = f"{self.asked}: the broker ended the transfer without an outcome; whether it took the message is not known"
            self._answer(token, ProviderError(ErrorKind.IN_DOUBT, text))
            return
        if isinstance(token, Ask):
            remote = engine.delivery_remote(delivery)
            data: object = engine.read_data(engine.disposition_data(remote))
            if state == engine.REJECTED:
                data = self.connection.cause_of(engine.disposition_condition(remote), "amqp:rejected")
            engine.delivery_settle(delivery)
            token.answered(state, data)
            return
        topic = self.topic
        if isinstance(token, Routed):
            topic, token = token.topic, token.token
        error = None if answer is None else answer.refusal(self.connection, self, topic=topic)
        engine.delivery_settle(delivery)
        self._answer(token, error)

    def _answer(self, token: object, error: ProviderError | None) -> None:
        if isinstance(token, Ask):
            if error is not None:
                token.failed(error)
        elif token is not None:
            self.connection.sent.append((token.token if isinstance(token, Routed) else token, error))

    def end(self, error: ProviderError) -> None:
        """Answer everything that has no answer yet, and forget the engine's link."""
        super().end(error)
        self._large = None
        self.connection.large.discard(self)
        unanswered, self.unanswered = self.unanswered, {}
        waiting, self.waiting = self.waiting, deque()
        doubt = ProviderError(ErrorKind.IN_DOUBT, f"{error.message}; whether the broker took the message is not known")
        for token in unanswered.values():
            self._answer(token, error if isinstance(token, Ask) or error.kind is ErrorKind.DESTINATION else doubt)
        for _, _, token in waiting:
            self._answer(token, error)


class ReceiverLink(_Link):
    """A link we receive on."""

    def __init__(
        self, connection: Connection, number: int, pointer: Pointer, session: WireSession, asked: str, near: Address
    ) -> None:
        super().__init__(connection, number, pointer, session, asked)
        self.near = near
        self.browse = False
        self.failed = False
        """Some deliveries failed and are left for the session's end to count."""
        self.batch: list[Delivery] = []
        self.unsettled: set[int] = set()
        self.returning: list[tuple[int, Outcome]] = []
        """What goes back, as soon as it is known whether the link ends."""
        self.giving_back = False
        """The link ends when what failed has gone back."""
        self.draining: list[Promise[None]] = []
        self.window: int | None = None
        """The most credit given to the broker at one time; the rest is kept back and follows as deliveries come."""
        self._kept = 0
        self.raw_sink: Callable[[bytes], None] | None = None
        """Takes the bytes instead of the core (RabbitMQ's management)."""
        self.companion: ReceiverLink | None = None
        """A link that ends with this one."""
        self._parts: list[bytes] = []

    @property
    def has_room(self) -> bool:
        """Whether the broker may send more."""
        return self.pointer is not None and engine.link_credit(self.pointer) > engine.link_queued(self.pointer)

    def take_returning(self) -> list[tuple[int, Outcome]]:
        """Take what goes back."""
        returning, self.returning = self.returning, []
        return returning

    def grant(self, credit: int) -> None:
        """Allow more deliveries."""
        pointer = self.pointer
        if pointer is None or credit <= 0:
            return
        if self.draining:
            engine.link_drain(pointer, credit)  # a plain flow would take the drain back, unanswered
        elif self.window is None:
            engine.link_flow(pointer, credit)
        else:
            self._kept += credit
            self._top_up(pointer, self.window)

    def _top_up(self, pointer: Pointer, window: int) -> None:
        """Give of what was kept back, once half of the window is used."""
        outstanding = engine.link_credit(pointer)
        if self._kept and outstanding <= window // 2 and not self.draining:
            given = min(self._kept, window - outstanding)
            self._kept -= given
            engine.link_flow(pointer, given)

    def drain(self) -> Promise[None]:
        """Take all credit back; kept when the peer has said that nothing more comes."""
        promise: Promise[None] = Promise()
        pointer = self.pointer
        if pointer is None or engine.link_credit(pointer) + self._kept <= 0:
            promise.keep(None)
            return promise
        if not self.draining:
            engine.link_drain(pointer, self._kept)
            self._kept = 0
        self.draining.append(promise)
        return promise

    def flowed(self) -> None:
        """See whether a drain has ended."""
        pointer = self.pointer
        if pointer is not None and self.draining and engine.link_credit(pointer) <= 0 and engine.link_queued(pointer) == 0:
            engine.link_set_drain(pointer, False)
            ended, self.draining = self.draining, []
            self.connection.hand_over(self)
            for promise in ended:
                promise.keep(None)

    def take(self) -> None:
        """Read every delivery that has come whole."""
        pointer = self.pointer
        if pointer is None:
            return
        connection = self.connection
        while not engine.is_null(delivery := engine.link_current(pointer)):
            pending = engine.delivery_pending(delivery)
            if engine.delivery_partial(delivery):
                if pending:
                    self._parts.append(bytes(engine.link_recv(pointer, pending)[1]))
                return
            data = bytes(engine.link_recv(pointer, pending)[1]) if pending else b""
            if self._parts:
                self._parts.append(data)
                data = b"".join(self._parts)
                self._parts = []
            aborted = engine.delivery_aborted(delivery)
            engine.link_advance(pointer)
            if aborted:
                engine.delivery_settle(delivery)
                continue
            if self.raw_sink is not None:
                engine.delivery_update(delivery, engine.ACCEPTED)
                engine.delivery_settle(delivery)
                self.raw_sink(data)
                continue
            connection.serial = number = connection.serial + 1
            if engine.delivery_settled(delivery):
                engine.delivery_settle(delivery)
            else:
                connection.incoming[number] = (delivery, self)
                self.unsettled.add(number)
            envelope = envelope_of(data, connection.book, self.near, connection.read_ms)
            count = quick_delivery_count(data, connection.acquirer_tells)
            self.batch.append(Delivery(AmqpTag(number), envelope, count))
        if self.batch:
            connection.filled.add(self)
        if self._kept and self.window is not None:
            self._top_up(pointer, self.window)
        if self.draining:
            self.flowed()

    def end(self, error: ProviderError) -> None:
        """Drop what was handed over and never settled, and forget the engine's link."""
        super().end(error)
        for number in self.unsettled:
            self.connection.incoming.pop(number, None)
        self.unsettled.clear()
        self.batch.clear()
        drains, self.draining = self.draining, []
        for promise in drains:
            promise.keep(None)
