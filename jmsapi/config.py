"""From URLs, options and ``jmsapi.toml`` to validated settings. Builds nothing and opens nothing.

pydantic is imported when the first URL is parsed. No text made here holds a credential: URLs are redacted, and values of secret
options are never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from jmsapi._failover_url import parse_failover
from jmsapi._url import (
    SplitUrl,
    bad_url,
    has_stray_at,
    is_failover,
    redact_url,
    split_failover,
    split_parameters,
    split_url,
)
from jmsapi._validation import closest, validated
from jmsapi.errors import JMSException
from jmsapi.spi import ProviderEntry

if TYPE_CHECKING:
    from pathlib import Path

    from jmsapi._config_file import FileConfig
    from jmsapi.spi.options import ProviderOptions

__all__ = ["SplitUrl", "load_config", "parse_url", "redact_url", "split_url"]

_KEYWORD_ONLY: Final = frozenset({"scheme", "host", "port", "path"})
"""Fields that a URL says in its own way, never as a parameter."""
_NO_OPTION: Final = frozenset({"failover"})
"""Fields that only a ``failover:`` URL fills."""


def parse_url(url: str, options: Mapping[str, object], *, entries: Mapping[str, ProviderEntry]) -> ProviderOptions:
    """Turn a URL and keyword options into the validated options of its provider.

    Args:
        url: ``scheme://[user:password@]host[:port][/path][?option=value&...]``; parts are percent-decoded, an IPv6 address
            stands in brackets. Or ``failover:(url,url,...)[?option=value&...]``: several servers, and links made again.
        options: Further options by name; each wins over the URL. ``host``, ``port``, ``path``, ``user`` and ``password`` may
            be among them.
        entries: Provider entries by scheme.
    Returns:
        An instance of the options model of the provider.
    Raises:
        JMSException: ``error_code`` is ``bad-url``, ``unknown-scheme``, ``unknown-option`` or ``bad-option``. The text names
            the nearest valid name and holds no credential.
    Threads: any.
    """
    if is_failover(url):
        return _parse_list(url, options, entries)
    parts = split_url(url)
    try:
        entry = entries[parts.scheme]
    except KeyError:
        # No more of it is shown: what it would mean by the rest, and so where a password would stand, is not known.
        near = closest(parts.scheme, entries, "schemes")
        raise JMSException(f"the URL has the unknown scheme {parts.scheme!r}{near}", "unknown-scheme") from None
    model = entry.options()
    names = _option_names(model)
    given: dict[str, object] = {"scheme": parts.scheme}
    for name, value in (("host", parts.host), ("port", parts.port), ("path", parts.path), ("user", parts.user)):
        if value:
            given[name] = value
    if parts.password is not None:
        given["password"] = parts.password
    for source, pairs, allowed in (
        (
            f"the URL {redact_url(url, values=False)}",
            parts.parameters,
            {name: names[name] for name in names if name not in _KEYWORD_ONLY},
        ),
        ("the options", options, {name: names[name] for name in names if name != "scheme"}),
    ):
        for name, option in pairs.items():
            if name not in allowed:
                if pairs is parts.parameters and has_stray_at(url):
                    raise bad_url(url, "in a user name or password, / ? # @ and : must be percent-encoded")
                known = [other for other in allowed if other == allowed[other]]
                raise JMSException(f"{source}: unknown option {name!r}{closest(name, known, 'options')}", "unknown-option")
            given[allowed[name]] = option
    return validated(model, given, f"{parts.scheme}://{parts.host}", error_code="bad-option")


def _parse_list(url: str, options: Mapping[str, object], entries: Mapping[str, ProviderEntry]) -> ProviderOptions:
    """Turn a failover URL into options; see ``parse_url``."""
    parts = split_failover(url)
    if parts is None:
        raise bad_url(url, "a failover list is written failover:(amqp://a,amqp://b)?option=value")
    own = sorted({"host", "port", "path"} & set(options))
    if own:
        raise JMSException(
            f"the URL {redact_url(url, values=False)}: {own[0]!r} is for one server; write it in the list", "bad-option"
        )
    given = split_parameters(parts.query, url)
    return parse_failover(parts, given, options, lambda server, common: parse_url(server, common, entries=entries))


def _option_names(model: type[ProviderOptions]) -> dict[str, str]:
    """Return each spelling of an option and the one that the model takes."""
    names: dict[str, str] = {}
    for name, field in model.model_fields.items():
        if name in _NO_OPTION:
            continue
        key = field.alias or name
        names[key] = key
        names.setdefault(name, key)
    return names


def load_config(path: str | Path | None = None) -> FileConfig:
    """Read ``jmsapi.toml``: factories, queues and topics by name.

    Args:
        path: The file. None means what the environment variable ``JMSAPI_CONFIG`` names, else ``jmsapi.toml`` in the working
            directory, which need not exist.
    Returns:
        What the file says. References such as ``${BROKER_PASSWORD}`` are resolved when a factory is asked for.
    Raises:
        JMSException: The file named cannot be read (``no-config``), or is wrong (``bad-config``).
    Threads: any.
    """
    from jmsapi._config_file import read

    return read(path)
