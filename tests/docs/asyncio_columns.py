"""Makes the table of docs/asyncio.md: what the suite has found through ``jmsapi.aio``, from the certificates of that face."""

from __future__ import annotations

from pathlib import Path

import capability_table as tables

from jmsapi_conformance.document import Column

PAGE = tables.ROOT / "docs" / "asyncio.md"
BEGIN, END = "<!-- certificates -->", "<!-- /certificates -->"
PLACES = {
    "in process": ("inproc", "jmsapi in-process"),
    "Artemis AMQP": ("amqp", "artemis"),
    "ActiveMQ Classic STOMP": ("stomp", "classic"),
}


def columns() -> dict[str, Column]:
    """Return the certificates of the asyncio face, by heading."""
    found = {(column.provider, column.broker): column for column in tables.kept() if column.face == "aio"}
    return {title: found[place] for title, place in PLACES.items() if place in found}


def table() -> str:
    """Return the table."""
    found = columns()
    if not found:
        return "No certificate is kept here yet."
    blocking = {(column.provider, column.broker): column.verdicts() for column in tables.kept() if not column.variant}
    lines = ["| | " + " | ".join(found) + " |", "|---|" + "---|" * len(found)]
    lines.append("| broker | " + " | ".join(column.broker_version for column in found.values()) + " |")
    rows = tables.verdict_lines(found).strip().splitlines()
    same = [
        str(sum(verdict is blocking[column.provider, column.broker].get(name) for name, verdict in column.verdicts().items()))
        for column in found.values()
    ]
    rows.append("| *the same verdict as through the blocking API* | " + " | ".join(same) + " |")
    return "\n".join([*lines, *rows])


def pages() -> dict[Path, str]:
    """Return the text of the page as it should be."""
    return {PAGE: tables.replaced(PAGE.read_text(encoding="utf-8"), table(), BEGIN, END)}
