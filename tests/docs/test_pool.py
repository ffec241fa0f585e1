"""The program on the page about borrowed sessions runs as it stands."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "pool.md").read_text(encoding="utf-8")


def test_the_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "program.py").write_text(program.replace("inproc://shop", "inproc://pool-page"), encoding="utf-8")
    runpy.run_path(str(tmp_path / "program.py"), run_name="__main__")
    assert capsys.readouterr().out == "one kettle\n"
