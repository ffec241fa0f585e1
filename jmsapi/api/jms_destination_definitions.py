"""The annotation ``JMSDestinationDefinitions``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from jmsapi.api.jms_destination_definition import JMSDestinationDefinition

__all__ = ["JMSDestinationDefinitions"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True)
class JMSDestinationDefinitions:
    """Asks for several queues and topics at once; the same as decorating a class with each of them.

    Args:
        value: The definitions, in the order in which they are to be found.
    Threads: any number at once; it is frozen.
    Spec: B.5.21-1, 4.2.1-1.
    """

    value: Sequence[JMSDestinationDefinition]

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", tuple(self.value))

    def __call__(self, target: _Target) -> _Target:
        """Decorate a class with each definition and give it back.

        Raises:
            TypeError: The target is no class.
        """
        for definition in reversed(self.value):
            definition(target)
        return target
