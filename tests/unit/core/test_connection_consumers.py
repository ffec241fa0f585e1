"""What ends a connection consumer from outside is told once."""

from __future__ import annotations

import threading
import uuid

import jmsapi
import jmsapi_inproc
from jmsapi import JMSException
from jmsapi.asf import SampleServerSessionPool


def test_a_lost_link_is_told_once_and_ends_the_thread_of_a_connection_consumer() -> None:
    name = f"lost-{uuid.uuid4().hex}"
    told: list[JMSException] = []
    heard = threading.Event()

    def hear(error: JMSException) -> None:
        told.append(error)
        heard.set()

    before = set(threading.enumerate())
    with jmsapi.connection_factory(f"inproc://{name}").create_connection() as connection:
        connection.exception_listener = hear
        session = connection.create_session()
        pool = SampleServerSessionPool(connection, 1, lambda: print)
        consumer = connection.create_connection_consumer(session.create_queue("q"), None, pool, 1)
        connection.start()
        (lending,) = [thread for thread in set(threading.enumerate()) - before if thread.name.endswith("-lending")]
        jmsapi_inproc.discard(name)
        lending.join(10)
        assert not lending.is_alive()
        assert heard.wait(10)
        consumer.close()
        pool.close()
    assert len(told) == 1
