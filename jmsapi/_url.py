"""URLs taken apart and shown: of one server, and of a ``failover:`` list. What the options mean is not known here.

No text made here holds a credential.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from jmsapi._validation import is_secret
from jmsapi.errors import JMSException

__all__ = [
    "FailoverUrl",
    "SplitUrl",
    "bad_url",
    "has_stray_at",
    "is_failover",
    "redact_url",
    "split_failover",
    "split_parameters",
    "split_url",
]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BEGINNING: Final = re.compile(r"failover:|[A-Za-z][A-Za-z0-9+.-]*://", re.IGNORECASE)
_LIST: Final = re.compile(r"failover:(?://)?\((.*)\)(?:\?(.*))?", re.DOTALL | re.IGNORECASE)
_BETWEEN: Final = re.compile(r",(?=\s*[A-Za-z][A-Za-z0-9+.-]*://)")
_HOST: Final = re.compile(r"[^=&]*")
"""What a host, or the name of a broker in process, is written with: what holds the others is an option in the wrong place."""
_OPTION: Final = re.compile(r"[\w.-]+")
_ENCODE: Final = "in a user name or password, / ? # @ and : must be percent-encoded"


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


class FailoverUrl:
    """The parts of a failover URL: the servers' URLs, and the query behind the list."""

    def __init__(self, servers: tuple[str, ...], query: str) -> None:
        self.servers = servers
        self.query = query

    def __repr__(self) -> str:
        return f"FailoverUrl({len(self.servers)} servers)"

    def joined(self, change: Callable[[str], str]) -> str:
        """Return the URL again with each server's URL changed."""
        query = f"?{self.query}" if self.query else ""
        return f"failover:({','.join(map(change, self.servers))}){query}"


def is_failover(url: str) -> bool:
    """Return whether a URL means to be a failover list."""
    return url[:9].lower() == "failover:"


def split_failover(url: str) -> FailoverUrl | None:
    """Return the parts of a failover URL; None when it is not written as one."""
    found = _LIST.fullmatch(url)
    if found is None:
        return None
    servers = tuple(part.strip() for part in _BETWEEN.split(found[1]) if part.strip())
    return FailoverUrl(servers, found[2] or "") if servers else None


def split_url(url: str) -> SplitUrl:
    """Take a URL apart without asking what its options mean.

    Raises:
        JMSException: It cannot be read (``bad-url``). The text shows no more of it than its scheme: any other part may be a
            piece of a password that was not percent-encoded.
    """
    found = _SCHEME.fullmatch(url)
    if found is None:
        raise bad_url(url, "it does not begin with a scheme such as stomp://")
    scheme, rest = found.group(1).lower(), found.group(2)
    if "#" in rest:
        raise bad_url(url, "a '#' must be written %23")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    user_info, at, place = authority.rpartition("@")
    user: str | None = None
    password: str | None = None
    if at:
        name, colon, secret = user_info.partition(":")
        user = _decoded(name, url, "the user name")
        password = _decoded(secret, url, "the password") if colon else None
    host, port = _host_and_port(place, url)
    return SplitUrl(
        scheme=scheme,
        host=_decoded(host, url, "the host"),
        port=port,
        path=_decoded(path, url, "the path"),
        user=user,
        password=password,
        parameters=split_parameters(query, url),
    )


def _host_and_port(place: str, url: str) -> tuple[str, str | None]:
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise bad_url(url, "an IPv6 address needs brackets, as in stomp://[::1]:61613")
        port = port[1:]
        if not re.fullmatch(r"[\w:.%-]*", host):
            raise bad_url(url, "what stands in the brackets is no IPv6 address")
    elif place.count(":") > 1:
        raise bad_url(url, f"an IPv6 address needs brackets, as in stomp://[::1]:61613; {_ENCODE}")
    else:
        host, _, port = place.partition(":")
        if not _HOST.fullmatch(host):
            raise bad_url(url, f"what stands for the host is no host; options begin with a '?'; {_ENCODE}")
    if port and not (port.isascii() and port.isdigit()):
        raise bad_url(url, f"the port is no number; {_ENCODE}")
    return host, port or None


def split_parameters(query: str, url: str) -> dict[str, str]:
    """Return the decoded options of a query.

    Args:
        query: What stands behind the question mark.
        url: The whole URL, for the text of an error.
    Raises:
        JMSException: It cannot be read (``bad-url``).
    """
    found: dict[str, str] = {}
    for number, part in enumerate(filter(None, query.split("&")), 1):
        name, equals, value = part.partition("=")
        name = _decoded(name, url, f"the name of option {number}")
        if "@" in name or (not equals and "@" in part):
            raise bad_url(url, _ENCODE)
        if not equals:
            raise bad_url(url, f"option {number} has no value, write name=value; {_ENCODE}")
        if not _OPTION.fullmatch(name):
            raise bad_url(url, f"the name of option {number} is none: letters, digits, '_', '.' and '-'; {_ENCODE}")
        if name in found:
            raise bad_url(url, f"option {number} is given twice")
        found[name] = _decoded(value, url, f"the value of option {number}")
    return found


def _decoded(text: str, url: str, what: str) -> str:
    with contextlib.suppress(UnicodeDecodeError):
        return unquote(text, errors="strict")
    # Raised out here, so that the error that quotes the bytes is not its context.
    raise bad_url(url, f"{what} is not percent-encoded UTF-8")


def bad_url(url: str, why: str) -> JMSException:
    """Return the error for a URL that cannot be read; of the URL it shows the scheme only."""
    return JMSException(f"the URL {_scheme_only(url)} cannot be read: {why}", "bad-url")


def _scheme_only(url: str) -> str:
    found = _BEGINNING.match(url)
    return (found[0] if found else "") + "***"


def has_stray_at(url: str) -> bool:
    """Return whether an ``@`` stands behind the server's address alone: often the password holds a raw ``/`` or ``?``."""
    rest = url.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return "@" in rest and "@" not in authority


def redact_url(url: str, *, values: bool = True) -> str:
    """Return a URL that may be shown: user name, password and secret options are replaced by ``***``.

    Works on any text. Of what is no valid URL only the scheme remains, since any part of it may be one of a password.

    Args:
        url: The URL.
        values: Whether the values of other options may be shown. Of an option that nobody knows it may be a password.
    Threads: any.
    """
    if is_failover(url):
        parts = split_failover(url)
        if parts is None:
            return _scheme_only(url)
        query = _without_secrets(f"?{parts.query}", values) if parts.query else ""
        return FailoverUrl(parts.servers, "").joined(lambda server: redact_url(server, values=values)) + query
    try:
        split_url(url)
    except JMSException:
        return _scheme_only(url)
    start, _, rest = url.partition("://")
    where, question, query = rest.partition("?")
    if has_stray_at(url) and "@" in where:
        return _scheme_only(url)
    authority, slash, path = where.partition("/")
    if "@" in authority:
        authority = "***@" + authority.rpartition("@")[2]
    return f"{start}://{authority}{slash}{path}{_without_secrets(question + query, values)}"


def _without_secrets(text: str, values: bool) -> str:
    """Replace the values of secret parameters, and of those whose name is none: it may be a secret one's, mistyped."""
    return re.sub(
        r"([?&])([^=&]*)=([^&]*)",
        lambda pair: f"{pair[1]}{pair[2]}=" + (pair[3] if values and not _may_be_secret(unquote(pair[2])) else "***"),
        text,
    )


def _may_be_secret(name: str) -> bool:
    return is_secret(name) or re.fullmatch(r"[A-Za-z0-9_.-]+", name) is None
