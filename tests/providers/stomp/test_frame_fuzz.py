"""A short run of the frame fuzzer, and proof that it notices what it is for."""

from __future__ import annotations

import pytest

from .frame_fuzz import fuzz


def test_mutated_frames_end_in_deliveries_or_in_errors_of_the_provider() -> None:
    outcomes = fuzz(2000, seed=20_261_129)
    assert min(outcomes.delivered, outcomes.unreadable, outcomes.ended) > 200
    assert {"format", "protocol"} <= outcomes.kinds


def test_another_exception_is_found_with_the_bytes_that_it_came_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsapi_stomp.codec.read_body", lambda *_, **__: 1 // 0)
    with pytest.raises(AssertionError, match=r"ZeroDivisionError.*came of b"):
        fuzz(200, seed=1)
