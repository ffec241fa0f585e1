"""The annotations that make a callback of a method or function: options A, B and C/D of the JMS 2.1 proposals.

Each is a decorator that notes itself and gives back what it decorates, so a callback stays callable as before, and they may be
stacked in any order. ``jmsapi.JMSConnectionFactory`` is one of option A, too.

Spec: MDB-5 to MDB-36, MDB-74, MDB-75.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, TypeVar

from jmsapi.api import JMSContext
from jmsapi.api._annotation import annotate
from jmsapi.listener.activation_spec import AcknowledgeMode, DestinationType, Durability

__all__ = [
    "Acknowledge",
    "CallbackAnnotation",
    "ClientId",
    "JMSDestinationListener",
    "JMSDurableTopicListener",
    "JMSListener",
    "JMSListenerProperties",
    "JMSListenerProperty",
    "JMSMessageDrivenBean",
    "JMSNonDurableTopicListener",
    "JMSQueueListener",
    "MessageDriven",
    "MessageSelector",
    "PropertyAnnotation",
    "SubscriptionDurability",
    "SubscriptionName",
]

_Target = TypeVar("_Target")
_MODES: Final = {JMSContext.AUTO_ACKNOWLEDGE: AcknowledgeMode.AUTO, JMSContext.DUPS_OK_ACKNOWLEDGE: AcknowledgeMode.DUPS_OK}


class JMSMessageDrivenBean:
    """The marker that a class with callbacks may derive from; nothing depends on it.

    Spec: MDB-5.
    """

    __slots__ = ()


class _Decorator:
    __slots__ = ()

    def __call__(self, target: _Target) -> _Target:
        """Decorate a method or function, and give it back.

        Raises:
            TypeError: The target is neither.
        """
        annotate(target, self)
        return target


class PropertyAnnotation(_Decorator, ABC):
    """What sets activation properties of the callback that it decorates."""

    __slots__ = ()

    @abstractmethod
    def properties(self) -> dict[str, object]:
        """Return the activation properties by their JMS names, without those that it leaves out."""


class CallbackAnnotation(PropertyAnnotation):
    """What makes a callback of the method or function that it decorates; there may be one."""

    __slots__ = ()


def _given(**properties: object) -> dict[str, object]:
    return {name: _plain(value) for name, value in properties.items() if value is not None}


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


def _acknowledge(value: int | str | AcknowledgeMode | None) -> object:
    # An int that is no mode here goes on as it is, and is refused at deployment with the name of its property.
    return _MODES.get(value, value) if isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class JMSListener(CallbackAnnotation):
    """Makes a callback (option A); other annotations say more of it.

    Args:
        lookup: Name of the queue or topic for ``jmsapi.lookup``; None if a property says it.
        type: ``JMSListener.Type.QUEUE`` or ``JMSListener.Type.TOPIC``.
    Spec: MDB-7 to MDB-11.
    """

    Type: ClassVar = DestinationType
    lookup: str | None = None
    type: DestinationType | str = field(kw_only=True)

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(destinationLookup=self.lookup, destinationType=self.type)


@dataclass(frozen=True, slots=True)
class SubscriptionDurability(PropertyAnnotation):
    """Says whether the subscription of a callback is durable.

    Args:
        value: ``Durability.DURABLE`` or ``Durability.NON_DURABLE``, or the text of either.
    Spec: MDB-13, MDB-18.
    """

    value: Durability | str

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(subscriptionDurability=self.value)


@dataclass(frozen=True, slots=True)
class ClientId(PropertyAnnotation):
    """Gives the client id of a callback's connection.

    Args:
        value: The client id.
    Spec: MDB-14, MDB-18.
    """

    value: str

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(clientId=self.value)


@dataclass(frozen=True, slots=True)
class SubscriptionName(PropertyAnnotation):
    """Gives the name of a callback's subscription.

    Args:
        value: The name.
    Spec: MDB-15, MDB-18.
    """

    value: str

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(subscriptionName=self.value)


@dataclass(frozen=True, slots=True)
class MessageSelector(PropertyAnnotation):
    """Says which messages a callback gets.

    Args:
        value: The selector.
    Spec: MDB-16, MDB-18.
    """

    value: str

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(messageSelector=self.value)


@dataclass(frozen=True, slots=True)
class Acknowledge(PropertyAnnotation):
    """Says how messages are acknowledged where the container has no transaction.

    Args:
        value: ``JMSContext.AUTO_ACKNOWLEDGE`` or ``JMSContext.DUPS_OK_ACKNOWLEDGE``, an ``AcknowledgeMode`` or its text.
    Spec: MDB-17, MDB-18.
    """

    Mode: ClassVar = AcknowledgeMode
    value: int | str | AcknowledgeMode

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(acknowledgeMode=_acknowledge(self.value))


@dataclass(frozen=True, slots=True)
class JMSListenerProperty(_Decorator):
    """Sets any one activation property of a callback, and wins over the annotations that do; it may be repeated.

    Args:
        name: The property's name, such as ``messageSelector`` or ``concurrency``.
        value: Its value, as text.
    Raises:
        TypeError: Either is no text.
    Spec: MDB-19 to MDB-23, MDB-74.
    """

    name: str
    value: str

    def __post_init__(self) -> None:
        for what, given in (("name", self.name), ("value", self.value)):
            if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"the {what} of a JMSListenerProperty is a str, not {given!r}; write it {str(given)!r}")


@dataclass(frozen=True, slots=True)
class JMSListenerProperties:
    """Sets several activation properties of a callback; the same as decorating it with each of them.

    Args:
        value: The properties.
    Spec: MDB-20.
    """

    value: Sequence[JMSListenerProperty]

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", tuple(self.value))

    def __call__(self, target: _Target) -> _Target:
        """Decorate a method or function with each, and give it back."""
        for one in reversed(self.value):
            one(target)
        return target


@dataclass(frozen=True, slots=True)
class _WholeListener(CallbackAnnotation):
    """What the annotations of options B to D have in common."""

    destination_lookup: str | None = None
    connection_factory_lookup: str | None = field(default=None, kw_only=True)
    message_selector: str | None = field(default=None, kw_only=True)
    acknowledge: int | str | AcknowledgeMode | None = field(default=None, kw_only=True)

    def properties(self) -> dict[str, object]:
        """See PropertyAnnotation."""
        return _given(
            destinationLookup=self.destination_lookup,
            connectionFactoryLookup=self.connection_factory_lookup,
            messageSelector=self.message_selector,
            acknowledgeMode=_acknowledge(self.acknowledge),
            **self._kind(),
        )

    @abstractmethod
    def _kind(self) -> dict[str, object]:
        """Return the properties that one of them adds."""


@dataclass(frozen=True, slots=True)
class JMSQueueListener(_WholeListener):
    """Makes a callback for a queue (option B).

    Args:
        destination_lookup: Name of the queue for ``jmsapi.lookup``; None if a property says it.
        connection_factory_lookup: Name of the connection factory; None for the deployment's own.
        message_selector: Which messages; None for all.
        acknowledge: See ``Acknowledge``.
    Spec: MDB-26, MDB-29.
    """

    def _kind(self) -> dict[str, object]:
        return {"destinationType": DestinationType.QUEUE}


@dataclass(frozen=True, slots=True)
class JMSNonDurableTopicListener(_WholeListener):
    """Makes a callback for a topic, by a subscription that is not durable (option B).

    Args:
        destination_lookup: Name of the topic for ``jmsapi.lookup``; None if a property says it.
        connection_factory_lookup: Name of the connection factory; None for the deployment's own.
        message_selector: Which messages; None for all.
        acknowledge: See ``Acknowledge``.
    Spec: MDB-28, MDB-29.
    """

    def _kind(self) -> dict[str, object]:
        return {"destinationType": DestinationType.TOPIC, "subscriptionDurability": Durability.NON_DURABLE}


@dataclass(frozen=True, slots=True)
class JMSDurableTopicListener(_WholeListener):
    """Makes a callback for a topic, by a durable subscription (option B).

    Args:
        destination_lookup: Name of the topic for ``jmsapi.lookup``; None if a property says it.
        connection_factory_lookup: Name of the connection factory; None for the deployment's own.
        message_selector: Which messages; None for all.
        acknowledge: See ``Acknowledge``.
        client_id: Client id of the connection; with it the subscription has one consumer.
        subscription_name: Name of the subscription.
    Spec: MDB-27, MDB-29.
    """

    client_id: str | None = field(default=None, kw_only=True)
    subscription_name: str | None = field(default=None, kw_only=True)

    def _kind(self) -> dict[str, object]:
        return {
            "destinationType": DestinationType.TOPIC,
            "subscriptionDurability": Durability.DURABLE,
            "clientId": self.client_id,
            "subscriptionName": self.subscription_name,
        }


@dataclass(frozen=True, slots=True)
class JMSDestinationListener(_WholeListener):
    """Makes a callback for a queue or topic (options C and D).

    Args:
        destination_lookup: Name of the queue or topic for ``jmsapi.lookup``; None if a property says it.
        type: ``JMSDestinationListener.Type.QUEUE`` or ``TOPIC``; None if a property says it. There is no default.
        subscription_durability: Whether the subscription is durable; None if it is not, or is none.
        connection_factory_lookup: Name of the connection factory; None for the deployment's own.
        message_selector: Which messages; None for all.
        acknowledge: See ``Acknowledge``.
        client_id: Client id of the connection.
        subscription_name: Name of the subscription.
    Spec: MDB-32, MDB-33, MDB-35.
    """

    Type: ClassVar = DestinationType
    type: DestinationType | str | None = field(default=None, kw_only=True)
    subscription_durability: Durability | str | None = field(default=None, kw_only=True)
    client_id: str | None = field(default=None, kw_only=True)
    subscription_name: str | None = field(default=None, kw_only=True)

    def _kind(self) -> dict[str, object]:
        return {
            "destinationType": self.type,
            "subscriptionDurability": self.subscription_durability,
            "clientId": self.client_id,
            "subscriptionName": self.subscription_name,
        }


@dataclass(frozen=True, slots=True)
class MessageDriven(_Decorator):
    """Configures a message-driven class as a whole, or a function; a class that is a ``MessageListener`` needs it.

    Args:
        activation_config: Activation properties by name; each wins over what the callbacks say.
        name: The first part of the endpoints' names; None for module and class. With a name, the names of subscriptions that
            are generated do not change when the class moves.
        application_exceptions: Exceptions that are application exceptions without a mark, to whether they roll back.
    Spec: MDB-2, MDB-22 to MDB-24, MDB-43.
    """

    activation_config: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    name: str | None = field(default=None, kw_only=True)
    application_exceptions: Mapping[type[BaseException], bool] = field(default_factory=lambda: MappingProxyType({}), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation_config", MappingProxyType(dict(self.activation_config)))
        object.__setattr__(self, "application_exceptions", MappingProxyType(dict(self.application_exceptions)))
