"""The options of ``failover:(url,url,...)?option=value&...``: a list of servers of one provider, and what holds for all.

Behind the list stand the options of reconnecting, in Java's spelling with or without ``failover.`` or in ours, and any option
of the provider: it goes to each server. What a server says itself is its own: where it is, and who asks. All else must be the
same for all, since a connection goes on at another server as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from jmsapi._url import FailoverUrl, is_failover
from jmsapi._validation import closest, validated
from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["parse_failover"]

_OF_A_SERVER: Final = frozenset(
    {"scheme", "host", "port", "path", "user", "password", "vhost", "failover"}
    | {"tls_ca", "tls_cert", "tls_key", "tls_key_password", "tls_verify", "tls_verify_host"}
)
"""Options that may differ from server to server."""
_PREFIX: Final = "failover."


def parse_failover(
    parts: FailoverUrl,
    given: Mapping[str, str],
    options: Mapping[str, object],
    parse: Callable[[str, Mapping[str, object]], ProviderOptions],
) -> ProviderOptions:
    """Return the options of the first server, which hold for the connection, with the others in ``failover``.

    Args:
        parts: The URL, split.
        given: The parameters behind the list, decoded.
        options: Keyword options; they win over the URL.
        parse: Turns a server's URL and the options that hold for each into its own options.
    Raises:
        JMSException: ``unknown-option``, ``bad-option`` or ``bad-url``.
    """
    from jmsapi.spi.options import FailoverOptions

    names = _names()
    ours: dict[str, object] = {}
    theirs: dict[str, object] = {}
    for source, pairs in (("the failover URL", given), ("the options", options)):
        said: dict[str, str] = {}
        for name, value in pairs.items():
            known = names.get(name.removeprefix(_PREFIX)) if name != "servers" else None
            if known is not None:
                if known in said:
                    raise JMSException(f"{source}: {said[known]!r} and {name!r} are the same option, given twice", "bad-option")
                said[known] = name
                ours[known] = value
            elif name.startswith(_PREFIX):
                near = closest(name.removeprefix(_PREFIX), set(names.values()), "options")
                raise JMSException(f"{source}: unknown option {name!r}{near}", "unknown-option")
            else:
                theirs[name] = value
    for server in parts.servers:
        _check_server(server)
    settings = validated(FailoverOptions, ours, "failover", error_code="bad-option")
    try:
        servers = tuple(parse(url, theirs) for url in parts.servers)
    except JMSException as error:
        # A misspelt option of ours looks like an unknown one of the provider.
        ends = [end for name in theirs if "did you mean" in (end := closest(name, names, "options"))]
        if error.error_code != "unknown-option" or not ends or "did you mean" in str(error):
            raise
        raise JMSException(f"{str(error).partition('; ')[0]}{ends[0]}", "unknown-option") from None
    _check_alike(servers)
    return servers[0].model_copy(update={"failover": settings.model_copy(update={"servers": servers})})


def _check_server(url: str) -> None:
    """Refuse what stands between two commas and is no server's URL; the text is not quoted, as it may have a password."""
    if is_failover(url):
        raise JMSException("failover: a list stands in another list; write all servers in one", "bad-url")
    if "," in url.partition("?")[0].rpartition("@")[2]:
        raise JMSException(
            "failover: there is a comma without a whole URL behind it; each server has its scheme, as in "
            "failover:(amqp://a,amqp://b)",
            "bad-url",
        )


def _names() -> dict[str, str]:
    """Return each spelling of an option of reconnecting, and the one that the model takes."""
    from jmsapi.spi.options import FailoverOptions

    names: dict[str, str] = {}
    for name, field in FailoverOptions.model_fields.items():
        if name != "servers":
            names |= dict.fromkeys((name, name.removesuffix("_ms"), field.alias or name), name)
    return names


def _check_alike(servers: tuple[ProviderOptions, ...]) -> None:
    first = servers[0]
    for server in servers[1:]:
        if type(server) is not type(first):
            raise JMSException(
                f"failover: {first.scheme}:// and {server.scheme}:// are different wires; a list has servers of one", "bad-url"
            )
        for name in type(first).model_fields:
            if name not in _OF_A_SERVER and getattr(server, name) != getattr(first, name):
                raise JMSException(
                    f"failover: the option {name!r} is not the same for all servers; write it behind the list, as in "
                    f"failover:(...)?{name}=...",
                    "bad-option",
                )
