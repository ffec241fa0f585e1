"""Transactions that are held here until they are committed, on a broker that has none."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import ClassVar

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import (
    Connection,
    JMSException,
    Message,
    MessageFormatException,
    Queue,
    Session,
    TextMessage,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)
from jmsapi._emulation.buffering import BufferedTransaction
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    VERSION,
    Address,
    Capabilities,
    Clock,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Envelope,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Provider,
    ProviderError,
    SendResult,
    SystemClock,
    Tag,
    none,
)
from jmsapi.spi.options import ProviderOptions

SOON = 5000
LARGEST = 1000


class Poor(Forwarding):
    """Has no transactions, writes down what it is asked, and can be told to refuse a message or to keep its answers."""

    made: ClassVar[list[Poor]] = []

    def __init__(self, below: Provider) -> None:
        super().__init__(below)
        self.log: list[str] = []
        self.refuses: dict[int, ErrorKind] = {}
        self.raises: ProviderError | None = None
        """What the next acknowledgement is refused with at once."""
        self.keeps = False
        self.kept: list[SendResult] = []
        self.most = 0
        self._unanswered = 0
        self._sent = 0
        Poor.made.append(self)

    def changed(self, capabilities: Capabilities) -> Capabilities:
        less = capabilities.with_(transactions=none("poor", emulate="tx"), transactions_atomic=none("poor"))
        return replace(less, provider="poor", max_message=LARGEST)

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        assert not transacted, "a transacted session is asked of a broker that has none"
        return super().open_session(transacted=transacted)

    def begin(self, session: Handle) -> Future[Handle]:
        raise AssertionError("a transaction is asked of a broker that has none")

    def release(self, handle: Handle) -> Future[None]:
        self.log.append("release")
        return super().release(handle)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        assert tx is None
        self._sent += 1
        kind = self.refuses.get(self._sent)
        if kind is not None:
            raise ProviderError(kind, f"message {self._sent} is refused")
        self.log.append(f"send {envelope.body}")
        self._unanswered += 1
        self.most = max(self.most, self._unanswered)
        super().send(producer, envelope, tx, token)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        assert tx is None
        if self.raises is not None:
            raises, self.raises = self.raises, None
            raise raises
        self.log.append(f"{outcome.name.lower()} {len(tags)}")
        return super().settle(tags, outcome, tx, failures)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        if self.keeps:
            self.kept += results
            return
        self._unanswered -= len(results)
        super().on_sent(results)

    def answer(self, n: int = 1) -> None:
        """Give the oldest answers that were kept."""
        now, self.kept = self.kept[:n], self.kept[n:]
        self._unanswered -= len(now)
        super().on_sent(now)

    def take(self) -> list[str]:
        """Return the log, and begin a new one."""
        log, self.log = self.log, []
        return log


class Entry:
    """Its entry."""

    spi_version = VERSION
    name = "poor"
    schemes = ("poor",)
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return Poor(jmsapi_inproc.entry.create(options, clock))


@pytest.fixture
def url() -> Iterator[str]:
    """Give the URL of a broker of its own."""
    jmsapi.register_provider(Entry())
    Poor.made.clear()
    name = uuid.uuid4().hex
    yield f"poor://{name}?checked=true"
    jmsapi_inproc.discard(name)
    Poor.made.clear()


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    """Give a started connection whose transactions are asked for."""
    with jmsapi.connection_factory(url, emulate="tx").create_connection() as made:
        made.start()
        yield made


@pytest.fixture
def poor(connection: Connection) -> Poor:
    """Give the provider below the connection."""
    return Poor.made[-1]


def transacted(connection: Connection) -> Session:
    """Open a transacted session."""
    return connection.create_session(Session.SESSION_TRANSACTED)


def text(message: Message | None) -> str | None:
    """Return a message's text; None of none."""
    if message is None:
        return None
    assert isinstance(message, TextMessage)
    return message.text


def waiting(connection: Connection, name: str) -> list[str | None]:
    """Take what is in a queue, with a session of its own."""
    session = connection.create_session()
    consumer = session.create_consumer(session.create_queue(name))
    found: list[str | None] = []
    while (message := consumer.receive_no_wait()) is not None:
        found.append(text(message))
    session.close()
    return found


def fill(connection: Connection, name: str, *bodies: str) -> None:
    """Send texts, outside any transaction."""
    session = connection.create_session()
    producer = session.create_producer(session.create_queue(name))
    for body in bodies:
        producer.send(session.create_text_message(body))
    session.close()


