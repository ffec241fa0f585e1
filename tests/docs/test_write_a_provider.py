"""The page about writing a provider quotes the example, which is certified by a test of its own."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-a-provider.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "provider-board"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_what_is_quoted_stands_in_the_example() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (EXAMPLE / "jmsapi_board").glob("*.py"))
    quoted = [block for block in blocks("python") if "Certify" not in block]
    assert len(quoted) == 2
    for block in quoted:
        # They stand inside of classes.
        assert textwrap.indent(block, "    ") in source
    (metadata,) = blocks("toml")
    assert metadata in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


def test_the_two_lines_bring_in_the_suite() -> None:
    (lines,) = [block for block in blocks("python") if "Certify" in block]
    names: dict[str, object] = {}
    exec(lines, names)
    assert type(names["certified"]).__name__ == "Certify"
