"""The requirements of JMS 2.0 as data: what a test may name, and what has no test yet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

__all__ = ["CHAPTERS", "Requirement", "by_id", "chapter_of", "chapter_title", "load", "pick", "section_title"]

CHAPTERS: Final[dict[str, str]] = {
    "1": "Introduction",
    "2": "Architecture",
    "3": "Message model",
    "4": "Common facilities",
    "5": "Point-to-point",
    "6": "Publish/subscribe",
    "7": "Exceptions",
    "8": "Application server facilities",
    "9": "Examples",
    "10": "Platform use",
    "11": "Simplified API",
    "12": "Resource adapter",
    "A": "Issues",
    "B": "Change history",
    "SHS": "Shared subscriptions",
    "J11": "JMS 1.1",
    "ASF": "Server session pools",
    "MDB": "Listener methods",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence of the specification that a test can hold a provider to."""

    id: str
    """Section (of the public review text) or series, a hyphen, a number; stable."""
    group: str
    """The part of the inventory it belongs to, such as ``ch4-common``."""
    level: str
    """must, should, may, optional, superseded."""
    scope: str
    """api (needs no broker), provider, broker."""
    text: str
    api: tuple[str, ...]
    test: str
    """How to see whether it holds."""
    note: str = ""
    elsewhere: str = ""
    """What it takes that one process with a URL does not have, and the test of the project that has it, if any."""


@lru_cache(maxsize=1)
def _data() -> tuple[dict[str, Requirement], dict[str, str]]:
    data = files("jmsapi_conformance") / "data"
    raw = json.loads((data / "requirements.json").read_text(encoding="utf-8"))
    elsewhere = json.loads((data / "elsewhere.json").read_text(encoding="utf-8"))
    found: dict[str, Requirement] = {}
    chapters = list(CHAPTERS)
    for entry in sorted(raw["requirements"], key=lambda entry: chapters.index(chapter_of(entry["id"]))):
        found[entry["id"]] = Requirement(
            id=entry["id"],
            group=entry["group"],
            level=entry["level"],
            scope=entry["scope"],
            text=entry["text"],
            api=tuple(entry["api"]),
            test=entry["test"],
            note=entry.get("note") or "",
            elsewhere=elsewhere.get(entry["id"], ""),
        )
    return found, dict(raw["sections"])


def load() -> tuple[Requirement, ...]:
    """Return every requirement, in the order of the specification."""
    return tuple(_data()[0].values())


def by_id(requirement_id: str) -> Requirement:
    """Return one requirement.

    Raises:
        KeyError: There is none of that id.
    """
    return _data()[0][requirement_id]


def section_title(requirement_id: str) -> str:
    """Return the title of a requirement's section, or an empty text where the inventory has none."""
    return _data()[1].get(requirement_id.rsplit("-", 1)[0], "")


def chapter_of(requirement_id: str) -> str:
    """Return the chapter or series of an id: ``4`` of ``4.4.1-2``, ``SHS`` of ``SHS-7``."""
    found = re.match(r"[0-9A-Z]+", requirement_id)
    return found.group() if found else requirement_id


def chapter_title(chapter: str) -> str:
    """Return a chapter's number or a series' name with its title."""
    return f"{chapter} {CHAPTERS.get(chapter, '')}".strip()


def pick(requirements: Iterable[Requirement], start: str | None) -> tuple[Requirement, ...]:
    """Return those whose group begins with ``start``, or whose id lies in the section ``start``; all for None."""
    if start is None:
        return tuple(requirements)
    within = re.compile(re.escape(start) + r"(?![0-9])")
    return tuple(one for one in requirements if one.group.startswith(start) or within.match(one.id))
