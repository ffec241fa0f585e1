"""The way in: factories by URL, administered objects by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, overload

from jmsapi import config
from jmsapi._core.destination import QueueImpl, TopicImpl
from jmsapi._core.plugins import providers
from jmsapi._validation import closest
from jmsapi.api import Connection, ConnectionFactory, Destination, JMSContext, Message, MessageConsumer
from jmsapi.errors import IllegalArgumentException, JMSException
from jmsapi.spi import Capabilities, ProviderEntry, ReadsWire, WireForm, traits_of

if TYPE_CHECKING:
    from jmsapi._core.listener_notifier import ConnectionListener
    from jmsapi._core.wire_reader import WireReader
    from jmsapi._core.wire_receiver import WireReceiver

__all__ = [
    "capabilities",
    "connection_factory",
    "known_providers",
    "lookup",
    "register_object",
    "register_provider",
    "set_connection_listener",
    "wire_bytes",
    "wire_form",
    "wire_reader",
    "wire_receiver",
]

T = TypeVar("T")
_objects: Final[dict[str, object]] = {}
_objects_lock: Final = threading.Lock()
if hasattr(os, "register_at_fork"):
    # Held by another thread during a fork, it would stay locked in the child for ever.
    os.register_at_fork(before=_objects_lock.acquire, after_in_child=_objects_lock.release, after_in_parent=_objects_lock.release)


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
    if traits_of(entry).xa and settings.failover is None:
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
    near = closest(name, [*bound, *file.names()], "names")
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
        JMSException: It is no such entry (``provider-broken``), or of another major version of the SPI (``provider-version``).
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
        JMSException: It was made by another library, or is no connection and no context (``unsupported``).
    Threads: any.
    """
    found = getattr(getattr(of, "meta_data", None), "capabilities", None)
    if not isinstance(found, Capabilities):
        raise JMSException(f"{of!r} does not tell its capabilities: it is no connection of jmsapi", "unsupported")
    return found


def wire_bytes(message: Message) -> tuple[bytes, bytes] | None:
    """Return a received message as the wire brought it, whatever of it can be decoded.

    Args:
        message: One that this library received.
    Returns:
        All of it, and its body: a STOMP frame and its body; an AMQP message, and the bytes of its data or, for other bodies,
        their sections as AMQP encodes them. None for a message that came by no wire.
    Threads: any.
    """
    delivery = getattr(message, "delivery", None)
    wire = getattr(getattr(delivery, "envelope", None), "wire", None)
    found: tuple[bytes, bytes] | None = None if wire is None else wire()
    return found


def wire_form(message: Message) -> WireForm | None:
    """Return a received message in a form that another process reads by ``wire_reader``, now or later, without the broker.

    Args:
        message: One that this library received; nothing of it is decoded.
    Returns:
        ``how`` to read it, which is the same for the messages of a consumer and has no secret, and its ``data``. None for a
        message that came by no wire.
    Threads: any.
    """
    envelope = getattr(getattr(message, "delivery", None), "envelope", None)
    form = getattr(envelope, "wire_form", None)
    found: WireForm | None = None if form is None else form()
    return found


def wire_reader(how: str) -> WireReader:
    """Return what reads messages that were kept by ``wire_form``.

    Args:
        how: Of the form.
    Returns:
        Takes the data, how often the message had been delivered (1: for the first time), and when it was received, in
        milliseconds since 1970; gives a message with everything that can be read, which acknowledges nothing. What it raises is
        a JMSException, when not even the kind of message can be decoded.
    Raises:
        JMSException: ``unknown-scheme``: the provider is not installed; ``missing-extra``: its wire library is not;
            ``unsupported``: it reads no kept messages.
    Threads: any. Messages are for one thread at a time.
    """
    from jmsapi._core.wire_reader import WireReader

    provider = how.partition(":")[0]
    entry = next((one for one in providers.entries() if one.name == provider), None)
    if entry is None:
        raise JMSException(
            f"messages that came by the provider {provider!r} cannot be read: it is not installed", "unknown-scheme"
        )
    if not isinstance(entry, ReadsWire):
        raise JMSException(f"the provider {provider!r} reads no messages that were kept", "unsupported")
    try:
        return WireReader(entry.wire_reader(how))
    except ImportError as error:
        raise JMSException(
            f"reading messages of {provider!r} needs what pip install 'jmsapi[{entry.extra}]' installs: {error}", "missing-extra"
        ) from error


def wire_receiver(consumer: MessageConsumer) -> WireReceiver:
    """Return what receives for a consumer many messages at a time, as their wire brought them.

    It makes no message objects, so it costs less than ``receive``, and a message that nobody can read is received like any other.
    Its ``receive`` gives each with what ``wire_form`` gives; ``acknowledge`` acknowledges them.

    Args:
        consumer: Of a session that is transacted or in CLIENT_ACKNOWLEDGE, with a prefetch.
    Raises:
        IllegalArgumentException: It is no consumer of this library.
        IllegalStateException: Its session acknowledges by itself.
    Threads: that of the consumer's session.
    """
    from jmsapi._core.consumer import ConsumerImpl
    from jmsapi._core.wire_receiver import WireReceiver

    if not isinstance(consumer, ConsumerImpl):
        raise IllegalArgumentException(f"wire_receiver takes a consumer of a session, not {type(consumer).__name__}")
    return WireReceiver(consumer)


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
