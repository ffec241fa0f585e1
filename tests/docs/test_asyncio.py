"""The programs on the page about asyncio run as they stand, and each line of its table of cancellations has its tests."""

from __future__ import annotations

import asyncio
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import jmsapi.aio

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "asyncio.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_first_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[0], encoding="utf-8")
    runpy.run_path(str(tmp_path / "program.py"), run_name="__main__")
    assert capsys.readouterr().out == "a kettle 7\n"


def test_the_send_with_a_timeout_sends(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[1], encoding="utf-8")
    send_in_time: Any = runpy.run_path(str(tmp_path / "program.py"))["send_in_time"]

    async def program() -> str | None:
        async with jmsapi.aio.connection_factory("inproc://asyncio-page-2").create_context() as context:
            queue = context.create_queue("q")
            assert await send_in_time(context.create_producer(), queue, "in time")
            return await (await context.create_consumer(queue)).receive_body(str, 10_000)

    assert asyncio.run(program()) == "in time"
