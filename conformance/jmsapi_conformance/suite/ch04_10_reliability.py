"""4.10 Reliability and 4.4.12 Duplicate delivery of messages, when a client dies."""

import pytest

from jmsapi import Queue, Session
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import in_second_process, receive_all, send_texts, skip_unless_native, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.10-2")
@needs("second_process", "redelivered_flag", "delivery_count_exact")
@pytest.mark.parametrize(
    "mode",
    [Session.CLIENT_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))],
)
def test_what_a_client_had_not_acknowledged_when_it_died_comes_again_marked(
    backend: Backend, queue: Queue, connect: Connect, other_session: Session, mode: int
) -> None:
    skip_unless_native(backend, "redelivered_flag")
    connect().create_session(mode).close()  # refused here, if it is
    send_texts(other_session, queue, "1", "2", "3")
    printed = in_second_process(backend.url, CLIENT_THAT_DIES, queue.queue_name, str(mode), "3")
    assert printed.split() == ["1", "2", "3"]
    messages = receive_all(other_session.create_consumer(queue), 3)
    assert [text_of(message) for message in messages] == ["1", "2", "3"]
    assert [message.jms_redelivered for message in messages] == [True] * 3
    assert all(message.get_int_property("JMSXDeliveryCount") >= 2 for message in messages)


@requirement("4.4.12-2")
@needs("second_process", "redelivered_flag")
def test_of_what_a_client_had_consumed_when_it_died_only_the_last_may_come_again(
    backend: Backend, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, *map(str, range(1, 11)))
    printed = in_second_process(backend.url, CLIENT_THAT_DIES, queue.queue_name, str(Session.AUTO_ACKNOWLEDGE), "5")
    assert printed.split() == ["1", "2", "3", "4", "5"]
    messages = receive_all(other_session.create_consumer(queue), 5)
    texts = [text_of(message) for message in messages]
    assert texts in (["5", "6", "7", "8", "9"], ["6", "7", "8", "9", "10"])
    if texts[0] == "5":
        assert messages[0].jms_redelivered
        assert messages[0].get_int_property("JMSXDeliveryCount") >= 2


CLIENT_THAT_DIES = """
import os, sys, jmsapi
name, mode, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_connection()
connection.start()
session = connection.create_session(mode)
consumer = session.create_consumer(session.create_queue(name))
for _ in range(count):
    print(consumer.receive(10_000).text, flush=True)
os._exit(1)
"""
