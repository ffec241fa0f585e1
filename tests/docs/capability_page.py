"""Makes docs/capabilities.md from the certificates: what each provider can do on each broker, and why not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import capability_table as tables

from jmsapi.spi import Capabilities, Level

PAGE = Path(__file__).parents[2] / "docs" / "capabilities.md"
HEAD = """<!-- Made by `make docs`; do not edit by hand. -->
# Capabilities

What each provider can do on each broker, as it says itself; the conformance suite holds it to that: what is claimed must hold,
what is not claimed must be refused by name. `jmsapi capabilities --url URL` asks a running broker,
`jmsapi.capabilities(connection)` does so in a program. What each broker was found to be able to do, and what shows that it is so
here, stands in the [support matrix](brokers/support-matrix.md).

**N** native, **E** supplied by the client with the same promise, **(E)** with a weaker one that must be asked for
(`?emulate=...`), **-** not there. Asking for a *feature* that is not there raises `UnsupportedFeatureException` before anything
is sent; a *quality* that is not there is a promise that does not hold. The reasons stand below the tables.

"""


def pages() -> dict[Path, str]:
    """Return the page."""
    columns = {title: tables.claims(column) for title, column in (tables.certificates() | tables.further()).items()}
    known = Capabilities("", "")
    features = [name for name in tables.TITLES if not known.is_quality(name)]
    qualities = [name for name in tables.TITLES if known.is_quality(name)]
    parts = [HEAD]
    for title, names in (("Features", features), ("Qualities", qualities)):
        parts.append(f"## {title}\n\n{_table(columns, names)}\n\n")
    parts += _with_options(features + qualities, columns)
    parts.append("## Reasons\n")
    for name in (*features, *qualities):
        reasons = [
            f"- {column}: {tables.cell(has.of(name))}"
            for column, has in columns.items()
            if has.of(name).level is not Level.NATIVE and has.of(name).note
        ]
        if reasons:
            parts.append(f"\n### {_title(name)}\n\n" + "\n".join(reasons) + "\n")
    return {PAGE: "".join(parts)}


def _with_options(names: list[str], plain: dict[str, Capabilities]) -> list[str]:
    """Return what options of the URL change, as the runs of the suite with them found it."""
    certificates = tables.certificates_with_options()
    if not certificates:
        return []
    claims = {title: tables.claims(column) for title, column in certificates.items()}
    parts = [
        "## With options\n\nThe suite also runs with all options of a URL that make more possible there. What changes by them:\n"
    ]
    for title, column in certificates.items():
        parts.append(f"\n### {title}, `?{column.options}`\n\n")
        for name in names:
            before, after = plain[title].of(name), claims[title].of(name)
            if before.level is not after.level:
                parts.append(f"- {_title(name)}: {tables.mark(before)} becomes {tables.cell(after)}\n")
        counts = Counter(column.verdicts().values())
        said = ", ".join(f"{counts[verdict]} {word}" for verdict, word in tables.VERDICTS.items() if counts[verdict])
        parts.append(f"- Requirements: {said}\n")
    parts.append("\n")
    return parts


def _title(name: str) -> str:
    title = tables.TITLES[name]
    return f"{title.removeprefix('... ')} (`{name}`)" if title.startswith("...") else f"{title[0].upper()}{title[1:]} (`{name}`)"


def _table(columns: dict[str, Capabilities], names: list[str]) -> str:
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name in names:
        lines.append(f"| {_title(name)} | " + " | ".join(tables.mark(has.of(name)) for has in columns.values()) + " |")
    return "\n".join(lines)
