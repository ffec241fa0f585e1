"""The program on the page about server sessions runs as it stands, in process and on real brokers."""

from __future__ import annotations

import re
import runpy
import uuid
from pathlib import Path

import pytest

import jmsapi

PAGE = (Path(__file__).parents[2] / "docs" / "server-sessions.md").read_text(encoding="utf-8")


def test_two_pools_of_three_server_sessions_serve_two_queues(
    broker_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    with jmsapi.connection_factory(broker_url).create_connection() as connection:
        selects = jmsapi.capabilities(connection).queue_selector
    number = uuid.uuid4().hex
    program = program.replace('"orders")', f'"orders.{number}")').replace('"returns")', f'"returns.{number}")')
    program = program.replace('"inproc://shop"', repr(broker_url))
    if not selects:
        program = program.replace("\"country = 'DE'\"", "None")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "program.py"), run_name="__main__")
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "order 0", "order 1", "order 2", "return kettle"]
