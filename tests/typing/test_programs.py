"""Programs of users are checked by both type checkers, strict: what is right passes, and each wrong use is seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "asyncio_program.py"

pytestmark = [pytest.mark.program, pytest.mark.timeout(600)]


def test_mypy_sees_what_is_right_and_what_is_wrong() -> None:
    # Unlike what it checks otherwise, its own file is asked for; a wrong use that is not seen is an ignore that is not used.
    done = subprocess.run([sys.executable, "-m", "mypy", str(PROGRAM)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_sees_what_is_right_and_what_is_wrong(tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    places = ["tools", "selector", "conformance", *(f"providers/{name}" for name in ("brokers", "inproc", "stomp", "amqp"))]
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "enableTypeIgnoreComments": False,
        "include": [str(PROGRAM)],
        "extraPaths": [str(ROOT / place) for place in (".", *places)],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--project", str(tmp_path), "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
