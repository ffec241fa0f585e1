"""The reconnecting decorator under any order of calls, steps and cuts, against what a broker in memory really did.

The model plays the core: it sends, receives, acknowledges and commits, and remembers what it was told. A cut may come between
any two steps. At the end all is healed and worked off, and what was told must agree with the broker.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jmsapi._emulation.checked import Checked
from jmsapi._emulation.reconnecting import Reconnecting
from jmsapi.spi import (
    Address,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Provider,
    ProviderError,
    SendResult,
)
from jmsapi.spi.options import FailoverOptions, ProviderOptions

from .frail import DETECTING, FrailLink, HandClock, World

QUEUE = Address(DestinationKind.QUEUE, "q")
CREDIT = 3
HOUR_MS = 3_600_000


class Contract(logging.Handler):
    """Collects what ``Checked`` finds broken."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@dataclass(eq=False)
class Token:
    """A send, and what was said of it."""

    number: int
    work: Work | None
    answers: list[Exception | None] = field(default_factory=list[Exception | None])


@dataclass(eq=False)
class Work:
    """A transaction: what was sent and acknowledged in it, and how it ended."""

    begun: Future[Handle]
    sends: list[Token] = field(default_factory=list[Token])
    acks: list[Any] = field(default_factory=list[Any])
    void: bool = False
    """Something that was received in it comes again, so it must not be committed."""
    ended: Future[None] | None = None
    commit: bool = False


