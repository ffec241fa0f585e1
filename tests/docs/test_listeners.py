"""The programs on the page about listeners run as they stand, the first one on real brokers, too, and its tables are complete."""

from __future__ import annotations

import re
import runpy
import uuid
from pathlib import Path

import pytest

import jmsapi
from jmsapi.listener import ActivationSpec

PAGE = (Path(__file__).parents[2] / "docs" / "listeners.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def run(program: str, folder: Path) -> None:
    (folder / "program.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(folder / "program.py"), run_name="__main__")


def test_a_class_takes_orders(broker_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with jmsapi.connection_factory(broker_url).create_connection() as connection:
        has = jmsapi.capabilities(connection)
    program = PROGRAMS[0].replace("shop.orders", f"shop.orders.{uuid.uuid4().hex}").replace('"inproc://shop"', repr(broker_url))
    if not has.transactions:
        program = program.replace("class Shop:", "@TransactionAttribute.NOT_SUPPORTED\nclass Shop:")
        program = program.replace("MessageProperty, deploy", "MessageProperty, TransactionAttribute, deploy")
    if not has.map_message:
        program = program.replace('{"item": "cups", "count": 6}', """'{"item": "cups", "count": 6}'""")
    run(program, tmp_path)
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "2 kettles for DE", "6 cups for FR"]


def test_all_programs_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("\n".join(PROGRAMS).replace("inproc://shop", f"inproc://{uuid.uuid4()}"), tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:2]) == ["2 kettles for DE", "6 cups for FR"]
    assert lines[2:4] == ["audit.on_order priority > 5", "office"]


def test_the_table_has_every_property_with_its_default() -> None:
    table = PAGE.partition("<!-- properties -->")[2].partition("\n\n")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| (\S*) ?\|", table, re.MULTILINE))
    spec = ActivationSpec.model_validate({"destination": "q", "destinationType": "javax.jms.Queue"})
    assert list(shown) == [field.alias for field in ActivationSpec.model_fields.values()]
    for name, field in ActivationSpec.model_fields.items():
        default = None if field.is_required() or name == "destination" else getattr(spec, name)
        assert shown[str(field.alias)] == ("" if default is None else f"`{getattr(default, 'value', default)}`"), name
