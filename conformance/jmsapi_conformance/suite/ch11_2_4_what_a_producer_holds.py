"""11.2.4 What a JMSProducer holds for its sends: options, properties, headers."""

from collections.abc import Callable

import pytest

from jmsapi import (
    Byte,
    Double,
    Float,
    Int,
    JMSContext,
    JMSProducer,
    JMSRuntimeException,
    Long,
    MessageFormatRuntimeException,
    Queue,
    Session,
    Short,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import Completions, expect_nothing_for, receive, receive_all, receive_text
from jmsapi_conformance.marks import needs, requirement

PERSISTENT, NON_PERSISTENT = 2, 1


@requirement("11.2.4-9")
def test_the_delivery_mode_is_an_option_of_the_send(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    assert producer.delivery_mode == PERSISTENT
    producer.send(queue, "default").set_delivery_mode(NON_PERSISTENT).send(queue, "set")
    assert producer.delivery_mode == NON_PERSISTENT
    received = receive_all(session.create_consumer(queue), 2)
    assert [message.jms_delivery_mode for message in received] == [PERSISTENT, NON_PERSISTENT]


@requirement("11.2.4-10")
def test_the_priority_is_an_option_of_the_send(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    consumer = session.create_consumer(queue)
    assert producer.priority == 4
    producer.send(queue, "default")
    assert receive(consumer).jms_priority == 4
    producer.set_priority(9).send(queue, "set")
    assert receive(consumer).jms_priority == 9
    for wrong in (10, -1):
        with pytest.raises(JMSRuntimeException):
            producer.set_priority(wrong)
    assert producer.priority == 9


@requirement("11.2.4-11")
def test_the_time_to_live_is_an_option_of_the_send(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    assert producer.time_to_live == 0
    producer.send(queue, "default").set_time_to_live(100_000).send(queue, "set")
    first, second = receive_all(session.create_consumer(queue), 2)
    assert first.jms_expiration == 0
    assert second.jms_expiration == second.jms_timestamp + 100_000


@requirement("11.2.4-12")
@needs("delivery_delay")
def test_the_delivery_delay_is_an_option_of_the_send(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    consumer = session.create_consumer(queue)
    assert producer.delivery_delay == 0
    producer.send(queue, "default")
    assert receive_text(consumer) == "default"
    producer.set_delivery_delay(1000).send(queue, "delayed")
    expect_nothing_for(consumer)
    received = receive(consumer)
    assert received.jms_delivery_time == received.jms_timestamp + 1000


@requirement("11.2.4-13")
def test_timestamps_may_be_disabled_as_a_hint(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    assert producer.disable_message_timestamp is False
    producer.send(queue, "with").set_disable_message_timestamp(True).send(queue, "without")
    first, second = receive_all(session.create_consumer(queue), 2)
    assert first.jms_timestamp > 0
    assert second.jms_timestamp == 0 or first.jms_timestamp <= second.jms_timestamp < first.jms_timestamp + 60_000


@requirement("11.2.4-14")
def test_message_ids_may_be_disabled_as_a_hint(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    assert producer.disable_message_id is False
    producer.send(queue, "with").set_disable_message_id(True)
    assert producer.disable_message_id is True
    producer.send(queue, "without").send(queue, "without").set_disable_message_id(False)
    assert producer.disable_message_id is False
    producer.send(queue, "with")
    ids = [message.jms_message_id for message in receive_all(session.create_consumer(queue), 4)]
    assert ids[0] is not None
    assert ids[3] is not None
    given = [one for one in ids if one is not None]
    assert all(one.startswith("ID:") and len(one) > len("ID:") for one in given)
    assert len(set(given)) == len(given)


@requirement("11.2.4-15")
def test_sends_are_asynchronous_while_a_completion_listener_is_set(context: JMSContext, session: Session, queue: Queue) -> None:
    completions = Completions()
    producer = context.create_producer()
    assert producer.async_ is None
    producer.send(queue, "1")
    message = context.create_text_message("2")
    assert producer.set_async(completions).async_ is completions
    producer.send(queue, message)
    assert completions.wait_for(1) == [message]
    producer.send(queue, "3")
    completions.wait_for(2)
    producer.set_async(None).send(queue, "4")
    assert [receive_text(consumer) for consumer in [session.create_consumer(queue)] * 4] == ["1", "2", "3", "4"]
    context.close()
    assert len(completions.completed) == 2
    assert completions.failed == []


KINDS: dict[str, tuple[Callable[[JMSProducer], JMSProducer], str, object, type]] = {
    "boolean": (lambda producer: producer.set_property("p", True), "boolean", True, bool),
    "byte": (lambda producer: producer.set_property("p", 7, "byte"), "byte", 7, Byte),
    "short": (lambda producer: producer.set_property("p", 7, "short"), "short", 7, Short),
    "int": (lambda producer: producer.set_property("p", 7, "int"), "int", 7, int),
    "long": (lambda producer: producer.set_property("p", 7, "long"), "long", 7, Long),
    "float": (lambda producer: producer.set_property("p", 2.5, "float"), "float", 2.5, Float),
    "double": (lambda producer: producer.set_property("p", 2.5, "double"), "double", 2.5, float),
    "string": (lambda producer: producer.set_property("p", "text"), "string", "text", str),
    "object": (lambda producer: producer.set_property("p", Short(7)), "object", 7, Short),
}


@requirement("11.2.4-16")
@pytest.mark.parametrize("kind", KINDS)
def test_properties_are_set_with_nine_kinds_of_value(context: JMSContext, session: Session, queue: Queue, kind: str) -> None:
    setting, getter, value, python_type = KINDS[kind]
    producer = setting(context.create_producer())
    producer.send(queue, "text")
    message = receive(session.create_consumer(queue))
    for holder in (producer, message):
        assert getattr(holder, f"get_{getter}_property")("p") == value
        found = holder.get_object_property("p")
        assert found == value
        assert isinstance(found, python_type)
        assert isinstance(found, bool) == isinstance(value, bool)


@requirement("11.2.4-16")
def test_a_property_is_not_set_as_a_type_that_it_does_not_fit(context: JMSContext) -> None:
    producer = context.create_producer()
    with pytest.raises((JMSRuntimeException, ValueError)):
        producer.set_property("p", 200, "byte")
    with pytest.raises((JMSRuntimeException, ValueError)):
        producer.set_property("p", 1, "no type")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    assert producer.property_names == set()


@requirement("11.2.4-17")
def test_a_property_of_the_producer_replaces_that_of_the_message(context: JMSContext, session: Session, queue: Queue) -> None:
    message = context.create_text_message("text")
    message.set_int_property("p", 1)
    message.set_int_property("q", 1)
    context.create_producer().set_property("p", 2).send(queue, message)
    received = receive(session.create_consumer(queue))
    assert (received.get_int_property("p"), received.get_int_property("q")) == (2, 1)


@requirement("11.2.4-18")
def test_correlation_id_type_and_reply_destination_can_be_set(
    context: JMSContext, session: Session, queue: Queue, names: Names
) -> None:
    replies = context.create_queue(names.queue())
    producer = context.create_producer()
    assert (producer.jms_correlation_id, producer.jms_type, producer.jms_reply_to) == (None, None, None)
    producer.set_jms_correlation_id("c1").set_jms_type("t1").set_jms_reply_to(replies)
    assert (producer.jms_correlation_id, producer.jms_type, producer.jms_reply_to) == ("c1", "t1", replies)
    producer.send(queue, "text")
    producer.set_jms_correlation_id(None).set_jms_type(None).set_jms_reply_to(None).send(queue, "bare")
    received, bare = receive_all(session.create_consumer(queue), 2)
    assert (received.jms_correlation_id, received.jms_type, received.jms_reply_to) == ("c1", "t1", replies)
    assert (bare.jms_correlation_id, bare.jms_type, bare.jms_reply_to) == (None, None, None)


@requirement("11.2.4-19")
def test_a_correlation_id_of_bytes_arrives_or_is_refused(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    try:
        producer.set_jms_correlation_id_as_bytes(b"\1\xff")
    except NotImplementedError:
        # Java's UnsupportedOperationException: the text allows it.
        assert producer.jms_correlation_id is None
        return
    producer.send(queue, "text")
    assert receive(session.create_consumer(queue)).jms_correlation_id_as_bytes == b"\1\xff"


@requirement("11.2.4-20")
def test_a_header_of_the_producer_replaces_that_of_the_message(context: JMSContext, session: Session, queue: Queue) -> None:
    message = context.create_text_message("text")
    message.jms_type, message.jms_correlation_id = "a", "kept"
    context.create_producer().set_jms_type("b").send(queue, message)
    received = receive(session.create_consumer(queue))
    assert (received.jms_type, received.jms_correlation_id) == ("b", "kept")


SETTERS: dict[str, Callable[[JMSProducer, Queue], JMSProducer]] = {
    "set_async": lambda producer, _: producer.set_async(None),
    "set_delivery_delay": lambda producer, _: producer.set_delivery_delay(0),
    "set_delivery_mode": lambda producer, _: producer.set_delivery_mode(NON_PERSISTENT),
    "set_disable_message_id": lambda producer, _: producer.set_disable_message_id(True),
    "set_disable_message_timestamp": lambda producer, _: producer.set_disable_message_timestamp(True),
    "set_jms_correlation_id": lambda producer, _: producer.set_jms_correlation_id("c"),
    "set_jms_correlation_id_as_bytes": lambda producer, _: producer.set_jms_correlation_id_as_bytes(b"c"),
    "set_jms_reply_to": lambda producer, queue: producer.set_jms_reply_to(queue),
    "set_jms_type": lambda producer, _: producer.set_jms_type("t"),
    "set_priority": lambda producer, _: producer.set_priority(1),
    "set_property": lambda producer, _: producer.set_property("p", 1),
    "set_time_to_live": lambda producer, _: producer.set_time_to_live(1),
    "clear_properties": lambda producer, _: producer.clear_properties(),
}


@requirement("11.2.4-21")
def test_no_setting_method_is_left_out_below() -> None:
    assert {name for name in dir(JMSProducer) if name.startswith("set_")} | {"clear_properties"} == set(SETTERS)


@requirement("11.2.4-21")
@pytest.mark.parametrize("setting", SETTERS.values(), ids=SETTERS)
def test_each_setting_method_returns_the_producer(
    context: JMSContext, queue: Queue, setting: Callable[[JMSProducer, Queue], JMSProducer]
) -> None:
    producer = context.create_producer()
    assert setting(producer, queue) is producer


@requirement("11.2.4-24")
def test_what_is_set_stays_for_all_later_sends(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer().set_priority(7).set_property("p", 1).set_jms_type("t")
    producer.send(queue, "1").send(queue, context.create_text_message("2")).send(queue, b"3")
    for message in receive_all(session.create_consumer(queue), 3):
        assert (message.jms_priority, message.get_int_property("p"), message.jms_type) == (7, 1, "t")


@requirement("11.2.4-24")
def test_what_one_producer_holds_is_not_on_the_messages_of_another(context: JMSContext, session: Session, queue: Queue) -> None:
    context.create_producer().set_priority(7).set_property("p", 1).set_jms_type("t").send(queue, "1")
    context.create_producer().send(queue, "2")
    _, second = receive_all(session.create_consumer(queue), 2)
    assert (second.jms_priority, second.property_exists("p"), second.jms_type) == (4, False, None)


@requirement("11.2.4-25")
def test_the_properties_are_listed_tested_and_cleared(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer().set_property("a", 1).set_property("b", "x")
    assert producer.property_names == {"a", "b"}
    assert (producer.property_exists("a"), producer.property_exists("c")) == (True, False)
    producer.clear_properties()
    assert producer.property_names == set()
    assert producer.property_exists("a") is False
    producer.send(queue, "text")
    assert not receive(session.create_consumer(queue)).property_exists("a")


@requirement("11.2.4-26")
def test_properties_are_read_back_with_the_conversions_of_messages(context: JMSContext) -> None:
    producer = context.create_producer().set_property("p", "12").set_property("n", Int(12)).set_property("d", Double(2.5))
    assert producer.get_int_property("p") == 12
    assert producer.get_boolean_property("p") is False
    assert producer.get_string_property("n") == "12"
    assert producer.get_string_property("none") is None
    reads: list[Callable[[], object]] = [
        lambda: producer.get_boolean_property("n"),
        lambda: producer.get_short_property("n"),
        lambda: producer.get_float_property("d"),
    ]
    for read in reads:
        with pytest.raises(MessageFormatRuntimeException):
            read()
