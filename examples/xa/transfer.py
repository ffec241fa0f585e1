"""Orders from a queue to a table, each in both or in neither, whenever the process dies.

    python examples/xa/transfer.py FOLDER [--orders N] [--crash-after N]

The queue is in a stored broker (``FOLDER/broker.db``), the table in a SQLite database (``FOLDER/orders.db``). ``--crash-after``
kills the process between the commits of the two, in that transaction. Run again, it recovers, goes on, and prints the table.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from two_phase import Coordinator, SQLiteResource

import jmsapi
from jmsapi import XAConnectionFactory


def main() -> int:
    """Send orders if there are none yet, recover, and transfer them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--crash-after", type=int)
    given = parser.parse_args()
    factory = jmsapi.connection_factory(f"inproc://{given.folder.resolve() / 'broker.db'}")
    assert isinstance(factory, XAConnectionFactory)
    if not (given.folder / "orders.db").exists():
        with factory.create_context() as context:
            for number in range(given.orders):
                context.create_producer().send(context.create_queue("orders"), f"order {number}")
    table = SQLiteResource(given.folder / "orders.db", "CREATE TABLE IF NOT EXISTS orders (text)")
    with factory.create_xa_context() as context:
        coordinator = Coordinator(given.folder / "decided.db", [context.xa_resource, table])
        committed, rolled_back = coordinator.recover()
        print(f"recovered: {committed} branches committed, {rolled_back} rolled back")
        consumer = context.create_consumer(context.create_queue("orders"))
        transferred = 0

        def work() -> None:
            nonlocal transferred
            text = consumer.receive_body(str, 1000)
            if text is not None:
                table.execute("INSERT INTO orders VALUES (?)", [text])
                transferred += 1

        def accident(commits: int) -> None:
            if commits == 1 and transferred == given.crash_after:
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)

        before = -1
        while transferred != before:
            before = transferred
            coordinator.run(work, accident)
        coordinator.close()
    for (text,) in table.query("SELECT text FROM orders ORDER BY rowid"):
        print(text)
    table.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
