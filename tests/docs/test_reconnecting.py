"""Each line of the contract in docs/reconnecting.md has its test, and each option is there as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jmsapi.spi.options import FailoverOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reconnecting.md").read_text(encoding="utf-8")
CONTRACT = PAGE.partition("## The contract")[2].partition("\n## ")[0]
LINES = [line for line in CONTRACT.splitlines() if line.startswith("| ") and not line.startswith("| what holds")]
TESTS = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_reconnecting*.py") if path.parent.name != "docs"
)


@pytest.mark.parametrize("line", LINES)
def test_each_line_of_the_contract_names_a_test_that_exists(line: str) -> None:
    named = re.fullmatch(r"\| .* \| `(\w+)` \|", line)
    assert named is not None, "a line without a test"
    assert re.search(rf"^(def|class) {named[1]}\(", TESTS, re.MULTILINE), f"there is no {named[1]}"


def test_the_contract_is_not_empty() -> None:
    assert len(LINES) > 25


def test_the_table_has_every_option_with_its_default() -> None:
    shown = dict(re.findall(r"^\| `\w+` \| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
    fields = {name: field for name, field in FailoverOptions.model_fields.items() if name != "servers"}
    assert set(shown) == set(fields)
    for name, field in fields.items():
        default = "twice the heart-beat" if field.default is None else str(field.default).lower()
        assert shown[name] == default, name
        assert f"| `{field.alias or name}` | `{name}` |" in PAGE
