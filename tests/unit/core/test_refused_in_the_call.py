"""A send that the provider refuses while it is called: the caller hears of it, and nobody else (4.6.2.2-1)."""

from __future__ import annotations

import pytest

import jmsapi
from jmsapi import InvalidDestinationException
from jmsapi_conformance.kit import Completions


def test_a_send_to_a_queue_that_its_owner_has_deleted_is_raised_and_told_to_no_listener() -> None:
    factory = jmsapi.connection_factory("inproc://refused-in-the-call")
    with factory.create_connection() as owner, factory.create_connection() as other:
        temporary = owner.create_session().create_temporary_queue()
        session = other.create_session()
        producer = session.create_producer(temporary)
        temporary.delete()
        completions = Completions()
        with pytest.raises(InvalidDestinationException):
            producer.send(session.create_text_message("too late"), completion_listener=completions)
        # A session tells in the order of sending, so this one comes behind whatever else there was to tell.
        last = session.create_text_message("good")
        session.create_producer(session.create_queue("there")).send(last, completion_listener=completions)
        completions.wait_for(1)
        session.close()
        assert (completions.completed, completions.failed) == ([last], [])
