"""What a message costs as the work grows: sessions, consumers, size of bodies, messages that wait; in process and over the wires.

    python benchmarks/growth/run.py [--small] [--write] [URL...]

Without URLs: in process, and over AMQP and STOMP on what ``JMSAPI_ARTEMIS_URLS`` names. Processor time of this process, sent and
received together: a message of it, a MB where bodies grow. Memory is what the process has grown by at most while it was done.
Linear growth is a flat line. A row whose cost at the end is more than twice that of its cheapest step is marked, and the exit
code is 1 then; the first step of each row pays for what is done once, so it is no measure. ``--write`` writes ``table.md`` and
``plot.svg`` beside this file; ``--small`` leaves out the last step of each row, which takes minutes over a wire.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import jmsapi
from jmsapi import Connection, DeliveryMode, Session

HERE: Final = Path(__file__).parent
LIMIT: Final = 2.0
WAIT_MS: Final = 120_000
COLOURS: Final = {"inproc": "#1b6ca8", "amqp": "#c0392b", "stomp": "#2e8b57"}
Row = list[tuple[int, float, float]]
"""By step: how much, microseconds a unit, MB of memory."""


def resident() -> float:
    """Return the memory that this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def sessions(connection: Connection, n: int) -> int:
    """Send and receive 2,048 messages by ``n`` sessions in turn."""
    opened = [connection.create_session() for _ in range(n)]
    queue = opened[0].create_queue(_name())
    producers = [session.create_producer(queue) for session in opened]
    consumers = [session.create_consumer(queue) for session in opened]
    for producer in producers:
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    total = 2048
    for number in range(total):
        producers[number % n].send(opened[number % n].create_text_message("x" * 100))
    received = 0
    ends = time.monotonic() + WAIT_MS / 1000
    while received < total and time.monotonic() < ends:
        received += sum(consumer.receive(1) is not None for consumer in consumers)
    _close(opened)
    if received != total:
        raise AssertionError(f"{received} of {total} messages came")
    return total


def consumers(connection: Connection, n: int) -> int:
    """Send and receive two messages by each of ``n`` consumers on queues of their own; their opening and end counts."""
    session = connection.create_session()
    opened = []
    producer = session.create_producer(None)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    for _ in range(n):
        queue = session.create_queue(_name())
        opened.append((queue, session.create_consumer(queue)))
    for _ in range(2):
        for queue, _consumer in opened:
            producer.send(queue, session.create_text_message("x" * 100))
        for _queue, consumer in opened:
            _received(consumer.receive(WAIT_MS))
    _close([session])
    return 2 * n


