"""The way in: factories by URL, administered objects by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, overload

from jmsapi import config
from jmsapi._core.destination import QueueImpl, TopicImpl
from jmsapi._core.plugins import providers
from jmsapi.api import Connection, ConnectionFactory, Destination, JMSContext
from jmsapi.errors import JMSException
from jmsapi.spi import Capabilities, ProviderEntry

if TYPE_CHECKING:
    from jmsapi._core.telling import ConnectionListener

__all__ = [
    "capabilities",
    "connection_factory",
    "known_providers",
    "lookup",
    "register_object",
    "register_provider",
    "set_connection_listener",
]

T = TypeVar("T")
_objects: Final[dict[str, object]] = {}
_objects_lock: Final = threading.Lock()


def connection_factory(url: str, **options: object) -> ConnectionFactory:
    """Make a connection factory for a URL; nothing is opened.

    Args:
        url: ``inproc://name``, ``stomp://user:password@host:port``, ``stomp+ssl://``, ``amqp://``, ``amqps://`` or a scheme of a
            registered provider; options may follow as ``?name=value&...``. Parts are percent-decoded. Or several of them, as
            ``failover:(url,url)?name=value&...``: a lost link is then made again (docs/reconnecting.md).
        options: The same options by keyword, and ``host``, ``port``, ``user``, ``password``; they win over the URL.
    Returns:
        A factory of both domains: it is also a QueueConnectionFactory and a TopicConnectionFactory.
    Raises:
        JMSException: ``error_code`` is ``bad-url``, ``unknown-scheme``, ``unknown-option``, ``bad-option``, ``provider-version``
            or ``provider-broken``. A missing extra is reported by ``create_connection``, as ``missing-extra``.
    Threads: any.
    Spec: 4.2-1, 4.2.2-1, 2.3-1.
    """
    # Loads sessions, threads and all: a program that only wants a message class need not wait for it.
    from jmsapi._core.factory import ConnectionFactoryImpl

    _must_be(url, str, "a URL", "bad-url")
    settings = config.parse_url(url, options, entries=providers)
    entry = providers[settings.scheme]
    if getattr(entry, "xa", False) and settings.failover is None:
        from jmsapi._core.xa_factory import XAConnectionFactoryImpl

        return XAConnectionFactoryImpl(entry, settings)
    return ConnectionFactoryImpl(entry, settings)


@overload
def lookup(name: str) -> ConnectionFactory | Destination: ...


@overload
def lookup(name: str, kind: Callable[..., T]) -> T: ...


def lookup(name: str, kind: Callable[..., object] | None = None) -> object:
    """Find an administered object by name.

    What ``register_object`` bound comes first, then the tables ``[factories.NAME]``, ``[queues.NAME]`` and ``[topics.NAME]`` of
    ``jmsapi.toml``: the file that the environment variable ``JMSAPI_CONFIG`` names, else the one in the working directory.

    Args:
        name: As it was bound, or as the file says.
        kind: The class it must be of, such as ``ConnectionFactory`` or ``Queue``; also the type that is returned.
    Returns:
        The object bound, or a new one from the file.
    Raises:
        JMSException: Nothing has that name (``unknown-name``), it is of another kind (``wrong-kind``), a variable is not set
            (``missing-variable``), the name is no text (``bad-name``), or the file is wrong.
    Threads: any.
    Spec: 9.1.1-1, 9.1.2-1, 4.2-1.
    """
    _must_be(name, str, "a name", "bad-name")
    if kind is not None:
        _must_be(kind, type, "the kind that is asked for", "wrong-kind")
    found = _find(name)
    # Not type[T]: mypy would refuse the interfaces there, since they are abstract.
    if isinstance(kind, type) and not isinstance(found, kind):
        raise JMSException(f"{name!r} is a {_kind_of(found)}, not a {kind.__name__}", "wrong-kind")
    return found


def _must_be(value: object, kind: type | tuple[type, ...], what: str, error_code: str) -> None:
    # Of the value only its type is shown: a URL may hold a password.
    if not isinstance(value, kind):
        kinds = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        raise JMSException(f"{what} is a {kinds}, not a {type(value).__name__}", error_code)


def _kind_of(found: object) -> str:
    for word, kind in (("ConnectionFactory", ConnectionFactory), ("Queue", QueueImpl), ("Topic", TopicImpl)):
        if isinstance(found, kind):
            return word
    return type(found).__name__


def _find(name: str) -> object:
    with _objects_lock:
        bound = dict(_objects)
    if name in bound:
        return bound[name]
    file = config.load_config()
    if name in file.factories:
        url, options = file.factories[name].resolved(name, os.environ)
        return connection_factory(url, **options)
    if name in file.queues:
        return QueueImpl(file.queues[name].name)
    if name in file.topics:
        return TopicImpl(file.topics[name].name)
    where = file.source or "no jmsapi.toml was found: name one by JMSAPI_CONFIG, or call register_object"
    near = config.closest(name, [*bound, *file.names()], "names")
    raise JMSException(f"nothing is registered under {name!r}{near} ({where})", "unknown-name")


def register_object(name: str, found: ConnectionFactory | Destination | None) -> None:
    """Bind an administered object to a name for ``lookup``, in this process.

    Args:
        name: At least one character; an earlier binding of it is replaced.
        found: The factory or destination; None ends the binding.
    Raises:
        JMSException: The name is empty or no text (``bad-name``), or what is bound is neither (``wrong-kind``).
    Threads: any.
    Spec: 9.1.1-1.
    """
    _must_be(name, str, "a name", "bad-name")
    if not name:
        raise JMSException("register_object: the name is empty", "bad-name")
    if found is not None:
        _must_be(found, (ConnectionFactory, Destination), "an administered object", "wrong-kind")
    with _objects_lock:
        if found is None:
            _objects.pop(name, None)
        else:
            _objects[name] = found


def bound_object(name: str) -> object:
    """Return what ``register_object`` has bound to a name, or None."""
    with _objects_lock:
        return _objects.get(name)


def register_provider(entry: ProviderEntry) -> None:
    """Make a provider known by its schemes, in this process; it comes before an installed one.

    Distributions use the entry point group ``jmsapi.providers`` instead.

    Args:
        entry: See ``jmsapi.spi.ProviderEntry``.
    Raises:
        JMSException: It is no such entry (``provider-broken``), or of another major version of the seam (``provider-version``).
    Threads: any.
    """
    providers.register(entry)


def known_providers() -> dict[str, ProviderEntry | JMSException]:
    """Return every provider that is installed or registered, by name; an installed one that cannot be used gives its error.

    All installed providers are loaded, their wire libraries are not.

    Threads: any.
    """
    found: dict[str, ProviderEntry | JMSException] = {entry.name: entry for entry in providers.entries()}
    return {**providers.faults(), **found}


def capabilities(of: Connection | JMSContext) -> Capabilities:
    """Tell what the provider behind an open connection or context can do, each feature with its reason.

    Args:
        of: One that this library made.
    Returns:
        The same value that decides what is refused and what the conformance suite expects.
    Raises:
        JMSException: The connection was made by another library (``unsupported``).
    Threads: any.
    """
    found = getattr(of.meta_data, "capabilities", None)
    if not isinstance(found, Capabilities):
        raise JMSException(f"{of!r} does not tell its capabilities: it is no connection of jmsapi", "unsupported")
    return found


def set_connection_listener(of: Connection | JMSContext, listener: ConnectionListener | None) -> None:
    """Have a listener told when the link of a connection is lost, tried again, and made again.

    Only a connection with a ``failover:`` URL has something to tell. The exception listener is not called for it; that one
    hears, once, when the connection is lost for good.

    Args:
        of: A connection or context that this library made. Contexts of one connection share its listener.
        listener: It replaces the one before; None for none.
    Raises:
        IllegalStateException: The connection is closed.
        JMSException: The connection was made by another library (``unsupported``).
    Threads: any. The listener is called on a thread of the connection, one call at a time.
    """
    from jmsapi._core.connection import ConnectionImpl

    # A context says itself that it is closed.
    connection = getattr(of, "connection", of)
    if not isinstance(connection, ConnectionImpl):
        raise JMSException(f"{of!r} has no connection listener: it is no connection of jmsapi", "unsupported")
    connection.connection_listener = listener
