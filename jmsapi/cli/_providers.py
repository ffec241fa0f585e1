"""``jmsapi providers`` and ``capabilities``: what is installed, and what a broker can do."""

from __future__ import annotations

import re
from importlib import metadata

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import jmsapi
from jmsapi.cli._target import UrlOption, factory_for
from jmsapi.spi import Level, ProviderEntry

__all__ = ["capabilities", "providers"]

_STYLES = {Level.NATIVE: "green", Level.EMULATED: "cyan", Level.NONE: "yellow"}


def providers() -> None:
    """List the providers that are installed, and whether each can be used."""
    table = Table("provider", "schemes", "seam", "state")
    for name, found in sorted(jmsapi.known_providers().items()):
        if isinstance(found, jmsapi.JMSException):
            table.add_row(name, "", "", f"[red]{escape(str(found))}[/]")
        else:
            table.add_row(name, ", ".join(found.schemes), ".".join(map(str, found.spi_version)), _state(found))
    Console().print(table)


def _state(entry: ProviderEntry) -> str:
    """Say whether the wire library of a provider is installed; nothing is imported for that."""
    missing = [name for name in _requirements(entry.extra) if not _is_installed(name)]
    if missing:
        text = f"needs {', '.join(missing)}: pip install 'jmsapi[{entry.extra}]'"
        return f"[yellow]{escape(text)}[/]"
    return "[green]ready[/]"


def _requirements(extra: str | None) -> list[str]:
    """Return the distributions that an extra of jmsapi asks for."""
    if extra is None:
        return []
    asked = (re.match(r"([A-Za-z0-9._-]+).*extra\s*==\s*['\"](.+)['\"]", line) for line in metadata.requires("jmsapi") or ())
    return [found[1] for found in asked if found and found[2] == extra]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def capabilities(url: UrlOption) -> None:
    """Connect, and list what provider and broker can do together."""
    with factory_for(url).create_connection() as connection:
        has = jmsapi.capabilities(connection)
    table = Table("feature or quality", "", "note", title=f"{has.provider} on {has.broker} {has.version}", title_justify="left")
    for name, support in has.supports().items():
        kind = " [dim](quality)[/]" if has.is_quality(name) else ""
        note = support.note + (f" (?emulate={support.emulate})" if support.emulate else "")
        table.add_row(f"{name}{kind}", f"[{_STYLES[support.level]}]{support.level.value}[/]", escape(note))
    Console().print(table)
