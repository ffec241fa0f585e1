"""A short storm in every run; ``make stress`` has the long one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("core_stress", Path(__file__).with_name("core_stress.py"))
assert _spec is not None
assert _spec.loader is not None
core_stress = importlib.util.module_from_spec(_spec)
sys.modules["core_stress"] = core_stress
_spec.loader.exec_module(core_stress)


def test_random_close_stop_recover_and_rollback_lose_and_double_nothing() -> None:
    for seconds in (3, 12, 36):  # the longer ones where the machine is slow
        tally = core_stress.stress(seconds=seconds, sessions=16, parts=8, seed=20260101)
        assert tally.faults == []
        if sum(tally.sent.values()) > 500:
            return
    pytest.fail(f"too little has happened: {sum(tally.sent.values())} messages sent")
