"""Sending and receiving links. All of it runs on the I/O thread; the outside knows a link by its handle.

Rules: a link answers each send it was given exactly once, also when it ends. A receiver gives nothing without credit. The
engine's pointers die with ``Session``, link or connection, so a record forgets them when it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from jmsapi.spi import Address, Delivery, ErrorKind, Events, Handle, Outcome, ProviderError, SendResult, Tag
from jmsapi.wire import Promise
from jmsapi_amqp import engine
from jmsapi_amqp.causes import cause_of
from jmsapi_amqp.codec import AddressBook, envelope_of, quick_delivery_count
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.outcomes import DeliveryState

__all__ = ["AmqpTag", "Ask", "ReceiverLink", "Routed", "SenderLink", "Traffic", "WireSession"]

SLICE: Final = 1 << 17
"""Bytes of one large message given to the engine at a time, so that other links get their turn between."""
BACKLOG: Final = 1 << 19
"""Bytes waiting for the socket above which large messages pause."""

_EXCESS: Final = 1000
"""Messages beyond its credit that a broker may send: a late answer to a drain takes credit away that was given since."""


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


class Traffic:
    """What the links of one connection share.

    Args:
        events: The core's callbacks.
        max_message: Bytes of the largest message that is read.
        fail: Gives the connection up.
    """

    def __init__(self, events: Events, max_message: int, fail: Callable[[ProviderError], None]) -> None:
        self._events = events
        self.transport: Pointer
        self.max_message = max_message
        """Bytes of the largest message that is read."""
        self.fail = fail
        """Gives the connection up."""
        self.addresses: AddressBook
        self.acquirer_tells = False
        self.read_ms = 0
        """The time of the last read, in milliseconds since 1970."""
        self.serial = 0
        """The last number given to a session, link or delivery."""
        self.incoming: dict[int, tuple[Pointer, ReceiverLink]] = {}
        """Deliveries that are not settled."""
        self.sent: list[SendResult] = []
        """Answers to sends that are not reported to the core yet."""
        self.filled: set[ReceiverLink] = set()
        """Links with deliveries that the core has not been given."""
        self.large: set[SenderLink] = set()
        """Links with a large message that waits for the socket."""

    def hand_over(self, link: ReceiverLink) -> None:
        """Give the core one consumer's deliveries."""
        batch = link.batch
        if batch and link.handle is not None:
            link.batch = []
            self._events.on_deliveries(link.handle, batch)

    def report(self) -> None:
        """Hand over what the last events brought: deliveries first, then answers."""
        if self.filled:
            filled, self.filled = self.filled, set()
            for link in filled:
                self.hand_over(link)
        if self.sent:
            sent, self.sent = self.sent, []
            self._events.on_sent(sent)


class _Link:
    """The part of a link that senders and receivers share."""

    def __init__(self, traffic: Traffic, number: int, pointer: Pointer, session: WireSession, asked: str) -> None:
        self.traffic = traffic
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
        self.on_gone: Callable[[], None] | None = None
        """Called once, when nothing can come by the link any more."""

    def gone(self) -> None:
        """Tell whoever counted this link that it is no more."""
        on_gone, self.on_gone = self.on_gone, None
        if on_gone is not None:
            on_gone()

    def end(self, error: ProviderError) -> None:
        """Forget the engine's link; nothing more will come of it."""
        self.pointer = None
        self.opened.fail(error)
        self.closed.resolve(None)
        if self.on_end is not None:
            self.on_end(error)


