"""What becomes of an acknowledgement that leaves the client and does not reach the broker."""

from __future__ import annotations

import uuid

import pytest

import jmsapi
from jmsapi import Session
from jmsapi.testing import FaultProxy

from .conftest import Place


def test_an_acknowledgement_that_the_link_swallows_brings_the_message_again_and_stomp_says_so_at_once(place: Place) -> None:
    """AMQP has no answer to an acknowledgement, so ``acknowledge()`` is done when it is written; STOMP has a receipt."""
    with FaultProxy(place.url) as proxy:
        factory = jmsapi.connection_factory(f"failover:({proxy.url})", request_timeout_ms=1000)
        with factory.create_connection() as connection:
            connection.start()
            session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
            queue = session.create_queue(f"faults.{uuid.uuid4().hex}")
            session.create_producer(queue).send(session.create_text_message("once"))
            consumer = session.create_consumer(queue)
            first = consumer.receive(10_000)
            assert first is not None
            proxy.stall("to_broker")
            if place.wire == "stomp":
                with pytest.raises(jmsapi.JMSException):
                    first.acknowledge()
            else:
                first.acknowledge()
            proxy.cut()
            proxy.heal()
            again = consumer.receive(30_000)
            assert again is not None
            assert again.get_body(str) == "once"
            again.acknowledge()
            assert consumer.receive(500) is None
