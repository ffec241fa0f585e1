"""The annotation ``JMSConnectionFactory``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from jmsapi.api._annotation import annotate

__all__ = ["JMSConnectionFactory"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True)
class JMSConnectionFactory:
    """Says which connection factory an injected context, or a listener, uses.

    It decorates a class or function, or stands in ``Annotated[JMSContext, JMSConnectionFactory("orders")]``.

    Args:
        value: The name to look the factory up by.
    Threads: any number at once; it is frozen.
    Spec: 11.3.1-1, 11.3.3-2, 11.3.3-3, MDB-12.
    """

    value: str

    def __call__(self, target: _Target) -> _Target:
        """Decorate a class or function and give it back.

        Raises:
            TypeError: The target is neither.
        """
        annotate(target, self)
        return target