def test_without_the_word_a_transacted_session_is_refused_and_the_word_named(url: str) -> None:
    with (
        jmsapi.connection_factory(url).create_connection() as made,
        pytest.raises(UnsupportedFeatureException, match="emulate=tx"),
    ):
        made.create_session(Session.SESSION_TRANSACTED)


def test_it_says_what_it_does_and_that_it_is_not_atomic(connection: Connection) -> None:
    has = jmsapi.capabilities(connection)
    assert has.transactions
    assert "repeats messages" in has.transactions.note
    assert not has.transactions_atomic


def test_a_provider_with_transactions_is_left_alone() -> None:
    name = uuid.uuid4().hex
    options = jmsapi_inproc.entry.options()(scheme="inproc", host=name, emulate=frozenset({"tx"}))
    provider = BufferedTransaction(jmsapi_inproc.entry.create(options, SystemClock()), options)
    has = provider.open(Silent()).result(30)
    assert has.transactions.note == ""
    session = provider.open_session(transacted=True).result(30)
    assert type(provider.begin(session).result(30)).__module__.startswith("jmsapi_inproc")
    provider.close().result(30)
    jmsapi_inproc.discard(name)


def test_nothing_is_sent_before_the_commit_and_everything_in_order_by_it(connection: Connection, poor: Poor) -> None:
    session = transacted(connection)
    producer = session.create_producer(session.create_queue("q"))
    for number in range(5):
        producer.send(session.create_text_message(str(number)))
    assert poor.take() == []
    session.commit()
    assert poor.take() == [f"send {number}" for number in range(5)]
    assert waiting(connection, "q") == ["0", "1", "2", "3", "4"]


def test_a_rollback_sends_nothing_and_hands_out_again_with_a_count(connection: Connection, poor: Poor) -> None:
    fill(connection, "in", "input")
    session = transacted(connection)
    consumer = session.create_consumer(session.create_queue("in"))
    producer = session.create_producer(session.create_queue("out"))
    assert text(consumer.receive(SOON)) == "input"
    producer.send(session.create_text_message("output"))
    poor.take()
    session.rollback()
    again = consumer.receive(SOON)
    assert again is not None
    assert (text(again), again.jms_redelivered, again.get_int_property("JMSXDeliveryCount")) == ("input", True, 2)
    session.commit()
    assert poor.take() == ["accepted 1"]
    assert waiting(connection, "out") == []


def test_an_acknowledgement_that_is_refused_at_once_ends_the_commit_in_doubt_at_once(connection: Connection, poor: Poor) -> None:
    fill(connection, "in", "a")
    session = transacted(connection)
    consumer = session.create_consumer(session.create_queue("in"))
    producer = session.create_producer(session.create_queue("out"))
    assert text(consumer.receive(SOON)) == "a"
    producer.send(session.create_text_message("1"))
    poor.raises = ProviderError(ErrorKind.RESOURCE, "not now")
    with pytest.raises(JMSException, match="what was received may come again: not now") as caught:
        session.commit()
    assert caught.value.error_code == "in-doubt"


def test_acknowledgements_follow_the_last_answer(connection: Connection, poor: Poor) -> None:
    fill(connection, "in", "a", "b")
    session = transacted(connection)
    consumer = session.create_consumer(session.create_queue("in"))
    producer = session.create_producer(session.create_queue("out"))
    assert [text(consumer.receive(SOON)) for _ in range(2)] == ["a", "b"]
    producer.send(session.create_text_message("1"))
    producer.send(session.create_text_message("2"))
    poor.take()
    session.commit()
    assert poor.take() == ["send 1", "send 2", "accepted 2"]
    session.close()
    assert waiting(connection, "in") == []


def test_what_the_broker_refuses_first_rolls_back_and_brings_the_inputs_again(connection: Connection, poor: Poor) -> None:
    fill(connection, "in", "input")
    session = transacted(connection)
    consumer = session.create_consumer(session.create_queue("in"))
    producer = session.create_producer(session.create_queue("out"))
    assert text(consumer.receive(SOON)) == "input"
    producer.send(session.create_text_message("output"))
    poor.refuses[2] = ErrorKind.DESTINATION
    with pytest.raises(TransactionRolledBackException, match="message 2 is refused"):
        session.commit()
    assert text(consumer.receive(SOON)) == "input"
    session.commit()
    assert waiting(connection, "out") == []


