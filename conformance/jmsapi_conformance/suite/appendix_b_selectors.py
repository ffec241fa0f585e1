"""B. Change history: message selectors."""

import pytest

from jmsapi import Int, InvalidSelectorException, MessageConsumer, Queue, Session, Topic
from jmsapi_conformance.kit import receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("B.2.2-1")
@needs("topic_selector")
@pytest.mark.parametrize("selector", ["n = 2.0", "n > 1.5", "n <> 2.5", "n BETWEEN 1.9 AND 2.1", "2.0 = n", "d < n"])
def test_exact_and_approximate_numbers_compare(session: Session, other_session: Session, topic: Topic, selector: str) -> None:
    assert selects(selector, session, other_session, topic, n=Int(2), d=1.5)
    assert not selects(f"NOT ({selector})", session, other_session, topic, n=Int(2), d=1.5)


@requirement("B.2.8-1")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("literal", "value"),
    [("0x1F", 31), ("0X1f", 31), ("017", 15), ("10L", 10), ("10l", 10), ("1e3", 1000), ("1.5", 1.5), ("7.", 7), (".5", 0.5)],
)
def test_numbers_are_written_as_in_java(
    session: Session, other_session: Session, topic: Topic, literal: str, value: float
) -> None:
    assert selects(f"n = {literal}", session, other_session, topic, n=value)
    assert not selects(f"n = {literal}", session, other_session, topic, n=value + 1)


@requirement("B.2.9-1")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("selector", "expected"), [("b = TRUE", True), ("b <> FALSE", True), ("b = FALSE", False), ("b <> TRUE", False)]
)
def test_booleans_are_equal_or_not(session: Session, other_session: Session, topic: Topic, selector: str, expected: bool) -> None:
    assert selects(selector, session, other_session, topic, b=True) is expected


@requirement("B.2.9-1")
@needs("topic_selector")
@pytest.mark.parametrize("selector", ["b > FALSE", "b >= FALSE", "TRUE > b", "b BETWEEN FALSE AND TRUE"])
def test_booleans_have_no_order(session: Session, other_session: Session, topic: Topic, selector: str) -> None:
    assert not selects_or_is_refused(selector, session, other_session, topic, b=True)


@requirement("B.2.10-1")
@needs("queue_selector")
def test_selectors_take_messages_in_another_order_than_they_were_sent(
    session: Session, other_session: Session, queue: Queue
) -> None:
    send_texts(other_session, queue, "first", k=1)
    send_texts(other_session, queue, "second", k=2)
    for selector, text in (("k = 2", "second"), ("k = 1", "first")):
        with session.create_consumer(queue, selector) as consumer:
            assert receive_text(consumer) == text


@requirement("B.3.1-2")
@pytest.mark.parametrize("selector", ["", None], ids=["empty", "None"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_an_empty_selector_is_none(
    session: Session, other_session: Session, queue: Queue, topic: Topic, selector: str | None, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    consumer = session.create_consumer(destination, selector)
    assert consumer.message_selector is None
    send_texts(other_session, destination, "1")
    send_texts(other_session, destination, "2", k=2)
    assert receive_texts(consumer, 2) == ["1", "2"]


@requirement("B.3.1-3")
@pytest.mark.parametrize("word", ["ESCAPE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "NULL", "TRUE", "FALSE"])
@pytest.mark.parametrize("change", [str.upper, str.lower])
def test_a_reserved_word_is_no_name(session: Session, queue: Queue, topic: Topic, word: str, change: object) -> None:
    assert callable(change)
    for destination in (queue, topic):
        with pytest.raises(InvalidSelectorException):
            session.create_consumer(destination, f"{change(word)} > 1")


@requirement("B.3.1-4")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("selector", "expected"), [("n > 1", False), ("n = 2", False), ("n = '2'", True), ("m = '2'", False), ("m = 2", True)]
)
def test_a_property_has_the_type_with_which_it_was_set(
    session: Session, other_session: Session, topic: Topic, selector: str, expected: bool
) -> None:
    found = selects_or_is_refused(selector, session, other_session, topic, n="2", m=2)
    assert found is expected


@requirement("B.3.1-5")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("x IS NULL", True),
        ("x IS NOT NULL", False),
        ("x = 1", False),
        ("x <> 1", False),
        ("NOT (x = 1)", False),
        ("y IS NULL", False),
        ("y IS NOT NULL", True),
    ],
)
def test_a_property_that_is_not_there_is_null(
    session: Session, other_session: Session, topic: Topic, selector: str, expected: bool
) -> None:
    assert selects(selector, session, other_session, topic, y=1) is expected


@requirement("B.3.1-6")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [("s = 1", False), ("NOT (s = 1)", True), ("b = 1", False), ("n = 'text'", False), ("n = TRUE", False)],
)
def test_values_of_unlike_types_are_not_equal(
    session: Session, other_session: Session, topic: Topic, selector: str, expected: bool
) -> None:
    assert selects(selector, session, other_session, topic, s="text", b=True, n=1) is expected


@requirement("B.4.3.2-1")
@needs("topic_selector")
@pytest.mark.parametrize("selector", ["'a' > 1", "1 = 'a'", "TRUE > 1"])
def test_a_selector_without_meaning_is_refused_or_selects_nothing(
    session: Session, other_session: Session, topic: Topic, selector: str
) -> None:
    assert not selects_or_is_refused(selector, session, other_session, topic, n=1)


def selects(selector: str, session: Session, sender: Session, topic: Topic, **properties: object) -> bool:
    """Return whether a message with the properties passes the selector; a marker passes in any case."""
    consumer: MessageConsumer
    with session.create_consumer(topic, f"({selector}) OR marker = TRUE") as consumer:
        send_texts(sender, topic, "candidate", **properties)
        send_texts(sender, topic, "marker", marker=True)
        return receive_text(consumer) == "candidate"


def selects_or_is_refused(selector: str, session: Session, sender: Session, topic: Topic, **properties: object) -> bool:
    """Return the same, and False where the selector is refused when it is given."""
    try:
        return selects(selector, session, sender, topic, **properties)
    except InvalidSelectorException:
        return False
