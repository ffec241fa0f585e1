"""``jmsapi providers`` and ``capabilities``: what is installed, and what a broker can do."""

from __future__ import annotations

import re
from importlib import metadata

import jmsapi
from jmsapi.cli._directory import JsonOption
from jmsapi.cli._target import UrlOption, factory_for
from jmsapi.cli._terminal import Styled, say_json, show_table
from jmsapi.spi import Level, ProviderEntry

__all__ = ["capabilities", "providers", "version_of"]

_OTHER_NAMES = {"python-qpid-proton": "python-qpid-proton-wheel"}
"""Distributions with the same modules under another name: that one has wheels for Linux."""
_STYLES = {Level.NATIVE: "green", Level.EMULATED: "cyan", Level.NONE: "yellow"}


def providers(as_json: JsonOption = False) -> None:
    """List the providers that are installed, and whether each can be used."""
    rows: list[list[str | Styled]] = []
    for name, found in sorted(jmsapi.known_providers().items()):
        if isinstance(found, jmsapi.JMSException):
            rows.append([name, "", "", Styled(str(found), "red")])
        else:
            rows.append([name, ", ".join(found.schemes), ".".join(map(str, found.spi_version)), _state(found)])
    if as_json:
        for row in rows:
            plain = [cell.text if isinstance(cell, Styled) else cell for cell in row]
            say_json(dict(zip(("provider", "schemes", "spi", "state"), plain, strict=True)))
    else:
        show_table(["provider", "schemes", "SPI", "state"], rows)


def _state(entry: ProviderEntry) -> Styled:
    """Say whether the wire library of a provider is installed; nothing is imported for that."""
    missing = [name for name in _requirements(entry.extra) if version_of(name) is None]
    if missing:
        return Styled(f"needs {', '.join(missing)}: pip install 'jmsapi[{entry.extra}]'", "yellow")
    return Styled("ready", "green")


def _requirements(extra: str | None) -> list[str]:
    """Return the distributions that an extra of jmsapi asks for."""
    if extra is None:
        return []
    asked = (re.match(r"([A-Za-z0-9._-]+).*extra\s*==\s*['\"](.+)['\"]", line) for line in metadata.requires("jmsapi") or ())
    return [found[1] for found in asked if found and found[2] == extra]


def version_of(distribution: str) -> str | None:
    """Return the version that is installed, under whichever of its names; None if none is."""
    for name in filter(None, (distribution, _OTHER_NAMES.get(distribution))):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def capabilities(url: UrlOption, as_json: JsonOption = False) -> None:
    """Connect, and list what provider and broker can do together."""
    with factory_for(url).create_connection() as connection:
        has = jmsapi.capabilities(connection)
    if as_json:
        features = {
            name: {
                "level": support.level.value,
                "quality": has.is_quality(name),
                "note": support.note,
                "emulate": support.emulate,
            }
            for name, support in has.supports().items()
        }
        say_json({"provider": has.provider, "broker": has.broker, "version": has.version, "capabilities": features})
        return
    rows: list[list[str | Styled]] = []
    for name, support in has.supports().items():
        kind = f"{name} (quality)" if has.is_quality(name) else name
        note = support.note + (f" (?emulate={support.emulate})" if support.emulate else "")
        rows.append([kind, Styled(support.level.value, _STYLES[support.level]), note])
    show_table(["feature or quality", "", "note"], rows, title=f"{has.provider} on {has.broker} {has.version}")
