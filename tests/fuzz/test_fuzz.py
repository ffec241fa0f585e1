"""Short runs of the fuzzers, and proof that they notice what they are for."""

from __future__ import annotations

import pytest

from . import amqp_messages, loopback_frames


def broken(*_: object) -> int:
    return 1 // 0


def test_mutated_messages_end_in_values_or_in_errors_of_the_provider() -> None:
    outcomes = amqp_messages.fuzz(3000, seed=20_261_129)
    assert min(outcomes.unreadable, outcomes.passed_on) > 300
    assert {"format", "object"} <= outcomes.kinds


def test_another_exception_of_the_codec_is_found_with_the_bytes_that_it_came_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsapi_amqp.codec.envelope.body_value", broken)
    with pytest.raises(AssertionError, match=r"ZeroDivisionError.*came of b"):
        amqp_messages.fuzz(200, seed=1)


def test_mutated_frames_of_clients_end_in_answers_of_the_development_broker() -> None:
    outcomes = loopback_frames.fuzz(1500, seed=20_261_129)
    assert outcomes.answers > 100 * outcomes.clients


def test_another_exception_of_the_development_broker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsapi.testing._stomp_commands.required", broken)
    with pytest.raises(AssertionError, match=r"fault of the loopback server.*came of b"):
        loopback_frames.fuzz(200, seed=1)
