"""Client ids that a broker may still hold."""

from __future__ import annotations

import time

import pytest

from jmsapi.spi import ErrorKind
from jmsapi.wire import RecentlyClosedClientIds

KEY = ("broker", 61613, "orders")


def test_an_id_counts_as_held_from_its_close_until_it_is_opened_again() -> None:
    ids = RecentlyClosedClientIds()
    assert not ids.holds(KEY)
    ids.note_closed(KEY)
    assert ids.holds(KEY)
    assert not ids.holds(("broker", 61613, "other"))
    ids.note_opened(KEY)
    assert not ids.holds(KEY)


def test_a_broker_that_takes_longer_than_three_seconds_does_not_hold_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = RecentlyClosedClientIds()
    ids.note_closed(KEY)
    later = time.monotonic() + 3.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert not ids.holds(KEY)


def test_only_a_refused_client_id_is_asked_for_again() -> None:
    ids = RecentlyClosedClientIds()
    ids.note_closed(KEY)
    assert ids.worth_asking_again(KEY, ErrorKind.CLIENT_ID)
    assert not ids.worth_asking_again(KEY, ErrorKind.SECURITY)
    assert not ids.worth_asking_again(("broker", 61613, "other"), ErrorKind.CLIENT_ID)
