"""What a run found, for people: a table by chapter, and the failures.

Nothing that a broker or a test says can steer the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jmsapi._showing import escaped
from jmsapi_conformance.certificate import Certificate, chapters_of
from jmsapi_conformance.document import Document
from jmsapi_conformance.html import title_of
from jmsapi_conformance.inventory import Requirement, chapter_of, chapter_title, load
from jmsapi_conformance.verdicts import Verdict

__all__ = ["print_certificate", "print_matrix", "print_requirement", "print_without_test"]

_COLUMNS = {
    Verdict.PASS: ("pass", "green"),
    Verdict.EMULATED: ("emulated", "cyan"),
    Verdict.REFUSED: ("refused", "yellow"),
    Verdict.FAIL: ("FAIL", "bold red"),
    Verdict.NOT_APPLICABLE: ("n/a", "dim"),
    None: ("not run", "dim"),
}


def _safe(text: str) -> str:
    """Return text of somebody else's as rich may print it: neither markup nor control characters, but for line ends."""
    return escape(escaped(text, keep="\n\t"))


def print_certificate(certificate: Certificate, console: Console, *, verbose: bool = False) -> None:
    """Print failures, then the table, then one line that sums up."""
    for test in certificate.failures():
        console.print(f"[bold red]FAIL[/] {_safe(test.name)}  [dim]{', '.join(test.requirements)}[/]")
        console.print(f"  {_safe(test.detail if verbose else test.reason)}", highlight=False)
    for test in certificate.reports():
        console.print(f"[yellow]NEW[/], only reports: {_safe(test.name)}  [dim]{', '.join(test.requirements)}[/]")
        console.print(f"  {_safe(test.detail if verbose else test.reason)}", highlight=False)
    broker = f"{certificate.capabilities.broker} {certificate.capabilities.version}".strip()
    table = Table(
        title=_safe(f"{certificate.capabilities.provider} on {broker}, level {certificate.level}"), title_justify="left"
    )
    table.add_column("chapter")
    # Of a run with -k only what was run is counted, and nothing else is worth a column.
    columns = {key: shown for key, shown in _COLUMNS.items() if key is not None or not certificate.selection}
    for word, style in columns.values():
        table.add_column(word, justify="right", style=style)
    totals: Counter[Verdict | None] = Counter()
    for chapter, counts in certificate.chapters().items():
        totals.update(counts)
        table.add_row(chapter_title(chapter), *(_number(counts.get(key, 0)) for key in columns))
    table.add_section()
    table.add_row("requirements", *(_number(totals[key]) for key in columns), style="bold")
    console.print(table)
    tests = Counter(test.verdict for test in certificate.tests)
    said = ", ".join(f"{tests[key]} {word}" for key, (word, _) in _COLUMNS.items() if key is not None and tests[key])
    console.print(f"{len(certificate.tests)} tests in {certificate.seconds:.1f} s: {said}", highlight=False)


def _number(count: int) -> str:
    return str(count) if count else ""


def print_matrix(document: Document, console: Console) -> None:
    """Print a table of chapters and columns: how many requirements hold, and how many fail."""
    table = Table("holds, of", title="All backends", title_justify="left")
    counted = [chapters_of(column.verdicts(), only_run=bool(column.selection)) for column in document.certificates]
    for column in document.certificates:
        table.add_column(_safe(title_of(column)), justify="right", overflow="fold")
    for chapter in dict.fromkeys(chapter_of(one.id) for one in load()):
        if any(found.get(chapter, {}).keys() - {None} for found in counted):
            table.add_row(chapter_title(chapter), *(_share(found.get(chapter, {})) for found in counted))
    table.add_section()
    totals = [sum((Counter(chapter) for chapter in found.values()), Counter[Verdict | None]()) for found in counted]
    table.add_row("requirements", *map(_share, totals), style="bold")
    console.print(table)


def _share(counts: Mapping[Verdict | None, int]) -> str:
    if not counts:
        return "not run"
    held = counts.get(Verdict.PASS, 0) + counts.get(Verdict.EMULATED, 0)
    failed = counts.get(Verdict.FAIL, 0)
    return (f"[bold red]{failed} FAIL[/] " if failed else "") + f"{held} of {sum(counts.values())}"


def print_without_test(missing: Iterable[Requirement], chosen: Iterable[Requirement], console: Console) -> None:
    """Print ids, by group, with level, scope and text; then how many there are of each level and scope, and out of how many."""
    found, among = list(missing), list(chosen)
    group = None
    for one in found:
        if one.group != group:
            group = one.group
            console.print(f"[bold]{group}[/]")
        console.print(f"  {one.id:<12}{one.level:<9}{one.scope:<9}{_safe(one.text)}", highlight=False, soft_wrap=True)
        if one.elsewhere:
            console.print(f"  {'':<12}needs: {_safe(one.elsewhere)}", highlight=False, soft_wrap=True)
    scopes = ("api", "provider", "broker")
    table = Table("level", *scopes, "all", title=f"{len(found)} of {len(among)} requirements", title_justify="left")
    for level in ("must", "should", "may", "optional", "superseded"):
        if not any(one.level == level for one in among):
            continue
        table.add_row(level, *(_of(found, among, level, (scope,)) for scope in scopes), _of(found, among, level, scopes))
    console.print(table)


def _of(found: list[Requirement], among: list[Requirement], level: str, scopes: tuple[str, ...]) -> str:
    some, whole = (sum(one.level == level and one.scope in scopes for one in part) for part in (found, among))
    return f"{some} of {whole}" if whole else ""


def print_requirement(one: Requirement, tests: Iterable[str], console: Console) -> None:
    """Print all that is known of a requirement."""
    console.print(f"[bold]{one.id}[/]  {one.level}, {one.scope}, {one.group}")
    for word, text in (
        ("text", one.text),
        ("test", one.test),
        ("note", one.note),
        ("api", ", ".join(one.api)),
        ("needs", one.elsewhere),
    ):
        if text:
            console.print(f"  {word}: {_safe(text)}", highlight=False, soft_wrap=True)
    for name in tests:
        console.print(f"  tested by {_safe(name)}", highlight=False, soft_wrap=True)
