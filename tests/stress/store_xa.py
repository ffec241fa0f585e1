"""A transfer from a queue to a table under two-phase commit, by the classes of the example, for the proof."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import jmsapi
from jmsapi import TextMessage, XAConnectionFactory, XAJMSContext

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "xa"))

from two_phase import Coordinator, SQLiteResource

__all__ = ["settle", "table_of", "transfer_by_xa"]

SIZE = 5
SCHEMA = "CREATE TABLE IF NOT EXISTS moved (number INTEGER)"


def transfer_by_xa(file: Path, table: Path, queue: str, begun: Callable[[], None]) -> None:
    """Recover, and move all messages, a few in each transaction."""
    second = SQLiteResource(table, SCHEMA)
    with _context(file) as context:
        coordinator = Coordinator(table.with_name("decided.db"), [context.xa_resource, second])
        begun()
        coordinator.recover()
        consumer = context.create_consumer(context.create_queue(queue))
        moved = 1

        def work() -> None:
            nonlocal moved
            moved = 0
            for _ in range(SIZE):
                message = consumer.receive_no_wait()
                if not isinstance(message, TextMessage):
                    return
                second.execute("INSERT INTO moved VALUES (?)", [int(message.text or "")])
                moved += 1

        while moved:
            coordinator.run(work)


def settle(file: Path, table: Path) -> None:
    """Finish what a crash left."""
    with _context(file) as context:
        Coordinator(table.with_name("decided.db"), [context.xa_resource, SQLiteResource(table, SCHEMA)]).recover()


def table_of(table: Path) -> list[int]:
    """Return the numbers in the table."""
    return [int(number) for (number,) in SQLiteResource(table, SCHEMA).query("SELECT number FROM moved")]


def _context(file: Path) -> XAJMSContext:
    factory = jmsapi.connection_factory(f"inproc://{file}")
    assert isinstance(factory, XAConnectionFactory)
    return factory.create_xa_context()
