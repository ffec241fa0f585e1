"""Makes docs/brokers/support-matrix.md: each cell of the table in support_matrix.toml, what is found there, and what shows it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import capability_table as tables

from jmsapi.spi import Level
from jmsapi_conformance.brokers import KINDS, BrokerKind
from jmsapi_conformance.document import Column
from jmsapi_conformance.inventory import chapter_of
from jmsapi_conformance.verdicts import Verdict

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "brokers" / "support-matrix.md"
MATRIX = Path(__file__).with_name("support_matrix.toml")
SUITE = ROOT / "conformance" / "jmsapi_conformance" / "suite"
INTEROP = ROOT / "tests" / "interop"
COLUMNS: dict[str, tuple[BrokerKind, str]] = {
    f"{kind[0].upper()}{wire[0]}": (kind, wire) for wire in tables.WIRES for kind in KINDS
}
LETTERS = {Level.NATIVE: "N", Level.EMULATED: "E", Level.NONE: "X"}
JAVA = ("qpid-jms", "openwire")
HOLDS = (Verdict.PASS, Verdict.EMULATED)
# Fixtures that stand for some brokers only.
SOME: dict[str, tuple[str, ...]] = {
    **{kind: (kind,) for kind in KINDS},
    "jms_broker": ("artemis", "classic"),
    "java_broker": ("artemis", "classic"),
    "sharing_broker": ("artemis", "rabbitmq"),
}
HEAD = """<!-- Made by `make docs`; do not edit by hand. -->
# Support matrix

What the brokers were found to be able to do by each wire when jmsapi was designed, and what jmsapi makes of it: every feature on
each broker, Artemis 2.56.0, ActiveMQ Classic 6.3.1 and RabbitMQ 4.0.5, over AMQP 1.0 and STOMP 1.2.

