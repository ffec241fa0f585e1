"""The example of two-phase commit, over a crash between the two commits."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "xa" / "transfer.py"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, EXAMPLE, folder, *words], capture_output=True, text=True, timeout=120, check=False)


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
