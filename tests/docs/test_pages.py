"""What comes from data in docs/ and README.md is as its data say, and the program that Java people see first runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = Path(__file__).with_name("build_pages.py")


@pytest.mark.program
def test_no_page_is_stale() -> None:
    done = subprocess.run([sys.executable, str(BUILD), "--check"], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, f"out of date, so `make docs`:\n{done.stdout}{done.stderr}"


def test_the_program_for_java_people_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "coming-from-java.md").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    exec(compile(program.replace("inproc://shop", "inproc://coming-from-java"), "program", "exec"), {})
    assert capsys.readouterr().out == "a kettle 40\n"


def test_every_method_of_the_java_api_is_listed() -> None:
    page = (ROOT / "docs" / "coming-from-java.md").read_text(encoding="utf-8")
    data = (ROOT / "conformance" / "jmsapi_conformance" / "data" / "api.yaml").read_text(encoding="utf-8")
    methods = re.findall(r"^      - java: (\w+)$", data, flags=re.MULTILINE)
    overloads = re.findall(r"^          - \{params: ", data, flags=re.MULTILINE)
    assert len(methods) > 300
    assert len(overloads) == int(re.findall(r"java_methods: (\d+)", data)[0])
    listed = re.findall(r"`[\w<>.\[\], ?]+ (\w+)\([^`]*\)`", page)
    for name in set(methods):
        assert listed.count(name) >= methods.count(name), name


def test_a_page_leads_from_a_requirement_to_its_tests() -> None:
    page = (ROOT / "docs" / "specification" / "4.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if '<a id="4.4.7-1"></a>' in line)
    files = re.findall(r"\]\((.*?)\)", row)
    assert files
    for file in files:
        assert 'requirement("4.4.7-1"' in (ROOT / "docs" / "specification" / file).read_text(encoding="utf-8")


def test_a_page_leads_from_a_section_to_the_module_that_keeps_its_rules() -> None:
    page = (ROOT / "docs" / "where-is-each-rule.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| 4.4.11 "))
    assert "| 6.2 |" in row
    assert "jmsapi/_core/acknowledgement/ledger.py" in row
    assert "suite/ch04_4_11_acknowledgment.py" in row
    empty = [
        line.split("|")[1].strip() for line in page.splitlines() if re.match(r"\| [34]\.", line) and line.split("|")[4].isspace()
    ]
    assert empty == []


def test_the_program_that_sends_a_dataclass_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "objects.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    # A dataclass looks for the module that it is defined in.
    exec(compile(program.replace("inproc://shop", "inproc://objects-page"), "program", "exec"), {"__name__": __name__})
    assert capsys.readouterr().out == "Order(item='kettle', count=2)\n"