class SenderLink(_Link):
    """A link we send on."""

    def __init__(self, traffic: Traffic, number: int, pointer: Pointer, session: WireSession, asked: str) -> None:
        super().__init__(traffic, number, pointer, session, asked)
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
        self._large_state: bytes | None = None

    def has_unsent(self, state: bytes) -> bool:
        """Whether a message of a transaction, by its state, waits for credit or has been given to the engine in part."""
        return any(item[1] == state for item in self.waiting) or (self._large is not None and self._large_state == state)

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

    def take_back(self, token: object) -> bool:
        """Answer a message that waits to be written and forget it; False when there is none of that token."""
        for item in self.waiting:
            waiting = item[2]
            if (waiting.token if isinstance(waiting, Routed) else waiting) is token:
                self.waiting.remove(item)
                text = f"{self.asked}: the broker gave no credit for the message in time; it was not sent and will not be"
                self._answer(token, ProviderError(ErrorKind.TIMEOUT, text))
                return True
        return False

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
        self._large_state = state
        self._continue(pointer)

    def _continue(self, pointer: Pointer) -> bool:
        """Give the engine more of a large message; True when it has all of it."""
        if self._large is None:
            return True
        delivery, rest = self._large
        while rest:
            if engine.transport_pending(self.traffic.transport) > BACKLOG:
                self._large = (delivery, rest)
                self.traffic.large.add(self)
                return False
            engine.link_send(pointer, rest[:SLICE])
            rest = rest[SLICE:]
        engine.link_advance(pointer)
        self._large = None
        self.traffic.large.discard(self)
        return True

    def updated(self, delivery: Pointer) -> None:
        """Take the peer's answer to one message."""
        state = engine.delivery_remote_state(delivery)
        settled = engine.delivery_settled(delivery)
        if state == 0 and not settled:
            return
        answer = None if state == engine.ACCEPTED else DeliveryState(delivery, state)
        decided = answer is None or answer.decides
        if not decided and not settled:
            return
        token = self.unanswered.pop(delivery, None)
        if token is None:
            return
        if self.idle is not None:
            self.idle.resolve(None)
        if not decided:
            engine.delivery_settle(delivery)
            text = f"{self.asked}: the broker ended the transfer without an outcome; whether it took the message is not known"
            self._answer(token, ProviderError(ErrorKind.IN_DOUBT, text))
            return
        if isinstance(token, Ask):
            remote = engine.delivery_remote(delivery)
            data: object = engine.read_data(engine.disposition_data(remote))
            if state == engine.REJECTED:
                data = cause_of(engine.disposition_condition(remote), "amqp:rejected")
            engine.delivery_settle(delivery)
            token.answered(state, data)
            return
        topic = self.topic
        if isinstance(token, Routed):
            topic, token = token.topic, token.token
        error = None if answer is None else answer.refusal(self.asked, topic=topic)
        engine.delivery_settle(delivery)
        self._answer(token, error)

    def _answer(self, token: object, error: ProviderError | None) -> None:
        if isinstance(token, Ask):
            if error is not None:
                token.failed(error)
        elif token is not None:
            self.traffic.sent.append((token.token if isinstance(token, Routed) else token, error))

    def end(self, error: ProviderError) -> None:
        """Answer everything that has no answer yet, and forget the engine's link."""
        super().end(error)
        self._large = None
        self.traffic.large.discard(self)
        unanswered, self.unanswered = self.unanswered, {}
        waiting, self.waiting = self.waiting, deque()
        doubt = ProviderError(ErrorKind.IN_DOUBT, f"{error.message}; whether the broker took the message is not known")
        for token in unanswered.values():
            self._answer(token, error if isinstance(token, Ask) or error.kind is ErrorKind.DESTINATION else doubt)
        for _, _, token in waiting:
            self._answer(token, error)


