"""3.8.1 Message selectors: what they select, which header fields they see, and where bad ones are refused."""

import time
from collections.abc import Callable

import pytest

from jmsapi import (
    DeliveryMode,
    InvalidSelectorException,
    InvalidSelectorRuntimeException,
    JMSContext,
    Message,
    MessageConsumer,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import eventually, expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._selecting import Table, check, each_table

ON_A_QUEUE = pytest.param(False, marks=needs("queue_selector"), id="queue")
ON_A_TOPIC = pytest.param(True, marks=needs("topic_selector"), id="topic")

CREATORS: dict[str, Callable[[Session, Queue, Topic, str], object]] = {
    "create_consumer on a queue": lambda session, queue, _, selector: session.create_consumer(queue, selector),
    "create_consumer on a topic": lambda session, _, topic, selector: session.create_consumer(topic, selector),
    "create_consumer with no_local": lambda session, _, topic, selector: session.create_consumer(topic, selector, True),
    "create_browser": lambda session, queue, _, selector: session.create_browser(queue, selector),
    "create_durable_subscriber": lambda session, _, topic, text: session.create_durable_subscriber(topic, "name", text, False),
    "create_durable_consumer": lambda session, _, topic, text: session.create_durable_consumer(topic, "name", text, False),
    "create_shared_consumer": lambda session, _, topic, text: session.create_shared_consumer(topic, "name", text),
    "create_shared_durable_consumer": lambda session, _, topic, text: session.create_shared_durable_consumer(topic, "name", text),
}
CONTEXT_CREATORS: dict[str, Callable[[JMSContext, Queue, Topic, str], object]] = {
    "create_consumer on a queue": lambda context, queue, _, selector: context.create_consumer(queue, selector),
    "create_consumer on a topic": lambda context, _, topic, selector: context.create_consumer(topic, selector),
    "create_consumer with no_local": lambda context, _, topic, selector: context.create_consumer(topic, selector, True),
    "create_browser": lambda context, queue, _, selector: context.create_browser(queue, selector),
    "create_durable_consumer": lambda context, _, topic, text: context.create_durable_consumer(topic, "name", text, False),
    "create_shared_consumer": lambda context, _, topic, text: context.create_shared_consumer(topic, "name", text),
    "create_shared_durable_consumer": lambda context, _, topic, text: context.create_shared_durable_consumer(topic, "name", text),
}
FEATURE = {
    "create_consumer with no_local": "no_local",
    "create_browser": "browser",
    "create_durable_subscriber": "durable_subscription",
    "create_durable_consumer": "durable_subscription",
    "create_shared_consumer": "shared_subscription",
    "create_shared_durable_consumer": "shared_durable_subscription",
}
WRONG = [
    "(a = 'y' AND ( OR ))",
    "a =",
    "a = 'x",
    "a LIKE 5",
    "NOT > 1",
    "a AND",
    "((a=1)",
    "a IN ()",
    "a BETWEEN 1",
    "1 + 1",
]


@requirement("3.8.1-1", "B.5.7.2-7")
@pytest.mark.parametrize("on_topic", [ON_A_QUEUE, ON_A_TOPIC])
def test_a_consumer_gets_what_its_selector_takes(
    session: Session, other_session: Session, queue: Queue, topic: Topic, on_topic: bool
) -> None:
    where = topic if on_topic else queue
    consumer = session.create_consumer(where, "n >= 7")
    assert consumer.message_selector == "n >= 7"
    for n in range(10):
        send_texts(other_session, where, str(n), n=n)
    assert receive_texts(consumer, 3) == ["7", "8", "9"]
    expect_nothing(consumer, other_session, where, n=7)


@requirement("3.8.1-1", "B.2.10-1")
@needs("queue_selector")
def test_what_a_selector_does_not_take_stays_on_the_queue(session: Session, other_session: Session, queue: Queue) -> None:
    send_texts(other_session, queue, "1", k=1)
    send_texts(other_session, queue, "2", k=2)
    for number in (2, 1):
        with session.create_consumer(queue, f"k = {number}") as consumer:
            assert receive_text(consumer) == str(number)


@needs("topic_selector")
@each_table(
    {
        "3.8.1-2": Table(
            [{"n": 5, "s": "x"}, {"n": 6}, {"s": "x"}],
            {
                "n = 5": "TFU",
                "n = 6 OR s = 'x'": "TTT",
                "n > 4 AND s <> 'y'": "TUU",
                "s IS NULL": "FTF",
                "n BETWEEN s AND 9": "FUU",
            },
        )
    }
)
def test_only_true_is_a_match(session: Session, other_session: Session, topic: Topic, table: Table) -> None:
    check(session, other_session, topic, table)


@requirement("3.8.1-3")
@needs("map_message", "topic_selector")
def test_the_body_is_out_of_reach(session: Session, other_session: Session, topic: Topic) -> None:
    consumer = session.create_consumer(topic, "color = 'red'")
    message = other_session.create_map_message()
    message.set_string("color", "red")
    other_session.create_producer(topic).send(message)
    expect_nothing(consumer, other_session, topic, color="red")


def fields(message: Message) -> dict[str, str]:
    """Give, for each header field that a selector may use, one that only this message has."""
    return {
        "JMSPriority": "JMSPriority = 7",
        "JMSMessageID": f"JMSMessageID = '{message.jms_message_id}'",
        "JMSCorrelationID": "JMSCorrelationID = 'c1'",
        "JMSType": "JMSType = 'car'",
        "JMSDeliveryMode": "JMSDeliveryMode = 'NON_PERSISTENT'",
    }


@requirement("3.8.1.1-19")
@pytest.mark.parametrize("field", ["JMSPriority", "JMSMessageID", "JMSCorrelationID", "JMSType", "JMSDeliveryMode"])
@needs("queue_selector")
def test_a_header_field_may_be_used(session: Session, other_session: Session, queue: Queue, field: str) -> None:
    producer = other_session.create_producer(queue)
    producer.send(other_session.create_text_message("another"), delivery_mode=DeliveryMode.PERSISTENT, priority=4)
    message = other_session.create_text_message("the one")
    message.jms_correlation_id, message.jms_type = "c1", "car"
    producer.send(message, delivery_mode=DeliveryMode.NON_PERSISTENT, priority=7)
    with session.create_consumer(queue, fields(message)[field]) as consumer:
        assert receive_text(consumer) == "the one"
        assert consumer.receive_no_wait() is None
    assert receive_text(session.create_consumer(queue)) == "another"


@requirement("3.8.1.1-19")
@needs("topic_selector")
def test_the_timestamp_may_be_used(session: Session, other_session: Session, topic: Topic) -> None:
    # Far enough for two consumers to be made before it, also on a busy machine.
    limit = time.time_ns() // 1_000_000 + 2000
    before = session.create_consumer(topic, f"JMSTimestamp < {limit}")
    after = session.create_consumer(topic, f"JMSTimestamp >= {limit}")
    send_texts(other_session, topic, "before")
    eventually(lambda: time.time_ns() // 1_000_000 >= limit, "the clock goes on")
    send_texts(other_session, topic, "after")
    assert receive_text(after) == "after"
    assert receive_text(before) == "before"
    assert before.receive_no_wait() is None


@requirement("3.8.1.1-19", "3.8.1.1-20")
@needs("topic_selector")
def test_the_timestamp_is_the_time_of_sending_also_of_what_is_delayed(
    backend: Backend, session: Session, other_session: Session, topic: Topic
) -> None:
    if not backend.capabilities.delivery_delay:
        pytest.skip("the broker delays nothing, so no message has a time of delivery that is not that of sending")
    producer = other_session.create_producer(topic)
    # Between the time of sending and that of delivery, whatever the machine is doing.
    limit = time.time_ns() // 1_000_000 + 2000
    by_sending = session.create_consumer(topic, f"JMSTimestamp < {limit}")
    by_delivery = session.create_consumer(topic, f"JMSTimestamp >= {limit}")
    producer.delivery_delay = 2500
    message = other_session.create_text_message("delayed")
    producer.send(message)
    assert message.jms_timestamp < limit <= message.jms_delivery_time
    assert receive_text(by_sending) == "delayed"
    assert by_delivery.receive_no_wait() is None


@requirement("3.8.1.1-20")
@pytest.mark.parametrize(
    "selector",
    ["JMSDestination IS NOT NULL", "JMSReplyTo IS NULL", "JMSExpiration = 0", "JMSRedelivered = FALSE", "JMSDeliveryTime > 0"],
)
@needs("topic_selector")
def test_no_other_header_field_is_seen(session: Session, other_session: Session, topic: Topic, selector: str) -> None:
    consumer: MessageConsumer | None = None
    try:
        consumer = session.create_consumer(topic, f"{selector} OR is_last = TRUE")
    except InvalidSelectorException:
        assert session.create_consumer(topic, "is_last = TRUE").message_selector == "is_last = TRUE"
    if consumer is not None:
        send_texts(other_session, topic, "text")
        expect_nothing(consumer, other_session, topic, is_last=True)


@requirement("3.8.1.1-21")
@needs("topic_selector")
def test_a_header_field_without_a_value_is_null(session: Session, other_session: Session, topic: Topic) -> None:
    null = session.create_consumer(topic, "JMSType IS NULL AND JMSCorrelationID IS NULL")
    unknown = session.create_consumer(topic, "JMSType <> 'x' OR NOT (JMSType = 'x') OR is_last = TRUE")
    send_texts(other_session, topic, "text")
    assert receive_text(null) == "text"
    expect_nothing(unknown, other_session, topic, is_last=True)


@requirement("3.8.1.1-21")
@needs("topic_selector")
def test_a_message_that_has_no_id_has_a_null_one(session: Session, other_session: Session, topic: Topic) -> None:
    consumer = session.create_consumer(topic, "JMSMessageID IS NULL OR JMSMessageID LIKE 'ID:%'")
    producer = other_session.create_producer(topic)
    producer.disable_message_id = True
    producer.send(other_session.create_text_message("text"))
    assert receive_text(consumer) == "text"


def each_creator(creators: dict[str, Callable[..., object]]) -> list[object]:
    """Give the names as parameters, each with what it needs."""
    return [pytest.param(name, marks=needs(FEATURE[name])) if name in FEATURE else name for name in creators]


@requirement("3.8.1.1-52")
@pytest.mark.parametrize("creator", each_creator(CREATORS))
def test_each_method_refuses_what_is_no_selector_before_anything_is_asked_of_the_broker(
    interceptor: Interceptor, queue: Queue, topic: Topic, names: Names, creator: str
) -> None:
    session = interceptor.connect(client_id=names.client_id()).create_session()
    calls = list(interceptor.calls)
    for selector in WRONG:
        with pytest.raises(InvalidSelectorException):
            CREATORS[creator](session, queue, topic, selector)
    assert interceptor.calls == calls


@requirement("3.8.1.1-53")
@pytest.mark.parametrize("creator", each_creator(CONTEXT_CREATORS))
def test_each_method_of_a_context_refuses_what_is_no_selector_with_the_other_exception(
    interceptor: Interceptor, queue: Queue, topic: Topic, names: Names, creator: str
) -> None:
    context = interceptor.context(client_id=names.client_id())
    context.create_producer().send(queue, "the context has a session from its first use on")
    calls = list(interceptor.calls)
    for selector in WRONG:
        with pytest.raises(InvalidSelectorRuntimeException):
            CONTEXT_CREATORS[creator](context, queue, topic, selector)
    assert interceptor.calls == calls


@requirement("3.8.1.1-52")
@needs("topic_selector")
def test_a_connection_goes_on_after_ten_wrong_selectors(session: Session, other_session: Session, topic: Topic) -> None:
    # Field report B23: a wrong selector was taken, and every later send to the topic failed in the broker.
    healthy, plain = session.create_consumer(topic, "a = 'y'"), session.create_consumer(topic)
    for selector in WRONG:
        with pytest.raises(InvalidSelectorException):
            session.create_consumer(topic, selector)
    send_texts(other_session, topic, "no", a="n")
    send_texts(session, topic, "yes", a="y")
    assert receive_text(healthy) == "yes"
    assert sorted(map(str, receive_texts(plain, 2))) == ["no", "yes"]


@requirement("3.8.1.1-54", "B.4.3.2-1")
@pytest.mark.parametrize("selector", ["'a' > 1", "TRUE > FALSE", "a > 'x'"])
def test_what_can_be_seen_to_have_no_meaning_is_refused_or_takes_nothing(
    session: Session, other_session: Session, topic: Topic, selector: str
) -> None:
    try:
        consumer = session.create_consumer(topic, f"{selector} OR is_last = TRUE")
    except InvalidSelectorException:
        send_texts(other_session, topic, "the session goes on")
    else:
        send_texts(other_session, topic, "text", a="y")
        expect_nothing(consumer, other_session, topic, is_last=True)


@requirement("3.8.1.1-55")
@pytest.mark.parametrize("on_topic", [ON_A_QUEUE, ON_A_TOPIC])
def test_header_fields_and_properties_go_together(
    session: Session, other_session: Session, queue: Queue, topic: Topic, on_topic: bool
) -> None:
    where = topic if on_topic else queue
    consumer = session.create_consumer(where, "JMSType = 'order' AND region = 'EU' AND total >= 100.5")
    producer = other_session.create_producer(where)
    for text, kind, region, total in (
        ("another type", "offer", "EU", 100.5),
        ("another region", "order", "US", 100.5),
        ("too little", "order", "EU", 100.0),
        ("fits", "order", "EU", 100.5),
        ("fits as well", "order", "EU", 200.0),
    ):
        message = other_session.create_text_message(text)
        message.jms_type = kind
        message.set_string_property("region", region)
        message.set_double_property("total", total)
        producer.send(message)
    assert receive_texts(consumer, 2) == ["fits", "fits as well"]


@requirement("B.5.12-2")
@needs("queue_selector")
def test_a_selector_on_the_delivery_count_breaks_nothing(
    session: Session, other_session: Session, topic: Topic, queue: Queue
) -> None:
    undefined = session.create_consumer(queue, "JMSXDeliveryCount > 1")
    send_texts(other_session, queue, "text")
    plain = session.create_consumer(topic)
    send_texts(other_session, topic, "the session goes on")
    assert receive_text(plain) == "the session goes on"
    undefined.close()
