"""The table of mutants fits the core; ``make mutants`` runs it."""

from __future__ import annotations

import pytest

from .core_mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_stands_once_in_the_core(mutant: Mutant) -> None:
    source = (ROOT / "jmsapi" / "_core" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    assert mutant.new != mutant.old
