"""The only way out of the command line: what is printed here cannot steer a terminal, nor be taken for markup.

Whatever a peer, a message, a file or the user wrote goes through ``say``, ``tell`` or ``show_table``; no other module of the
command line prints, and a test holds that.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jmsapi._showing import escaped

__all__ = [
    "Progress",
    "Styled",
    "for_terminal",
    "printable",
    "say",
    "say_bytes",
    "say_json",
    "say_styled",
    "show_table",
    "tell",
]

_UNBOUNDED: Final = 100_000
"""A width that no table reaches."""
_EVERY_S: Final = 0.25
"""How often progress is shown."""


class Styled(NamedTuple):
    """A piece of text with a style of rich."""

    text: str
    style: str


Cell = str | Styled


def printable(text: str) -> str:
    """Return text with everything escaped that is neither printable nor a line end or tab."""
    return escaped(text, keep="\n\t")


def for_terminal(text: str) -> str:
    """Return text as standard output may have it: unchanged, but on a terminal without what would steer it.

    What its encoding cannot say, such as half of a surrogate pair, is escaped.
    """
    encoding = sys.stdout.encoding or "utf-8"
    said = text.encode(encoding, "backslashreplace").decode(encoding)
    return printable(said) if sys.stdout.isatty() else said


def say(text: str) -> None:
    """Print a line on standard output."""
    print(for_terminal(text), flush=True)


def say_json(value: Any) -> None:
    """Print a value as one line of JSON, in ASCII on a terminal."""
    print(for_terminal(json.dumps(value, ensure_ascii=sys.stdout.isatty())), flush=True)


def say_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are; on a terminal as Python writes them."""
    if sys.stdout.isatty():
        say(repr(data))
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def tell(text: str, *, prefix: str = "jmsapi: ") -> None:
    """Print a line on standard error, which may be a terminal whatever standard output is."""
    print(f"{prefix}{printable(text)}", file=sys.stderr, flush=True)


def say_styled(*pieces: Cell) -> None:
    """Print a line of pieces with styles, which only a terminal shows."""
    Console(highlight=False).print(Text.assemble(*map(_text, pieces)), soft_wrap=True)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "", wide: bool = False) -> None:
    """Print a table on standard output.

    Args:
        columns: Their headings.
        rows: A cell for each column.
        title: Above it.
        wide: Cut and fold nothing, whatever the width of the terminal; so it is as well where no terminal is.
    """
    unbounded = wide or not sys.stdout.isatty()
    table = Table(*columns, title=Text(printable(title)) if title else None, title_justify="left")
    for row in rows:
        table.add_row(*map(_text, row))
    console = Console(highlight=False, soft_wrap=unbounded, width=_UNBOUNDED if unbounded else None)
    console.print(table, no_wrap=unbounded, crop=not unbounded)


def _text(cell: Cell) -> Text:
    return Text(printable(cell.text), style=cell.style) if isinstance(cell, Styled) else Text(printable(cell))


class Progress:
    """Shows on standard error how far a long work is, if that is a terminal; else nothing.

    Args:
        what: A word for the things that are counted.
        total: How many there are, if known.
        quiet: Show nothing in any case.
    """

    def __init__(self, what: str, total: int | None = None, *, quiet: bool = False) -> None:
        self.count = 0
        self._what, self._total = what, total
        self._begun = time.monotonic()
        self._shown = 0.0
        self._live = not quiet and sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._begun

    def add(self, count: int = 1) -> None:
        """Count."""
        self.count += count
        now = time.monotonic()
        if self._live and now - self._shown >= _EVERY_S:
            self._shown = now
            sys.stderr.write(f"\r\x1b[K{self._line()}")
            sys.stderr.flush()

    def _line(self) -> str:
        rate = self.count / max(self.seconds, 1e-9)
        line = f"{self.count:,}{f' of {self._total:,}' if self._total else ''} {self._what}, {rate:,.0f}/s"
        if self._total and rate:
            line += f", {max(0, self._total - self.count) / rate:.0f} s left"
        return line

    def end(self) -> None:
        """Take the line away."""
        if self._live and self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
