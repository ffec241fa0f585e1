"""The table of kills: what dies where, and what is promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CASES", "Case"]

Job = Literal["source", "once", "least"]
Meanwhile = Literal["", "restart", "broker", "other claim", "stop"]


@dataclass(frozen=True)
class Case:
    """One kill."""

    row: int
    """As in the design."""
    kill: str
    at: tuple[str, ...]
    """Places, see ``crash_hook``."""
    do: str = "kill"
    job: Job = "source"
    meanwhile: Meanwhile = ""
    """What happens while a process waits there: the query is started again, the broker dies, and so on."""
    messages: int = 1000
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    failover: bool = False
    """The URL is a list of one."""
    replay_partitions: int = 2
    ordinary: bool = False
    """It runs in each ordinary test run."""

    @property
    def promised(self) -> str:
        """Tell what is promised: lost/duplicated."""
        return "0/any" if self.job == "least" else "0/0"

    @property
    def name(self) -> str:
        """Return a name for the case."""
        return f"{self.row} {self.kill}"


def _source() -> list[Case]:
    found = [
        Case(1, "worker before connecting", ("connect-1-any",)),
        Case(1, "worker after receiving, round 0", ("write-1-0",), ordinary=True),
        Case(1, "worker after receiving, round 2", ("write-2-2",)),
        Case(1, "worker before appending, round 0", ("append-1-0",)),
        Case(1, "worker before appending, round 2", ("append-2-2",)),
        Case(2, "worker after appending, round 0", ("acknowledge-1-0",), ordinary=True),
        Case(2, "worker after appending, round 2", ("acknowledge-2-2",)),
        Case(2, "both workers after appending", ("acknowledge-1-any", "acknowledge-2-any")),
        Case(2, "worker raises after appending", ("acknowledge-1-1",), "raise"),
        Case(3, "worker after acknowledging, round 0", ("confirm-1-0",)),
        Case(3, "worker after acknowledging, round 2", ("confirm-2-2",)),
        Case(4, "worker after a round is noted", ("write-1-1",)),
        Case(4, "worker before the end of its claim", ("end-1-any",)),
        Case(4, "worker after the end of its claim", ("yield-1-0",)),
        Case(4, "worker amid the rows", ("yield-1-1",)),
        Case(4, "worker after the rows", ("read-1-any",)),
        Case(5, "driver in the lead, after receiving", ("write-0-0",), "driver"),
        Case(5, "driver in the lead, before appending", ("append-0-0",), "driver"),
        Case(6, "driver in the lead, after appending, round 0", ("acknowledge-0-0",), "driver"),
        Case(6, "driver in the lead, after appending, round 1", ("acknowledge-0-1",), "driver"),
        Case(6, "driver in the lead, after acknowledging", ("confirm-0-0",), "driver"),
        Case(6, "driver in the lead, after a round is noted", ("write-0-1",), "driver"),
        Case(6, "driver in the lead, before its end", ("end-0-any",), "driver"),
        Case(6, "driver before the batch has a number", ("plan-0-any",), "driver"),
        Case(6, "driver after the batch has a number", ("planned-0-any",), "driver"),
        Case(7, "driver in partitions", ("partitions-0-any",), "driver"),
        Case(8, "driver while a task has received", ("write-1-0",), "driver"),
        Case(8, "driver while a task has appended, round 0", ("acknowledge-1-0",), "driver"),
        Case(8, "driver while a task has appended, round 2", ("acknowledge-2-2",), "driver"),
        Case(8, "driver while a task has acknowledged", ("confirm-1-0",), "driver"),
        Case(8, "driver while a task is amid its rows", ("yield-1-1",), "driver"),
        Case(8, "driver before the end of a claim", ("end-1-any",), "driver"),
        Case(8, "driver after the rows of a claim", ("read-1-any",), "driver"),
        Case(9, "driver in commit", ("seal-0-any",), "driver"),
        Case(9, "driver after commit", ("sealed-0-any",), "driver"),
        Case(9, "source alone in commit", ("seal-0-any",)),
        Case(9, "source alone in the lead", ("acknowledge-0-0",), ordinary=True),
        Case(10, "broker after a task received", ("write-1-0",), "hold", meanwhile="broker"),
        Case(10, "broker after a task appended", ("acknowledge-1-0",), "hold", meanwhile="broker"),
        Case(10, "broker after the lead appended", ("acknowledge-0-0",), "hold", meanwhile="broker"),
        Case(10, "broker after a task acknowledged", ("confirm-1-0",), "hold", meanwhile="broker"),
        Case(18, "broker after a task received, failover: URL", ("write-1-0",), "hold", meanwhile="broker", failover=True),
        Case(18, "broker after a task appended, failover: URL", ("acknowledge-1-0",), "hold", meanwhile="broker", failover=True),
        Case(18, "worker after appending, failover: URL", ("acknowledge-1-0",), failover=True),
        Case(11, "driver; a worker lives on before appending", ("append-1-1",), "zombie", meanwhile="restart"),
        Case(12, "driver; a worker lives on after appending", ("acknowledge-1-1",), "zombie", meanwhile="restart"),
        Case(14, "driver; its source lives on before appending", ("append-0-0",), "zombie", meanwhile="restart"),
        Case(14, "driver; its source lives on after appending", ("acknowledge-0-0",), "zombie", meanwhile="restart"),
        Case(15, "query stopped while a claim is before appending", ("append-1-1",), "hold", meanwhile="stop"),
        Case(15, "query stopped while a claim is after appending", ("acknowledge-1-1",), "hold", meanwhile="stop"),
    ]
    return sorted([*found, *_dropped()], key=lambda case: case.row)


def _dropped() -> list[Case]:
    drops = {"idleGap": "3s", "heartbeat": "10s"}
    found: list[Case] = []
    for step, where in (
        ("write", "before looking"),
        ("append", "between looking and appending"),
        ("acknowledge", "after appending"),
    ):
        kill = f"broker drops a consumer that lives on, {where}"
        found.append(Case(13, kill, (f"{step}-1-any",), "drop", meanwhile="other claim", messages=550, options=drops))
    return found


def _sink() -> list[Case]:
    return [
        Case(16, "worker before its commit", ("deliver-1-1",), job="least"),
        Case(16, "worker after its commit", ("delivered-1-1",), job="least"),
        Case(16, "driver after a worker's commit", ("delivered-1-1",), "driver", job="least"),
        Case(17, "worker before staging", ("stage-1-any",), job="once"),
        Case(17, "worker after staging", ("staged-1-any",), job="once", ordinary=True),
        Case(17, "driver while a task has staged", ("staged-1-any",), "driver", job="once"),
        Case(17, "driver at the beginning of commit", ("fix-0-any",), "driver", job="once"),
        Case(17, "driver after the manifest", ("send-0-0",), "driver", job="once"),
        Case(17, "driver before a chunk's commit", ("settle-0-1",), "driver", job="once"),
        Case(17, "driver after a chunk's commit", ("settled-0-1",), "driver", job="once"),
        Case(17, "driver after the last chunk", ("clear-0-any",), "driver", job="once"),
        Case(17, "driver at the end of commit", ("cleared-0-any",), "driver", job="once"),
        Case(17, "sink alone before a chunk's commit", ("settle-0-1",), job="once"),
        Case(17, "sink alone after a chunk's commit", ("settled-0-1",), job="once", ordinary=True),
        Case(17, "driver; its sink lives on within a chunk", ("settle-0-1",), "zombie", job="once", meanwhile="restart"),
        Case(17, "driver; its sink lives on between chunks", ("settled-0-1",), "zombie", job="once", meanwhile="restart"),
        Case(17, "driver, then 4 partitions for 2", ("settled-0-1",), "driver", job="once", replay_partitions=4),
        Case(17, "broker within a chunk", ("settle-0-1",), "hold", job="once", meanwhile="broker"),
        Case(17, "broker after a chunk", ("settled-0-1",), "hold", job="once", meanwhile="broker"),
    ]


CASES = (*_source(), *_sink())
