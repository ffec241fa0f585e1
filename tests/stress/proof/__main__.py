"""Prove that nothing confirmed is lost and nothing comes twice while brokers are killed and links are cut.

Persistent messages go through two queues of a broker that is killed with SIGKILL again and again, over a link that is cut again
and again; see ``book`` for what is counted. Prints a table and what was seen; ends with 1 when the contract was broken.

Usage: python -m tests.stress.proof [--wire amqp|stomp] [--messages N] [--kills N] [--cuts N] [--limit-s S] [--seed N] [--plain]
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire, launch

from .book import Book, Verdict
from .workers import FIRST, SECOND, Stage, drained, workers

PAIRS: dict[Wire, BrokerKind] = {"amqp": "artemis", "stomp": "classic"}
OPTIONS: dict[str, Any] = {
    "connect_timeout_ms": 5_000,
    "request_timeout_ms": 10_000,
    "send_timeout_ms": 20_000,
    "close_timeout_ms": 5_000,
    "prefetch": 100,
}
FAILOVER = "initial_reconnect_delay_ms=10&reconnect_delay_ms=50&max_reconnect_delay_ms=500"
START_S = 300.0
STUCK_S = 120.0
"""No message sent, moved or received for so long: somebody waits for ever."""
QUIET_S = 5.0
TELL_S = 30.0


@dataclass(slots=True)
class Run:
    """One run on one wire."""

    wire: Wire
    messages: int
    kills: int
    cuts: int
    limit_s: float
    seed: int
    failover: bool
    troubles: list[str] = field(default_factory=list[str])
    done: dict[str, int] = field(default_factory=dict[str, int])

    def go(self) -> tuple[Verdict, Stage]:
        """Start a broker of its own, and run."""
        # A broker that is given for other tests must not be killed.
        given = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("JMSAPI_") and name.endswith("_URLS")}
        try:
            broker = launch(PAIRS[self.wire], ready_s=START_S)
        finally:
            os.environ.update(given)
        with broker:
            return self.on(broker)

    def on(self, broker: Broker) -> tuple[Verdict, Stage]:
        """Run on a broker that may be killed and that nobody else uses."""
        with FaultProxy(broker.url(self.wire)) as proxy:
            return self._through(broker, proxy)

    def _through(self, broker: Broker, proxy: FaultProxy) -> tuple[Verdict, Stage]:
        book = Book(acks_answered=self.wire != "amqp")
        url = f"failover:({proxy.url})?{FAILOVER}" if self.failover else proxy.url
        stage = Stage(url, book, self.messages, failover=self.failover, options=OPTIONS)
        crew = list(workers(stage))
        for one in crew:
            one.start()
        chaos = threading.Thread(target=self._chaos, args=(stage, broker, proxy), name="proof-chaos")
        began = time.monotonic()
        chaos.start()
        try:
            self._watch(stage, chaos, began)
        finally:
            stage.no_more_sends.set()
            stage.stop.set()
            chaos.join(120)
            proxy.heal()
            for one in crew:
                one.join(60)
        self.troubles += [f"{one.name} did not end" for one in crew if one.is_alive()]
        self.troubles += [f"a worker failed: {error!r}" for error in stage.faults]
        self.done["seconds"] = int(time.monotonic() - began)
        if not broker.is_alive:
            broker.restart(ready_s=START_S)
        url = broker.url(self.wire)
        self.done[f"left in {FIRST}"] = drained(url, FIRST, lambda body, _: book.left(body))
        self.done[f"left in {SECOND}"] = drained(url, SECOND, book.left)
        for name in ("DLQ", "ActiveMQ.DLQ"):
            if left := drained(url, name, lambda _, __: None):
                self.troubles.append(f"{left} messages in {name}")
        return book.verdict(), stage

    def _watch(self, stage: Stage, chaos: threading.Thread, began: float) -> None:
        """Wait until all is sent, moved and received, or nothing moves, or time is up."""
        book = stage.book
        told_at = began
        while True:
            time.sleep(0.2)
            now = time.monotonic()
            if now - told_at > TELL_S:
                told_at = now
                print(f"{self.wire}: {now - began:.0f} s, {book.confirmed} confirmed, {book.handled} received, {self.done}",
                      file=sys.stderr, flush=True)  # fmt: skip
            if stage.faults:
                return
            if stage.enough and not chaos.is_alive() and not book.missing and now - book.last_progress > QUIET_S:
                return
            if now - book.last_progress > STUCK_S:
                self.troubles.append(f"nothing moved for {STUCK_S:.0f} s; {book.missing} confirmed messages are missing")
                return
            if now - began > self.limit_s:
                self.troubles.append(f"not done within {self.limit_s:.0f} s: {book.confirmed} confirmed, {book.handled} received")
                return

    def _chaos(self, stage: Stage, broker: Broker, proxy: FaultProxy) -> None:
        """Break things, evenly spread over what is received."""
        chance = random.Random(self.seed)
        events = ["kill"] * self.kills + ["cut"] * self.cuts
        chance.shuffle(events)
        step = self.messages / (len(events) + 1)
        try:
            for number, event in enumerate(events, 1):
                while stage.book.handled < step * number:
                    if stage.stop.wait(0.01):
                        return
                if event == "kill":
                    with stage.book.breaking():
                        broker.kill()
                        proxy.wait_for(lambda: not proxy.open_connections, 10)
                        _met(proxy)
                    stage.stop.wait(chance.uniform(0, 1))
                    broker.restart(ready_s=START_S)
                    stage.book.last_progress = time.monotonic()
                else:
                    self._cut(stage, proxy, chance)
                self.done[event] = self.done.get(event, 0) + 1
        except BaseException as error:
            stage.faults.append(error)
            raise

    def _cut(self, stage: Stage, proxy: FaultProxy, chance: random.Random) -> None:
        """Cut the link, at once for all or in the middle of something for one."""
        how: Any = chance.choice(["rst", "fin"])
        if chance.random() < 0.5:
            with stage.book.breaking():
                proxy.cut(how)
                _met(proxy)
            return
        way: Any = chance.choice(["to_broker", "to_client"])
        proxy.cut_after(chance.randrange(1, 20_000), way, how)
        cut = proxy.wait_for(lambda: not proxy.cut_pending, 10)
        with stage.book.breaking():
            if not cut:
                proxy.cut(how)
                proxy.heal()
            _met(proxy)


def _met(proxy: FaultProxy) -> None:
    """Wait until no client is left that still writes into a link that is cut."""
    proxy.wait_for(lambda: not proxy.ending_connections, 10)


def table(runs: list[tuple[Run, Verdict]]) -> str:
    """Form the table: a column for each wire."""
    rows: list[tuple[str, ...]] = [("", *(f"{run.wire.upper()} on {PAIRS[run.wire].title()}" for run, _ in runs))]
    for name, shown in (("kill", "broker killed"), ("cut", "link cut"), ("seconds", "seconds")):
        rows.append((shown, *(str(run.done.get(name, 0)) for run, _ in runs)))
    for name in runs[0][1].counts:
        rows.append((name, *(str(verdict.counts[name]) for _, verdict in runs)))
    for name in runs[0][1].violations:
        rows.append((f"** {name}", *(str(verdict.violations[name]) for _, verdict in runs)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True))]
             for row in rows]  # fmt: skip
    return "\n".join("  ".join(line) for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the proof; return 0 when the contract was kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wire", choices=list(PAIRS), action="append", help="default: both")
    parser.add_argument("--messages", type=int, default=100_000, help="confirmed persistent messages, at least")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--limit-s", type=float, default=1200, help="longest time for each wire, in seconds")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--plain", action="store_true", help="without failover: the application reconnects")
    given = parser.parse_args(arguments)
    runs: list[tuple[Run, Verdict]] = []
    good = True
    for wire in given.wire or list(PAIRS):
        run = Run(wire, given.messages, given.kills, given.cuts, given.limit_s, given.seed, not given.plain)
        verdict, stage = run.go()
        runs.append((run, verdict))
        good = good and verdict.good and not run.troubles
        print(f"\n{wire}, seed {given.seed}, {'failover' if run.failover else 'plain'}: {stage.reconnects} connections made")
        for name, n in sorted(stage.errors.items()):
            print(f"  {n:6} {name}")
        for line in (*run.troubles, *verdict.examples):
            print(f"  !! {line}")
    print(f"\n{table(runs)}\n\n{'PROVED' if good else 'BROKEN'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
