"""Selectors and no-local that are evaluated here, on a broker that has neither."""

from __future__ import annotations

import importlib.util
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue as queue_of

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import (
    Connection,
    JMSContext,
    JMSException,
    JMSSecurityException,
    Message,
    Queue,
    Session,
    TextMessage,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)
from jmsapi.spi import ErrorKind, ProviderError

_spec = importlib.util.spec_from_file_location("blind_provider", Path(__file__).with_name("blind.py"))
assert _spec is not None
assert _spec.loader is not None
blind = importlib.util.module_from_spec(_spec)
sys.modules["blind_provider"] = blind
_spec.loader.exec_module(blind)

SOON = 5000


@pytest.fixture(params=["blind", "stubborn"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of a broker of its own."""
    jmsapi.register_provider(blind.Entry())
    name = uuid.uuid4().hex
    yield f"{request.param}://{name}?checked=true"
    blind.refusals.clear()
    blind.doubts.clear()
    jmsapi_inproc.discard(name)


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    """Give a started connection on which queue selectors are asked for."""
    with jmsapi.connection_factory(url, emulate="queue-selector", client_id="me").create_connection() as made:
        made.start()
        yield made


def send(session: Session, destination: jmsapi.Destination, *numbers: int) -> None:
    """Send texts with the property n."""
    with session.create_producer(destination) as producer:
        for number in numbers:
            message = session.create_text_message(str(number))
            message.set_int_property("n", number)
            producer.send(message)


def text(message: Message | None) -> str:
    """Return a message's text."""
    assert isinstance(message, TextMessage)
    return message.text or ""


def texts(consumer: jmsapi.MessageConsumer, n: int) -> list[str]:
    """Receive so many texts."""
    return [text(consumer.receive(SOON)) for _ in range(n)]


def rest(connection: Connection, queue: Queue, n: int) -> list[Message]:
    """Receive what is left for others, on a consumer without a selector."""
    with connection.create_session() as session, session.create_consumer(queue) as consumer:
        got = [consumer.receive(SOON) for _ in range(n)]
        assert consumer.receive_no_wait() is None
        return [message for message in got if message is not None]


def test_a_subscription_gets_what_matches_and_nothing_else(connection: Connection) -> None:
    session = connection.create_session()
    topic = session.create_topic("t")
    consumer = session.create_consumer(topic, "n BETWEEN 3 AND 5")
    send(session, topic, *range(10))
    assert texts(consumer, 3) == ["3", "4", "5"]
    assert consumer.receive_no_wait() is None


def test_receive_no_wait_finds_a_match_behind_more_misses_than_its_credit(url: str) -> None:
    with jmsapi.connection_factory(url, prefetch=2).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        topic = session.create_topic("t")
        consumer = session.create_consumer(topic, "n = 99")
        send(session, topic, *range(100))
        assert text(consumer.receive_no_wait()) == "99"


def test_a_durable_subscription_drops_what_does_not_match_for_good(connection: Connection) -> None:
    session = connection.create_session()
    topic = session.create_topic("t")
    with session.create_durable_consumer(topic, "d", "n > 1"):
        send(session, topic, 1, 2)
    with session.create_durable_consumer(topic, "d", "n > 1") as consumer:
        assert texts(consumer, 1) == ["2"]
        assert consumer.receive_no_wait() is None
    session.unsubscribe("d")


def test_no_local_leaves_out_the_own_connection_only(connection: Connection, url: str) -> None:
    session = connection.create_session()
    topic = session.create_topic("t")
    consumer = session.create_consumer(topic, "n > 0", True)
    with jmsapi.connection_factory(url).create_connection() as other:
        foreign = other.create_session()
        send(session, topic, 1)
        send(foreign, topic, 0, 2)
        assert texts(consumer, 1) == ["2"]
        assert consumer.receive_no_wait() is None


def test_without_being_asked_for_a_queue_selector_is_refused_by_name(url: str) -> None:
    with jmsapi.connection_factory(url).create_connection() as connection:
        session = connection.create_session()
        with pytest.raises(UnsupportedFeatureException, match="emulate=queue-selector") as caught:
            session.create_consumer(session.create_queue("q"), "n = 1")
        assert caught.value.emulate == "queue-selector"


def test_a_queue_consumer_gets_its_matches_in_order_and_others_get_the_rest_unmarked(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    send(session, queue, *range(20))
    consumer = session.create_consumer(queue, "n / 2 * 2 = n")
    assert texts(consumer, 10) == [str(n) for n in range(0, 20, 2)]
    left = rest(connection, queue, 10)
    assert [text(message) for message in left] == [str(n) for n in range(1, 20, 2)]
    assert [message.get_int_property("JMSXDeliveryCount") for message in left] == [1] * 10


def test_a_scan_ends_by_itself_so_that_others_get_what_it_held(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    waiting = session.create_consumer(queue, "n = 7")
    send(session, queue, 1, 2, 3)
    # The selecting consumer stays open, and goes on scanning while the other one takes the rest.
    assert [text(message) for message in rest(connection, queue, 3)] == ["1", "2", "3"]
    send(session, queue, 7)
    assert texts(waiting, 1) == ["7"]


def test_a_match_behind_many_misses_is_found(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    send(session, queue, *range(300))
    assert texts(session.create_consumer(queue, "n = 299"), 1) == ["299"]
    assert len(rest(connection, queue, 299)) == 299


def test_receive_no_wait_on_a_queue_scans_once_and_says_none_at_its_end(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    send(session, queue, *range(5))
    consumer = session.create_consumer(queue, "n = 4")
    assert text(consumer.receive_no_wait()) == "4"
    assert consumer.receive_no_wait() is None


def test_a_selecting_consumer_on_a_queue_without_matches_does_not_hammer_the_broker(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    send(session, queue, 1, 2, 3)
    blind.calls.clear()
    with session.create_consumer(queue, "n = 7") as consumer:
        assert consumer.receive(1000) is None
    # Pauses of 50, 100, 200, 400 ms: a handful of scans in one second, a few calls each.
    assert blind.calls["open"] + blind.calls["credit"] < 40


def test_closing_gives_back_all_that_was_held(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    send(session, queue, 1, 2, 3)
    with session.create_consumer(queue, "n = 7"):
        pass
    assert [text(message) for message in rest(connection, queue, 3)] == ["1", "2", "3"]


def test_a_listener_gets_its_matches_as_they_come(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    got: list[str] = []
    enough = threading.Event()

    def listen(message: Message) -> None:
        got.append(text(message))
        if len(got) == 5:
            enough.set()

    session.create_consumer(queue, "n >= 5").message_listener = listen
    sender = connection.create_session()
    send(sender, queue, *range(10))
    assert enough.wait(SOON / 1000)
    assert got == ["5", "6", "7", "8", "9"]
    assert len(rest(connection, queue, 5)) == 5


def test_in_a_transaction_matches_are_rolled_back_and_committed(connection: Connection) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    queue = session.create_queue("q")
    sender = connection.create_session()
    send(sender, queue, *range(4))
    consumer = session.create_consumer(queue, "n > 1")
    assert texts(consumer, 2) == ["2", "3"]
    session.rollback()
    assert texts(consumer, 2) == ["2", "3"]
    session.commit()
    session.close()
    assert [text(message) for message in rest(connection, queue, 2)] == ["0", "1"]


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("kind", [ErrorKind.IN_DOUBT, ErrorKind.TIMEOUT, ErrorKind.CLOSED, ErrorKind.RESOURCE])
def test_after_a_commit_that_ends_in_doubt_a_selecting_consumer_goes_on(
    connection: Connection, kind: ErrorKind, raises: bool
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    queue = session.create_queue("q")
    sender = connection.create_session()
    send(sender, queue, 0, 2)
    consumer = session.create_consumer(queue, "n > 1")
    assert texts(consumer, 1) == ["2"]
    assert consumer.receive(300) is None  # the scan has ended, and its consumer waits for the commit
    blind.doubts.append((ProviderError(kind, "the answer was lost"), raises))
    with pytest.raises(JMSException, match="the answer was lost"):
        session.commit()
    send(sender, queue, 3)
    got = set(texts(consumer, 1))
    if got == {"2"}:  # it came again, where that needs a consumer's end
        got |= set(texts(consumer, 1))
    assert "3" in got


def test_after_a_commit_that_is_rolled_back_a_selecting_consumer_hands_out_again(connection: Connection) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    queue = session.create_queue("q")
    sender = connection.create_session()
    send(sender, queue, 0, 2)
    consumer = session.create_consumer(queue, "n > 1")
    assert texts(consumer, 1) == ["2"]
    assert consumer.receive(300) is None
    blind.doubts.append((ProviderError(ErrorKind.ROLLED_BACK, "no"), False))
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert texts(consumer, 1) == ["2"]
    session.commit()
    send(sender, queue, 3)
    assert texts(consumer, 1) == ["3"]


def test_a_selecting_consumer_outlives_a_refusal_between_two_scans(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    busy = ProviderError(ErrorKind.RESOURCE, "the queue moves to another node")
    blind.refusals.extend([None, busy, busy])
    consumer = session.create_consumer(queue, "n = 7")
    send(session, queue, 1)
    assert consumer.receive(200) is None
    send(session, queue, 7)
    assert texts(consumer, 1) == ["7"]


def test_a_selecting_consumer_that_is_refused_for_good_says_so_to_all_who_wait(connection: Connection, url: str) -> None:
    if not url.startswith("stubborn"):
        pytest.skip("its consumers are not replaced")
    heard: queue_of[JMSException] = queue_of()
    connection.exception_listener = heard.put
    session = connection.create_session()
    queue = session.create_queue("q")
    blind.refusals.extend([None, ProviderError(ErrorKind.SECURITY, "you may not read it any more")])
    consumer = session.create_consumer(queue, "n = 7")
    send(session, queue, 1)
    with pytest.raises(JMSSecurityException, match=r"'q' was refused: you may not read it any more"):
        consumer.receive(SOON)
    assert isinstance(heard.get(timeout=SOON / 1000), JMSSecurityException)


def test_two_selecting_consumers_on_one_queue_both_get_theirs(connection: Connection, url: str) -> None:
    with jmsapi.connection_factory(url, emulate="queue-selector").create_connection() as other:
        other.start()
        one, two = connection.create_session(), other.create_session()
        queue = one.create_queue("q")
        odd = one.create_consumer(queue, "n / 2 * 2 <> n")
        even = two.create_consumer(queue, "n / 2 * 2 = n")
        sender = connection.create_session()
        send(sender, queue, *range(20))
        got: list[str] = []
        taking = threading.Thread(target=lambda: got.extend(texts(odd, 10)))
        taking.start()
        assert sorted(texts(even, 10), key=int) == [str(n) for n in range(0, 20, 2)]
        taking.join(SOON / 1000)
        assert sorted(got, key=int) == [str(n) for n in range(1, 20, 2)]


def test_a_browser_shows_what_matches_and_takes_nothing(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("q")
    send(session, queue, *range(4))
    with session.create_browser(queue, "n > 1") as browser:
        assert [text(message) for message in browser.enumeration] == ["2", "3"]
    assert len(rest(connection, queue, 4)) == 4


def test_a_context_can_ask_for_it_too(url: str) -> None:
    with jmsapi.connection_factory(url, emulate="queue-selector").create_context(JMSContext.AUTO_ACKNOWLEDGE) as context:
        queue = context.create_queue("q")
        context.create_producer().set_property("n", 1).send(queue, "one").set_property("n", 2).send(queue, "two")
        assert context.create_consumer(queue, "n = 2").receive_body(str, SOON) == "two"
