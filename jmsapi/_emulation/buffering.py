"""Local transactions on a broker that has none: ``?emulate=tx``.

What a transaction sends is held here, and its acknowledgements too. A commit sends all of it, waits until the broker has
taken each message, and acknowledges only then. A rollback forgets.

It is not atomic. What goes wrong between the first message and the last acknowledgement leaves a part of the messages sent,
or all of them, and brings what was received once more: duplicates are possible, loss is not. The other order, which would
acknowledge first, trades the one for the other and is not offered. A commit that fails before the broker has taken anything
is a rollback; one that fails later is reported as in doubt, and what was received goes back to the broker at once.

A provider that has transactions, or an emulation of its own, is left alone.

Spec: 4.4.7-2, 4.4.7-5, 4.4.10-1.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from jmsapi._emulation.forwarding import Forwarding
from jmsapi._emulation.guarded_calls import call_below
from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    Envelope,
    ErrorKind,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    SendResult,
    Tag,
    completed,
    emulated,
    none,
)

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["TX", "BufferedTransaction"]

TX: Final = "tx"
"""The word for ``?emulate=``."""


class _BufferedTransaction(Handle):
    """One transaction: what is to be sent and acknowledged when it is committed."""

    __slots__ = ("acks", "lost", "producers", "sends")

    def __init__(self) -> None:
        self.sends: deque[tuple[Handle, Envelope]] = deque()
        self.producers: set[Handle] = set()
        self.acks: list[Tag] = []
        self.lost: ProviderError | None = None
        """The link was lost while something was held: what was received under it is not ours any more."""


class BufferedTransaction(Forwarding):
    """Holds back what a transaction does until it is committed.

    Args:
        provider: The one below.
        options: For ``max_in_flight``.
    """

    def __init__(self, provider: Provider, options: ProviderOptions) -> None:
        super().__init__(provider)
        self._window = options.max_in_flight
        self._guard = threading.Lock()
        self._active = False
        self._largest: int | None = None
        self._open: set[_BufferedTransaction] = set()
        """Transactions that hold messages."""
        self._needed: dict[Handle, int] = {}
        """Producers by the number of transactions that hold messages for them."""
        self._leaving: set[Handle] = set()
        """Producers that the core has released while messages are held for them."""

    def changed(self, capabilities: Capabilities) -> Capabilities:
        """Take transactions over if there are none below."""
        self._active = not capabilities.transactions
        self._largest = capabilities.max_message
        if not self._active:
            return capabilities
        why = "messages are sent at commit, then acknowledgements follow: a crash between repeats messages, it loses none"
        return capabilities.with_(
            transactions=emulated(why), transactions_atomic=none("a commit sends and acknowledges one message after the other")
        )

    # ---- calls ----------------------------------------------------------------------------------------------------
    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Ask for an ordinary session where the transactions are ours."""
        return self.below.open_session(transacted=transacted and not self._active)

    def begin(self, session: Handle) -> Future[Handle]:
        """Begin to hold."""
        return completed(_BufferedTransaction()) if self._active else self.below.begin(session)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Hold a message; for its sender it is sent.

        Raises:
            ProviderError: FORMAT; its body alone is larger than the broker takes.
        """
        if not isinstance(tx, _BufferedTransaction):
            self.below.send(producer, envelope, tx, token)
            return
        self._check_size(envelope)
        with self._guard:
            if producer not in tx.producers:
                tx.producers.add(producer)
                self._needed[producer] = self._needed.get(producer, 0) + 1
            tx.sends.append((producer, envelope))
            self._open.add(tx)
        self.above.on_sent([(token, None)])

    def _check_size(self, envelope: Envelope) -> None:
        body = envelope.body
        size = (
            len(body.encode("utf-8", "surrogatepass")) if isinstance(body, str) else len(body) if isinstance(body, bytes) else 0
        )
        if self._largest is not None and size > self._largest:
            text = f"a message with a body of {size} bytes is larger than the {self._largest} that the broker takes"
            raise ProviderError(ErrorKind.FORMAT, text)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Hold acknowledgements under a transaction of ours."""
        if not isinstance(tx, _BufferedTransaction):
            return self.below.settle(tags, outcome, tx, failures)
        tx.acks += tags
        return DONE

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Send all and acknowledge; or forget all."""
        if not isinstance(tx, _BufferedTransaction):
            return self.below.end(tx, commit=commit)
        with self._guard:
            self._open.discard(tx)
        if not commit or tx.lost is not None:
            self._let_go(tx.producers)
            lost = tx.lost if commit else None
            if lost is None:
                return DONE
            answer: Future[None] = Future()
            text = f"the link was lost during the transaction ({lost.message}), so it is rolled back; nothing was sent"
            answer.set_exception(ProviderError(ErrorKind.ROLLED_BACK, text))
            return answer
        running = _Commit(self.below, tx, self._window)
        running.answer.add_done_callback(lambda _: self._let_go(tx.producers))
        running.go_on()
        return running.answer

    def _let_go(self, producers: set[Handle]) -> None:
        """Release the producers that were kept for a transaction only."""
        released: list[Handle] = []
        with self._guard:
            for producer in producers:
                self._needed[producer] -= 1
                if not self._needed[producer]:
                    del self._needed[producer]
                    if producer in self._leaving:
                        self._leaving.discard(producer)
                        released.append(producer)
        for producer in released:
            call_below(self.below.release, producer)

    def release(self, handle: Handle) -> Future[None]:
        """Keep a producer as long as messages are held for it."""
        with self._guard:
            if handle in self._needed:
                self._leaving.add(handle)
                return DONE
        return self.below.release(handle)

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Tell commits what became of their messages, and the core of its own."""
        mine: dict[_Commit, list[Exception | None]] = {}
        others: list[SendResult] = []
        for token, error in results:
            if isinstance(token, _CommitToken):
                mine.setdefault(token.commit, []).append(error)
            else:
                others.append((token, error))
        if others:
            self.above.on_sent(others)
        for commit, errors in mine.items():
            commit.answered(errors)

    def on_lost(self, cause: ProviderError) -> None:
        """Pass up; what is held cannot be committed any more."""
        with self._guard:
            for tx in self._open:
                tx.lost = cause
        self.above.on_lost(cause)


