"""The activation properties of a callback, from all the places that may say one.

There are four, the later winning: the annotations that stand for one property each, ``JMSListenerProperty``, ``MessageDriven`` on
the class, the deployment descriptor. Within one place a property may be set once: which of two wins would depend on the order
of decorators, and that must not matter (MDB-75).

Spec: MDB-19 to MDB-24, MDB-34, MDB-75.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

from pydantic.alias_generators import to_camel

from jmsapi.api import JMSConnectionFactory
from jmsapi.api._annotation import annotations_of
from jmsapi.listener.activation_spec import ActivationSpec
from jmsapi.listener.annotations import CallbackAnnotation, JMSListenerProperty, MessageDriven, PropertyAnnotation
from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.transaction_attribute import TransactionAttribute

__all__ = ["activation_properties", "merged_properties", "notes_of"]


def activation_properties(callback: Callable[..., object], of: type | None = None) -> Mapping[str, object]:
    """Return the activation properties that annotations give a callback, by their JMS names, before they are checked.

    Args:
        callback: A function, or a method as its class has it.
        of: The class, whose own annotations count, too.
    Raises:
        DeploymentException: Two annotations set one property, or the callback has no listener annotation or several.
    Threads: any.
    Spec: MDB-7 to MDB-24.
    """
    what = getattr(callback, "__qualname__", repr(callback))
    return MappingProxyType(merged_properties(what, notes_of(callback), notes_of(of if of is not None else callback)))


def notes_of(target: object) -> tuple[object, ...]:
    """Return the annotations of a class or function; those of a static or class method may stand on either side of it."""
    inner = getattr(target, "__func__", None)
    return annotations_of(target, object) + (annotations_of(inner, object) if inner is not None else ())


def merged_properties(
    what: str, own: tuple[object, ...], whole: tuple[object, ...], *descriptor: Mapping[str, object]
) -> dict[str, object]:
    """Merge what is said of a callback.

    Args:
        what: Its name, for errors.
        own: Its annotations.
        whole: Those of its class; its own again if it is a function.
        descriptor: What the deployment descriptor says of the class, then of the callback.
    Raises:
        DeploymentException: See ``activation_properties``.
    """
    markers = [note for note in own if isinstance(note, CallbackAnnotation)]
    if len(markers) > 1:
        names = " and ".join(type(marker).__name__ for marker in markers)
        raise DeploymentException(
            f"{what}: it has {names}; one callback has one listener annotation", error_code="mixed-listeners"
        )
    specific: dict[str, object] = {}
    for note in own:
        if isinstance(note, PropertyAnnotation):
            _add(specific, note.properties(), f"{what}: its annotations set")
        elif isinstance(note, JMSConnectionFactory):
            _add(specific, {"connectionFactoryLookup": note.value}, f"{what}: its annotations set")
    named: dict[str, object] = {}
    for note in own:
        if isinstance(note, JMSListenerProperty):
            _add(named, {note.name: note.value}, f"{what}: JMSListenerProperty sets")
    return {
        **_attribute(what, whole),
        **_attribute(what, own),
        **specific,
        **named,
        **{
            name: value
            for note in whole
            if isinstance(note, MessageDriven)
            for name, value in _by_jms_name(note.activation_config)
        },
        **{name: value for part in descriptor for name, value in _by_jms_name(part)},
    }


def _attribute(what: str, notes: tuple[object, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for note in notes:
        if isinstance(note, TransactionAttribute):
            _add(found, {"transactionAttribute": note.value}, f"{what}: its annotations set")
    return found


def _by_jms_name(properties: Mapping[str, object]) -> list[tuple[str, object]]:
    return [
        (to_camel(name) if name in ActivationSpec.model_fields else name, value.value if isinstance(value, Enum) else value)
        for name, value in properties.items()
    ]


def _add(to: dict[str, object], properties: Mapping[str, object], who: str) -> None:
    for name, value in _by_jms_name(properties):
        if to.setdefault(name, value) != value:
            raise DeploymentException(
                f"{who} {name} to {to[name]!r} and to {value!r}: leave one of them out", error_code="bad-activation"
            )
