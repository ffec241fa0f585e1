"""What a container logs: a line about a message says which, and the same trouble of a message has its traceback once."""

from __future__ import annotations

import logging
import re

import pytest

from jmsapi import Message
from jmsapi.listener import JMSListener, MessageDriven, deploy

from .bench import a_bench, wait_until


def test_a_callback_that_fails_again_and_again_has_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with a_bench() as bench, caplog.at_level(logging.WARNING, "jmsapi.listener"):

        def fail(message: Message) -> None:
            raise ValueError("never")

        with bench.listening(fail, on_error=None, redeliveryLimit=2, redeliveryAction="Delete") as deployment:
            bench.send("text")
            wait_until(lambda: deployment.health.endpoints[0].given_up, "it is given up")
    lines = [record for record in caplog.records if record.name == "jmsapi.listener"]
    assert [record.levelname for record in lines] == ["WARNING", "WARNING", "WARNING", "ERROR"]
    assert [bool(record.exc_info) for record in lines] == [True, False, False, False]
    for record in lines:
        assert re.match(r"listener: message ID:\S+ of 'q'", record.getMessage()), record.getMessage()


def test_a_message_that_does_not_fit_has_none(caplog: pytest.LogCaptureFixture) -> None:
    def takes_a_number(number: int) -> None:
        raise AssertionError("not called")

    target = JMSListener(type=JMSListener.Type.QUEUE)(takes_a_number)
    terms = {"destination": "q", "redeliveryLimit": 1, "redeliveryAction": "Delete"}
    with (
        a_bench() as bench,
        caplog.at_level(logging.WARNING, "jmsapi.listener"),
        deploy(MessageDriven(terms, name="listener")(target), factory=bench.factory) as deployment,
    ):
        bench.send("no number")
        wait_until(lambda: deployment.health.endpoints[0].given_up, "it is given up")
    lines = [record for record in caplog.records if record.name == "jmsapi.listener"]
    assert len(lines) == 3
    assert not any(record.exc_info for record in lines)


@pytest.mark.parametrize("size", [1, 3])
def test_a_batch_that_fails_is_named_by_its_first_message_and_how_many_others_there_are(
    caplog: pytest.LogCaptureFixture, size: int
) -> None:
    with a_bench() as bench, caplog.at_level(logging.WARNING, "jmsapi.listener"):
        bench.send(*["text"] * size)

        def fail(messages: list[Message]) -> None:
            raise ValueError("never")

        terms = {"batchSize": size, "batchWaitMs": 20_000, "redeliveryLimit": 0, "redeliveryAction": "Delete"}
        with bench.listening(fail, batch=True, on_error=None, **terms) as deployment:
            wait_until(lambda: deployment.health.endpoints[0].given_up == size, "they are given up")
    first = next(record.getMessage() for record in caplog.records if record.name == "jmsapi.listener")
    named = re.match(r"listener: message ID:\S+ of 'q'(?: and (\d+) more)?:? ", first)
    assert named is not None, first
    assert named[1] == (None if size == 1 else str(size - 1)), first
