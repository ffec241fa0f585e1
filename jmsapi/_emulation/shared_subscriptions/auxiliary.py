"""A connection of the library's own to the same broker, used from one thread that may wait.

Every wait has a deadline, and ends at once when the connection is lost or closed.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from jmsapi.spi import (
    Address,
    ConsumerSpec,
    Delivery,
    ErrorKind,
    Handle,
    Outcome,
    PlainEnvelope,
    Provider,
    ProviderError,
    SendResult,
    fail,
    resolve,
)

__all__ = ["AuxiliaryConnection", "AuxiliaryInbox", "SendAnswers", "SendToken", "awaited"]

T = TypeVar("T")
_AGAIN_S: Final = 0.05
"""Pause before a queue is looked at again of which others hold something."""
_PAGE: Final = 200
"""Messages that are asked for at a time where a queue is read to its end."""


def awaited(future: Future[T], timeout_s: float, asked: str) -> T:
    """Return a provider's answer.

    Args:
        future: Of the provider.
        timeout_s: Longest wait.
        asked: What was asked, for the error's text.
    Raises:
        ProviderError: What the provider failed of; TIMEOUT.
    """
    try:
        return future.result(timeout_s)
    except FutureTimeout:
        raise ProviderError(ErrorKind.TIMEOUT, f"{asked}: no answer within {timeout_s:.1f} s") from None


class AuxiliaryInbox:
    """What came for one consumer, for a thread that waits for it."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Sequence[Delivery] | ProviderError | None] = queue.SimpleQueue()

    def put(self, deliveries: Sequence[Delivery]) -> None:
        """File deliveries away."""
        self._queue.put(deliveries)

    def fail(self, cause: ProviderError) -> None:
        """Have the next ``take`` raise."""
        self._queue.put(cause)

    def wake(self) -> None:
        """Have a waiting ``take`` return without a delivery."""
        self._queue.put(None)

    def take(self, timeout_s: float) -> list[Delivery]:
        """Return what is here, waiting for the first at most so many seconds; nothing when time is up or it was woken.

        Raises:
            ProviderError: The consumer or its connection has ended.
        """
        found: list[Delivery] = []
        try:
            batch = self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait()
            while True:
                if isinstance(batch, ProviderError):
                    raise batch
                if batch is None:
                    return found
                found += batch
                batch = self._queue.get_nowait()
        except queue.Empty:
            return found


class SendToken:
    """The token of one send.

    Args:
        answers: Where its answer counts.
    """

    __slots__ = ("answers",)

    def __init__(self, answers: SendAnswers) -> None:
        self.answers = answers


class SendAnswers:
    """The answers to a number of sends, each of which has a token of its own.

    Args:
        count: How many sends there are.
    """

    def __init__(self, count: int) -> None:
        self.complete: Future[None] = Future()
        """Done when all are answered; fails with the first refusal."""
        self._left = count
        self._error: Exception | None = None
        if not count:
            self.complete.set_result(None)

    def answered(self, error: Exception | None) -> None:
        """Count one answer. Called on the provider's thread, or for a send that was not made."""
        self._error = self._error or error
        self._left -= 1
        if not self._left and self._error is not None:
            fail(self.complete, self._error)
        elif not self._left:
            resolve(self.complete, None)


