"""The ledger against a plain reference model: every mode, in any order of events."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from jmsapi._core.acknowledgement.ledger import AUTO, CLIENT, DUPS_OK, TRANSACTED, Entry, Inbox, Ledger, SettlementPlan
from jmsapi.spi import Address, Delivery, DestinationKind, MessageKind, PlainEnvelope, Tag

ENVELOPE = PlainEnvelope(MessageKind.MESSAGE, Address(DestinationKind.QUEUE, "q"))
LIMIT = 2
BATCH = 3


class NumberedTag(Tag):
    """A tag that can be told apart."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"#{self.number}"


@dataclass(eq=False)
class Consumer:
    """The model of one consumer: message numbers that wait, and whether it is open."""

    inbox: Inbox
    waiting: list[int] = field(default_factory=list[int])
    open: bool = True


@dataclass
class Message:
    """The model of one message: whose it is, how often it was given again, where it is."""

    consumer: Consumer
    again: int = 0
    state: str = "waiting"


class LedgerModel(RuleBasedStateMachine):
    """Tells the ledger and the model the same things and compares what they answer."""

    mode = AUTO
    consumers: Bundle[Consumer] = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(self.mode, max_redeliveries=LIMIT, batch=BATCH)
        self.messages: dict[int, Message] = {}
        self.entries: dict[int, Entry] = {}
        self.held: list[int] = []
        self.lazy: list[int] = []
        self.all: list[Consumer] = []
        self.over = False

    # ---- the model's moves ----------------------------------------------------------------------------------------
    def settled(self, plan: SettlementPlan | None, **expected: list[int]) -> None:
        """Compare a plan with what the model says, then carry it out."""
        got = plan or SettlementPlan()
        failed = [self.messages[tag.number] for tag in got.failed if isinstance(tag, NumberedTag)]
        assert got.failures == [message.again + (message.state == "held") for message in failed]
        for outcome in ("accepted", "released", "failed", "rejected"):
            tags = [tag.number for tag in getattr(got, outcome) if isinstance(tag, NumberedTag)]
            assert sorted(tags) == sorted(expected.get(outcome, [])), (outcome, tags, expected)
            for number in tags:
                assert self.messages[number].state != "settled", f"{number} is settled twice"
                self.messages[number].state = "settled"
        self.ledger.carried_out(got)

    def again(self, numbers: list[int], *, raised: bool) -> list[int]:
        """Put messages back in front of their consumers; return those whose consumer is closed."""
        homeless: list[int] = []
        for number in reversed(numbers):
            message = self.messages[number]
            if not message.consumer.open:
                homeless.append(number)
                continue
            message.again += raised
            message.state = "waiting"
            message.consumer.waiting.insert(0, number)
        return homeless

    def flushed(self) -> list[int]:
        numbers, self.lazy = self.lazy, []
        return numbers

    # ---- rules ----------------------------------------------------------------------------------------------------
    @rule(target=consumers)
    def open_consumer(self) -> Consumer:
        consumer = Consumer(Inbox())
        if not self.over:
            self.all.append(consumer)
        else:
            consumer.open = False
            consumer.inbox.closed = True
        return consumer

    @rule(consumer=consumers, n=st.integers(1, 4))
    def arrive(self, consumer: Consumer, n: int) -> None:
        numbers = [len(self.messages) + i for i in range(n)]
        self.ledger.file(consumer.inbox, [Delivery(NumberedTag(number), ENVELOPE, 1) for number in numbers], 0.0)
        for number in numbers:
            self.messages[number] = Message(consumer)
            if consumer.open:
                consumer.waiting.append(number)
            else:
                self.messages[number].state = "settled"

    @rule(consumer=consumers, what=st.sampled_from(["done", "raised", "wrong body", "kept", "expired"]))
    def take(self, consumer: Consumer, what: str) -> None:
        if not consumer.open:
            return
        assert bool(consumer.inbox.buffer) == bool(consumer.waiting)
        if not consumer.waiting:
            return
        entry = self.ledger.take(consumer.inbox)
        number = consumer.waiting.pop(0)
        assert entry.delivery.tag.number == number  # type: ignore[attr-defined]
        assert entry.extra == self.messages[number].again
        self.messages[number].state = "held"
        self.held.append(number)
        self.entries[number] = entry
        if what != "kept":
            self.tell(number, what)

    @rule(data=st.data(), what=st.sampled_from(["done", "raised", "wrong body"]))
    def tell_later(self, data: st.DataObject, what: str) -> None:
        if self.held:
            self.tell(data.draw(st.sampled_from(self.held)), what)

    def tell(self, number: int, what: str) -> None:
        entry, message = self.entries[number], self.messages[number]
        automatic = self.mode in (AUTO, DUPS_OK)
        if what == "expired":
            self.held.remove(number)
            self.settled(self.ledger.drop(entry), accepted=[number])
        elif what == "done" and self.mode == AUTO:
            self.held.remove(number)
            self.settled(self.ledger.done(entry), accepted=[number])
        elif what == "done" and self.mode == DUPS_OK:
            self.held.remove(number)
            self.lazy.append(number)
            flush = len(self.lazy) >= BATCH or not message.consumer.inbox.buffer
            self.settled(self.ledger.done(entry), accepted=self.flushed() if flush else [])
        elif what == "raised" and automatic:
            self.held.remove(number)
            if message.again >= LIMIT:
                self.settled(self.ledger.listener_failed(entry), rejected=[number])
            else:
                homeless = self.again([number], raised=True)
                self.settled(self.ledger.listener_failed(entry), failed=homeless)
        elif what == "wrong body" and automatic:
            self.held.remove(number)
            homeless = self.again([number], raised=False)
            self.settled(self.ledger.wrong_body(entry), released=homeless)
        else:
            calls = {"done": self.ledger.done, "raised": self.ledger.listener_failed, "wrong body": self.ledger.wrong_body}
            self.settled(calls[what](entry))

    @rule()
    def acknowledge(self) -> None:
        numbers: list[int] = []
        if self.mode == CLIENT:
            numbers, self.held = self.held, []
        self.settled(self.ledger.acknowledge(), accepted=numbers)

    @rule()
    def recover(self) -> None:
        if self.mode == TRANSACTED:
            return
        accepted = self.flushed()
        numbers, self.held = self.held, []
        homeless = self.again(numbers, raised=True)
        self.settled(self.ledger.recover(), accepted=accepted, failed=homeless)

    @rule()
    def enlist(self) -> None:
        if self.mode == TRANSACTED:
            self.ledger.enlist()
            assert self.ledger.held() == []

    @rule(broker_returns=st.booleans())
    def rollback(self, broker_returns: bool) -> None:
        if self.mode != TRANSACTED:
            return
        enlisted = [number for number in self.held if self.entries[number].enlisted] if broker_returns else []
        numbers, self.held = [number for number in self.held if number not in enlisted], []
        homeless = self.again(numbers, raised=True)
        for number in enlisted:
            self.messages[number].state = "settled"
        self.settled(self.ledger.rolled_back(broker_returns=broker_returns), failed=homeless)

    @rule()
    def commit(self) -> None:
        if self.mode != TRANSACTED:
            return
        not_enlisted = [number for number in self.held if not self.entries[number].enlisted]
        assert [tag.number for tag in self.ledger.held()] == not_enlisted  # type: ignore[attr-defined]
        for number in self.held:
            self.messages[number].state = "settled"
        self.held = []
        self.settled(self.ledger.committed())

    @rule(consumer=consumers)
    def close_consumer(self, consumer: Consumer) -> None:
        if not consumer.open:
            return
        consumer.open = False
        released = [number for number in consumer.waiting if not self.messages[number].again]
        failed = [number for number in consumer.waiting if self.messages[number].again]
        consumer.waiting = []
        self.settled(self.ledger.close_inbox(consumer.inbox), released=released, failed=failed)

    @rule()
    def close_session(self) -> None:
        if self.over:
            return
        waiting = [number for consumer in self.all for number in consumer.waiting]
        failed = self.held + [number for number in waiting if self.messages[number].again]
        released = [number for number in waiting if not self.messages[number].again]
        self.held = []
        accepted = self.flushed()
        for consumer in self.all:
            consumer.open = False
            consumer.waiting = []
        self.over = True
        plan = self.ledger.close([consumer.inbox for consumer in self.all])
        self.settled(plan, accepted=accepted, released=released, failed=failed)

    @invariant()
    def nothing_is_lost_between_the_two(self) -> None:
        assert self.ledger.unsettled == len(self.held) + len(self.lazy)
        for consumer in self.all:
            buffered = [entry.delivery.tag.number for entry in consumer.inbox.buffer]  # type: ignore[attr-defined]
            assert buffered == consumer.waiting
            own = [n for n in self.held + self.lazy if self.messages[n].consumer is consumer]
            assert consumer.inbox.unsettled == len(own)
            assert consumer.inbox.idle == (not consumer.open and not own)


class DupsOkModel(LedgerModel):
    mode = DUPS_OK


class ClientModel(LedgerModel):
    mode = CLIENT


class TransactedModel(LedgerModel):
    mode = TRANSACTED


LedgerModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAuto = LedgerModel.TestCase
TestDupsOk = DupsOkModel.TestCase
TestClient = ClientModel.TestCase
TestTransacted = TransactedModel.TestCase
for _model in (DupsOkModel, ClientModel, TransactedModel):
    _model.TestCase.settings = LedgerModel.TestCase.settings
