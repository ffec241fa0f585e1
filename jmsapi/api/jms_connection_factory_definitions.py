"""The annotation ``JMSConnectionFactoryDefinitions``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from jmsapi.api.jms_connection_factory_definition import JMSConnectionFactoryDefinition

__all__ = ["JMSConnectionFactoryDefinitions"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True)
class JMSConnectionFactoryDefinitions:
    """Asks for several connection factories at once; the same as decorating a class with each of them.

    Args:
        value: The definitions, in the order in which they are to be found.
    Threads: any number at once; it is frozen.
    Spec: 4.2-2, 4.2.2-1, 4.3.2-1.
    """

    value: Sequence[JMSConnectionFactoryDefinition]

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