def test_what_the_broker_refuses_later_is_in_doubt_and_brings_the_inputs_again(connection: Connection, poor: Poor) -> None:
    fill(connection, "in", "input")
    session = transacted(connection)
    consumer = session.create_consumer(session.create_queue("in"))
    producer = session.create_producer(session.create_queue("out"))
    assert text(consumer.receive(SOON)) == "input"
    for number in range(3):
        producer.send(session.create_text_message(str(number)))
    poor.refuses[3] = ErrorKind.RESOURCE
    with pytest.raises(JMSException, match="took 1 messages") as caught:
        session.commit()
    assert not isinstance(caught.value, TransactionRolledBackException)
    assert caught.value.error_code == "in-doubt"
    again = consumer.receive(SOON)  # from the broker, at once, while the consumer is open
    assert again is not None
    assert (text(again), again.jms_redelivered) == ("input", True)
    session.commit()
    assert waiting(connection, "out") == ["0"]
    assert waiting(connection, "in") == []
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 20, "closing waits for what the commit in doubt has settled already"


def test_a_producer_closed_before_the_commit_still_sends_and_is_released_after_it(connection: Connection, poor: Poor) -> None:
    session = transacted(connection)
    producer = session.create_producer(session.create_queue("q"))
    producer.send(session.create_text_message("late"))
    producer.close()
    assert poor.take() == []
    session.commit()
    assert poor.take() == ["send late", "release"]
    assert waiting(connection, "q") == ["late"]


def test_a_producer_closed_before_the_rollback_is_released_after_it(connection: Connection, poor: Poor) -> None:
    session = transacted(connection)
    producer = session.create_producer(session.create_queue("q"))
    producer.send(session.create_text_message("never"))
    producer.close()
    session.rollback()
    assert poor.take() == ["release"]


def test_closing_the_session_sends_nothing(connection: Connection, poor: Poor) -> None:
    session = transacted(connection)
    session.create_producer(session.create_queue("q")).send(session.create_text_message("never"))
    session.close()
    assert [entry for entry in poor.take() if entry.startswith("send")] == []
    assert waiting(connection, "q") == []


def test_a_body_that_the_broker_would_not_take_is_refused_when_it_is_sent(connection: Connection) -> None:
    session = transacted(connection)
    producer = session.create_producer(session.create_queue("q"))
    producer.send(session.create_text_message("fits"))
    with pytest.raises(MessageFormatException, match="1001 bytes"):
        producer.send(session.create_text_message("x" * (LARGEST + 1)))
    with pytest.raises(MessageFormatException, match="1002 bytes"):
        producer.send(session.create_text_message("\u00e9" * 501))


def test_transactions_of_two_sessions_do_not_mix(connection: Connection) -> None:
    one, two = transacted(connection), transacted(connection)
    queue: Queue = one.create_queue("q")
    one.create_producer(queue).send(one.create_text_message("one"))
    two.create_producer(queue).send(two.create_text_message("two"))
    two.commit()
    one.rollback()
    assert waiting(connection, "q") == ["two"]


class Silent:
    """Hears and forgets."""

    def __init__(self) -> None:
        self.sent: list[SendResult] = []
        self.deliveries: list[Delivery] = []
        self.lost: list[ProviderError] = []

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        self.deliveries += deliveries

    def on_sent(self, results: Sequence[SendResult]) -> None:
        self.sent += results

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        raise AssertionError(f"{handle} ended: {cause}")

    def on_lost(self, cause: ProviderError) -> None:
        self.lost.append(cause)

    def on_resumed(self) -> None:
        raise AssertionError("nothing here reconnects")