def bodies(connection: Connection, n: int) -> float:
    """Send and receive a few messages with bodies of ``n`` bytes; the unit is a MB."""
    session = connection.create_session()
    queue = session.create_queue(_name())
    producer, consumer = session.create_producer(queue), session.create_consumer(queue)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    times = max(1, min(200, 20_000_000 // n))
    for _ in range(times):
        message = session.create_bytes_message()
        message.write_bytes(bytes(n))
        producer.send(message)
        _received(consumer.receive(WAIT_MS))
    _close([session])
    return times * n / 1e6


def waiting(connection: Connection, n: int) -> int:
    """Send ``n`` messages and only then receive them."""
    session = connection.create_session(Session.DUPS_OK_ACKNOWLEDGE)
    queue = session.create_queue(_name())
    producer = session.create_producer(queue)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    message = session.create_text_message("x" * 100)
    for _ in range(n):
        producer.send(message)
    consumer = session.create_consumer(queue)
    for _ in range(n):
        _received(consumer.receive(WAIT_MS))
    _close([session])
    return n


def _name() -> str:
    return f"growth.{uuid.uuid4().hex}"


def _received(message: object) -> None:
    if message is None:
        raise AssertionError("a message did not come")


def _close(opened: Iterable[Session]) -> None:
    for session in opened:
        session.close()


Work = Callable[[Connection, int], float]
ROWS: Final[dict[str, tuple[Work, tuple[int, ...], tuple[int, ...]]]] = {
    "sessions": (sessions, (1, 4, 16, 64), (1, 4, 16, 64)),
    "consumers": (consumers, (1, 10, 100, 1000), (1, 10, 100, 1000)),
    "bytes of a body": (bodies, (100, 10_000, 1_000_000, 100_000_000), (100, 10_000, 1_000_000, 20_000_000)),
    "messages waiting": (waiting, (100, 10_000, 100_000, 1_000_000), (100, 1000, 10_000, 100_000)),
}
"""What grows: the work, its steps in process, its steps over a wire."""


def measured(url: str, work: Work, steps: Iterable[int]) -> Row:
    """Return one row."""
    row: Row = []
    with jmsapi.connection_factory(url).create_connection() as connection:
        connection.start()
        for step in steps:
            memory, began = resident(), time.process_time()
            units = work(connection, step)
            row.append((step, (time.process_time() - began) / units * 1e6, resident() - memory))
    return row


def _worse(row: Row) -> bool:
    costs = [cost for _, cost, _ in row[1:]] or [cost for _, cost, _ in row]
    return costs[-1] > LIMIT * min(costs)


def page(found: dict[tuple[str, str], Row]) -> str:
    """Return the table, in Markdown."""
    lines = ["| what grows | wire | " + " | ".join(f"step {n}" for n in range(1, 5)) + " |", "|" + "---|" * 6]
    for (name, wire), row in found.items():
        cells = [f"{step:,}: {cost:,.1f} us, {memory:+.0f} MB" for step, cost, memory in row]
        mark = " **more than linear**" if _worse(row) else ""
        lines.append(f"| {name}{mark} | {wire} | " + " | ".join((cells + [""] * 4)[:4]) + " |")
    return "\n".join(lines)


def plot(found: dict[tuple[str, str], Row]) -> str:
    """Return the costs as a picture in SVG: a panel for what grows, a line for each wire, 1.0 for the cheapest step."""
    names = list(dict.fromkeys(name for name, _ in found))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{260 * len(names)}" height="240" font-family="sans-serif"'
        ' font-size="11">'
    ]
    for column, name in enumerate(names):
        left = 260 * column + 40
        parts.append(f'<text x="{left}" y="18">{name}: cost, cheapest step 1</text>')
        for level in (1, 2, 4, 8):
            y = 200 - 50 * (level.bit_length() - 1)
            parts.append(
                f'<line x1="{left}" y1="{y}" x2="{left + 200}" y2="{y}" stroke="#ddd"/>'
                f'<text x="{left - 14}" y="{y + 4}">{level}</text>'
            )
        for (of, wire), row in found.items():
            if of != name:
                continue
            least = min(cost for _, cost, _ in row)
            points: list[str] = []
            for number, (step, cost, _) in enumerate(row):
                x, height = left + number * 60, max(25.0, 200 - 50 * _log2(cost / least))
                points.append(f"{x},{height:.0f}")
                parts.append(f'<text x="{x}" y="216" fill="#777">{step:g}</text>' if wire == "inproc" else "")
            parts.append(
                f'<polyline points="{" ".join(points)}" fill="none" stroke="{COLOURS.get(wire, "#000")}" stroke-width="2"/>'
            )
    for number, (wire, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{40 + 90 * number}" y="234" fill="{colour}">{wire}</text>')
    return "\n".join([*filter(None, parts), "</svg>", ""])


def _log2(value: float) -> float:
    return math.log2(value) if value > 1 else 0.0


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", nargs="*", default=None)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    brokers = [one for one in os.environ.get("JMSAPI_ARTEMIS_URLS", "").split(",") if urlsplit(one).scheme in ("amqp", "stomp")]
    urls: list[str] = given.urls or ["inproc://growth", *brokers]
    found: dict[tuple[str, str], Row] = {}
    for name, (work, near, far) in ROWS.items():
        for url in urls:
            wire = urlsplit(url).scheme
            steps = near if wire == "inproc" else far
            found[name, wire] = measured(url, work, steps[:-1] if given.small else steps)
            print(f"{name}, {wire}: {found[name, wire]}", file=sys.stderr, flush=True)
    print(page(found))
    if given.write:
        (HERE / "table.md").write_text(f"# What a message costs as the work grows\n\n{page(found)}\n", encoding="utf-8")
        (HERE / "plot.svg").write_text(plot(found), encoding="utf-8")
    return 1 if any(_worse(row) for row in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
