"""A provider that is broken in one way is named by the right test of the suite, and only where it is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .provider_mutants import MUTANTS, Mutant

pytestmark = [pytest.mark.program, pytest.mark.xdist_group("provider mutants")]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, str]]:
    """Give, by mutant and test, what the suite said."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("provider_mutants.py"))],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        # What never comes is waited for; that is what some mutants are about.
        env={**os.environ, "JMSAPI_CONFORMANCE_PATIENCE_MS": "2500"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(320)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_provider_fails_the_test_of_what_is_broken(mutant: Mutant, verdicts: dict[str, dict[str, str]]) -> None:
    said = verdicts[mutant.name]
    for name in mutant.noticed_by:
        named = [verdict for test, verdict in said.items() if test == name or test.partition("[")[0] == name]
        assert "fail" in named, f"{name}: {named}"
    if mutant.unharmed:
        named = [
            verdict for test, verdict in said.items() if test == mutant.unharmed or test.partition("[")[0] == mutant.unharmed
        ]
        assert named and set(named) == {"pass"}, f"{mutant.unharmed}: {said}"
