"""The programs on the page about injection run as they stand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import jmsapi

PAGE = (Path(__file__).parents[2] / "docs" / "injection.md").read_text(encoding="utf-8")


def test_the_programs_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)).replace(
        "inproc://shop", "inproc://injection-page"
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    try:
        runpy.run_path(str(tmp_path / "program.py"), run_name="__main__")
    finally:
        jmsapi.register_object("shop", None)
    assert capsys.readouterr().out == "one kettle, two cups\n"
    with jmsapi.connection_factory("inproc://injection-page").create_context() as context:
        texts = [context.create_consumer(context.create_queue(name)).receive_body_no_wait(str) for name in ("orders", "bills")]
    assert texts == ["three spoons", "3 EUR"]
