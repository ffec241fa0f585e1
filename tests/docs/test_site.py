"""The documentation site: it builds without a warning, its reference follows the program, and its tutorial runs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import Field, create_model

from jmsapi.spi.options import ProviderOptions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_pages", Path(__file__).parent / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_program_says(reference: ModuleType) -> None:
    for path, text in reference.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: make docs"


def test_a_change_of_a_model_changes_the_reference(reference: ModuleType) -> None:
    changed = create_model(
        "Changed", __base__=ProviderOptions, new_option=(int, Field(default=7, description="What it does", alias="new.option"))
    )
    text = reference.options_page({**reference.models(), "stomp": changed})
    assert "| `new.option` | What it does | whole number | `7` | stomp |" in text
    assert text != (reference.FOLDER / "options.md").read_text(encoding="utf-8")


def test_every_option_has_a_meaning(reference: ModuleType) -> None:
    for page in ("options.md", "configuration.md"):
        for line in (reference.FOLDER / page).read_text(encoding="utf-8").splitlines():
            if line.startswith("| `"):
                assert re.match(r"\| `[^`]+` \| [^| ]", line), line


@pytest.mark.program
@pytest.mark.timeout(400)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="needs the group dev")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=390)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "reference" / "options.html").read_text(encoding="utf-8")
    assert "connect_timeout_ms" in page
    assert "create_context" in (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")


@pytest.mark.program
def test_the_tutorial_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in blocks] == ["shop.py", "worker.py", "try_it.py"]
    for name, code in blocks:
        (tmp_path / name).write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "try_it.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "parcel with one kettle\n", "")


def test_every_command_that_a_page_shows_exists(reference: ModuleType) -> None:
    known = set(re.findall(r"^## jmsapi (\S+)", (reference.FOLDER / "commands.md").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {
        (path.name, name)
        for path in (ROOT / "docs").glob("*.md")
        for block in re.findall(r"```sh\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        for name in re.findall(r"^jmsapi ([a-z]\S*)", block, re.MULTILINE)
    }
    assert {(page, name) for page, name in shown if name not in known} == set()
    assert len(shown) > 10
