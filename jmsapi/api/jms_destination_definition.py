"""The annotation ``JMSDestinationDefinition``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from jmsapi.api._annotation import annotate, require_class

__all__ = ["JMSDestinationDefinition"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True, kw_only=True)
class JMSDestinationDefinition:
    """Asks for a queue or topic under a name; it decorates a class, several times if need be.

    Args:
        name: The name to look it up by.
        interface_name: ``jakarta.jms.Queue`` or ``jakarta.jms.Topic``; without the package will do.
        description: Words about it.
        class_name: The provider's class for it, if one must be chosen.
        resource_adapter: The provider that it belongs to, if one must be chosen.
        destination_name: The provider's name of the queue or topic.
        properties: Further settings, each as ``name=value``.
    Threads: any number at once; it is frozen.
    Spec: B.5.21-1, 4.2.1-1.
    """

    name: str
    interface_name: str
    description: str = ""
    class_name: str = ""
    resource_adapter: str = ""
    destination_name: str = ""
    properties: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", tuple(self.properties))

    def __call__(self, target: _Target) -> _Target:
        """Decorate a class and give it back.

        Raises:
            TypeError: The target is no class.
        """
        require_class(target, self)
        annotate(target, self)
        return target
