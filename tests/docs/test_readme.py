"""The README's programs run as they stand, on every backend, with only the URL changed."""

from __future__ import annotations

import re
import runpy
import uuid
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(source: str, folder: Path) -> None:
    """Run a program from a file of its own."""
    program = folder / "program.py"
    program.write_text(source, encoding="utf-8")
    runpy.run_path(str(program), run_name="__main__")


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JMSAPI_CONFIG", raising=False)
    return tmp_path


def test_the_first_program_has_twelve_lines() -> None:
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 12


def test_the_first_program_runs_on_every_backend_by_changing_the_config_file_only(
    broker_url: str, in_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = blocks("toml")[0]
    assert 'url = "inproc://shop"' in config
    monkeypatch.setenv("BROKER_URL", broker_url)
    changed = config.replace('"inproc://shop"', '"${BROKER_URL}"')
    changed = changed.replace('name = "orders"', f'name = "readme.{uuid.uuid4().hex}"')
    (in_folder / "jmsapi.toml").write_text(changed, encoding="utf-8")
    run(blocks("python")[0], in_folder)
    assert capsys.readouterr().out == "one kettle to DE\n"


def test_the_first_program_runs_on_every_backend_by_changing_the_url_only(
    broker_url: str, in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = blocks("python")[0]
    source = source.replace('jmsapi.lookup("shop", jmsapi.ConnectionFactory)', f"jmsapi.connection_factory({broker_url!r})")
    (in_folder / "jmsapi.toml").write_text(f'[queues.orders]\nname = "readme.{uuid.uuid4().hex}"\n', encoding="utf-8")
    run(source, in_folder)
    assert capsys.readouterr().out == "one kettle to DE\n"


def test_the_line_for_another_broker_is_valid_configuration(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jmsapi

    line = blocks("toml")[1].strip()
    (in_folder / "jmsapi.toml").write_text(f"[factories.shop]\n{line}\n", encoding="utf-8")
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret")
    factory = jmsapi.lookup("shop", jmsapi.ConnectionFactory)
    assert "broker.example" in repr(factory)
    assert "s3cret" not in repr(factory)


def test_the_second_program_runs(in_folder: Path) -> None:
    run(blocks("python")[1], in_folder)
