"""3.5 Message properties: names, values, use, iteration, clearing (3.5.1 to 3.5.3, 3.5.6 to 3.5.8)."""

from collections.abc import Callable
from typing import Any

import pytest

from jmsapi import (
    IllegalArgumentException,
    JMSContext,
    JMSException,
    JMSRuntimeException,
    Message,
    MessageNotWriteableException,
    NumberFormatException,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import Recorder, eventually, expect_nothing, outcome_of, own_names, receive, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._kinds import body_of, each_kind, filled, passed

SETTERS: dict[str, tuple[Callable[[Message, Any], None], object]] = {
    "boolean": (lambda message, name: message.set_boolean_property(name, True), True),
    "byte": (lambda message, name: message.set_byte_property(name, 1), 1),
    "short": (lambda message, name: message.set_short_property(name, 1), 1),
    "int": (lambda message, name: message.set_int_property(name, 1), 1),
    "long": (lambda message, name: message.set_long_property(name, 1), 1),
    "float": (lambda message, name: message.set_float_property(name, 1.0), 1.0),
    "double": (lambda message, name: message.set_double_property(name, 1.0), 1.0),
    "string": (lambda message, name: message.set_string_property(name, "1"), "1"),
    "object": (lambda message, name: message.set_object_property(name, "1"), "1"),
}
EACH_SETTER = pytest.mark.parametrize("setter", SETTERS)
EXTREMES: dict[str, list[object]] = {
    "boolean": [True, False],
    "byte": [-(2**7), 2**7 - 1],
    "short": [-(2**15), 2**15 - 1],
    "int": [-(2**31), 2**31 - 1],
    "long": [-(2**63), 2**63 - 1],
    "float": [1.401298464324817e-45, 3.4028234663852886e38, float("inf"), float("-inf"), -0.0],
    "double": [5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), -0.0],
    "string": ["", "a\0b", "grüß €", "\U0001f600", "x" * 5000, "\r\n\\c:", " "],
}


@requirement("3.5-1")
@needs("queue_selector")
def test_the_provider_selects_by_properties_on_a_queue(session: Session, other_session: Session, queue: Queue) -> None:
    consumer = other_session.create_consumer(queue, "colour = 'red'")
    send_texts(session, queue, "blue one", colour="blue")
    send_texts(session, queue, "red one", colour="red")
    assert receive_text(consumer) == "red one"
    expect_nothing(consumer, session, queue, colour="red")


@requirement("3.5-1")
@needs("topic_selector")
def test_the_provider_selects_by_properties_on_a_topic(session: Session, other_session: Session, topic: Topic) -> None:
    consumer = other_session.create_consumer(topic, "number > 5")
    send_texts(session, topic, "small", number=5)
    send_texts(session, topic, "large", number=6)
    assert receive_text(consumer) == "large"
    expect_nothing(consumer, session, topic, number=7)


REFUSALS = (IllegalArgumentException, JMSException, JMSRuntimeException)
"""Which of them a malformed name gets, JMS leaves open."""


@requirement("3.5.1-1")
@pytest.mark.parametrize("name", ["abc", "_x", "$y1", "größe", "a1"])
def test_an_identifier_is_a_name(session: Session, context: JMSContext, name: str) -> None:
    message = session.create_message()
    message.set_string_property(name, "text")
    message.set_object_property(name, 5)
    assert message.get_int_property(name) == 5
    assert context.create_producer().set_property(name, "text").get_string_property(name) == "text"


@requirement("3.5.1-1")
@pytest.mark.parametrize("name", ["1a", "a-b", "a.b", "a b"])
def test_anything_else_is_no_name(session: Session, context: JMSContext, name: str) -> None:
    message = session.create_message()
    for setter, _ in SETTERS.values():
        with pytest.raises(REFUSALS):
            setter(message, name)
    with pytest.raises(REFUSALS):
        context.create_producer().set_property(name, "text")
    assert own_names(message) == set()


