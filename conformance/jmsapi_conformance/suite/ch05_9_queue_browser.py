"""5.9 QueueBrowser."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from jmsapi import Queue, QueueBrowser, Session
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import eventually, expect_nothing, receive_all, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._domains import session_of

pytestmark = needs("browser")
CREATORS = pytest.mark.parametrize("creator", ["Session", "QueueSession", "JMSContext"])


@requirement("5.9-1")
@CREATORS
def test_a_browser_shows_messages_and_leaves_them_as_they_are(
    connect: Connect, queue: Queue, other_session: Session, creator: str
) -> None:
    expected = ["0", "1", "2", "3", "4"]
    send_texts(other_session, queue, *expected)
    with browser_by(creator, connect, queue) as browser:
        assert texts(browser) == expected
        assert texts(browser) == expected
    messages = receive_all(other_session.create_consumer(queue), 5)
    assert [text_of(message) for message in messages] == expected
    assert [message.jms_redelivered for message in messages] == [False] * 5
    assert [message.get_int_property("JMSXDeliveryCount") for message in messages] == [1] * 5


@requirement("5.9-2")
def test_browsers_of_sessions_and_contexts_show_the_same(connect: Connect, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "1", "2", "3")
    for creator in ("Session", "QueueSession", "JMSContext"):
        with browser_by(creator, connect, queue) as browser:
            assert isinstance(browser, QueueBrowser)
            assert texts(browser) == ["1", "2", "3"]


@requirement("5.9-3")
@CREATORS
def test_the_enumeration_covers_the_queue_in_the_order_of_receiving(
    connect: Connect, queue: Queue, other_session: Session, creator: str
) -> None:
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    with browser_by(creator, connect, queue) as browser:
        assert browser.queue == queue
        assert browser.message_selector is None
        assert texts(browser) == expected
    assert receive_texts(other_session.create_consumer(queue), 10) == expected


@requirement("5.9-3")
@needs("queue_selector")
@CREATORS
def test_with_a_selector_the_enumeration_covers_what_matches(
    connect: Connect, queue: Queue, other_session: Session, creator: str
) -> None:
    for number in range(10):
        send_texts(other_session, queue, str(number), n=number)
    with browser_by(creator, connect, queue, "n >= 7") as browser:
        assert browser.message_selector == "n >= 7"
        assert texts(browser) == ["7", "8", "9"]
    assert receive_texts(other_session.create_consumer(queue), 10) == [str(number) for number in range(10)]


@requirement("5.9-3")
@needs("priority_order")
def test_the_enumeration_has_the_more_urgent_messages_first(session: Session, queue: Queue, other_session: Session) -> None:
    with other_session.create_producer(queue) as producer:
        for number, priority in enumerate((1, 8, 4, 8)):
            message = other_session.create_text_message(str(number))
            producer.send(message, delivery_mode=2, priority=priority, time_to_live_ms=0)
    assert texts(session.create_browser(queue)) == ["1", "3", "2", "0"]
    assert receive_texts(other_session.create_consumer(queue), 4) == ["1", "3", "2", "0"]


@requirement("5.9-3")
def test_the_enumeration_of_an_empty_queue_is_empty(session: Session, queue: Queue) -> None:
    assert texts(session.create_browser(queue)) == []


@requirement("5.9-4")
def test_messages_that_come_and_go_during_a_scan_disturb_nothing(session: Session, queue: Queue, other_session: Session) -> None:
    expected = [str(number) for number in range(20)]
    send_texts(other_session, queue, *expected)
    scan = session.create_browser(queue).enumeration
    shown = [text_of(next(scan)) for _ in range(3)]
    send_texts(other_session, queue, "late")
    consumer = other_session.create_consumer(queue)
    assert receive_texts(consumer, 5) == expected[:5]
    consumer.close()
    shown += [text_of(message) for message in scan]
    assert shown[:3] == expected[:3]
    rest = [text for text in shown[3:] if text not in ("3", "4", "late")]
    # What the consumer held ahead of the program may be missing; nothing else is there, and nothing out of order.
    assert rest == [text for text in expected[5:] if text in rest]
    assert len(set(shown)) == len(shown)
    left = {*expected[5:], "late"}
    assert set(texts(session.create_browser(queue))) == left
    consumer = other_session.create_consumer(queue)
    assert set(receive_texts(consumer, 16)) == left
    expect_nothing(consumer, other_session, queue)


@requirement("5.9-4")
def test_messages_that_come_during_a_scan_hide_none(session: Session, queue: Queue, other_session: Session) -> None:
    expected = [str(number) for number in range(20)]
    send_texts(other_session, queue, *expected)
    scan = session.create_browser(queue).enumeration
    shown = [text_of(next(scan))]
    send_texts(other_session, queue, *("late" for _ in range(20)))
    shown += [text_of(message) for message in scan]
    assert shown[:20] == expected
    assert set(shown[20:]) <= {"late"}


@requirement("5.9-5", "A.3.1-2")
@needs("delivery_delay")
def test_a_message_is_not_shown_before_its_delivery_time(session: Session, queue: Queue, other_session: Session) -> None:
    browser = session.create_browser(queue)
    with other_session.create_producer(queue) as producer:
        producer.delivery_delay = 1500
        message = other_session.create_text_message("delayed")
        producer.send(message)
        producer.delivery_delay = 0
        producer.send(other_session.create_text_message("at once"))
    eventually(lambda: "at once" in texts(browser), "the message without delay is shown")
    assert texts(browser) == ["at once"]
    eventually(lambda: len(texts(browser)) == 2, "the delayed message is shown")
    # The margin is for a broker whose clock is not ours.
    assert time.time() * 1000 >= message.jms_delivery_time - 100


@contextmanager
def browser_by(creator: str, connect: Connect, queue: Queue, selector: str | None = None) -> Generator[QueueBrowser]:
    """Create a browser by one of the three methods; it is closed at the end."""
    if creator == "JMSContext":
        made = connect.context().create_browser(queue, selector)
    else:
        connection = connect.queues() if creator == "QueueSession" else connect()
        made = session_of(connection).create_browser(queue, selector)
    with made:
        yield made


def texts(browser: QueueBrowser) -> list[str | None]:
    """Return the texts of all messages that a new scan shows."""
    return [text_of(message) for message in browser.enumeration]
