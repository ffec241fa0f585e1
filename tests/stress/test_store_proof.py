"""The proof of the stored broker, in small: ten kills in place of two hundred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.program

ROWS = ("transfer", "sends", "XA", "full disk")


@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")
def test_ten_kills_and_a_full_disk_lose_and_double_nothing() -> None:
    # A process of its own: it forks, which a process with threads had better not.
    command = [sys.executable, "-m", "tests.stress.store_proof", "--kills", "10", "--messages", "600", "--seed", "13"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row: line.removeprefix(row).split() for row in ROWS for line in done.stdout.splitlines() if line.startswith(row)}
    assert set(rows) == set(ROWS), done.stdout
    left_out = {row for row, cells in rows.items() if cells[0] == "LEFT"}
    assert left_out <= {"full disk"}, done.stdout
    for row in set(ROWS) - left_out:
        kills, messages, lost, doubled, _ = rows[row]
        assert (int(lost), int(doubled)) == (0, 0), row
        assert int(kills) == (0 if row == "full disk" else 10)
        assert int(messages) > 0
    if left_out:
        # The summary of a run shows what is left out.
        pytest.skip(" ".join(rows["full disk"]))
