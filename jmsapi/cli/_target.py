"""What the commands share: where the broker is, what a property looks like on a command line, exit codes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer

import jmsapi
from jmsapi import Byte, ConnectionFactory, Double, Float, Int, Long, Short, Value
from jmsapi.cli._terminal import tell
from jmsapi.config import load_config

__all__ = [
    "BROKEN_PIPE",
    "INTERRUPTED",
    "NOT_ENOUGH",
    "NO_SUCH_QUEUE",
    "PropertyOptions",
    "UrlOption",
    "factory_for",
    "opened",
    "properties_from",
    "settings_of",
]

NOT_ENOUGH: Final = 3
"""Exit code: fewer messages than asked for, or no match."""
NO_SUCH_QUEUE: Final = 4
"""Exit code: the broker has no queue of that name."""
INTERRUPTED: Final = 130
"""Exit code: it was interrupted."""
BROKEN_PIPE: Final = 141
"""Exit code: who read the output has ended, as a shell has it for a process that SIGPIPE ended."""

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
    """Writes to what standard error is at the moment; a peer may have written what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        tell(record.getMessage())


def factory_for(url: str, **options: object) -> ConnectionFactory:
    """Return a factory for a URL, or the one of that name in ``jmsapi.toml``; how lost links are made again is told on stderr.

    Args:
        url: As it was given.
        options: Options that win over those of the URL and the file.
    """
    log = logging.getLogger("jmsapi.reconnect")
    if not log.handlers:
        log.addHandler(_OnStderr())
        log.setLevel(logging.INFO)
    found = _of_file(url)
    if found is None and ":" not in url:
        # It may be registered in this process; if not, the error names what is near.
        return jmsapi.lookup(url, ConnectionFactory)
    place, own = found or (url, {})
    return jmsapi.connection_factory(place, **own | options)


def _of_file(url: str) -> tuple[str, dict[str, object]] | None:
    """Return URL and options of a factory of ``jmsapi.toml``; None if that was no such name."""
    factories = {} if ":" in url else load_config().factories
    return factories[url].resolved(url, os.environ) if url in factories else None


def opened(file: Path, mode: str) -> IO[Any]:
    """Open a file that the command line names.

    Raises:
        typer.BadParameter: It cannot be opened; the command then ends with code 2.
    """
    try:
        return file.open(mode, encoding=None if "b" in mode else "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be {'read' if mode == 'rb' else 'written'}: {error.strerror}") from None


def settings_of(url: str) -> tuple[str, dict[str, object]]:
    """Return the URL that was given, or URL and options of the factory of that name in ``jmsapi.toml``."""
    return _of_file(url) or (url, {})


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
