"""Which mutants a seed chooses: a run that goes on where another was cut short tries what that one would have tried."""

from __future__ import annotations

import pytest

pytest.importorskip("cosmic_ray", reason="needs the group mutants")

from tests.mutants import choosing


def test_a_run_that_goes_on_chooses_what_is_left_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"small files": (6, ("selector/jmsapi_selector/t*.py",)), "one file": (3, ("selector/jmsapi_selector/like.py",))}
    monkeypatch.setattr(choosing, "GROUPS", groups)
    whole = choosing.choose(23)
    assert [one.group for one in whole] == ["small files"] * 6 + ["one file"] * 3
    for tried in (whole[:1], whole[3:8], whole[1::2], whole):
        had = {(one.file, one.line) for one in tried}
        assert choosing.choose(23, had) == [one for one in whole if one not in tried]
