"""Makes docs/reference/: every option of a URL, every key of jmsapi.toml, every command, from what the program goes by."""

from __future__ import annotations

import re
import types
import typing
from pathlib import Path
from typing import Any

import typer.main
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import jmsapi
from jmsapi._config_file import DestinationEntry, FactoryEntry
from jmsapi.cli._app import app
from jmsapi.cli._doctor import CODES
from jmsapi.spi.options import FailoverOptions, ProviderOptions

__all__ = ["FOLDER", "commands_page", "configuration_page", "options_page", "pages"]

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
_MADE = "<!-- Made by `make docs`; do not edit by hand. -->\n"
_FROM_THE_URL = ("scheme", "host", "port", "path")
_WORDS = {int: "INTEGER", float: "NUMBER", Path: "PATH"}
_NOT_OPTIONS = (*_FROM_THE_URL, "failover")


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    return {
        FOLDER / "options.md": options_page(models()),
        FOLDER / "configuration.md": configuration_page(),
        FOLDER / "commands.md": commands_page(),
    }


def models() -> dict[str, type[ProviderOptions]]:
    """Return the options of each provider of this project."""
    found = {name: entry for name, entry in jmsapi.known_providers().items() if not isinstance(entry, jmsapi.JMSException)}
    return {name: found[name].options() for name in ("inproc", "stomp", "amqp")}


def options_page(of: dict[str, type[ProviderOptions]]) -> str:
    """Return the page of options: one row for each name, with the providers that have it."""
    rows: dict[str, tuple[FieldInfo, list[str]]] = {}
    for provider, model in of.items():
        for name, field in model.model_fields.items():
            if name not in _NOT_OPTIONS:
                rows.setdefault(field.alias or name, (field, []))[1].append(provider)
    parts = [
        _MADE,
        "# Options of a URL\n\n",
        "An option stands behind the question mark, `amqp://broker.example?prefetch=100`, or beside `url` in a table\n"
        "`[factories.NAME]` of [jmsapi.toml](configuration.md). A name that is misspelt raises, with the nearest valid one.\n"
        "Times are milliseconds. User and password stand before the host, or in the file.\n\n",
        _table(
            ("option", "meaning", "type", "default", "providers"),
            [
                (f"`{name}`", field.description or "", _type(field.annotation), _default(field), ", ".join(having))
                for name, (field, having) in sorted(rows.items(), key=lambda row: ("." in row[0], row[0]))
            ],
        ),
        "\n## Options of a failover URL\n\n",
        "They stand behind the closing bracket: `failover:(amqp://a.example,amqp://b.example)?maxReconnectAttempts=5`.\n\n",
        _table(
            ("option", "meaning", "type", "default"),
            [_plain_row(*one) for one in FailoverOptions.model_fields.items() if one[0] != "servers"],  # the list itself
        ),
        "\n## Parts of the URL\n\n",
        _table(
            ("part", "meaning", "type", "default"),
            [_plain_row(name, ProviderOptions.model_fields[name]) for name in _FROM_THE_URL],
        ),
    ]
    return "".join(parts)


def configuration_page() -> str:
    """Return the page of jmsapi.toml."""
    return "".join(
        [
            _MADE,
            "# jmsapi.toml\n\n",
            "It is read from the working directory, or from where the variable `JMSAPI_CONFIG` points. It may hold three\n"
            "kinds of tables; a name stands for one thing only, whatever its kind. `${NAME}` in a value is the variable of that\n"
            "name of the environment, and `$$` a dollar sign. A table or key that is not known raises, with the nearest valid\n"
            "one.\n\n",
            "## `[factories.NAME]`\n\nWhat `jmsapi.lookup(NAME, jmsapi.ConnectionFactory)` gives.\n\n",
            _table(("key", "meaning", "type", "default"), [_plain_row(*one) for one in FactoryEntry.model_fields.items()]),
            "\nAnd every [option of a URL](options.md) that the provider has, by its name; a name with a dot is also a key of a\n"
            "table within, as TOML has it.\n\n",
            "## `[queues.NAME]` and `[topics.NAME]`\n\nWhat `jmsapi.lookup(NAME, jmsapi.Queue)` or `jmsapi.Topic` gives.\n\n",
            _table(("key", "meaning", "type", "default"), [_plain_row(*one) for one in DestinationEntry.model_fields.items()]),
        ]
    )


def commands_page() -> str:
    """Return the page of the command line."""
    root: Any = typer.main.get_command(app)
    parts = [
        _MADE,
        "# The command `jmsapi`\n\n",
        "`pip install 'jmsapi[cli]'`. `--url` may be left out where the variable `JMSAPI_URL` is set, and may be the name of a\n"
        "factory in [jmsapi.toml](configuration.md).\n\n",
        "| exit code | meaning |\n|---|---|\n"
        "| 0 | done |\n| 1 | an error of the broker, of the connection or of a file while it is used; one line says which |\n"
        "| 2 | wrong use: an option, an argument, a file that cannot be opened, or a line of it that is no message |\n"
        "| 3 | fewer messages than asked for, no reply, or no match |\n| 4 | the broker has no queue of that name |\n"
        "| 130 | interrupted |\n| 141 | whoever read the output has left |\n\n",
        "`jmsapi doctor` has codes of its own: " + ", ".join(f"{code} {word}" for word, code in CODES.items()) + ".\n",
    ]
    for name, command in root.commands.items():
        for title, one in _leaves(name, command):
            parts.append(_command(title, one))
    return "".join(parts)


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    return [(name, command)] if below is None else [(f"{name} {key}", one) for key, one in below.items()]


def _command(title: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    usage = " ".join(["jmsapi", title, *map(_metavar, arguments), "[OPTIONS]" if options else ""])
    rows = [(f"`{_metavar(one)}`", one.help or "", "") for one in arguments]
    for one in options:
        names = ", ".join(f"`{word}`" for word in (*one.opts, *one.secondary_opts))
        kind = "" if one.is_flag else _metavar(one)
        rows.append((f"{names} {kind}".strip(), one.help or "", _option_default(one)))
    about = "\n".join(line.strip() for line in (command.help or "").strip().splitlines())
    table = _table(("", "meaning", "default"), rows) if rows else ""
    return f"\n## jmsapi {title}\n\n```text\n{usage.strip()}\n```\n\n{_cell(about) if '|' in about else about}\n\n{table}"


def _metavar(parameter: Any) -> str:
    return parameter.metavar or _WORDS.get(parameter.type_descriptor.annotation, "TEXT")


def _option_default(option: Any) -> str:
    value = option.default
    if callable(value) or value is None or value is False or value == "" or value == [] or "Sentinel" in type(value).__name__:
        return ""
    return f"`{value}`" if isinstance(value, str | int | float) else ""


def _plain_row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    return f"`{field.alias or name}`", field.description or "", _type(field.annotation), _default(field)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined or value == frozenset() or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def _type(annotation: Any) -> str:
    """Say a type in words that need no Python."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(dict.fromkeys(_type(one) for one in arguments if one is not type(None)))
    if origin is typing.Literal:
        return ", ".join(f"`{one}`" for one in arguments)
    if origin is frozenset:
        return "words"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    words = {str: "text", SecretStr: "secret", int: "whole number", float: "number", bool: "`true`, `false`", Path: "path"}
    return words.get(annotation, re.sub(r"^.*\.", "", str(annotation)))


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(_cell(one) for one in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
