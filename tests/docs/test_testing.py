"""The programs of docs/testing.md run as they stand; the application's tests that it shows pass, and fail as it says."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
FILES = {found[1]: block for block in BLOCKS if (found := re.match(r"# (\w+\.py)\n", block))}
PROGRAMS = [block for block in BLOCKS if block not in FILES.values()]


@pytest.mark.program
@pytest.mark.parametrize(("number", "printed"), [(0, "A KETTLE\n"), (1, "a kettle\n")])
def test_a_program_of_the_page_runs(number: int, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[number], encoding="utf-8")
    runpy.run_path(str(file))
    assert capsys.readouterr().out == printed


def test_no_program_of_the_page_is_left_out() -> None:
    assert len(PROGRAMS) == 2
    assert sorted(FILES) == ["shop.py", "test_shop.py"]


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "jmsapi.testing.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
    ]
    return subprocess.run([*command, str(folder)], cwd=folder, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.program
def test_the_application_s_own_tests_pass_without_a_broker(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    shown = [block for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "jms_broker" in block]
    (tmp_path / "test_readme.py").write_text("import shop\n\n" + "".join(shown), encoding="utf-8")
    ran = run_tests(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "8 passed" in ran.stdout


@pytest.mark.program
def test_a_test_that_fails_shows_the_story(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text(
        """
def test_wrong_body(jms_broker, jms_context):
    jms_context.create_producer().set_property("total", 40).send(jms_context.create_queue("orders"), "a kettel")
    jms_broker.queue("orders").assert_received("a kettle", within=0)


def test_fault_that_never_comes(jms_broker):
    jms_broker.faults.fail("send")


def test_its_own_failure_comes_before_that(jms_broker):
    jms_broker.faults.fail("send")
    assert 1 == 2


def test_each_test_has_its_own_broker(jms_broker, jms_clock):
    assert jms_broker.clock is jms_clock
    jms_broker.queue("orders").assert_not_received()
""",
        encoding="utf-8",
    )
    ran = run_tests(tmp_path)
    assert ran.returncode == 1
    assert "3 failed, 1 passed" in ran.stdout
    assert "AssertionError: queue 'orders' was not sent a message with body 'a kettle' within 0 s" in ran.stdout
    assert "its body is 'a kettel'" in ran.stdout
    assert "- jms_broker -" in ran.stdout, "the report has a section of its own"
    assert "planned, but it never came: fail send, number 1 (0 calls so far)" in ran.stdout
    assert "assert 1 == 2" in ran.stdout
    # The line of the test is shown, not the inside of the kit.
    assert "test_wrong.py:4: AssertionError" in ran.stdout


@pytest.mark.program
def test_the_kit_needs_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import jmsapi.testing; jmsapi.testing.EmbeddedBroker().close()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert (ran.returncode, ran.stderr) == (0, "")
