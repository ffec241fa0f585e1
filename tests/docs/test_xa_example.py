"""The example of two-phase commit, over a crash between the two commits and over work that fails."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jmsapi
from jmsapi import XAConnectionFactory

EXAMPLE = Path(__file__).parents[2] / "examples" / "xa" / "transfer.py"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, EXAMPLE, folder, *words], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="the process kills itself by a signal")
def test_orders_are_in_both_after_a_crash_between_the_commits(tmp_path: Path) -> None:
    crashed = run(tmp_path, "--orders", "4", "--crash-after", "3")
    assert crashed.returncode == -signal.SIGKILL, crashed.stderr
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "recovered: 1 branches committed, 0 rolled back",
        *(f"order {number}" for number in range(4)),
    ]


def test_work_that_raises_is_in_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    two_phase = importlib.import_module("two_phase")
    factory = jmsapi.connection_factory("inproc://docs-xa-work-that-raises")
    assert isinstance(factory, XAConnectionFactory)
    table = two_phase.SQLiteResource(tmp_path / "orders.db", "CREATE TABLE orders (text)")
    with factory.create_context() as context, factory.create_xa_context() as xa_context:
        queue = context.create_queue("orders")
        context.create_producer().send(queue, "a kettle")
        coordinator = two_phase.Coordinator(tmp_path / "decided.db", [xa_context.xa_resource, table])
        with xa_context.create_consumer(queue) as consumer:

            def work() -> None:
                table.execute("INSERT INTO orders VALUES (?)", [consumer.receive_body(str, 20_000)])
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                coordinator.run(work)
        again = context.create_consumer(queue).receive(20_000)
        assert again is not None
        assert (again.get_body(str), again.jms_redelivered) == ("a kettle", True)
        assert table.query("SELECT text FROM orders") == []
        coordinator.close()
    table.close()
