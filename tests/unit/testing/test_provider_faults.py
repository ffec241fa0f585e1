"""Faults that a test plans: what the application meets, and what the broker has after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi.spi import Delivery, ErrorKind, Handle, ProviderError, SendResult
from jmsapi.testing import EmbeddedBroker, HandClock, Operation

DEADLINE_S = 20
DEADLINE_MS = 20_000
TRANSACTED = jmsapi.JMSContext.SESSION_TRANSACTED


def send(context: jmsapi.JMSContext, text: str, queue: str = "q") -> None:
    context.create_producer().send(context.create_queue(queue), text)


def outcomes(context: jmsapi.JMSContext, *texts: str, queue: str = "q") -> list[str]:
    """Send each text and tell what became of it: its own word, or that of the error."""
    found: list[str] = []
    for text in texts:
        try:
            send(context, text, queue)
            found.append(text)
        except jmsapi.JMSRuntimeException as error:
            found.append(str(error.error_code))
    return found


# ---------------------------------------------------------------- fail


def test_the_nth_call_fails_and_no_other(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    fault = jms_broker.faults.fail("send", nth=3)
    assert outcomes(jms_context, "a", "b", "c", "d") == ["a", "b", "resource-allocation", "d"]
    jms_broker.queue("q").assert_received_bodies("a", "b", "d")
    assert fault.hits == 1


def test_several_in_a_row_fail(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.fail("send", nth=2, times=2)
    assert outcomes(jms_context, "a", "b", "c", "d") == ["a", "resource-allocation", "resource-allocation", "d"]


def test_all_from_the_nth_on_fail_until_the_plan_is_cleared(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.fail("send", nth=2, times=None)
    assert outcomes(jms_context, "a", "b", "c") == ["a", "resource-allocation", "resource-allocation"]
    jms_broker.faults.clear()
    assert outcomes(jms_context, "d") == ["d"]


def test_only_calls_for_one_destination_are_counted(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.fail("send", nth=2, destination="audit")
    assert outcomes(jms_context, "a", "b") == ["a", "b"]
    assert outcomes(jms_context, "a", "b", queue="audit") == ["a", "resource-allocation"]


@pytest.mark.parametrize(
    ("word", "kind", "code"),
    [
        ("security", jmsapi.JMSSecurityRuntimeException, "security"),
        ("destination", jmsapi.InvalidDestinationRuntimeException, "invalid-destination"),
        (ErrorKind.IN_DOUBT, jmsapi.JMSRuntimeException, "in-doubt"),
    ],
)
def test_the_error_can_be_chosen(
    jms_broker: EmbeddedBroker,
    jms_context: jmsapi.JMSContext,
    word: ErrorKind | str,
    kind: type[jmsapi.JMSRuntimeException],
    code: str,
) -> None:
    jms_broker.faults.fail("send", error=word, message="the disk is full")
    with pytest.raises(kind, match="the disk is full") as raised:
        send(jms_context, "x")
    assert raised.value.error_code == code


def test_the_broker_may_have_done_what_is_said_to_have_failed(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.fail("send", error="in-doubt", after=True)
    assert outcomes(jms_context, "a") == ["in-doubt"]
    jms_broker.queue("q").assert_received_bodies("a")


def test_a_commit_that_fails_rolls_back(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("in").send("order")
    jms_broker.faults.fail("commit")
    with jms_broker.connection_factory().create_context(TRANSACTED) as context:
        consumer = context.create_consumer(context.create_queue("in"))
        assert consumer.receive_body(str, DEADLINE_MS) == "order"
        send(context, "parcel", "out")
        with pytest.raises(jmsapi.TransactionRolledBackRuntimeException):
            context.commit()
        jms_broker.queue("out").assert_not_received()
        again = consumer.receive(DEADLINE_MS)
        assert again is not None and again.jms_redelivered
        send(context, "parcel", "out")
        context.commit()
    jms_broker.queue("out").assert_received_bodies("parcel")
    jms_broker.queue("in").assert_empty()


def test_a_commit_whose_answer_is_lost_is_done(jms_broker: EmbeddedBroker) -> None:
    jms_broker.faults.fail("commit", error="in-doubt", after=True)
    with jms_broker.connection_factory().create_context(TRANSACTED) as context:
        send(context, "parcel", "out")
        with pytest.raises(jmsapi.JMSRuntimeException) as raised:
            context.commit()
        assert raised.value.error_code == "in-doubt"
        jms_broker.queue("out").assert_received_bodies("parcel")


def test_what_a_transaction_sends_is_not_received_before_its_commit(jms_broker: EmbeddedBroker) -> None:
    with jms_broker.connection_factory().create_context(TRANSACTED) as context:
        send(context, "one")
        jms_broker.queue("q").assert_not_received()
        context.rollback()
        send(context, "two")
        context.commit()
        jms_broker.queue("q").assert_received_bodies("two")


def use(context: jmsapi.JMSContext) -> None:
    """Do everything that an application does."""
    queue, topic = context.create_queue("q"), context.create_topic("t")
    with context.create_context(TRANSACTED) as other:
        temporary = other.create_temporary_queue()
        other.create_producer().send(queue, "m")
        other.commit()
        consumer = other.create_consumer(queue)
        list(other.create_browser(queue))
        assert consumer.receive(DEADLINE_MS)
        other.create_producer().send(queue, "m")
        other.rollback()
        consumer.close()
        other.create_durable_consumer(topic, "mine").close()
        other.unsubscribe("mine")
        temporary.delete()


@pytest.mark.parametrize("operation", sorted(set(get_args(Operation)) - {"connect", "deliver", "acknowledge", "prepare"}))
@pytest.mark.parametrize("after", [False, True])
def test_each_operation_can_fail(jms_broker: EmbeddedBroker, operation: Operation, after: bool) -> None:
    with jms_broker.connection_factory(client_id="me").create_context() as context:
        jms_broker.faults.fail(operation, message="on purpose", after=after)
        with pytest.raises(jmsapi.JMSError, match="on purpose"):
            use(context)


@pytest.mark.parametrize("after", [False, True])
def test_a_connection_can_be_refused(jms_broker: EmbeddedBroker, after: bool) -> None:
    jms_broker.faults.fail("connect", after=after)
    with pytest.raises(jmsapi.JMSException) as raised:
        jms_broker.connection_factory().create_connection()
    assert raised.value.error_code == "connection"
    assert jms_broker.connections == 0
    jms_broker.connection_factory().create_connection().close()


def test_an_acknowledgement_can_fail(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("q").send("m")
    jms_broker.faults.fail("acknowledge", destination="q")
    with jms_broker.connection_factory().create_context(jmsapi.JMSContext.CLIENT_ACKNOWLEDGE) as context:
        assert context.create_consumer(context.create_queue("q")).receive(DEADLINE_MS)
        with pytest.raises(jmsapi.ResourceAllocationRuntimeException):
            context.acknowledge()
    assert jms_broker.queue("q").take().get_body(str) == "m"


# ---------------------------------------------------------------- drop


def test_a_dropped_send_is_said_to_have_succeeded(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.drop("send", nth=2)
    assert outcomes(jms_context, "a", "b", "c") == ["a", "b", "c"]
    jms_broker.queue("q").assert_received_bodies("a", "c")


def test_a_dropped_delivery_comes_to_the_next_consumer(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.drop("deliver")
    queue = jms_context.create_queue("q")
    consumer = jms_context.create_consumer(queue)
    jms_broker.queue("q").send("a")
    jms_broker.queue("q").send("b")
    assert consumer.receive_body(str, DEADLINE_MS) == "b"
    # No work is left for the application, but the queue is not empty.
    jms_broker.wait_idle()
    with pytest.raises(AssertionError, match="consumers hold, unsettled: 1"):
        jms_broker.queue("q").assert_empty(within=0)
    consumer.close()
    assert jms_context.create_consumer(queue).receive_body(str, DEADLINE_MS) == "a"
    jms_broker.queue("q").assert_empty()


def test_after_a_dropped_acknowledgement_the_message_comes_again(
    jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext
) -> None:
    jms_broker.faults.drop("acknowledge")
    jms_broker.queue("q").send("a")
    queue = jms_context.create_queue("q")
    consumer = jms_context.create_consumer(queue)
    assert consumer.receive_body(str, DEADLINE_MS) == "a"
    consumer.close()
    assert jms_context.create_consumer(queue).receive_body(str, DEADLINE_MS) == "a"


# ---------------------------------------------------------------- delay


def test_a_delayed_send_takes_its_time_of_the_clock(
    jms_broker: EmbeddedBroker, jms_clock: HandClock, jms_context: jmsapi.JMSContext
) -> None:
    jms_broker.faults.delay("send", 30)
    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(outcomes, jms_context, "a", "b")
        with pytest.raises(AssertionError, match="1 calls or deliveries are held up"):
            wait_for_fault(jms_broker)
            jms_broker.wait_idle(within=0)
        jms_clock.advance(29)
        jms_broker.queue("q").assert_not_received()
        assert not sent.done()
        jms_clock.advance(1)
        assert sent.result(DEADLINE_S) == ["a", "b"]
    jms_broker.queue("q").assert_received_bodies("a", "b")
    jms_broker.wait_idle()


def wait_for_fault(broker: EmbeddedBroker) -> None:
    done = threading.Event()
    while broker.faults.pending:
        assert not done.wait(0.001)


def test_what_is_sent_behind_a_delayed_message_stays_behind_it(
    jms_broker: EmbeddedBroker, jms_clock: HandClock, jms_context: jmsapi.JMSContext
) -> None:
    jms_broker.faults.delay("send", 30)
    queue = jms_context.create_queue("q")
    producer = jms_context.create_producer().set_delivery_mode(jmsapi.DeliveryMode.NON_PERSISTENT)
    for number in range(5):
        producer.send(queue, str(number))
    jms_broker.queue("q").assert_not_received()
    jms_clock.advance(30)
    jms_broker.queue("q").assert_received_bodies(*"01234")


def test_a_delayed_delivery_keeps_its_place(
    jms_broker: EmbeddedBroker, jms_clock: HandClock, jms_context: jmsapi.JMSContext
) -> None:
    jms_broker.faults.delay("deliver", 10)
    consumer = jms_context.create_consumer(jms_context.create_queue("q"))
    jms_broker.queue("q").send("a")
    jms_broker.queue("q").send("b")
    assert consumer.receive(10) is None
    jms_clock.advance(10)
    assert [consumer.receive_body(str, DEADLINE_MS) for _ in range(2)] == ["a", "b"]
    jms_broker.queue("q").assert_empty()


def test_a_delivery_that_is_still_on_its_way_goes_back_when_its_consumer_closes(
    jms_broker: EmbeddedBroker, jms_clock: HandClock, jms_context: jmsapi.JMSContext
) -> None:
    jms_broker.faults.delay("deliver", 10)
    consumer = jms_context.create_consumer(jms_context.create_queue("q"))
    jms_broker.queue("q").send("a")
    consumer.close()
    jms_clock.advance(10)
    taken = jms_broker.queue("q").take()
    assert (taken.get_body(str), taken.jms_redelivered) == ("a", False)
    jms_broker.wait_idle()


def test_who_does_not_wait_gives_back_what_is_still_on_its_way(
    jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext
) -> None:
    jms_broker.faults.delay("deliver", 10)
    consumer = jms_context.create_consumer(jms_context.create_queue("q"))
    jms_broker.queue("q").send("a")
    assert consumer.receive_no_wait() is None
    # The clock stands still: it comes because it went back, to whoever asks next.
    assert consumer.receive_body(str, DEADLINE_MS) == "a"
    jms_broker.wait_idle()


def test_a_delayed_message_that_is_refused_is_said_to_be(
    jms_broker: EmbeddedBroker, jms_clock: HandClock, jms_context: jmsapi.JMSContext
) -> None:
    with jms_broker.connection_factory().create_context() as other, ThreadPoolExecutor(1) as threads:
        jms_broker.faults.delay("send", 5)
        temporary = other.create_temporary_queue()
        sent = threads.submit(jms_context.create_producer().send, temporary, "x")
        wait_for_fault(jms_broker)
        temporary.delete()
        jms_clock.advance(5)
        with pytest.raises(jmsapi.InvalidDestinationRuntimeException):
            sent.result(DEADLINE_S)


# ---------------------------------------------------------------- cut


def test_a_cut_connection_gives_back_what_it_held(jms_broker: EmbeddedBroker) -> None:
    for text in "abc":
        jms_broker.queue("q").send(text)
    told: list[jmsapi.JMSException] = []
    heard = threading.Event()
    with jms_broker.connection_factory().create_context(jmsapi.JMSContext.CLIENT_ACKNOWLEDGE) as context:

        def listen(error: jmsapi.JMSException) -> None:
            told.append(error)
            heard.set()

        context.exception_listener = listen
        consumer = context.create_consumer(context.create_queue("q"))
        assert consumer.receive_body(str, DEADLINE_MS) == "a"
        jms_broker.cut()
        assert heard.wait(DEADLINE_S)
        assert told[0].error_code == "connection"
        with pytest.raises(jmsapi.JMSRuntimeException, match="the link was cut because the test asks for it"):
            send(context, "x")
    waiting = jms_broker.queue("q").messages
    assert [(message.get_body(str), message.jms_redelivered) for message in waiting] == [("a", True), ("b", True), ("c", True)]
    assert jms_broker.connections == 0


@pytest.mark.parametrize(("after", "came"), [(False, []), (True, ["a"])])
def test_a_send_that_the_cut_meets_is_in_doubt(jms_broker: EmbeddedBroker, after: bool, came: list[str]) -> None:
    jms_broker.faults.cut("send", after=after)
    with jms_broker.connection_factory().create_context() as context:
        assert outcomes(context, "a") == ["in-doubt"]
    jms_broker.queue("q").assert_received_bodies(*came)


@pytest.mark.parametrize(("after", "came"), [(False, []), (True, ["a"])])
def test_a_commit_that_the_cut_meets_is_in_doubt(jms_broker: EmbeddedBroker, after: bool, came: list[str]) -> None:
    jms_broker.faults.cut("commit", after=after)
    with jms_broker.connection_factory().create_context(TRANSACTED) as context:
        send(context, "a")
        with pytest.raises(jmsapi.JMSRuntimeException) as raised:
            context.commit()
        assert raised.value.error_code == "in-doubt"
    jms_broker.queue("q").assert_received_bodies(*came)


def test_a_transaction_that_is_open_at_the_cut_is_rolled_back(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("in").send("order")
    with jms_broker.connection_factory().create_context(TRANSACTED) as context:
        assert context.create_consumer(context.create_queue("in")).receive_body(str, DEADLINE_MS) == "order"
        send(context, "parcel", "out")
        jms_broker.cut()
    jms_broker.queue("out").assert_not_received()
    assert jms_broker.queue("in").take().jms_redelivered


def test_a_cut_in_the_middle_of_a_delivery(jms_broker: EmbeddedBroker) -> None:
    heard = threading.Event()
    with jms_broker.connection_factory().create_context() as context:
        context.exception_listener = lambda error: heard.set()
        jms_broker.faults.cut("deliver", nth=2)
        consumer = context.create_consumer(context.create_queue("q"))
        assert jms_broker.connections == 1
        for text in "abc":
            jms_broker.queue("q").send(text)
        assert heard.wait(DEADLINE_S)
        del consumer
    assert [message.get_body(str) for message in jms_broker.queue("q").messages] == ["a", "b", "c"]


class Heard:
    """The core's side of a connection, which hears nothing but its end."""

    def __init__(self) -> None:
        self.lost: list[ProviderError] = []

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        raise AssertionError(deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        raise AssertionError(results)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        raise AssertionError(cause)

    def on_lost(self, cause: ProviderError) -> None:
        self.lost.append(cause)

    def on_resumed(self) -> None:
        raise AssertionError


def test_a_connection_that_is_just_being_made_has_no_link_to_lose(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    provider = jmsapi_inproc.entry.create(jmsapi_inproc.entry.options()(scheme="inproc", host=jms_broker.name), jms_clock)
    jms_broker.cut()
    heard = Heard()
    assert provider.open(heard).result(DEADLINE_S).provider == "inproc"
    assert heard.lost == []
    jms_broker.cut()
    jms_broker.cut()
    assert [cause.kind for cause in heard.lost] == [ErrorKind.CONNECTION]
    provider.close().result(DEADLINE_S)


def test_a_connection_with_a_failover_url_survives_the_cut(jms_broker: EmbeddedBroker) -> None:
    url = f"failover:({jms_broker.url})?resendUnconfirmed=true"
    jms_broker.faults.cut("send", nth=2)
    jms_broker.faults.cut("send", nth=5, after=True)
    with jmsapi.connection_factory(url).create_context() as context:
        assert outcomes(context, *"abcd") == ["a", "b", "c", "d"]
    bodies = {message.get_body(str) for message in jms_broker.queue("q").received}
    assert bodies == set("abcd")


def test_a_listener_works_on_over_the_next_link(jms_broker: EmbeddedBroker) -> None:
    done: list[str] = []
    with jmsapi.connection_factory(f"failover:({jms_broker.url})").create_context() as context:
        out = context.create_queue("out")
        consumer = context.create_consumer(context.create_queue("in"))

        def work(message: jmsapi.Message) -> None:
            done.append(message.get_body(str))

        consumer.message_listener = work
        jms_broker.queue("in").send("a")
        jms_broker.wait_idle()
        jms_broker.cut()
        jms_broker.queue("in").send("b")
        jms_broker.queue("in").assert_empty(within=DEADLINE_S)
        del out
    assert done == ["a", "b"]


# ---------------------------------------------------------------- plans that are wrong


@pytest.mark.parametrize(
    "plan",
    [
        lambda faults: faults.fail("explode"),
        lambda faults: faults.fail("deliver"),
        lambda faults: faults.fail("send", nth=0),
        lambda faults: faults.fail("send", times=0),
        lambda faults: faults.fail("send", error="boom"),
        lambda faults: faults.drop("commit"),
        lambda faults: faults.delay("connect", 1),
        lambda faults: faults.delay("send", 0),
        lambda faults: faults.delay("send", float("nan")),
        lambda faults: faults.cut("explode"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(jms_broker: EmbeddedBroker, plan: Callable[[object], object]) -> None:
    with pytest.raises(jmsapi.IllegalArgumentException):
        plan(jms_broker.faults)
    assert jms_broker.faults.pending == []


def test_a_fault_that_never_came_is_told(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.faults.fail("send", nth=2, destination="q")
    send(jms_context, "a")
    with pytest.raises(AssertionError, match=r"never came: fail send at 'q', number 2 \(1 calls so far\)"):
        jms_broker.faults.assert_all_came()
    jms_broker.faults.clear()