@requirement("3.5.1-2")
@pytest.mark.parametrize("word", ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"])
def test_a_word_of_the_selector_language_is_no_name(session: Session, word: str) -> None:
    message = session.create_message()
    for name in (word, word.lower(), word.capitalize()):
        with pytest.raises(REFUSALS):
            message.set_string_property(name, "text")
    message.set_string_property(f"{word}x", "text")


@requirement("3.5.1-3", "B.4.5.2-2")
@EACH_SETTER
def test_every_setter_refuses_a_missing_name(session: Session, setter: str) -> None:
    for name in (None, ""):
        with pytest.raises(IllegalArgumentException):
            SETTERS[setter][0](session.create_message(), name)


@requirement("3.5.1-4")
def test_names_differ_by_case_and_may_be_long(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    values = {"Size": 1, "size": 2, "s" * 5000: 3}
    for name, value in values.items():
        message.set_int_property(name, value)
    assert {name: message.get_int_property(name) for name in values} == values


@requirement("3.5.2-1")
@pytest.mark.parametrize("kind", EXTREMES)
def test_each_type_holds_its_extreme_values(session: Session, kind: str) -> None:
    message = session.create_message()
    for value in EXTREMES[kind]:
        getattr(message, f"set_{kind}_property")("it", value)
        got = getattr(message, f"get_{kind}_property")("it")
        assert repr(got) == repr(value)


@requirement("3.5.2-1")
def test_there_are_no_other_types(session: Session) -> None:
    message = session.create_message()
    assert not hasattr(message, "set_char_property")
    assert not hasattr(message, "set_bytes_property")
    for kind, (low, high) in {kind: EXTREMES[kind][:2] for kind in ("byte", "short", "int", "long")}.items():
        for value in (int(str(low)) - 1, int(str(high)) + 1):
            with pytest.raises(IllegalArgumentException):
                getattr(message, f"set_{kind}_property")("it", value)


@requirement("3.5.2-2")
def test_extreme_values_arrive_unchanged(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    for kind, values in EXTREMES.items():
        for number, value in enumerate(values):
            getattr(message, f"set_{kind}_property")(f"{kind}_{number}", value)
    received = passed(message, session, queue, other_session)
    for kind, values in EXTREMES.items():
        got = [getattr(received, f"get_{kind}_property")(f"{kind}_{number}") for number in range(len(values))]
        assert repr(got) == repr(values)


@requirement("3.5.3-1")
@pytest.mark.parametrize("where", ["queue", "topic"])
def test_received_properties_are_read_only(
    session: Session, other_session: Session, queue: Queue, topic: Topic, where: str
) -> None:
    destination = queue if where == "queue" else topic
    received = passed(session.create_text_message("text"), session, destination, other_session)
    heard: list[dict[str, BaseException | None]] = []
    listener = Recorder(
        lambda message: heard.append({name: outcome_of(lambda: SETTERS[name][0](message, "x")) for name in SETTERS})  # noqa: B023
    )
    other_session.create_consumer(destination).message_listener = listener
    send_texts(session, destination, "text")
    listener.wait_for(1)
    eventually(lambda: heard, "the listener has tried")
    for setter, _ in SETTERS.values():
        with pytest.raises(MessageNotWriteableException):
            setter(received, "x")
    assert not received.property_exists("x")
    assert [{type(error) for error in outcomes.values()} for outcomes in heard] == [{MessageNotWriteableException}]


@requirement("3.5.6-1")
def test_the_names_of_all_properties_are_listed(session: Session) -> None:
    message = session.create_message()
    for name in ("a", "b", "c"):
        message.set_string_property(name, None)
    assert own_names(message) == {"a", "b", "c"}
    assert len(list(message.property_names)) == len(set(message.property_names))


@requirement("3.5.6-2")
def test_header_fields_are_not_listed(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.jms_correlation_id = message.jms_type = "text"
    message.jms_reply_to = queue
    message.set_int_property("mine", 1)
    received = passed(message, session, queue, other_session)
    names = set(received.property_names)
    assert "mine" in names
    assert not [name for name in names if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_"))]


@requirement("3.5.7-1")
def test_clearing_removes_every_property(session: Session) -> None:
    message = session.create_message()
    for name in ("a", "b", "c"):
        message.set_string_property(name, "1")
    message.clear_properties()
    assert own_names(message) == set()
    assert message.get_string_property("a") is None
    assert not message.property_exists("a")
    with pytest.raises(NumberFormatException):
        message.get_int_property("a")


@requirement("3.5.7-2")
def test_cleared_properties_can_be_written_again(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.set_string_property("old", "x")
    received = passed(message, session, queue, other_session)
    received.clear_properties()
    received.set_string_property("new", "y")
    assert (received.get_string_property("old"), received.get_string_property("new")) == (None, "y")
    with pytest.raises(MessageNotWriteableException):
        received.text = "other"  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


@requirement("3.5.7-3", "B.2.7-1")
@each_kind
def test_clearing_properties_leaves_the_body(session: Session, kind: str) -> None:
    message = filled(session, kind)
    message.set_int_property("a", 1)
    message.clear_properties()
    assert body_of(message) == body_of(filled(session, kind))


@requirement("3.5.7-4")
def test_nothing_removes_a_single_property() -> None:
    removing = [name for name in dir(Message) if name.startswith(("clear", "remove", "delete", "unset", "pop"))]
    assert sorted(removing) == ["clear_body", "clear_properties"]


@requirement("3.5.8-1")
def test_a_property_that_was_never_set_reads_as_null(session: Session, names: Names) -> None:
    message = session.create_message()
    assert message.get_string_property("nothing") is None
    assert message.get_object_property("nothing") is None
    assert message.get_boolean_property("nothing") is False
    with pytest.raises(NumberFormatException):
        message.get_int_property("nothing")
    assert not message.property_exists("nothing")


def test_the_setters_write_what_their_row_says(session: Session) -> None:
    for setter, value in SETTERS.values():
        message = session.create_message()
        setter(message, "x")
        assert message.get_object_property("x") == value


def test_a_received_message_keeps_its_properties(session: Session, other_session: Session, queue: Queue) -> None:
    consumer = other_session.create_consumer(queue)
    send_texts(session, queue, "text", a=1)
    assert receive(consumer).get_int_property("a") == 1
