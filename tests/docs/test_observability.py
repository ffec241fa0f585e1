"""The page about traces, metrics and health: its program prints what it says, and its tables name what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from jmsapi.listener.health import EndpointHealth

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")
SOURCES = "\n".join(path.read_text() for path in (Path(__file__).parents[2] / "jmsapi" / "otel").rglob("*.py"))


@pytest.mark.program
def test_the_program_prints_the_tree_that_the_page_shows(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    # In a process of its own: it sets what is watched for all of one.
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert (ran.stdout, ran.stderr) == (printed, "")


def test_the_page_names_every_metric() -> None:
    made = set(re.findall(r'"((?:messaging\.client|messaging\.process|jmsapi\.client)\.[a-z_.]+)"', SOURCES)) - {
        "messaging.client.id"
    }
    assert made == set(re.findall(r"^\| `((?:messaging|jmsapi)\.[a-z_.]+)` \|", PAGE, flags=re.MULTILINE))


def test_the_page_names_all_that_health_tells() -> None:
    table = PAGE.partition("| of an endpoint |")[2]
    named = {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")}
    assert named == {one.name for one in fields(EndpointHealth)} - {"name"} | {"healthy"}
