"""From URLs, options and ``jmsapi.toml`` to validated settings. Builds nothing and opens nothing.

pydantic is imported when the first URL is parsed. No text made here holds a credential: URLs are redacted, values of secret
options are never repeated, and validation errors are not chained, because their text quotes the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote

from jmsapi._failover_url import FailoverUrl, is_failover, parse_failover, split_failover
from jmsapi.errors import JMSException
from jmsapi.spi import ProviderEntry

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from jmsapi._config_file import FileConfig
    from jmsapi.spi.options import ProviderOptions

__all__ = ["SplitUrl", "closest", "load_config", "parse_url", "redact_url", "split_url", "validated"]

_SECRET: Final = re.compile(r"passw|passcode|secret|token", re.IGNORECASE)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_KEYWORD_ONLY: Final = frozenset({"scheme", "host", "port", "path"})
"""Fields that a URL says in its own way, never as a parameter."""
_NO_OPTION: Final = frozenset({"failover"})
"""Fields that only a ``failover:`` URL fills."""

Model = TypeVar("Model", bound="BaseModel")


@dataclass(frozen=True, slots=True)
class SplitUrl:
    """The parts of a URL, percent-decoded. Its repr shows no credentials."""

    scheme: str
    host: str
    port: str | None
    path: str
    user: str | None
    password: str | None
    parameters: Mapping[str, str]

    def __repr__(self) -> str:
        return f"SplitUrl({self.scheme}://{self.host})"


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
        raise JMSException(
            f"the URL {redact_url(url)} has the unknown scheme {parts.scheme!r}{closest(parts.scheme, entries, 'schemes')}",
            "unknown-scheme",
        ) from None
    model = entry.options()
    names = _option_names(model)
    given: dict[str, object] = {"scheme": parts.scheme}
    for name, value in (("host", parts.host), ("port", parts.port), ("path", parts.path), ("user", parts.user)):
        if value:
            given[name] = value
    if parts.password is not None:
        given["password"] = parts.password
    for source, pairs, allowed in (
        (f"the URL {redact_url(url)}", parts.parameters, {name: names[name] for name in names if name not in _KEYWORD_ONLY}),
        ("the options", options, {name: names[name] for name in names if name != "scheme"}),
    ):
        for name, option in pairs.items():
            if name not in allowed:
                known = [other for other in allowed if other == allowed[other]]
                raise JMSException(f"{source}: unknown option {name!r}{closest(name, known, 'options')}", "unknown-option")
            given[allowed[name]] = option
    return validated(model, given, f"{parts.scheme}://{parts.host}", error_code="bad-option")


def _parse_list(url: str, options: Mapping[str, object], entries: Mapping[str, ProviderEntry]) -> ProviderOptions:
    """Turn a failover URL into options; see ``parse_url``."""
    parts = split_failover(url)
    shown = redact_url(url)
    if parts is None:
        raise _bad(shown, "a failover list is written failover:(amqp://a,amqp://b)?option=value")
    own = sorted({"host", "port", "path"} & set(options))
    if own:
        raise JMSException(f"the URL {shown}: {own[0]!r} is for one server; write it in the list", "bad-option")
    given = _parameters(parts.query, shown)
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


def validated(model: type[Model], values: Mapping[str, object], what: str, *, error_code: str) -> Model:
    """Return an instance of a pydantic model, or raise a JMSException that reads well and quotes no value.

    Args:
        model: The model.
        values: Its fields, by the names it takes.
        what: What is being configured, to begin the text with.
        error_code: The exception's word.
    """
    from pydantic import ValidationError

    problems: list[str] = []
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        # Not chained, and raised outside of this block: its own text quotes what was given, passwords too.
        secrets = [str(value) for name, value in values.items() if _SECRET.search(name)]
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            place = ".".join(map(str, detail["loc"]))
            text = detail["msg"]
            if _SECRET.search(place):
                text = "is not valid"
            for secret in secrets:
                text = text.replace(secret, "***") if secret else text
            problems.append(f"{place}: {text}" if place else text)
    raise JMSException(f"{what}: " + "; ".join(problems), error_code)


def split_url(url: str) -> SplitUrl:
    """Take a URL apart without asking what its options mean.

    Raises:
        JMSException: It is no URL of ours (``bad-url``).
    """
    shown = redact_url(url)
    found = _SCHEME.fullmatch(url)
    if found is None:
        raise _bad(shown, "it does not begin with a scheme such as stomp://")
    scheme, rest = found.group(1).lower(), found.group(2)
    if "#" in rest:
        raise _bad(shown, "a '#' must be written %23")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    user_info, at, place = authority.rpartition("@")
    user: str | None = None
    password: str | None = None
    if at:
        name, colon, secret = user_info.partition(":")
        user = _decoded(name, shown, "the user name")
        password = _decoded(secret, shown, "the password") if colon else None
    host, port = _host_and_port(place, shown)
    return SplitUrl(
        scheme=scheme,
        host=_decoded(host, shown, "the host"),
        port=port,
        path=_decoded(path, shown, "the path"),
        user=user,
        password=password,
        parameters=_parameters(query, shown),
    )


def _host_and_port(place: str, shown: str) -> tuple[str, str | None]:
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise _bad(shown, "an IPv6 address needs brackets, as in stomp://[::1]:61613")
        port = port[1:]
    elif place.count(":") > 1:
        raise _bad(shown, "an IPv6 address needs brackets, as in stomp://[::1]:61613")
    else:
        host, _, port = place.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        raise _bad(shown, "the port is no number; in a user name or password, / ? # @ and : must be percent-encoded")
    return host, port or None


def _parameters(query: str, shown: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        name = _decoded(name, shown, "an option")
        if "@" in name or (not equals and "@" in part):
            raise _bad(shown, "in a user name or password, / ? # @ and : must be percent-encoded")
        if not equals:
            raise _bad(shown, f"the option {name!r} has no value; write {name}=value")
        if name in found:
            raise _bad(shown, f"the option {name!r} is given twice")
        found[name] = _decoded(value, shown, f"the option {name!r}")
    return found


def _decoded(text: str, shown: str, what: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _bad(shown, f"{what} is not percent-encoded UTF-8") from None


def _bad(shown: str, why: str) -> JMSException:
    return JMSException(f"the URL {shown} cannot be read: {why}", "bad-url")


def redact_url(url: str) -> str:
    """Return a URL that may be shown: user name, password and secret options are replaced by ``***``.

    Works on text that is no valid URL, too, and then hides rather too much.

    Threads: any.
    """
    if is_failover(url):
        parts = split_failover(url)
        if parts is None:
            return url[:9] + ("***" if "@" in url or _SECRET.search(url) else url[9:])
        query = _without_secrets(f"?{parts.query}") if parts.query else ""
        return FailoverUrl(parts.servers, "").joined(redact_url) + query
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//)?", url)
    start = found.group() if found else ""
    rest = url[len(start) :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    port = authority.rpartition(":")[2] if ":" in authority else "0"
    if "@" in authority:
        rest = "***@" + authority.rpartition("@")[2] + rest[len(authority) :]
    elif "@" in rest and not (port.isdigit() and re.match(r"/?[^?@]*\?[A-Za-z0-9_.]+=", rest[len(authority) :])):
        # A raw / ? or # inside the password: what stands before the last @ belongs to the credentials.
        rest = "***@" + rest.rpartition("@")[2]
    return start + _without_secrets(rest)


def _without_secrets(text: str) -> str:
    """Replace the values of secret parameters."""
    return re.sub(
        r"([?&])([^=&#]*)=([^&#]*)",
        lambda pair: f"{pair[1]}{pair[2]}=" + ("***" if _SECRET.search(unquote(pair[2])) else pair[3]),
        text,
    )


def closest(name: str, known: Iterable[str], what: str) -> str:
    """Return the end of an error text: the nearest valid name, or all of them."""
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known {what}: {', '.join(names)}" if names else f"; there are no {what} yet"


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