class Bench:
    """The decorator between a recorder and a broker whose answers come when the test says so."""

    def __init__(self, window: int = 1000) -> None:
        name = uuid.uuid4().hex
        options = jmsapi_inproc.entry.options()(scheme="inproc", host=name, max_in_flight=window)
        self.poor = Poor(jmsapi_inproc.entry.create(options, SystemClock()))
        self.provider = BufferedTransaction(self.poor, options)
        self.events = Silent()
        self.provider.open(self.events).result(30)
        self.session = self.provider.open_session(transacted=True).result(30)
        self.name = name

    def begun(self, *sends: tuple[Handle, str, str]) -> Handle:
        """Return a transaction that holds messages: producer, queue, body."""
        tx = self.provider.begin(self.session).result(30)
        for producer, queue, body in sends:
            envelope = PlainEnvelope(MessageKind.TEXT, Address(DestinationKind.QUEUE, queue), body)
            self.provider.send(producer, envelope, tx, object())
        return tx

    def producer(self) -> Handle:
        return self.provider.open_producer(self.session, None).result(30)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Give a bench with a window of three."""
    made = Bench(3)
    yield made
    made.provider.close().result(30)
    jmsapi_inproc.discard(made.name)


def test_no_more_than_a_window_is_unanswered(bench: Bench) -> None:
    producer = bench.producer()
    tx = bench.begun(*[(producer, "q", str(number)) for number in range(20)])
    bench.poor.keeps = True
    ended = bench.provider.end(tx, commit=True)
    while bench.poor.kept:
        assert not ended.done()
        bench.poor.answer()
    ended.result(30)
    assert bench.poor.most == 3
    assert bench.poor.take() == [f"send {number}" for number in range(20)]


def test_the_messages_of_a_destination_do_not_overtake_each_other_on_two_producers(bench: Bench) -> None:
    one, two = bench.producer(), bench.producer()
    tx = bench.begun((one, "q", "1"), (two, "q", "2"))
    bench.poor.keeps = True
    ended = bench.provider.end(tx, commit=True)
    assert bench.poor.take() == ["send 1"]
    bench.poor.answer()
    assert bench.poor.take() == ["send 2"]
    bench.poor.answer()
    ended.result(30)


def test_two_producers_to_two_destinations_do_not_wait_for_each_other(bench: Bench) -> None:
    one, two = bench.producer(), bench.producer()
    tx = bench.begun((one, "q", "1"), (two, "r", "2"))
    bench.poor.keeps = True
    ended = bench.provider.end(tx, commit=True)
    assert bench.poor.take() == ["send 1", "send 2"]
    bench.poor.answer(2)
    ended.result(30)


def test_a_link_lost_during_a_transaction_with_messages_rolls_it_back(bench: Bench) -> None:
    tx = bench.begun((bench.producer(), "q", "never"))
    idle = bench.provider.begin(bench.session).result(30)
    bench.provider.on_lost(ProviderError(ErrorKind.CONNECTION, "cut", fatal=True))
    with pytest.raises(ProviderError, match="cut") as caught:
        bench.provider.end(tx, commit=True).result(30)
    assert caught.value.kind is ErrorKind.ROLLED_BACK
    assert bench.poor.take() == []
    bench.provider.end(idle, commit=True).result(30)
    assert len(bench.events.lost) == 1


def test_an_answer_lost_with_the_link_leaves_the_commit_in_doubt(bench: Bench) -> None:
    consumer = bench.provider.open_consumer(bench.session, ConsumerSpec(Address(DestinationKind.QUEUE, "in"))).result(30)
    producer = bench.producer()
    bench.provider.end(bench.begun((producer, "in", "input")), commit=True).result(30)
    bench.provider.credit(consumer, 1)
    [delivery] = bench.events.deliveries
    tx = bench.begun((producer, "q", "output"))
    bench.provider.settle([delivery.tag], Outcome.ACCEPTED, tx).result(30)
    bench.poor.take()
    bench.poor.keeps = True
    ended = bench.provider.end(tx, commit=True)
    [(token, _)] = bench.poor.kept
    bench.provider.on_sent([(token, ProviderError(ErrorKind.IN_DOUBT, "no answer", fatal=True))])
    with pytest.raises(ProviderError, match="no answer") as caught:
        ended.result(30)
    assert (caught.value.kind, caught.value.fatal) == (ErrorKind.IN_DOUBT, True)
    assert bench.poor.take() == ["send output", "failed 1"]


def test_one_lost_answer_beside_a_refusal_leaves_the_commit_in_doubt(bench: Bench) -> None:
    producer = bench.producer()
    tx = bench.begun((producer, "q", "refused"), (producer, "q", "perhaps taken"))
    bench.poor.keeps = True
    ended = bench.provider.end(tx, commit=True)
    (first, _), (second, _) = bench.poor.kept
    bench.provider.on_sent([(first, ProviderError(ErrorKind.RESOURCE, "the broker is full"))])
    bench.provider.on_sent([(second, ProviderError(ErrorKind.IN_DOUBT, "no answer", fatal=True))])
    with pytest.raises(ProviderError, match="full") as caught:
        ended.result(30)
    assert caught.value.kind is ErrorKind.IN_DOUBT
