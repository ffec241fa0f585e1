"""Prove that ``move``, ``replay-dlq`` and ``import`` lose nothing when they are killed, at whatever moment.

Each command works on a queue that is filled up again and again, and is ended with SIGKILL again and again, somewhere between its
first message and its last commit. At last it may finish. Then every message must be in the target: none lost, and where
broker and wire have transactions none of ``move`` and ``replay-dlq`` twice. ``import`` begins with the file's first line
each time, so it doubles what it had sent before.

Usage: python -m tests.stress.transfer_proof [--kills N] [--seed N] [--kinds KIND ... | --url URL ...] [--commands COMMAND ...]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import jmsapi
from jmsapi import JMSContext
from jmsapi_conformance.brokers import KINDS, BrokerKind, Wire, launch

WIRES: Final[tuple[Wire, ...]] = ("amqp", "stomp")
COMMANDS: Final = ("move", "replay-dlq", "import")
FILL: Final = 250
"""Messages that are there for each kill: two transactions and a half."""
CLEAR: Final = 5
"""After so many kills the command may finish: Artemis makes a dead letter of what ten clients were handed and left."""
LONGEST_S: Final = 0.25
"""A kill comes so long after the first message is sent on, at most: about as long as the rest takes."""
RELEASE_S: Final = 120.0
"""How long a broker may take to give back what a killed client held, in seconds."""
WAIT_MS: Final = 1_000
_PROGRAM: Final = """
import json, os, sys, time
from jmsapi.cli import _transfer, main
import jmsapi_amqp._provider, jmsapi_stomp.provider, jmsapi.config

def telling(send):
    def call(*arguments):
        global told
        if not told:
            told = True
            os.write(channel, b"at work\\n")
        send(*arguments)
    return call

told, channel = False, os.dup(1)
_transfer._forward = telling(_transfer._forward)
_transfer._send_parsed = telling(_transfer._send_parsed)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os._exit(main(json.loads(line)))
    os.write(channel, b"%d\\n" % child)
    os.write(channel, b"ended with %d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Runner:
    """Has the commands loaded and runs each in a fork of its own, so that a run costs no start. A context manager."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _PROGRAM]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(60)

    def run(self, arguments: list[str], kill_after_s: float | None = None) -> int:
        """Run a command; return its exit code, -9 if it was killed so long after it had begun to send."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline())
        line = self._process.stdout.readline()
        if line == "at work\n":
            if kill_after_s is not None:
                time.sleep(kill_after_s)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            line = self._process.stdout.readline()
        return int(line.removeprefix("ended with "))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the kills of one command on one backend showed."""

    command: str
    backend: str
    kills: int
    messages: int
    lost: int
    doubled: int
    may_double: bool
    seconds: float

    @property
    def good(self) -> bool:
        """Whether it keeps what is promised."""
        return not self.lost and (self.may_double or not self.doubled)

    def row(self) -> str:
        """Return a line of the table."""
        doubled = f"{self.doubled}{' (documented)' if self.may_double and self.doubled else ''}"
        return (
            f"{self.command:<11} {self.backend:<26} {self.kills:>5} {self.messages:>8} {self.lost:>4}  {doubled:<18} "
            f"{self.seconds:>5.0f} s"
        )


HEAD: Final = f"{'command':<11} {'backend':<26} {'kills':>5} {'messages':>8} {'lost':>4}  {'doubled':<18} {'time':>7}"


def prove(url: str, command: str, kills: int, chance: random.Random) -> Outcome:
    """Kill a command again and again, let it finish at last, and count."""
    began = time.monotonic()
    source, target = f"proof-from-{uuid.uuid4()}", f"proof-to-{uuid.uuid4()}"
    with (
        Runner() as runner,
        tempfile.TemporaryDirectory() as folder,
        jmsapi.connection_factory(url).create_context() as context,
    ):
        has = jmsapi.capabilities(context)
        context.create_consumer(context.create_queue(target)).close()
        file = Path(folder) / "file"
        arguments = {
            "move": ["move", source, target, "--wait", str(WAIT_MS)],
            "replay-dlq": ["replay-dlq", source, "--wait", str(WAIT_MS)],
            "import": ["import", target, "--file", str(file)],
        }[command] + ["--url", url]
        killed = sent = 0
        longest = LONGEST_S
        for _ in range(6 * kills):
            if command == "import":
                sent = FILL
                file.write_text("".join(json.dumps({"body": str(number)}) + "\n" for number in range(sent)))
            else:
                sent = _fill(context, source, target, sent)
            if runner.run(arguments, chance.uniform(0, longest)) == -signal.SIGKILL:
                killed += 1
            else:
                longest *= 0.7  # the machine is quicker than that
            if killed == kills:
                break
            if killed % CLEAR == 0:
                runner.run(arguments)
        found: Counter[str | None] = Counter()
        quiet_since = time.monotonic()
        # A broker may take its time to give back what a killed client held; a message is lost when it is nowhere for so long.
        while len(found) < sent and time.monotonic() - quiet_since < RELEASE_S:
            code = runner.run(arguments)
            if code:
                raise RuntimeError(f"{command} on {has.provider}/{has.broker} ended with {code}")
            if _drain(context, target, found):
                quiet_since = time.monotonic()
    return Outcome(
        command,
        f"{has.provider} on {has.broker} {has.version}",
        killed,
        sent,
        lost=sent - len(found),
        doubled=sum(times - 1 for times in found.values()),
        may_double=command == "import" or not has.transactions,
        seconds=time.monotonic() - began,
    )


def _fill(context: JMSContext, source: str, target: str, sent: int) -> int:
    transactions = bool(jmsapi.capabilities(context).transactions)
    with context.create_context(JMSContext.SESSION_TRANSACTED if transactions else JMSContext.AUTO_ACKNOWLEDGE) as filler:
        producer, queue = filler.create_producer().set_property("jmsapi_dead_letter_origin", target), filler.create_queue(source)
        for number in range(sent, sent + FILL):
            producer.send(queue, str(number))
        if transactions:
            filler.commit()
    return sent + FILL


def _drain(context: JMSContext, target: str, found: Counter[str | None]) -> bool:
    """Take all that is in the target; return whether there was anything."""
    before = found.total()
    with context.create_consumer(context.create_queue(target)) as consumer:
        while (message := consumer.receive(WAIT_MS)) is not None:
            found[message.get_body(str)] += 1
    return found.total() > before


def _started(kinds: Sequence[BrokerKind]) -> Iterator[str]:
    """Start brokers one after the other; give the URL of each wire."""
    for kind in kinds:
        with launch(kind, ready_s=300) as broker:
            yield from map(broker.url, WIRES)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="of each command on each backend")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--url", nargs="+", metavar="URL", help="of brokers that run already, instead of --kinds")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    return parser.parse_args()


def main() -> int:
    """Prove all that is asked for, print a table, and return 1 when a promise is broken or a command was not killed."""
    asked = _asked()
    chance = random.Random(asked.seed)
    outcomes: list[Outcome] = []
    print(HEAD)
    for url in asked.url or _started(asked.kinds):
        for command in asked.commands:
            outcomes.append(prove(url, command, asked.kills, chance))
            print(outcomes[-1].row(), flush=True)
    lost = sum(one.lost for one in outcomes)
    print(f"{sum(one.kills for one in outcomes)} kills: {lost} lost")
    return 0 if all(one.good and one.kills == asked.kills for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