**N** native, **E** supplied by the client, **X** not there and refused by name, or not promised, **-** cannot be asked. `E > X`:
expected E, found X; why, and what the broker answered, stands under [Deviations](#deviations). `X (tx)`: the client supplies it
with a weaker promise when the URL says `?emulate=tx`. A number is that of an [option](#options) without which there is nothing.
What is found comes from the [certificates](../capabilities.md) and from the tests named [below](#what-shows-it).

"""


class MatrixError(Exception):
    """The file of cells names something that is not there."""


@dataclass(frozen=True, slots=True)
class Row:
    """A feature on six columns."""

    feature: str
    expected: dict[str, str]
    note: str = ""
    capability: list[str] = field(default_factory=list[str])
    behaviour: str = ""
    interop: list[str] = field(default_factory=list[str])
    to: list[str] = field(default_factory=list[str])
    requirements: list[str] = field(default_factory=list[str])
    tests: list[str] = field(default_factory=list[str])
    option: dict[str, str] = field(default_factory=dict[str, str])
    deviation: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    @property
    def anchor(self) -> str:
        """What the row is linked by."""
        return re.sub(r"[^a-z0-9]+", "-", self.feature.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A number, or how a broker goes about something, on six columns."""

    name: str
    expected: dict[str, str]
    is_field: bool = False
    found: dict[str, object] = field(default_factory=dict[str, object])
    note: str = ""
    requirements: list[str] = field(default_factory=list[str])
    tests: list[str] = field(default_factory=list[str])


def load(path: Path = MATRIX) -> tuple[list[Row], list[Behaviour]]:
    """Read the file of cells."""
    data: dict[str, list[dict[str, Any]]] = tomllib.loads(path.read_text(encoding="utf-8"))
    rows: list[Row] = []
    for told in data["row"]:
        told["expected"] = _six(told["expected"].split())
        told["deviation"] = {column: (str(found), str(why)) for column, (found, why) in told.get("deviation", {}).items()}
        rows.append(Row(**told))
    behaviours: list[Behaviour] = []
    for told in data["behaviour"]:
        told["expected"] = _six(told["expected"])
        told["found"] = _six(told.get("found", []))
        behaviours.append(Behaviour(**told))
    return rows, behaviours


def _six(values: list[Any]) -> dict[str, Any]:
    return dict(zip(COLUMNS, values, strict=True)) if values else {}


@cache
def certificates() -> dict[str, Column]:
    """Return the certificates of the six columns."""
    found = tables.certificates()
    return {column: found[tables.heading(kind, wire)] for column, (kind, wire) in COLUMNS.items()}


# ---------------------------------------------------------------- what is found


def found(row: Row, column: str, behaviours: Iterable[Behaviour]) -> str:
    """Return the letter of a cell."""
    if row.capability:
        claims = tables.claims(certificates()[column])
        return _worst(LETTERS[claims.of(name).level] for name in row.capability)
    if row.behaviour:
        return "N" if next(one.found[column] for one in behaviours if one.name == row.behaviour) else "X"
    if row.interop and (outcomes := crossed(row, column)):
        kept = all(outcome == "+" for outcome in outcomes.values())
        return ("E" if row.expected[column] == "E" else "N") if kept else "X"
    return row.deviation[column][0] if column in row.deviation else row.expected[column]


def _worst(letters: Iterable[str]) -> str:
    return max(letters, key="NEX".index)


def crossed(row: Row, column: str) -> dict[str, str]:
    """Return by route and aspect what tests/interop says arrives of what the column's client sends; empty without a route."""
    kind, wire = COLUMNS[column]
    return {
        f"{route}: {aspect}": _outcome(route, aspect)
        for reader in _readers(kind)
        if reader != wire and reader in (row.to or JAVA)
        for aspect in row.interop
        for route in [f"{kind}: {wire} > {reader}"]
    }


@cache
def _readers(kind: BrokerKind) -> tuple[str, ...]:
    """Return the clients that the matrix of tests/interop has on a broker: read, for to import it takes a fixture."""
    tree = ast.parse((INTEROP / "test_matrix.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "FULL" and node.value:
            return tuple(ast.literal_eval(node.value)[kind])
    raise MatrixError("tests/interop/test_matrix.py has no FULL")


@cache
def _deviations() -> list[dict[str, Any]]:
    told: dict[str, list[dict[str, Any]]] = tomllib.loads((INTEROP / "deviations.toml").read_text(encoding="utf-8"))
    return told["deviation"]


def _outcome(route: str, aspect: str) -> str:
    result = "+"
    for one in _deviations():
        if any(fnmatchcase(aspect, a) for a in one["aspects"]) and any(fnmatchcase(route, r) for r in one["routes"]):
            result = str(one["outcome"])
    return result


# ---------------------------------------------------------------- what shows it


def shown_by(row: Row | Behaviour, column: str) -> list[str]:
    """Return what shows a cell: claims that the suite tries, requirements that say something there, and tests."""
    result: list[str] = []
    if isinstance(row, Row):
        result += [f"claim {name}" for name in row.capability if name in held()]
        result += ["interop"] if row.interop and crossed(row, column) else []
        result += [f"behaviour {row.behaviour}"] if row.behaviour else []
    verdicts = certificates()[column].requirements
    result += [one for one in row.requirements if verdicts.get(one, Verdict.NOT_APPLICABLE) is not Verdict.NOT_APPLICABLE]
    return result + [name for name in row.tests if column in columns_of(name)]


@cache
def held() -> set[str]:
    """Return the capabilities that a test of the suite needs: their claims have been tried where a certificate says so."""
    calls = [
        node
        for path in sorted(SUITE.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "needs"
    ]
    return {str(argument.value) for call in calls for argument in call.args if isinstance(argument, ast.Constant)}


def columns_of(test: str) -> list[str]:
    """Return the columns that a test shows something of.

    Raises:
        MatrixError: There is no such test.
    """
    name, _, named = test.partition(" on ")
    path, _, function = name.partition("::")
    arguments = functions(path).get(function)
    if arguments is None:
        raise MatrixError(f"{name}: no such test")
    if named:
        return named.split()
    wires = [wire for wire in tables.WIRES if f"/{wire}/" in path] or list(tables.WIRES)
    kinds = {kind for argument in arguments for kind in SOME.get(argument, ())} or set(KINDS)
    return [column for column, (kind, wire) in COLUMNS.items() if kind in kinds and wire in wires]


@cache
def functions(path: str) -> dict[str, list[str]]:
    """Return the tests of a file with their arguments."""
    file = ROOT / path
    if not file.is_file():
        raise MatrixError(f"{path}: no such file")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name: [argument.arg for argument in node.args.args]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def wrong(row: Row, behaviours: Iterable[Behaviour]) -> list[str]:
    """Return what is wrong with a row: cells that nothing shows or that are not as told, deviations that are none."""
    result: list[str] = []
    for column in COLUMNS:
        here, expected, deviation = found(row, column, behaviours), row.expected[column], row.deviation.get(column)
        if expected == "-":
            continue
        if not shown_by(row, column):
            result.append(f"{column}: nothing shows it")
        result += [f"{column}: {one}" for one in _verdicts(row.requirements, column, here)]
        if column in row.option and here != "X":
            result.append(f"{column}: found {here} without ?{row.option[column]}")
        if here == expected and deviation:
            result.append(f"{column}: the deviation is none")
        elif deviation and (deviation[0] != here or len(deviation[1]) < 10):
            result.append(f"{column}: found {here}, which the deviation does not say")
        elif here != expected and not deviation and column not in row.option:
            result.append(f"{column}: found {here}, not {expected}, and no deviation says so")
    return result


def _verdicts(requirements: list[str], column: str, here: str) -> list[str]:
    """Return what the verdicts over a row's requirements say against what is found."""
    all_of_column = certificates()[column].requirements
    verdicts = {one: all_of_column.get(one, Verdict.NOT_APPLICABLE) for one in requirements}
    result = [f"{one} FAILs" for one, verdict in verdicts.items() if verdict is Verdict.FAIL]
    holds = [one for one, verdict in verdicts.items() if verdict in HOLDS]
    if here == "X":
        result += [f"found X, and {one} holds" for one in holds]
    elif verdicts and not holds:
        result.append(f"found {here}, and none of {', '.join(verdicts)} holds")
    return result


# ---------------------------------------------------------------- the page


def pages() -> dict[Path, str]:
    """Return the page."""
    rows, behaviours = load()
    options = list(dict.fromkeys(option for row in rows for option in row.option.values()))
    parts = [HEAD, "## The table\n\n", *_table(rows, behaviours, options)]
    parts.append("\n## Options\n\n")
    for number, option in enumerate(options, 1):
        of = [
            f"{row.feature} ({tables.heading(*COLUMNS[column])})"
            for row in rows
            for column, o in row.option.items()
            if o == option
        ]
        parts.append(f"{number}. `?{option}`: {'; '.join(of)}\n")
    parts.append("\n## Deviations\n")
    for row in rows:
        if row.deviation:
            parts.append(f"\n### {row.feature}\n\n")
            for column, (letter, why) in row.deviation.items():
                parts.append(f"- {tables.heading(*COLUMNS[column])}, {row.expected[column]} > {letter}: {why}.\n")
    parts.append("\n## What shows it\n\n")
    for row in rows:
        parts.append(f'- <a id="{row.anchor}"></a>**{row.feature}**: {_shown(row)}\n')
    parts.append("\n## Numbers and behaviour\n\nThose with a name in `code` are fields of `Capabilities`.\n\n")
    parts.append(
        "| | " + " | ".join(tables.heading(*place) for place in COLUMNS.values()) + " |\n|---|" + "---|" * len(COLUMNS) + "\n"
    )
    for one in behaviours:
        name = f"`{one.name}`" if one.is_field else one.name
        cells = [f"{one.expected[column]}{_field(one, column)}" for column in COLUMNS]
        parts.append(f"| {name} | " + " | ".join(cells) + " |\n")
    parts.append("\n")
    for one in behaviours:
        parts.append(f"- **{one.name}**: {_shown(one)}\n")
    return {PAGE: "".join(parts)}


def _field(one: Behaviour, column: str) -> str:
    if not one.is_field:
        return ""
    value = one.found[column]
    return f": `{value}`" if isinstance(value, bool) or value else ": `None`"


def _table(rows: list[Row], behaviours: list[Behaviour], options: list[str]) -> list[str]:
    lines = [
        "| | " + " | ".join(tables.heading(*place) for place in COLUMNS.values()) + " |\n|---|" + "---|" * len(COLUMNS) + "\n"
    ]
    for row in rows:
        cells: list[str] = []
        for column in COLUMNS:
            here, wanted = found(row, column, behaviours), row.expected[column]
            text = f"{wanted} ({options.index(row.option[column]) + 1})" if column in row.option else here
            if column in row.deviation:
                text = f"**{wanted} > {here}**"
            claims = tables.claims(certificates()[column])
            ways = dict.fromkeys(way for name in row.capability if (way := claims.of(name).emulate)) if here == "X" else {}
            cells.append(" ".join([text, *(f"({way})" for way in ways)]))
        lines.append(f"| [{row.feature}](#{row.anchor}) | " + " | ".join(cells) + " |\n")
    return lines


def _shown(row: Row | Behaviour) -> str:
    parts = [f"{row.note}"] if row.note else []
    if isinstance(row, Row):
        if row.capability:
            parts.append(f"The certificates' {', '.join(f'`{name}`' for name in row.capability)}.")
        if row.behaviour:
            parts.append(f"`{row.behaviour}`, [below](#numbers-and-behaviour).")
        if row.interop:
            parts.append(f"The matrix of [tests/interop](../interop.md): {', '.join(row.interop)}.")
    if row.requirements:
        links = [f"[{one}](../specification/{chapter_of(one).lower()}.md#{one.lower()})" for one in row.requirements]
        parts.append(f"Requirements {', '.join(links)}.")
    if row.tests:
        named = [name.partition(" on ")[0].partition("::") for name in row.tests]
        links = [f"[{name.removeprefix('test_').replace('_', ' ')}](../../{path})" for path, _, name in named]
        parts.append(f"Tests: {'; '.join(links)}.")
    return " ".join(parts)