class Core:
    """What the core hears."""

    def __init__(self) -> None:
        self.up = True
        self.lost: list[ProviderError] = []
        self.resumed = 0
        self.closed: list[tuple[Handle, ProviderError]] = []
        self.held: list[Delivery] = []
        """Delivered and not settled, by the link of the moment."""
        self.credit = 0
        self.seen: Counter[Any] = Counter()
        self.failures: list[Exception] = []
        """Why attempts have failed."""

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        assert self.up, "a delivery while there is no link"
        self.credit -= len(deliveries)
        assert self.credit >= 0, "more deliveries than credit"
        self.held += deliveries
        self.seen.update(one.envelope.body for one in deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        for token, error in results:
            assert isinstance(token, Token)
            token.answers.append(error)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        self.closed.append((handle, cause))

    def on_lost(self, cause: ProviderError) -> None:
        self.lost.append(cause)
        self.up = False
        self.held.clear()

    def on_resumed(self) -> None:
        self.resumed += 1
        self.up = True

    def on_attempt(self, url: str, attempt: int, cause: Exception | None) -> None:
        assert attempt >= 1
        if cause is not None:
            self.failures.append(cause)


class ReconnectingModel(RuleBasedStateMachine):
    """Calls, steps and cuts in any order."""

    resend = False
    broker = "frail"

    def __init__(self) -> None:
        super().__init__()
        self.contract = Contract()
        logging.getLogger("jmsapi.contract").addHandler(self.contract)
        self.clock = HandClock()
        self.world = World(self.broker)
        # No time limit ends a wait here: how long links are refused is left to chance, and limits have tests of their own.
        limits = {"request_timeout_ms": HOUR_MS, "send_timeout_ms": HOUR_MS}
        server = ProviderOptions.model_validate({"scheme": "frail", "host": "a", **limits})
        failover = FailoverOptions.model_validate({"servers": (server,), "resend_unconfirmed": self.resend})
        self.options = server.model_copy(update={"failover": failover})
        self.core = Core()

        def make(options: ProviderOptions) -> Provider:
            return Checked(FrailLink(self.world), options)

        made = Reconnecting(make, self.options, failover, self.clock, self.core, random.Random(1))
        self.provider = Checked(made, self.options)
        self.tokens: list[Token] = []
        self.works: list[Work] = []
        self.work: Work | None = None
        self.acks: list[tuple[list[Any], Future[None]]] = []
        self.futures: list[Future[Any]] = []

    def teardown(self) -> None:
        try:
            if hasattr(self, "consumer"):
                self.heal_and_compare()
                self.close_and_compare()
        finally:
            logging.getLogger("jmsapi.contract").removeHandler(self.contract)

    def close_and_compare(self) -> None:
        """Close with a link or without one: all that was asked is answered."""
        if len(self.tokens) % 2:
            self.cut()
        token = Token(len(self.tokens), None)
        self.provider.send(self.producer, self.message(token), None, token)
        request = self.provider.open_session(transacted=False)
        closed = self.provider.close()
        self.work_off()
        assert closed.done()
        assert request.done()
        assert len(token.answers) == 1
        assert self.contract.found == []

    # ---- moving ---------------------------------------------------------------------------------------------------
    def work_off(self) -> None:
        """Move everything until nothing moves, time included."""
        for _ in range(10_000):
            moved = [link.broker_step() or link.client_step() for link in list(self.world.links)]
            if not any(moved):
                if not self.clock.timers:
                    return
                self.clock.advance(max(0.0, min(self.clock.timers)[0] - self.clock.monotonic()))
        raise AssertionError("it never comes to rest")

    def done(self, future: Future[Any]) -> Any:
        self.work_off()
        assert future.done()
        return future.result()

    # ---- rules ----------------------------------------------------------------------------------------------------
    @initialize()
    def open(self) -> None:
        self.done(self.provider.open(self.core))
        self.session: Handle = self.done(self.provider.open_session(transacted=False))
        self.transacted: Handle = self.done(self.provider.open_session(transacted=True))
        self.producer: Handle = self.done(self.provider.open_producer(self.session, QUEUE))
        self.tx_producer: Handle = self.done(self.provider.open_producer(self.transacted, QUEUE))
        self.consumer: Handle = self.done(self.provider.open_consumer(self.session, ConsumerSpec(QUEUE)))

    @rule(steps=st.integers(1, 4))
    def broker_reads(self, steps: int) -> None:
        for link in list(self.world.links):
            for _ in range(steps):
                link.broker_step()

    @rule(steps=st.integers(1, 4))
    def client_reads(self, steps: int) -> None:
        for link in list(self.world.links):
            for _ in range(steps):
                link.client_step()

    @rule()
    def cut(self) -> None:
        for link in list(self.world.links):
            link.cut()

    @rule()
    def a_slow_thread_speaks_of_an_old_link(self) -> None:
        for link in list(self.world.links):
            if link.late:
                link.late.popleft()()

    @rule(n=st.integers(1, 3))
    def refuse_links(self, n: int) -> None:
        for _ in range(n):
            self.world.refusals.append(ProviderError(ErrorKind.CONNECTION, "refused", fatal=True))

    @rule(seconds=st.sampled_from([0.0, 0.02, 0.5]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def give_credit(self) -> None:
        n = CREDIT - self.core.credit
        if n > 0:
            self.core.credit += n
            self.futures.append(self.provider.credit(self.consumer, n))

    @rule()
    def send(self) -> None:
        token = Token(len(self.tokens), None)
        self.tokens.append(token)
        self.provider.send(self.producer, self.message(token), None, token)

    def message(self, token: Token) -> PlainEnvelope:
        return PlainEnvelope(MessageKind.TEXT, QUEUE, body=str(token.number), message_id=f"ID:{token.number}")

    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        if self.core.held:
            one = data.draw(st.sampled_from(self.core.held))
            self.core.held.remove(one)
            bodies = [one.envelope.body]
            self.acks.append((bodies, self.provider.settle([one.tag], Outcome.ACCEPTED)))

    @rule()
    def acknowledge_what_may_be_void(self) -> None:
        """Settle by a tag that a cut may have made void before the call: the thread was late."""
        if self.core.held:
            one = self.core.held.pop()
            self.cut()
            future = self.provider.settle([one.tag], Outcome.ACCEPTED)
            assert future.done()
            assert future.exception() is not None

    @rule()
    def begin(self) -> None:
        if self.work is None:
            self.work = Work(self.provider.begin(self.transacted))
            self.works.append(self.work)
            self.futures.append(self.work.begun)

    def running(self) -> Work | None:
        return self.work if self.work is not None and self.work.begun.done() else None

    @rule()
    def send_in_transaction(self) -> None:
        work = self.running()
        if work is not None:
            token = Token(len(self.tokens), work)
            self.tokens.append(token)
            work.sends.append(token)
            self.provider.send(self.tx_producer, self.message(token), work.begun.result(), token)

    @rule()
    def acknowledge_in_transaction(self) -> None:
        work = self.running()
        if work is not None and self.core.held:
            one = self.core.held.pop(0)
            work.acks.append(one.envelope.body)
            self.futures.append(self.provider.settle([one.tag], Outcome.ACCEPTED, work.begun.result()))

    @rule()
    def acknowledge_in_transaction_what_is_void(self) -> None:
        """The core kept it for the commit, and then the link was cut."""
        work = self.running()
        if work is not None and self.core.held:
            one = self.core.held.pop(0)
            self.cut()
            work.void = True
            self.futures.append(self.provider.settle([one.tag], Outcome.ACCEPTED, work.begun.result()))

    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        work = self.running()
        if work is not None:
            self.work = None
            work.commit = commit
            work.ended = self.provider.end(work.begun.result(), commit=commit)

    @rule(read=st.integers(0, 4), heard=st.integers(0, 4))
    def cut_in_the_middle_of_a_commit(self, read: int, heard: int) -> None:
        self.work_off()
        if self.work is None:
            self.begin()
            self.work_off()
        self.send_in_transaction()
        self.acknowledge_in_transaction()
        self.end(True)
        for link in self.world.living:
            for _ in range(read):
                link.broker_step()
            for _ in range(heard):
                link.client_step()
        self.cut()

    @rule()
    def cut_an_empty_transaction(self) -> None:
        self.work_off()
        if self.work is None:
            self.begin()
            self.work_off()
            self.cut()
            self.work_off()
            work = self.running()
            assert work is not None
            self.send_in_transaction()
            self.end(True)
            self.work_off()
            assert work.ended is not None
            assert work.ended.result() is None

    @invariant()
    def nothing_of_the_SPI_is_broken(self) -> None:
        assert self.contract.found == []

    @invariant()
    def nothing_is_answered_twice(self) -> None:
        assert [token.number for token in self.tokens if len(token.answers) > 1] == []

    # ---- the end --------------------------------------------------------------------------------------------------
    @rule()
    def heal_and_compare(self) -> None:
        self.world.refusals.clear()
        self.work_off()
        assert self.core.up
        assert len(self.core.lost) == self.core.resumed
        assert sum(one.credit for one in self.world.consumers) == self.core.credit, "credit that was given does not hold"
        assert [future for future in self.futures if not future.done()] == []
        stored = Counter(envelope.body for envelope in self.world.stored)
        for token in self.tokens:
            if token.work is None:
                self.compare_send(token, stored[str(token.number)])
        acknowledged = Counter(envelope.body for envelope in self.world.gone)
        for bodies, future in self.acks:
            assert future.done()
            if future.exception() is None:
                assert all(acknowledged[body] for body in bodies), "an acknowledgement that was confirmed was not done"
        for work in self.works:
            self.compare_transaction(work, stored, acknowledged)
        waiting = Counter(one.envelope.body for queue in self.world.queues.values() for one in queue)
        assert stored == waiting + acknowledged, "a message is lost, or in two places"

    def compare_send(self, token: Token, times: int) -> None:
        assert len(token.answers) == 1, f"the send {token.number} was answered {len(token.answers)} times"
        error = token.answers[0]
        if self.resend:
            assert error is None
            assert times >= 1
            assert times == 1 or self.broker != DETECTING, "sent again, and stored twice where duplicates are detected"
        elif error is None:
            assert times == 1
        else:
            assert isinstance(error, ProviderError)
            assert error.kind is ErrorKind.IN_DOUBT
            assert times <= 1

    def compare_transaction(self, work: Work, stored: Counter[Any], acknowledged: Counter[Any]) -> None:
        if work.ended is None:
            done = False
        else:
            assert work.ended.done()
            error = work.ended.exception()
            assert error is None or isinstance(error, ProviderError)
            if error is not None and error.kind is ErrorKind.IN_DOUBT:
                assert work.commit
                assert len({stored[str(token.number)] for token in work.sends}) <= 1, "a transaction survived in part"
                return
            assert error is None or (work.commit and error.kind is ErrorKind.ROLLED_BACK)
            done = work.commit and error is None
            assert not (done and work.void), "a transaction that spans a break is committed"
        for token in work.sends:
            assert stored[str(token.number)] == done
        if done:
            assert all(acknowledged[body] for body in work.acks)
            assert all(token.answers == [None] for token in work.sends)


class ResendingModel(ReconnectingModel):
    """What was not confirmed is sent again."""

    resend = True


class DetectingModel(ResendingModel):
    """The same at a broker that detects duplicates."""

    broker = DETECTING


SETTINGS = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestReconnecting = ReconnectingModel.TestCase
TestReconnecting.settings = SETTINGS
TestResending = ResendingModel.TestCase
TestResending.settings = SETTINGS
TestDetecting = DetectingModel.TestCase
TestDetecting.settings = SETTINGS
