"""What a broker promises beyond the requirements, as its capabilities say: groups, dead letters, expiry, copies, users."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from jmsapi import Connection, InvalidDestinationException, Queue, Session
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Recorder,
    expect_nothing,
    receive,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

DEAD_LETTERS: Final = {"artemis": "DLQ", "classic": "ActiveMQ.DLQ", "jmsapi in-process": "DLQ.{}", "loopback": "DLQ.{}"}
"""Where a broker as it comes puts what is rejected; ``{}`` is the queue's name."""


@requirement("J11-11", "3.5.9-8")
@needs("message_groups")
def test_the_messages_of_a_group_go_to_one_consumer(connect: Connect, session: Session, queue: Queue) -> None:
    consumers = [connect(prefetch=1).create_session().create_consumer(queue) for _ in range(2)]
    for number in range(4):
        for group in ("a", "b", "c"):
            send_texts(session, queue, f"{group}{number}", JMSXGroupID=group)
    got: list[list[str]] = [[], []]
    end = time.monotonic() + PATIENCE_MS / 1000
    while sum(map(len, got)) < 12 and time.monotonic() < end:
        for mine, consumer in zip(got, consumers, strict=True):
            while (message := consumer.receive(10)) is not None:
                assert message.get_string_property("JMSXGroupID") == str(text_of(message))[0]
                mine.append(str(text_of(message)))
    for group in ("a", "b", "c"):
        found = sorted([text for text in mine if text.startswith(group)] for mine in got)
        assert found == [[], [f"{group}{number}" for number in range(4)]]


@requirement("7.3-13")
@needs("missing_queue_reported")
def test_what_is_sent_to_a_queue_that_is_not_there_is_refused_or_kept(
    session: Session, other_session: Session, names: Names
) -> None:
    missing = session.create_queue(names.queue())
    try:
        send_texts(session, missing, "kept")
    except InvalidDestinationException:
        return
    assert receive_text(other_session.create_consumer(missing)) == "kept"


@requirement("4.5.2-3")
@needs("dead_letter")
def test_what_a_listener_never_takes_is_in_the_dead_letter_queue(
    backend: Backend, connect: Connect, other_session: Session, names: Names
) -> None:
    broker, name = backend.capabilities.broker, names.queue()
    options: dict[str, Any] = {}
    if broker == "rabbitmq":
        dead = names.queue()
        options["rabbit_queue_args"] = f"x-dead-letter-exchange:;x-dead-letter-routing-key:{dead}"
    elif broker in DEAD_LETTERS:
        dead = DEAD_LETTERS[broker].format(name)
        names.queues.append(dead) if name in dead else None
    else:
        pytest.skip(f"where {broker} puts dead letters is not known")
    # Some brokers have one for all queues.
    selector = None if "." in dead and broker != "classic" else f"poisoned = '{name}'"
    dead_letters = other_session.create_consumer(other_session.create_queue(dead), selector)
    session = connect(max_redeliveries=1, **options).create_session()
    queue, taken = session.create_queue(name), Recorder()

    def listen(message: Any) -> None:
        taken.on_message(message)
        if text_of(message) == "poison":
            raise RuntimeError("never this one")

    consumer = session.create_consumer(queue)
    send_texts(session, queue, "poison", "good", poisoned=name)
    consumer.message_listener = listen
    assert taken.wait_for_texts(3) == ["poison", "poison", "good"]
    found = receive(dead_letters)
    assert (text_of(found), found.get_string_property("poisoned")) == ("poison", name)
    expect_nothing(dead_letters, other_session, other_session.create_queue(dead), poisoned=name)


@requirement("J11-27", "3.4.9-6", "4.8-2")
@needs("expiry_in_broker")
def test_an_expired_message_is_not_even_sent_to_the_client(
    interceptor: Interceptor, session: Session, other_session: Session, queue: Queue
) -> None:
    with other_session.create_producer(queue) as producer:
        producer.send(other_session.create_text_message("late"), delivery_mode=2, priority=4, time_to_live_ms=100)
    time.sleep(0.3)
    consumer = interceptor.connect().create_session().create_consumer(queue)
    expect_nothing(consumer, other_session, queue)
    assert interceptor.deliveries == 1


@requirement("3.5.9-5")
@needs("user_id")
def test_a_message_tells_who_sent_it(connection: Connection, session: Session, queue: Queue, other_session: Session) -> None:
    assert "JMSXUserID" in list(connection.meta_data.jmsx_property_names)
    send_texts(session, queue, "text")
    assert receive(other_session.create_consumer(queue)).get_string_property("JMSXUserID")


@requirement("4.4.13-1")
@needs("duplicate_detection")
def test_a_copy_of_a_message_that_the_broker_knows_is_dropped(
    backend: Backend, session: Session, queue: Queue, other_session: Session, names: Names
) -> None:
    known_by = backend.capabilities.duplicate_property
    assert known_by is not None
    first, second = names.topic(), names.topic()
    for text, identity in (("one", first), ("copy", first), ("another", second)):
        send_texts(session, queue, text, **{known_by: identity})
    send_texts(session, queue, "without", "without")
    assert receive_texts(other_session.create_consumer(queue), 4) == ["one", "another", "without", "without"]
