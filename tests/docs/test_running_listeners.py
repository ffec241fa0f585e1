"""The programs on the page about running listeners run as they stand, in process and on real brokers."""

from __future__ import annotations

import re
import runpy
import uuid
from pathlib import Path

import pytest

import jmsapi
from jmsapi.listener import ActivationSpec

PAGE = (Path(__file__).parents[2] / "docs" / "running-listeners.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
PRINTED = ["a parcel with a kettle\nTrue\n", "", "a parcel with a kettle\n", "ten 4\nValueError: ten is no amount\n"]
NAMES = ["orders", "lifespan", "asynchronous", "payments"]


@pytest.mark.parametrize(("program", "printed"), list(zip(PROGRAMS, PRINTED, strict=True)), ids=NAMES)
def test_the_programs_run(
    broker_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, printed: str
) -> None:
    with jmsapi.connection_factory(broker_url).create_connection() as connection:
        transactions = jmsapi.capabilities(connection).transactions
    number = uuid.uuid4().hex
    for name in ("orders", "parcels", "payments.dead", "payments"):
        program = program.replace(f'"{name}"', f'"{name}.{number}"')
    program = program.replace('"inproc://shop"', repr(broker_url))
    if not transactions:
        without = '@JMSListenerProperty("transactionAttribute", "NotSupported")'
        program = program.replace("@JMSQueueListener()", f"@JMSQueueListener()\n{without}")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "program.py"), run_name="__main__")
    assert capsys.readouterr().out == printed


def test_every_property_that_the_page_names_is_one() -> None:
    known = {field.alias for field in ActivationSpec.model_fields.values()}
    assert {name for name in re.findall(r"`([a-z]+[A-Z][A-Za-z]+)`", PAGE) if not name.startswith("JMS")} <= known