class _CommitToken:
    """The token of one message that a commit sends."""

    __slots__ = ("commit",)

    def __init__(self, commit: _Commit) -> None:
        self.commit = commit


class _Commit:
    """One commit on its way: at most a window of messages unanswered, the acknowledgements behind the last answer."""

    def __init__(self, below: Provider, tx: _BufferedTransaction, window: int) -> None:
        self.answer: Future[None] = Future()
        self._below = below
        self._sends = tx.sends
        self._acks = tx.acks
        self._window = window
        self._guard = threading.Lock()
        self._unanswered = 0
        self._taken = 0
        self._error: ProviderError | None = None
        self._doubtful = False
        """The broker may have taken a message of which it did not say so."""
        self._sending = False
        """A thread is in ``go_on``; what an answer makes possible is done there."""
        self._ended = False
        self._through: dict[Address, Handle] = {}

    def go_on(self) -> None:
        """Send what may be sent; when all is answered, end."""
        with self._guard:
            if self._sending:
                return
            self._sending = True
        while True:
            with self._guard:
                item = self._next()
                if item is None:
                    self._sending = False
                    ends = not self._unanswered and not self._ended
                    self._ended = self._ended or ends
                    break
            try:
                self._below.send(*item, None, _CommitToken(self))
            except ProviderError as error:
                self.answered([error])
        if ends:
            self._end()

    def _next(self) -> tuple[Handle, Envelope] | None:
        """Take the next message if it may go now: a destination's messages do not change producers while any is unanswered."""
        if self._error is not None or not self._sends or self._unanswered >= self._window:
            return None
        producer, envelope = self._sends[0]
        if self._unanswered and self._through.get(envelope.destination, producer) is not producer:
            return None
        self._through[envelope.destination] = producer
        self._unanswered += 1
        return self._sends.popleft()

    def answered(self, errors: Sequence[Exception | None]) -> None:
        """Note what became of messages."""
        with self._guard:
            self._unanswered -= len(errors)
            for error in errors:
                if error is None:
                    self._taken += 1
                    continue
                if not isinstance(error, ProviderError):
                    error = ProviderError(ErrorKind.PROTOCOL, repr(error))
                self._doubtful = self._doubtful or error.kind is ErrorKind.IN_DOUBT
                self._error = self._error or error
        self.go_on()

    def _end(self) -> None:
        error = self._error
        if error is None:
            self._acknowledge()
            return
        if not self._taken and not self._doubtful:
            text = f"the broker took nothing of the transaction, which is rolled back: {error.message}"
            self.answer.set_exception(ProviderError(ErrorKind.ROLLED_BACK, text, fatal=error.fatal))
            return
        # The core settles nothing after a commit in doubt, so what was received would stay ours as long as its consumer.
        self._give_back()
        text = f"the broker took {self._taken} messages of the transaction and perhaps more, then: {error.message}; "
        text += "what it received comes again"
        self.answer.set_exception(ProviderError(ErrorKind.IN_DOUBT, text, fatal=error.fatal))

    def _give_back(self) -> None:
        if self._acks:
            call_below(self._below.settle, self._acks, Outcome.FAILED)

    def _acknowledge(self) -> None:
        if not self._acks:
            self.answer.set_result(None)
            return

        def acknowledged(settled: Future[None]) -> None:
            error = settled.exception()
            if error is None:
                self.answer.set_result(None)
                return
            text = f"the messages are sent, what was received may come again: {error}"
            fatal = isinstance(error, ProviderError) and error.fatal
            self.answer.set_exception(ProviderError(ErrorKind.IN_DOUBT, text, fatal=fatal))

        call_below(self._below.settle, self._acks, Outcome.ACCEPTED).add_done_callback(acknowledged)