class ReceiverLink(_Link):
    """A link we receive on."""

    def __init__(self, traffic: Traffic, number: int, pointer: Pointer, session: WireSession, asked: str, near: Address) -> None:
        super().__init__(traffic, number, pointer, session, asked)
        self.near = near
        self.browse = False
        self.failed = False
        """Some deliveries failed and are left for the session's end to count."""
        self.batch: list[Delivery] = []
        self.unsettled: set[int] = set()
        self.returning: list[tuple[int, Outcome]] = []
        """Deliveries that go back to the broker, once it is known whether the link ends."""
        self.giving_back = False
        """The link ends when what failed has gone back."""
        self.draining: list[Promise[None]] = []
        self.emptying: Promise[None] | None = None
        """Kept when a drain under way has shown that nothing more is at hand."""
        self.stopping = False
        """Nobody wants more by it, so a drain need not prove that the broker has nothing."""
        self.taken_back = 0
        """The credit that a drain under way takes back, what is granted meanwhile included."""
        self.taken = 0
        """Deliveries that have come."""
        self.answers_late = False
        """The answer to a drain that has ended already may still come, as if it were about the next one."""
        self.used_up: Promise[None] | None = None
        """Resolved when the credit is used up, or taken away."""
        self.window: int | None = None
        """The most credit given to the broker at one time; the rest is kept back and follows as deliveries come."""
        self._kept = 0
        self.raw_sink: Callable[[bytes], None] | None = None
        """Takes the bytes instead of the core (RabbitMQ's management)."""
        self.companion: ReceiverLink | None = None
        """A link that ends with this one."""
        self._begun = bytearray()
        """The part of a message that has arrived, until the rest of it comes."""

    @property
    def shows_all(self) -> bool:
        """Whether a drain brings all that the broker has, and not only something of it: of browsers, and for our own use."""
        return self.browse or self.raw_sink is not None

    @property
    def outstanding(self) -> int:
        """The credit that is given and not used, kept back credit included."""
        return 0 if self.pointer is None else engine.link_credit(self.pointer) + self._kept

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
        self.stopping = False
        if self.emptying is not None:
            self.taken_back += credit
        if self.draining:
            self._kept += credit  # a flow now would take the drain back, or be taken for a grant that nobody takes back
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

    def drain(self, credit: int = 0) -> Promise[None]:
        """Take all credit back, after giving some more; resolved when the peer has used it or given it up."""
        promise: Promise[None] = Promise()
        pointer = self.pointer
        if pointer is None or engine.link_credit(pointer) + self._kept + credit <= 0:
            promise.resolve(None)
            return promise
        if not self.draining:
            engine.link_drain(pointer, self._kept + credit)
            self._kept = 0
        self.draining.append(promise)
        return promise

    def forgo_kept(self) -> None:
        """Forget credit that the peer was never given: a drain has shown that there is nothing for it."""
        self._kept = 0

    def flowed(self) -> None:
        """See whether a drain has ended, or the credit is used up."""
        pointer = self.pointer
        if pointer is None or engine.link_credit(pointer) > 0 or engine.link_queued(pointer) > 0:
            return
        if self.used_up is not None and not self._kept:
            self.used_up.resolve(None)
        if self.draining:
            engine.link_set_drain(pointer, False)
            ended, self.draining = self.draining, []
            self.traffic.hand_over(self)
            for promise in ended:
                promise.resolve(None)

    def take(self) -> None:
        """Read every delivery that has come whole."""
        pointer = self.pointer
        if pointer is None:
            return
        traffic = self.traffic
        while delivery := engine.link_current(pointer):
            pending = engine.delivery_pending(delivery)
            if engine.delivery_partial(delivery):
                if pending:
                    self._begun += engine.link_recv(pointer, pending)
                    if len(self._begun) > traffic.max_message:
                        self._too_large(traffic)
                return
            data = engine.link_recv(pointer, pending) if pending else b""
            if self._begun:
                data = bytes(self._begun) + data
                self._begun = bytearray()
            if len(data) > traffic.max_message:
                self._too_large(traffic)
                return
            aborted = engine.delivery_aborted(delivery)
            engine.link_advance(pointer)
            self.taken += 1
            if aborted:
                engine.delivery_settle(delivery)
                continue
            if self.leaving:
                _give_back(delivery)
                continue
            if self.raw_sink is not None:
                engine.delivery_update(delivery, engine.ACCEPTED)
                engine.delivery_settle(delivery)
                self.raw_sink(data)
                continue
            traffic.serial = number = traffic.serial + 1
            if engine.delivery_settled(delivery):
                engine.delivery_settle(delivery)
            else:
                traffic.incoming[number] = (delivery, self)
                self.unsettled.add(number)
            envelope = envelope_of(data, traffic.addresses, self.near, traffic.read_ms)
            count = quick_delivery_count(data, traffic.acquirer_tells)
            self.batch.append(Delivery(AmqpTag(number), envelope, count))
        if engine.link_credit(pointer) < -_EXCESS:
            text = f"{self.asked}: the broker sends messages without end for which it has no credit"
            traffic.fail(ProviderError(ErrorKind.PROTOCOL, text, fatal=True))
            return
        if self.batch:
            traffic.filled.add(self)
        if self._kept and self.window is not None:
            self._top_up(pointer, self.window)
        if self.draining or self.used_up is not None:
            self.flowed()

    def leave(self, *, give_back: bool) -> None:
        """Hand nothing over any more.

        A broker may keep for ever what is settled without an outcome (Broker-J 9.2.0 does), and that is how the engine settles
        what is left when it frees a link.

        Args:
            give_back: Release what was read and not handed over. Not where the broker sends it again at once and counts that.
        """
        self.leaving = True
        batch, self.batch = self.batch, []
        if not give_back:
            return
        for each in batch:
            number = each.tag.number if isinstance(each.tag, AmqpTag) else 0
            found = self.traffic.incoming.pop(number, None)
            if found is not None:
                self.unsettled.discard(number)
                _give_back(found[0])

    def _too_large(self, traffic: Traffic) -> None:
        """Give the connection up: what is read of one message is bounded, and the broker goes on sending it."""
        self._begun = bytearray()
        text = f"{self.asked}: the broker sends a message of more than {traffic.max_message} bytes (option max_message)"
        traffic.fail(ProviderError(ErrorKind.PROTOCOL, text, fatal=True))

    def end(self, error: ProviderError) -> None:
        """Drop what was handed over and never settled, and forget the engine's link."""
        super().end(error)
        for number in self.unsettled:
            self.traffic.incoming.pop(number, None)
        self.unsettled.clear()
        self.batch.clear()
        drains, self.draining = self.draining, []
        if self.used_up is not None:
            drains.append(self.used_up)
        for promise in drains:
            promise.resolve(None)


def _give_back(delivery: Pointer) -> None:
    engine.delivery_update(delivery, engine.RELEASED)
    engine.delivery_settle(delivery)
