"""The programs of docs/store.md and docs/xa.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jmsapi

DOCS = Path(__file__).parents[2] / "docs"


def program_of(page: str) -> str:
    """Return the one program of a page."""
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return program


def test_the_program_of_the_store_keeps_its_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program_of("store.md"), "program", "exec"), {"folder": tmp_path})
    assert capsys.readouterr().out == "a kettle\n"
    assert (tmp_path / "broker.db").exists()


def test_the_program_of_distributed_transactions_sends_its_order() -> None:
    factory = jmsapi.connection_factory("inproc://docs-xa")
    jmsapi.register_object("shop", factory)
    try:
        exec(compile(program_of("xa.md"), "program", "exec"), {})
    finally:
        jmsapi.register_object("shop", None)
    with factory.create_context() as context:
        assert context.create_consumer(context.create_queue("orders")).receive_body(str, 20_000) == "a kettle"
