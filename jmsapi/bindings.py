"""Definition annotations put to work: what they ask for is bound to its name, where ``jmsapi.lookup`` finds it.

    @JMSConnectionFactoryDefinition(name="shop", properties=["url=amqp://localhost"], user="ann", password="${SHOP_PASSWORD}")
    @JMSDestinationDefinition(name="orders", interface_name="Queue", destination_name="shop.orders")
    class Shop: ...

    with bind_definitions(Shop):
        jmsapi.lookup("orders")

``jmsapi.listener.deploy`` does this for the classes that it deploys. A factory says where it leads to by the property ``url``,
or by ``resource_adapter``: a URL, or the scheme of one with ``host``, ``port`` and so on as properties. Further properties are
options of ``jmsapi.connection_factory``. References such as ``${SHOP_PASSWORD}`` are resolved as in ``jmsapi.toml``.

Spec: 4.2-1, 4.2.1-1, 4.2.2-1.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Container, Sequence
from types import TracebackType
from typing import Final, Self

from jmsapi._core.destination import QueueImpl, TopicImpl
from jmsapi._entry import bound_object, connection_factory, register_object
from jmsapi.api import ConnectionFactory, Destination, JMSConnectionFactoryDefinition, JMSDestinationDefinition
from jmsapi.api._annotation import annotations_of
from jmsapi.errors import JMSException

__all__ = ["Bindings", "bind_definitions"]

_SCOPE: Final = re.compile(r"java:[a-z]+/")
_PACKAGES: Final = ("", "javax.jms", "jakarta.jms")
_FACTORIES: Final = ("ConnectionFactory", "QueueConnectionFactory", "TopicConnectionFactory")
_binding: Final = threading.Lock()
if hasattr(os, "register_at_fork"):
    # Held by another thread during a fork, it would stay locked in the child for ever.
    os.register_at_fork(before=_binding.acquire, after_in_child=_binding.release, after_in_parent=_binding.release)


class Bindings:
    """Names that are bound until this is closed; a context manager, which closes it. Made by ``bind_definitions``.

    Args:
        objects: What is bound, by name.
    Threads: any.
    """

    def __init__(self, objects: dict[str, ConnectionFactory | Destination]) -> None:
        self._objects = objects

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self._objects)

    def close(self) -> None:
        """End the bindings, but for those that were replaced meanwhile."""
        with _binding:
            for name, found in self._objects.items():
                if bound_object(name) is found:
                    register_object(name, None)
            self._objects = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def bind_definitions(*classes: object) -> Bindings:
    """Bind what the definition annotations of classes ask for; nothing is opened.

    Args:
        classes: Those that are decorated; others have nothing to bind.
    Returns:
        What ends the bindings.
    Raises:
        JMSException: A definition says what cannot be had (``bad-definition``), a name is bound already (``name-taken``), or a
            factory cannot be made, as ``jmsapi.connection_factory`` says. Then nothing is bound.
    Threads: any.
    Spec: 4.2-1, 4.2.1-1, 4.2.2-1.
    """
    objects: dict[str, ConnectionFactory | Destination] = {}
    for target in classes:
        for one in annotations_of(target, JMSConnectionFactoryDefinition):
            _check_name(one.name, objects)
            objects[one.name] = _factory(one)
        for other in annotations_of(target, JMSDestinationDefinition):
            _check_name(other.name, objects)
            objects[other.name] = _destination(other)
    with _binding:
        for name in objects:
            if bound_object(name) is not None:
                raise _taken(name)
        for name, found in objects.items():
            register_object(name, found)
    return Bindings(objects)


def _check_name(name: str, others: Container[str]) -> None:
    if not name:
        raise _bad(name, "it has no name")
    if name in others:
        raise _taken(name)


def _taken(name: str) -> JMSException:
    return JMSException(f"the definition of {name!r}: something is bound to this name already; choose another", "name-taken")


def _bad(name: str, why: str) -> JMSException:
    return JMSException(f"the definition of {name!r}: {why}", "bad-definition")


def _kind(name: str, interface: str, known: Sequence[str]) -> str:
    package, _, kind = interface.rpartition(".")
    if package not in _PACKAGES or kind not in known:
        raise _bad(name, f"interface_name {interface!r} is none of {', '.join(known)}")
    return kind


def _destination(definition: JMSDestinationDefinition) -> Destination:
    kind = _kind(definition.name, definition.interface_name, ("Queue", "Topic"))
    if definition.class_name or definition.properties:
        raise _bad(definition.name, "class_name and properties of a destination are for other libraries; leave them out")
    name = definition.destination_name or _SCOPE.sub("", definition.name, count=1)
    return QueueImpl(name) if kind == "Queue" else TopicImpl(name)


def _factory(definition: JMSConnectionFactoryDefinition) -> ConnectionFactory:
    from jmsapi._config_file import FactoryEntry

    name = definition.name
    _kind(name, definition.interface_name, _FACTORIES)
    if definition.class_name:
        raise _bad(name, "class_name is for other libraries; a factory follows from its URL")
    if (definition.max_pool_size, definition.min_pool_size) != (-1, -1):
        raise _bad(name, "a factory keeps no connections; leave out the pool's sizes, and use jmsapi.pool")
    if not definition.transactional:
        raise _bad(name, "transactional=False cannot be had; make the connection outside of the container")
    options: dict[str, object] = {}
    for one in definition.properties:
        option, equals, value = one.partition("=")
        if not equals or option in options:
            raise _bad(name, f"each property is written name=value, once; {option!r} is not")
        options[option] = value
    for option, value in (("user", definition.user), ("password", definition.password), ("client_id", definition.client_id)):
        if value:
            options[option] = value
    adapter = definition.resource_adapter
    url = options.pop("url", adapter if "://" in adapter else f"{adapter}://")
    if url == "://":
        raise _bad(name, "it does not say where it leads: add the property url=..., such as url=amqp://localhost")
    url, resolved = FactoryEntry.model_validate({"url": url, **options}).resolved(name, os.environ)
    return connection_factory(url, **resolved)
