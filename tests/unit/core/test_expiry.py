"""Whose clock decides that a message's time to live is over."""

from __future__ import annotations

import logging

import pytest

from jmsapi._core.expiry import Expiry
from jmsapi.spi import Address, DestinationKind, Envelope, MessageKind, PlainEnvelope, SystemClock

QUEUE = Address(DestinationKind.QUEUE, "orders")
SENT_MS = 1_000_000_000_000
LIFE_MS = 600_000


class SetClock(SystemClock):
    """A clock that shows what it is set to."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._seconds = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._seconds

    def pass_time(self, seconds: float) -> None:
        self._now_ms += int(seconds * 1000)
        self._seconds += seconds


def message(expiration: int = SENT_MS + LIFE_MS, timestamp: int = SENT_MS) -> Envelope:
    return PlainEnvelope(
        kind=MessageKind.TEXT, destination=QUEUE, body="x", expiration=expiration, timestamp=timestamp, message_id="ID:1"
    )


def test_a_message_that_lives_or_never_expires_is_left_alone() -> None:
    clock = SetClock(SENT_MS)
    for local in (True, False):
        expiry = Expiry(clock, local=local)
        assert not expiry.is_over(message(), 0.0)
        assert not expiry.is_over(message(expiration=0), 0.0)


def test_a_message_that_expires_while_it_waits_here_is_discarded_and_that_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jmsapi.expiry")
    clock = SetClock(SENT_MS + 1000)
    expiry = Expiry(clock, local=False)
    clock.pass_time(LIFE_MS / 1000 - 1.5)
    assert not expiry.is_over(message(), 0.0)
    clock.pass_time(1.0)
    assert expiry.is_over(message(), 0.0)
    assert [record.getMessage() for record in caplog.records] == [
        "message ID:1 from 'orders' expired 500 ms ago and is discarded"
    ]


def test_a_clock_that_is_ahead_does_not_destroy_what_the_broker_calls_alive(caplog: pytest.LogCaptureFixture) -> None:
    clock = SetClock(SENT_MS + 3_600_000)
    expiry = Expiry(clock, local=False)
    assert not expiry.is_over(message(), 0.0)
    assert not expiry.is_over(message(), 0.0)
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1, "said once a connection"
    assert "3000000 ms" in warned[0].getMessage()
    assert "local_expiry" in warned[0].getMessage()
    # Whatever the clocks are, it cannot be alive when it has waited here for all its life.
    clock.pass_time(LIFE_MS / 1000 - 1)
    assert not expiry.is_over(message(), 0.0)
    clock.pass_time(1)
    assert expiry.is_over(message(), 0.0)


def test_one_without_a_time_of_sending_is_the_brokers_to_expire() -> None:
    clock = SetClock(SENT_MS + 3_600_000)
    expiry = Expiry(clock, local=False)
    clock.pass_time(10_000)
    assert not expiry.is_over(message(timestamp=0), 0.0)


def test_a_message_that_expired_on_its_way_is_no_reason_to_suspect_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    clock = SetClock(SENT_MS + LIFE_MS + 20)
    assert not Expiry(clock, local=False).is_over(message(), 0.0)
    assert caplog.records == []


def test_what_expires_a_moment_after_it_came_has_expired_here_and_what_came_at_that_moment_has_not() -> None:
    at_once = SetClock(SENT_MS + LIFE_MS)
    assert not Expiry(at_once, local=False).is_over(message(), 0.0)
    just_before = SetClock(SENT_MS + LIFE_MS - 1)
    just_before.pass_time(0.001)
    assert Expiry(just_before, local=False).is_over(message(), 0.0)


def test_this_machines_clock_decides_where_it_is_asked_to(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jmsapi.expiry")
    clock = SetClock(SENT_MS + 3_600_000)
    assert Expiry(clock, local=True).is_over(message(), 0.0)
    assert len(caplog.records) == 1
