"""JMSXDeliveryCount goes up, whoever is handed the message next (3.5.11-2)."""

from __future__ import annotations

import pytest

import jmsapi
from jmsapi import Message, MessageConsumer, Session


def counted(consumer: MessageConsumer) -> int:
    message = consumer.receive(5000)
    assert isinstance(message, Message)
    return message.get_int_property("JMSXDeliveryCount")


@pytest.mark.parametrize("url", ["inproc://counted-{}", "failover:(inproc://counted-{})"])
@pytest.mark.parametrize("again", ["recover", "rollback"])
@pytest.mark.parametrize("held", [True, False])
def test_the_next_session_goes_on_counting_where_the_last_one_stopped(url: str, again: str, held: bool) -> None:
    factory = jmsapi.connection_factory(url.format(f"{again}-{held}-{'failover' in url}"))
    with factory.create_connection() as connection:
        connection.start()
        mode = Session.SESSION_TRANSACTED if again == "rollback" else Session.CLIENT_ACKNOWLEDGE
        with connection.create_session(mode) as session:
            queue = session.create_queue("q")
            session.create_producer(queue).send(session.create_text_message("a"))
            if again == "rollback":
                session.commit()
            consumer = session.create_consumer(queue)
            seen: list[int] = []
            for _ in range(4):
                seen.append(counted(consumer))
                if again == "rollback":
                    session.rollback()
                else:
                    session.recover()
            if held:
                seen.append(counted(consumer))
        with connection.create_session() as session:
            seen.append(counted(session.create_consumer(queue)))
        assert seen == list(range(1, len(seen) + 1))