class AuxiliaryConnection:
    """One connection, opened by the constructor.

    Args:
        provider: Not open yet.
        timeout_s: Longest wait for each answer.
    Raises:
        ProviderError: It could not be opened.
    """

    def __init__(self, provider: Provider, timeout_s: float) -> None:
        self.provider = provider
        self._timeout_s = timeout_s
        self._inboxes: dict[Handle, AuxiliaryInbox] = {}
        self._ended: dict[Handle, ProviderError] = {}
        """Consumers that the broker ended before anybody could wait for what they bring."""
        self._lost: ProviderError | None = None
        try:
            awaited(provider.open(self), timeout_s, "connect for a shared subscription")
            self.session = self.call(provider.open_session(transacted=False), "open a session")
        except BaseException:
            provider.close()
            raise

    def call(self, future: Future[T], asked: str) -> T:
        """Wait for an answer; see ``awaited``."""
        return awaited(future, self._timeout_s, asked)

    def close(self) -> None:
        """Close it; the end of a connection that is lost is no error."""
        try:
            awaited(self.provider.close(), self._timeout_s, "close the connection of a shared subscription")
        except ProviderError:
            if self._lost is None:
                raise

    def abort(self) -> None:
        """Begin to close it, and end every wait for it. May be called by any thread."""
        self.on_lost(ProviderError(ErrorKind.CLOSED, "the connection is closed"))
        self.provider.close()

    # ---- consumers and messages -----------------------------------------------------------------------------------
    def consume(self, spec: ConsumerSpec, session: Handle | None = None) -> tuple[Handle, AuxiliaryInbox]:
        """Open a consumer without credit."""
        consumer = self.call(self.provider.open_consumer(session or self.session, spec), f"consume from {spec.address.name!r}")
        inbox = self._inboxes[consumer] = AuxiliaryInbox()
        cause = self._ended.pop(consumer, None) or self._lost
        if cause is not None:
            inbox.fail(cause)
        return consumer, inbox

    def release(self, consumer: Handle) -> None:
        """End a consumer."""
        self._inboxes.pop(consumer, None)
        self.call(self.provider.release(consumer), "close a consumer")

    def browse(self, address: Address) -> list[Delivery]:
        """Return what is in a queue, what others hold of it included."""
        browser, inbox = self.consume(ConsumerSpec(address, browse=True, prefetch=_PAGE))
        found: list[Delivery] = []
        while True:
            self.call(self.provider.credit(browser, _PAGE), f"browse {address.name!r}")
            self.call(self.provider.drain(browser), f"browse {address.name!r}")
            page = inbox.take(0)
            found += page
            if len(page) < _PAGE:
                break
        self.release(browser)
        return found

    def purge(self, address: Address) -> int:
        """Take everything out of a queue that nobody holds; return how many messages others still hold.

        A broker that is slow to hand out what it has looks like one that has nothing, so a browser tells what is left.

        Returns:
            Once nothing more could be taken, what a browser shows.
        """
        while left := len(self.browse(address)):
            if not self._take(address):
                break
        return left

    def empty(self, address: Address) -> None:
        """Take everything out of a queue, waiting until those who hold some of it have given it back.

        Raises:
            ProviderError: IN_USE; somebody holds messages all the time.
        """
        deadline = time.monotonic() + self._timeout_s
        while held := self.purge(address):
            if time.monotonic() > deadline:
                raise ProviderError(ErrorKind.IN_USE, f"{held} messages of {address.name!r} are held by another consumer")
            time.sleep(_AGAIN_S)

    def _take(self, address: Address) -> int:
        """Take what comes out of a queue until nothing comes; return how many messages that were."""
        consumer, inbox = self.consume(ConsumerSpec(address, prefetch=_PAGE))
        taken = empty = 0
        while empty < 2:
            # An answer that nothing is there counts when it is given twice: a broker may still be reading from its store.
            self.call(self.provider.credit(consumer, _PAGE), f"empty {address.name!r}")
            self.call(self.provider.drain(consumer), f"empty {address.name!r}")
            page = inbox.take(0)
            if page:
                self.call(self.provider.settle([one.tag for one in page], Outcome.ACCEPTED), f"empty {address.name!r}")
            taken += len(page)
            empty = 0 if page else empty + 1
        self.release(consumer)
        return taken

    def send(self, envelope: PlainEnvelope) -> None:
        """Send a message and wait until the broker has it."""
        producer = self.call(self.provider.open_producer(self.session, envelope.destination), "open a producer")
        answers = SendAnswers(1)
        self.provider.send(producer, envelope, None, SendToken(answers))
        self.call(answers.complete, f"send to {envelope.destination.name!r}")
        self.call(self.provider.release(producer), "close a producer")

    def remove(self, subscription: str) -> None:
        """End a durable subscription of this connection's client id; one that is not there is no error."""
        try:
            self.call(self.provider.remove(self.session, subscription), f"remove the subscription {subscription!r}")
        except ProviderError as error:
            if error.kind is not ErrorKind.SUBSCRIPTION:
                raise

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """File deliveries away."""
        inbox = self._inboxes.get(consumer)
        if inbox is not None:
            inbox.put(deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Answer sends."""
        for token, error in results:
            if isinstance(token, SendToken):
                token.answers.answered(error)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """The broker ended one consumer."""
        if handle not in self._inboxes:
            self._ended[handle] = cause
        inbox = self._inboxes.get(handle)
        if inbox is not None:
            inbox.fail(cause)

    def on_lost(self, cause: ProviderError) -> None:
        """Wake whoever waits."""
        if self._lost is None:
            self._lost = cause
            for inbox in list(self._inboxes.values()):
                inbox.fail(cause)

    def on_resumed(self) -> None:
        """Do nothing: such a connection is not made again under the same handles."""
