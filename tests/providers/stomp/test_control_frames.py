"""Control frames: which is written when, and whose an answer is."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.control_frames import ControlFrame, ControlFrames


class Bench:
    """Control frames whose writes and outcomes are kept, on a loop whose time never comes."""

    def __init__(self, *, one_at_a_time: bool) -> None:
        loop: Any = SimpleNamespace(later=lambda _seconds, _call: SimpleNamespace(cancel=lambda: None))
        self.written: list[str] = []
        self.outcomes: list[tuple[str, ProviderError | None]] = []
        self.frames = ControlFrames(loop, 30.0, lambda frame: self.written.append(frame.decode()), itertools.count(1))
        self.frames.one_at_a_time = one_at_a_time

    def ask(self, command: str) -> None:
        def done(cause: ProviderError | None) -> None:
            self.outcomes.append((command, cause))

        self.frames.ask(ControlFrame(f"ask {command}", command, [], done))

    @property
    def commands(self) -> list[str]:
        return [frame.partition("\n")[0] for frame in self.written]


def test_one_at_a_time_a_frame_is_written_when_the_one_before_is_answered() -> None:
    bench = Bench(one_at_a_time=True)
    for command in ("SUBSCRIBE", "COMMIT", "ABORT"):
        bench.ask(command)
    assert bench.commands == ["SUBSCRIBE"]
    assert bench.frames.answered("1", None)
    assert bench.commands == ["SUBSCRIBE", "COMMIT"]
    assert bench.frames.blame(ProviderError(ErrorKind.DESTINATION, "refused"), "refused")
    assert bench.commands == ["SUBSCRIBE", "COMMIT", "ABORT"]
    assert bench.frames.answered("3", None)
    assert [command for command, _ in bench.outcomes] == ["SUBSCRIBE", "COMMIT", "ABORT"]
    assert [cause is None for _, cause in bench.outcomes] == [True, False, True]


def test_where_answers_name_their_frames_none_waits_for_another() -> None:
    bench = Bench(one_at_a_time=False)
    for command in ("SUBSCRIBE", "COMMIT", "ABORT"):
        bench.ask(command)
    assert bench.commands == ["SUBSCRIBE", "COMMIT", "ABORT"]
    assert bench.frames.answered("2", None)
    assert bench.outcomes == [("COMMIT", None)]
    assert not bench.frames.answered("2", None)


@pytest.mark.parametrize("one_at_a_time", [False, True])
def test_the_end_of_the_connection_is_the_outcome_of_all_and_nothing_is_written_any_more(one_at_a_time: bool) -> None:
    bench = Bench(one_at_a_time=one_at_a_time)
    for command in ("SUBSCRIBE", "UNSUBSCRIBE"):
        bench.ask(command)
    before = list(bench.written)
    bench.frames.end(ProviderError(ErrorKind.CONNECTION, "lost", fatal=True))
    assert [command for command, _ in bench.outcomes] == ["SUBSCRIBE", "UNSUBSCRIBE"]
    assert all(cause is not None and cause.kind is ErrorKind.CONNECTION for _, cause in bench.outcomes)
    assert bench.written == before
