"""What the frames of one client of the loopback server ask of the broker, and what the broker tells the client.

Frames become calls at the provider SPI, events there become frames. Nothing of JMS is decided here: what may not be, the
broker refuses. All on the server's I/O thread, but the events, which come from whichever thread causes them and only queue
what is to be written.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Final, TypeVar

from jmsapi.spi import (
    DONE,
    Address,
    ConsumerSpec,
    Delivery,
    ErrorKind,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    SendResult,
)
from jmsapi.spi.label import message_label
from jmsapi.testing._stomp_answers import AnswerPlace, AnswerQueue
from jmsapi.testing._stomp_messages import SentEnvelope, end_frame, message_frame, naming_frame
from jmsapi.testing._stomp_reading import broken, number_of, required
from jmsapi.testing._stomp_setting import Setting
from jmsapi.testing._stomp_subscriptions import ENDLESS, AckMode, ClientSubscription, ClientTransaction
from jmsapi.testing._stomp_wire import ServerChannel
from jmsapi.wire import IoLoop
from jmsapi_stomp.frames import Frame

__all__ = ["WAIT_S", "Commands"]

T = TypeVar("T")
_LOG: Final = logging.getLogger("jmsapi.testing")
_RECEIPT: Final = b"\nreceipt:"
_TRANSACTION: Final = b"\ntransaction:"
_ID: Final = b"\nid:"
_NEW: Final = {"/temp-queue/": False, "/temp-topic/": True}
_MODES: Final[dict[str, AckMode]] = {"auto": "auto", "client": "client", "client-individual": "client-individual"}
_OUTCOMES: Final = {one.value: one for one in Outcome}
WAIT_S: Final = 30.0
"""Longest wait for an answer of the broker without which a client cannot go on."""


class Commands(ABC):
    """A client's part of the broker.

    Args:
        loop: The server's.
        setting: What it shares with other clients.
        number: Of the client, from 1.
    """

    def __init__(self, loop: IoLoop, setting: Setting, number: int) -> None:
        self.wire: ServerChannel
        self.loop = loop
        self.setting = setting
        self.number = number
        self._provider: Provider | None = None
        self._session: Handle
        self._producer: Handle
        self._subscriptions: dict[bytes, ClientSubscription] = {}
        self._by_handle: dict[Handle, ClientSubscription] = {}
        self._holders: dict[int, ClientSubscription] = {}
        """By the number of a delivery."""
        self._namings: set[bytes] = set()
        """Subscriptions that only told the name of a temporary destination."""
        self._transactions: dict[bytes, ClientTransaction] = {}
        self._numbers = count(1)
        self._messages = count(1)
        self.answers = AnswerQueue(lambda answer: self.wire.put(answer), self._fail_soon)
        self.commands: Final[dict[bytes, Callable[[Frame], None]]] = {
            b"SEND": self._send,
            b"SUBSCRIBE": self._subscribe,
            b"UNSUBSCRIBE": self._unsubscribe,
            b"ACK": partial(self._settle, Outcome.ACCEPTED),
            b"NACK": partial(self._settle, None),
            b"BEGIN": self._begin,
            b"COMMIT": partial(self._end, True),
            b"ABORT": partial(self._end, False),
        }

    @abstractmethod
    def when(self, done: Future[T], frame: Frame, then: Callable[[T], None]) -> None:
        """Go on with a frame when the broker has answered, and only then obey those behind it."""

    @abstractmethod
    def fail(self, cause: ProviderError, receipt: bytes | None = None) -> None:
        """Tell the client that the connection ends, and why."""

    def join(self, provider: Provider) -> None:
        """Take part in the broker through an open provider connection."""
        self._session = provider.open_session(transacted=False).result(WAIT_S)
        self._producer = provider.open_producer(self._session, None).result(WAIT_S)
        self._provider = provider

    @property
    def joined(self) -> bool:
        """Whether the client has been let in and has not left."""
        return self._provider is not None

    def leave(self, *, orderly: bool = False) -> Future[None]:
        """Leave the broker. Who goes without a word may have seen what it holds: that counts as a failure."""
        provider, self._provider = self._provider, None
        if provider is None:
            return DONE
        for transaction in self._transactions.values():
            provider.end(transaction.handle, commit=False)
            transaction.undo()
        for subscription in self._subscriptions.values():
            subscription.closed = True
            if subscription.held and not orderly:
                provider.settle(list(subscription.held.values()), Outcome.FAILED)
        self._subscriptions.clear()
        self._by_handle.clear()
        self._holders.clear()
        self._transactions.clear()
        return provider.close()

    # sending

    def _send(self, frame: Frame) -> None:
        setting = self.setting
        address = self._address(frame)
        name = f"{setting.word}-{self.number}-{next(self._messages)}"
        envelope = SentEnvelope(frame, address, setting.behaviour, setting.clock.now_ms(), name)
        transaction = self._transaction(frame)
        handle = None if transaction is None else transaction.handle
        place = self.answers.line_up(frame.raw(_RECEIPT))
        try:
            self._open.send(self._producer, envelope, handle, place)
        except ProviderError as cause:
            self.answers.tell(place, cause)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Confirm what the broker took. Any thread."""
        for token, cause in results:
            if isinstance(token, AnswerPlace):
                self.answers.tell(token, cause)

    # subscriptions

    def _subscribe(self, frame: Frame) -> None:
        name = required(frame, _ID)
        headers = frame.headers
        if headers.get("widen") == "true":
            self._widen(name, headers.get("window"))
            self.confirm(frame)
            return
        if name in self._subscriptions or name in self._namings:
            raise ProviderError(ErrorKind.IN_USE, "a subscription of this connection has this id")
        destination = headers.get("destination", "")
        if destination in _NEW:
            made = self._open.create_temporary(self._session, topic=_NEW[destination])
            self.when(made, frame, partial(self._named, frame, name))
            return
        mode = _MODES.get(headers.get("ack", "auto"))
        if mode is None:
            raise broken("ack is auto, client or client-individual")
        window = number_of(headers.get("window"), "window")
        spec = ConsumerSpec(
            self._address(frame),
            headers.get("selector") or None,
            headers.get("no-local") == "true",
            headers.get("subscription"),
            headers.get("durable") == "true",
            headers.get("shared") == "true",
            headers.get("browser") == "true",
            window or ENDLESS,
        )

        def opened(handle: Handle) -> None:
            endless = spec.browse or window is None
            subscription = ClientSubscription(name, destination, handle, mode, browse=spec.browse, endless=endless)
            self._subscriptions[name] = subscription
            self._by_handle[handle] = subscription
            self.confirm(frame)
            self._open.credit(handle, ENDLESS if endless else window or 1)
            if spec.browse:
                shown = self._open.drain(handle)
                shown.add_done_callback(lambda _: self.wire.put((subscription, None)))

        self.when(self._open.open_consumer(self._session, spec), frame, opened)

    def _named(self, frame: Frame, name: bytes, address: Address) -> None:
        self._namings.add(name)
        self.wire.put(naming_frame(name, self.setting.behaviour.destination(address)))
        self.confirm(frame)

    def _widen(self, name: bytes, window: str | None) -> None:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            raise ProviderError(ErrorKind.CLOSED, "no subscription of this connection has this id")
        more = number_of(window, "window")
        if more and not subscription.endless:
            self._open.credit(subscription.handle, more)

    def _unsubscribe(self, frame: Frame) -> None:
        headers = frame.headers
        what: Address | str | None = headers.get("remove-subscription")
        if what is None and "remove-destination" in headers:
            what = self.setting.behaviour.read_address(headers["remove-destination"])
        if what is not None:
            self.confirm(frame, self._open.remove(self._session, what))
            return
        name = required(frame, _ID)
        if name in self._namings:
            self._namings.remove(name)
            self.confirm(frame)
            return
        subscription = self._subscriptions.pop(name, None)
        if subscription is None:
            raise ProviderError(ErrorKind.SUBSCRIPTION, "no subscription of this connection has this id")
        subscription.closed = True
        del self._by_handle[subscription.handle]
        for number in subscription.held:
            del self._holders[number]
        self.confirm(frame, self._open.release(subscription.handle))

    # deliveries

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Queue deliveries; they become frames when the socket has room. Any thread."""
        subscription = self._by_handle.get(consumer)
        if subscription is not None:
            self.wire.put(*[(subscription, delivery) for delivery in deliveries])

    def encode(self, subscription: object, delivery: Delivery | None) -> bytes:
        """Return the frame of a delivery; nothing when its subscription has ended, whose messages have gone back."""
        provider = self._provider
        if not isinstance(subscription, ClientSubscription) or subscription.closed or provider is None:
            return b""
        if delivery is None:
            return end_frame(subscription.name, subscription.destination)
        number = next(self._numbers)
        ack = None if subscription.automatic else b"%d" % number
        try:
            frame = message_frame(subscription.name, ack, delivery, self.setting.behaviour, number)
        except (ProviderError, UnicodeError) as cause:
            fate = "is not shown" if subscription.browse else "goes to the dead letter queue"
            _LOG.warning("%s %s, for STOMP cannot carry it: %s", message_label(delivery.envelope), fate, cause)
            if not subscription.browse:
                provider.settle([delivery.tag], Outcome.REJECTED)
            self._free(subscription, 1)
            return b""
        if not subscription.automatic:
            subscription.held[number] = delivery.tag
            self._holders[number] = subscription
        elif not subscription.browse:
            provider.settle([delivery.tag], Outcome.ACCEPTED)
            self._free(subscription, 1)
        return frame

    def _free(self, subscription: ClientSubscription, places: int) -> None:
        if not subscription.endless and not subscription.closed:
            self._open.credit(subscription.handle, places)

    def _settle(self, outcome: Outcome | None, frame: Frame) -> None:
        raw = required(frame, _ID)
        number = int(raw) if raw.isdigit() and len(raw) < 20 else 0
        subscription = self._holders.get(number)
        if subscription is None or number not in subscription.held:
            if frame.raw(_RECEIPT) is not None:
                raise ProviderError(ErrorKind.CLOSED, "the message is settled already, or has gone back")
            # An ACK may cross the end of its subscription: the message has gone back, so it comes again.
            _LOG.debug("client %d settles number %d, which it does not hold", self.number, number)
            return
        transaction = self._transaction(frame)
        failures = 1
        if outcome is None:
            outcome = _OUTCOMES.get(frame.headers.get("outcome", "failed"))
            failures = number_of(frame.headers.get("failures"), "failures") or 1
        if outcome is None or (transaction is not None and outcome is not Outcome.ACCEPTED):
            raise ProviderError(ErrorKind.UNSUPPORTED, "this outcome is none, or not in a transaction")
        tags = subscription.take(number)
        named = list(tags.values())
        if transaction is not None:
            transaction.accept(subscription, tags)
            self.confirm(frame, self._open.settle(named, outcome, transaction.handle))
            return
        for one in tags:
            del self._holders[one]
        counts = [failures] * len(named) if outcome is Outcome.FAILED else []
        self.confirm(frame, self._open.settle(named, outcome, None, counts))
        self._free(subscription, len(named))

    # transactions

    def _begin(self, frame: Frame) -> None:
        name = required(frame, _TRANSACTION)
        if name in self._transactions:
            raise ProviderError(ErrorKind.IN_USE, "a transaction of this connection has this name")

        def begun(session: Handle, handle: Handle) -> None:
            self._transactions[name] = ClientTransaction(session, handle)
            self.confirm(frame)

        def opened(session: Handle) -> None:
            self.when(self._open.begin(session), frame, partial(begun, session))

        self.when(self._open.open_session(transacted=True), frame, opened)

    def _end(self, commit: bool, frame: Frame) -> None:
        transaction = self._transaction(frame)
        if transaction is None:
            raise broken("a transaction is missing")
        del self._transactions[required(frame, _TRANSACTION)]
        done = self._open.end(transaction.handle, commit=commit)
        self._after(done, lambda: self._ended(transaction, commit and done.exception() is None))
        self.confirm(frame, done)

    def _ended(self, transaction: ClientTransaction, committed: bool) -> None:
        if not committed:
            transaction.undo()
        for subscription, tags in transaction.accepted:
            if committed or subscription.closed:
                for number in tags:
                    self._holders.pop(number, None)
            if committed:
                self._free(subscription, len(tags))
        self._open.release(transaction.session)

    def _transaction(self, frame: Frame) -> ClientTransaction | None:
        name = frame.raw(_TRANSACTION)
        if name is None:
            return None
        transaction = self._transactions.get(name)
        if transaction is None:
            raise ProviderError(ErrorKind.CLOSED, "no transaction of this connection has this name")
        return transaction

    # what frames say

    @property
    def _open(self) -> Provider:
        if self._provider is None:
            raise ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
        return self._provider

    def _address(self, frame: Frame) -> Address:
        text = frame.find(b"\ndestination:")
        address = None if text is None else self.setting.behaviour.read_address(text)
        if address is None or not address.name:
            raise ProviderError(ErrorKind.DESTINATION, "a destination is missing")
        return address

    # answers

    def _after(self, done: Future[None], call: Callable[[], None]) -> None:
        """Go on when the broker has answered, unless the client has left meanwhile."""
        if done.done():
            call()
        else:
            done.add_done_callback(lambda _: self.loop.post(lambda: call() if self.joined else None))

    def confirm(self, frame: Frame, done: Future[None] = DONE, then: Callable[[], None] | None = None) -> None:
        """Answer a frame, if it wants an answer, when what it asked for is done and the frames before it are answered."""
        place = self.answers.line_up(frame.raw(_RECEIPT))
        if then is not None:
            place.then = partial(self.loop.post, then)
        if done.done():
            self.answers.tell(place, done.exception())
        else:
            # Behind what else this thread has to do about it: the client may go on from what it is told.
            done.add_done_callback(lambda _: self.loop.post(self.answers.tell, place, done.exception()))

    def _fail_soon(self, cause: ProviderError, receipt: bytes | None) -> None:
        if self.loop.inside:
            self.fail(cause, receipt)
        else:
            self.loop.post(self.fail, cause, receipt)
