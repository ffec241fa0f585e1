"""The programs of docs/testing.md run as they stand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize(("number", "printed"), [(0, "A KETTLE\n"), (1, "a kettle\n")])
def test_a_program_of_the_page_runs(number: int, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[number], encoding="utf-8")
    runpy.run_path(str(file))
    assert capsys.readouterr().out == printed


def test_no_program_of_the_page_is_left_out() -> None:
    assert len(PROGRAMS) == 2
