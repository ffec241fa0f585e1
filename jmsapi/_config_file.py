"""``jmsapi.toml``: its models, and its references to the environment.

    [factories.orders]
    url = "stomp://broker.example:61613"
    user = "orders"
    password = "${BROKER_PASSWORD}"
    prefetch = 100

    [queues.incoming]
    name = "orders.incoming"

Imports pydantic, so ``jmsapi.config`` imports it only when a file is read.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from jmsapi._url import FailoverUrl, split_failover
from jmsapi._validation import closest, validated
from jmsapi.errors import JMSException

__all__ = ["DestinationEntry", "FactoryEntry", "FileConfig", "read"]

VARIABLE: Final = "JMSAPI_CONFIG"
DEFAULT_FILE: Final = "jmsapi.toml"
_REFERENCE: Final = re.compile(r"\$(?:\{([^{}]*)\}|(\$)|\{)")


class FactoryEntry(BaseModel):
    """A table ``[factories.NAME]``: a URL, and options beside it."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    url: str = Field(min_length=1, repr=False, description="Where the broker is, and which wire leads there")
    description: str = Field(default="", description="For people; nothing reads it")

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return [("description", self.description)]

    def resolved(self, name: str, environment: Mapping[str, str]) -> tuple[str, dict[str, object]]:
        """Return the URL and the options with every ``${VARIABLE}`` replaced.

        Args:
            name: The factory's name, for the error's text.
            environment: Where variables are looked up.
        Raises:
            JMSException: A variable is not set (``missing-variable``), or a reference has no end (``bad-config``).
        """
        where = f"factory {name!r}"
        extra = _flat(cast("dict[str, object]", self.model_extra or {}))
        options = {key: _resolve(value, f"{where}, option {key!r}", environment) for key, value in extra.items()}
        return _resolve_url(self.url, f"{where}, url", environment), options


class DestinationEntry(BaseModel):
    """A table ``[queues.NAME]`` or ``[topics.NAME]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, description="What the broker calls it")
    description: str = Field(default="", description="For people; nothing reads it")


class FileConfig(BaseModel):
    """All that the file says. A name stands for one thing only, whatever its kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    factories: dict[str, FactoryEntry] = Field(default_factory=dict[str, FactoryEntry])
    queues: dict[str, DestinationEntry] = Field(default_factory=dict[str, DestinationEntry])
    topics: dict[str, DestinationEntry] = Field(default_factory=dict[str, DestinationEntry])
    source: str = ""
    """The file's path; empty when there is none."""

    def names(self) -> list[str]:
        """Return every name, sorted."""
        return sorted([*self.factories, *self.queues, *self.topics])


def read(path: str | Path | None) -> FileConfig:
    """Read the file; see ``jmsapi.config.load_config``."""
    chosen = path if path is not None else os.environ.get(VARIABLE) or None
    if chosen is None and not Path(DEFAULT_FILE).exists():
        return FileConfig()
    file = Path(chosen if chosen is not None else DEFAULT_FILE)
    named_by = "" if path is not None or chosen is None else f" (named by {VARIABLE})"
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8-sig"))  # editors on Windows begin a file with a mark
    except OSError as error:
        raise JMSException(f"the configuration {file}{named_by} cannot be read: {error.strerror}", "no-config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JMSException(f"the configuration {file}{named_by} is no TOML: {error}", "bad-config") from error
    _check_keys(content, str(file))
    config = validated(FileConfig, {**content, "source": str(file)}, str(file), error_code="bad-config")
    names = config.names()
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise JMSException(f"{file}: {twice[0]!r} names several things; a name may be used once", "bad-config")
    return config


def _check_keys(content: Mapping[str, Any], file: str) -> None:
    """Find misspelt keys before pydantic does, to name the nearest valid one."""
    tables = ("factories", "queues", "topics")
    for table, entries in content.items():
        if table not in tables:
            raise JMSException(f"{file}: unknown table {table!r}{closest(table, tables, 'tables')}", "bad-config")
        if table == "factories" or not isinstance(entries, Mapping):
            continue
        for name, entry in cast("Mapping[str, object]", entries).items():
            known = DestinationEntry.model_fields
            for key in cast("Mapping[str, object]", entry) if isinstance(entry, Mapping) else ():
                if key not in known:
                    raise JMSException(
                        f"{file}: [{table}.{name}] has the unknown key {key!r}{closest(key, known, 'keys')}", "bad-config"
                    )


def _flat(options: Mapping[str, object], before: str = "") -> dict[str, object]:
    """Join the names of nested tables: TOML reads ``artemis.prefix = "x"`` as a table ``artemis``."""
    flat: dict[str, object] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            flat.update(_flat(cast("Mapping[str, object]", value), f"{before}{name}."))
        else:
            flat[before + name] = value
    return flat


def _resolve(value: object, where: str, environment: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _expand(value, where, environment, encode=False)
    if isinstance(value, list):
        return [_resolve(item, where, environment) for item in cast("list[object]", value)]
    return value


def _resolve_url(url: str, where: str, environment: Mapping[str, str]) -> str:
    """Replace references; what goes into user name or password is percent-encoded on the way."""
    servers = split_failover(url)
    if servers is not None:
        changed = FailoverUrl(servers.servers, _expand(servers.query, where, environment, encode=False))
        return changed.joined(lambda server: _resolve_url(server, where, environment))
    start, slashes, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user_info, at, _ = authority.rpartition("@")
    if not slashes or not at:
        return _expand(url, where, environment, encode=False)
    return (
        start
        + slashes
        + _expand(user_info, where, environment, encode=True)
        + _expand(rest[len(user_info) :], where, environment, encode=False)
    )


def _expand(text: str, where: str, environment: Mapping[str, str], *, encode: bool) -> str:
    def value(found: re.Match[str]) -> str:
        if found[2]:
            return "$"
        name = found[1]
        if name is None:
            raise JMSException(f"{where}: a reference ${{NAME}} has no end; a dollar sign by itself is written $$", "bad-config")
        if name not in environment:
            raise JMSException(f"{where}: the environment variable {name!r} is not set", "missing-variable")
        return quote(environment[name], safe="") if encode else environment[name]

    return _REFERENCE.sub(value, text)
