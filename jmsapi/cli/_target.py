"""What the commands share: where the broker is, what a property looks like on a command line, exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

import jmsapi
from jmsapi import Byte, ConnectionFactory, Double, Float, Int, Long, Short, Value

__all__ = ["NOT_ENOUGH", "PropertyOptions", "UrlOption", "factory_for", "properties_from"]

NOT_ENOUGH: Final = 3
"""Exit code: fewer messages than asked for, or no match."""

UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        "-u",
        envvar="JMSAPI_URL",
        show_envvar=True,
        help="Broker, such as stomp://user:password@host:61613, or the name of a factory in jmsapi.toml. "
        "Other users of the machine can see a command line, so keep passwords in the file or in the variable.",
    ),
]
PropertyOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-p",
        metavar="NAME[:TYPE]=VALUE",
        help="A property; TYPE is string (the default), boolean, byte, short, int, long, float or double. May be repeated.",
    ),
]


class _OnStderr(logging.Handler):
    """Writes to what standard error is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        print(f"jmsapi: {record.getMessage()}", file=sys.stderr)


def factory_for(url: str) -> ConnectionFactory:
    """Return a factory for a URL, or the one of that name in ``jmsapi.toml``; how lost links are made again is told on stderr."""
    log = logging.getLogger("jmsapi.reconnect")
    if not log.handlers:
        log.addHandler(_OnStderr())
        log.setLevel(logging.INFO)
    return jmsapi.connection_factory(url) if ":" in url else jmsapi.lookup(url, ConnectionFactory)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_READ: Final[dict[str, Callable[[str], Value]]] = {
    "string": str,
    "boolean": _boolean,
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": lambda text: Int(int(text)),
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": lambda text: Double(float(text)),
}


def properties_from(given: list[str] | None) -> dict[str, Value]:
    """Turn ``name:type=value`` texts into typed values.

    Raises:
        typer.BadParameter: A text is not of that form; the command then ends with code 2.
    """
    found: dict[str, Value] = {}
    for text in given or ():
        left, equals, value = text.partition("=")
        name, _, kind = left.partition(":")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE or NAME:TYPE=VALUE")
        read = _READ.get(kind or "string")
        if read is None:
            raise typer.BadParameter(f"{kind!r} is no property type; there are {', '.join(_READ)}")
        try:
            found[name] = read(value)
        except (ValueError, KeyError):
            raise typer.BadParameter(f"{value!r} is no {kind}, in {text!r}") from None
    return found
