"""Run the whole kill matrix and print it: what was killed, what was lost, what came twice, what is promised.

Usage: python -m tests.spark.kill_matrix [--on classic|artemis|loopback ...] [--row N ...] [--match TEXT]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from jmsapi.testing import LoopbackServer
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire, launch

from .cases import CASES, Case
from .stage import Account, Program, Stage
from .trials import TRIALS, Trial

COLUMNS: dict[str, tuple[BrokerKind, Wire] | None] = {
    "classic": ("classic", "stomp"),
    "artemis": ("artemis", "amqp"),
    # In memory, so nobody can kill it and go on.
    "loopback": None,
}
KINDS: tuple[BrokerKind, ...] = ("classic", "artemis", "rabbitmq")
WIRES: tuple[Wire, ...] = ("stomp", "amqp")
TITLES = {"classic": "Classic/STOMP", "artemis": "Artemis/AMQP", "loopback": "loopback/STOMP"}


@contextlib.contextmanager
def brokers(column: str) -> Iterator[tuple[str, Broker | None]]:
    """Give a broker of its own to a column: its URL, and itself if it can be killed."""
    place = COLUMNS[column]
    if place is None:
        with LoopbackServer() as server:
            yield server.url, None
        return
    # One that is given for other tests must not be killed.
    given = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("JMSAPI_") and name.endswith("_URLS")}
    try:
        broker = launch(place[0], ready_s=300)
    finally:
        os.environ.update(given)
    with broker:
        yield broker.url(place[1]), broker


def run(column: str, cases: list[Case], folder: Path) -> dict[str, Account | str]:
    """Run cases in one column."""
    found: dict[str, Account | str] = {}
    driver = Program(folder / column)
    with brokers(column) as (url, broker):
        try:
            # Those first that leave the driver alive: it need not be started again.
            for number, case in enumerate(sorted(cases, key=lambda case: case.do in ("driver", "zombie"))):
                if case.meanwhile == "broker" and broker is None:
                    found[case.name] = "in memory"
                    continue
                began = time.monotonic()
                try:
                    found[case.name] = Stage(case, url, driver, folder / column / f"case-{number}", broker).run()
                except Exception as error:
                    found[case.name] = f"{type(error).__name__}: {error}"
                    driver.close()
                    for file in driver.crash_at.iterdir():
                        file.unlink()
                told = found[case.name]
                text = told.text if isinstance(told, Account) else told
                print(f"{column}: {case.name}: {text[:300]} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
        finally:
            driver.close()
    return found


def try_out(trials: list[Trial], folder: Path) -> dict[str, dict[str, Account | str]]:
    """Run trials on each broker over each wire."""
    found: dict[str, dict[str, Account | str]] = {}
    for kind in KINDS if trials else ():
        with launch(kind, ready_s=300) as broker:
            for wire in WIRES:
                column = found.setdefault(f"{kind}/{wire.upper()}", {})
                for number, trial in enumerate(trials):
                    began = time.monotonic()
                    try:
                        column[trial.name] = trial.run(broker.url(wire), broker.url("amqp"), folder / kind / wire / str(number))
                    except Exception as error:
                        column[trial.name] = f"{type(error).__name__}: {error}"
                    told = column[trial.name]
                    text = told.text if isinstance(told, Account) else told
                    took = time.monotonic() - began
                    print(f"{kind}/{wire}: {trial.name}: {text[:300]} ({took:.0f} s)", file=sys.stderr, flush=True)
    return found


def table_of_trials(trials: list[Trial], found: dict[str, dict[str, Account | str]]) -> str:
    """Return the trials in Markdown."""
    lines = [f"| row | what happens | promised | {' | '.join(found)} |", "|---|---|---|" + "---|" * len(found)]
    for trial in trials:
        told = [column[trial.name] for column in found.values()]
        texts = [one.text if isinstance(one, Account) else "failed" for one in told]
        lines.append(f"| {trial.row} | {trial.what} | 0/0 | {' | '.join(texts)} |")
    return "\n".join(lines)


def table(cases: list[Case], found: dict[str, dict[str, Account | str]]) -> str:
    """Return the matrix in Markdown."""
    lines = [
        f"| row | kill | promised | {' | '.join(TITLES[column] for column in found)} |",
        "|---|---|---|" + "---|" * len(found),
    ]
    for case in cases:
        told = [found[column][case.name] for column in found]
        texts = [one.text if isinstance(one, Account) else one if one == "in memory" else "failed" for one in told]
        lines.append(f"| {case.row} | {case.kill} | {case.promised} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main() -> int:
    """Run what is asked for; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="kill_matrix")
    parser.add_argument("--on", nargs="*", choices=list(COLUMNS), default=list(COLUMNS))
    parser.add_argument("--row", nargs="*", type=int)
    parser.add_argument("--match", default="")
    asked = parser.parse_args()
    cases = [case for case in CASES if (not asked.row or case.row in asked.row) and asked.match in case.kill]
    trials = [trial for trial in TRIALS if (not asked.row or trial.row in asked.row) and asked.match in trial.what]
    with tempfile.TemporaryDirectory(prefix="kill-matrix-", ignore_cleanup_errors=True) as folder:
        found = {column: run(column, cases, Path(folder)) for column in asked.on} if cases else {}
        tried = try_out(trials, Path(folder) / "trials")
    print("lost/duplicated of each case:")
    print(table(cases, found))
    print(table_of_trials(trials, tried))
    results = [(case, told) for column in found.values() for case in cases if (told := column[case.name]) != "in memory"]
    broken = [case.name for case, told in results if not isinstance(told, Account) or not told.keeps(case)]
    outcomes = [(name, told) for column in tried.values() for name, told in column.items()]
    broken += [name for name, told in outcomes if told != Account(0, 0, met=True)]
    results = [*results, *outcomes]
    print(f"{len(results)} runs, {len(broken)} broke a promise{': ' + '; '.join(broken) if broken else ''}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
