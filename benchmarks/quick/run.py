"""Has anything become slower? Processor time a message, in units of what is measured beside it; in less than three minutes.

    python benchmarks/quick/run.py [--rounds N] [--messages N] [--compare COMMIT] [--store] [URL...]

Without URLs: in process, and over AMQP and STOMP on what ``JMSAPI_ARTEMIS_URLS`` names. Each row is the processor time of a
message divided by that of a fixed loop in pure Python taken just before and after it, so that another machine, or a loaded one,
gives about the same number; the median over the rounds. Over AMQP there is a column beside it: the same work by proton's
MessagingHandler in the same run.

- By itself it compares with ``stored.json``; ``--store`` writes that anew.
- ``--compare COMMIT`` runs that commit too, round for round in turn, and compares with it. Its tree is checked out to a
  temporary folder.

A row that is more than a quarter slower is marked, and the exit code is 1 then: what a loaded machine adds differs by a tenth
from run to run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import rows

import jmsapi

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STORED = HERE / "stored.json"
SLOWER = 1.25
UNIT = 1000.0
"""The loop's hundred thousand turns, in units of a hundred."""

Figures = dict[str, list[float]]
"""By row, of each round the processor time in units of the loop."""


def main() -> int:
    """Measure and print the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", nargs="*", default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--compare", metavar="COMMIT")
    parser.add_argument("--store", action="store_true")
    given = parser.parse_args()
    urls: list[str] = given.urls or ["inproc://quick", *_brokers()]
    ours: Figures = {}
    theirs: Figures = {}
    with _tree_of(given.compare) as other:
        for _ in range(given.rounds):
            _round(ROOT, given.messages, urls, ours)
            if other is not None:
                _round(other, given.messages, urls, theirs)
    handler = _handler(urls, given.messages, given.rounds)
    now = {row: statistics.median(found) for row, found in ours.items()}
    if given.store:
        kept = {row: round(value, 2) for row, value in sorted(now.items())}
        STORED.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    if other is not None:
        return _page(now, {row: statistics.median(found) for row, found in theirs.items()}, given.compare, handler)
    return _page(now, json.loads(STORED.read_text(encoding="utf-8")), "stored", handler)


def _brokers() -> list[str]:
    given = os.environ.get("JMSAPI_ARTEMIS_URLS", "").split(",")
    return [url for url in given if urlsplit(url).scheme in ("amqp", "stomp")]


def _page(now: dict[str, float], before: dict[str, float], called: str, handler: dict[str, float]) -> int:
    print(f"{'processor time of a message':<28}{'in loops':>10}{called[:12]:>14}{'ratio':>8}{'of handler':>12}")
    slower = False
    for row, value in now.items():
        old = before.get(row)
        ratio = value / old if old else None
        marked = ratio is not None and ratio > SLOWER
        slower = slower or marked
        reference = handler.get(row)
        print(
            f"{row:<28}{value:>10.1f}"
            + (f"{old:>14.1f}{ratio:>8.2f}" if ratio is not None else f"{'new':>14}{'':>8}")
            + (f"{value / reference:>12.2f}" if reference else "")
            + ("  SLOWER" if marked else "")
        )
    return 1 if slower else 0


def _round(tree: Path, messages: int, urls: list[str], figures: Figures) -> None:
    """Run one round on a tree and add its figures."""
    # Before what is installed, so that a tree is measured that was never installed.
    homes = {package.parents[1] for level in ("*", "*/*") for package in tree.glob(f"{level}/jmsapi_*/__init__.py")}
    path = os.pathsep.join(map(str, (tree, *sorted(homes))))
    command = [sys.executable, str(HERE / "rows.py"), str(messages), *urls]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "PYTHONPATH": path}, cwd=tree
    )
    if done.returncode:
        raise RuntimeError(f"{tree}: {done.stderr[-2000:]}")
    for row, (taken, loop) in json.loads(done.stdout.splitlines()[-1]).items():
        figures.setdefault(row, []).append(taken / loop * UNIT)


@contextlib.contextmanager
def _tree_of(commit: str | None) -> Iterator[Path | None]:
    """Check a commit out to a temporary folder."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], check=True, cwd=ROOT)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], check=True, cwd=ROOT)


def _handler(urls: list[str], messages: int, rounds: int) -> dict[str, float]:
    """Return what proton's handler takes for the rows that it can be held against, in loops."""
    url = next((one for one in urls if urlsplit(one).scheme == "amqp"), None)
    if url is None:
        return {}
    parts = urlsplit(url)
    queue = "benchmark.quick.handler"
    with jmsapi.connection_factory(url).create_context() as context:
        for name in (queue, f"{queue}.single"):  # the handler's links make no queue
            context.create_producer().send(context.create_queue(name), "x")
            while context.create_consumer(context.create_queue(name)).receive(200) is not None:
                continue
    where = f"{parts.hostname}:{parts.port or 5672}"
    command = [sys.executable, str(HERE.parent / "amqp" / "handler.py"), where, parts.username or "", parts.password or ""]
    done = subprocess.run(
        [*command, queue, str(messages), str(rounds), "1"], capture_output=True, text=True, check=True, timeout=300
    )
    sends, receives = zip(*(map(float, line.split()[2:]) for line in done.stdout.splitlines()[:-1]), strict=True)
    scale = UNIT * 1e6 / messages / rows.loop()
    send, receive = statistics.median(sends) * scale, statistics.median(receives) * scale
    return {"amqp send": send} | {f"amqp {row}": receive for row in ("receive AUTO", "listener AUTO", "receive DUPS_OK")}


if __name__ == "__main__":
    sys.exit(main())
