"""A browser leaves out what has expired, also where the broker has not got round to removing it."""

from __future__ import annotations

import time
import uuid

import pytest

import jmsapi


def test_a_browser_shows_what_lives_and_leaves_out_what_has_expired(broker_url: str) -> None:
    with jmsapi.connection_factory(broker_url).create_context() as context:
        if not jmsapi.capabilities(context).browser:
            pytest.skip("there are no browsers on this backend")
        queue = context.create_queue(f"browse-{uuid.uuid4()}")
        context.create_consumer(queue).close()
        producer = context.create_producer()
        for number in range(40):
            producer.time_to_live = 300 if number % 2 else 600_000
            producer.send(queue, str(number))
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            time.sleep(0.01)
        shown = [message.get_body(str) for message in context.create_browser(queue).enumeration]
        assert shown == [str(number) for number in range(0, 40, 2)]
