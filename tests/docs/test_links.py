"""Every link of the documentation leads somewhere: to a file that is there, and to a heading in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "conformance").glob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
]
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


def without_code(text: str) -> str:
    """Return a page without its code, in which brackets mean something else."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", lambda code: "x" * len(code.group()), text)


@cache
def anchors(path: Path) -> set[str]:
    """Return what can be linked to in a page: its headings, by the rule of the forges, and its own marks."""
    text = path.read_text(encoding="utf-8")
    found = set(re.findall(r'<a id="([^"]+)"', text))
    times: dict[str, int] = {}
    for title in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        times[slug] = times.get(slug, 0) + 1
        found.add(slug if times[slug] == 1 else f"{slug}-{times[slug] - 1}")
    return found


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    wrong: list[str] = []
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            if not re.match(r"https?://[\w.-]+(/|$)|mailto:", target):
                wrong.append(target)
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        there = path.exists() and path.is_relative_to(ROOT)
        if there and anchor:
            there = path.is_file() and (path.suffix != ".md" or anchor in anchors(path))
        if not there:
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "b.md").write_text("# Here it is\n```\n# not here\n```\n<a id='x'></a>", encoding="utf-8")
    page = tmp_path / "a.md"
    right = "[1](b.md) [2](b.md#here-it-is) `[3](nowhere.md)` [4](https://example.org/x)"
    wrong = "[5](b.md#not-here) [6](c.md) [7](../../x) [8](#top)"
    page.write_text(f"{right} {wrong}\n```\n[9](nowhere.md)\n```\n", encoding="utf-8")
    assert broken(page) == ["b.md#not-here", "c.md", "../../x", "#top"]


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        targets = LINK.findall(without_code(page.read_text(encoding="utf-8")))
        todo += [(page.parent / target.partition("#")[0]).resolve() for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md") if page not in seen] == []
