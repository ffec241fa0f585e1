"""Makes what comes from data, in docs/ and README.md: specification, its rules in the code, capabilities, Java API, reference.

make docs                                   # writes them
python tests/docs/build_pages.py --check    # code 1, and their names, if some are stale; nothing is written
"""

from __future__ import annotations

import sys
from pathlib import Path

import asyncio_columns
import capability_page
import capability_table
import coming_from_java
import reference_pages
import rule_page
import specification_pages
import support_matrix_page

ROOT = Path(__file__).parents[2]


def pages() -> dict[Path, str]:
    """Return the text of every page that is made."""
    return {
        **asyncio_columns.pages(),
        **capability_table.pages(),
        **capability_page.pages(),
        **support_matrix_page.pages(),
        **coming_from_java.pages(),
        **reference_pages.pages(),
        **specification_pages.pages(),
        **rule_page.pages(),
    }


def main(arguments: list[str]) -> int:
    """Write what is stale, or only say so."""
    made = pages()
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    left = [path for path in specification_pages.FOLDER.glob("*.md") if path not in made]
    for path in (*stale, *left):
        print(path.relative_to(ROOT))
    if arguments == ["--check"]:
        return 1 if stale or left else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
