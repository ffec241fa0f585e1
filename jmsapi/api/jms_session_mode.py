"""The annotation ``JMSSessionMode``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from jmsapi.api._annotation import annotate

__all__ = ["JMSSessionMode"]

_Target = TypeVar("_Target")


@dataclass(frozen=True, slots=True)
class JMSSessionMode:
    """Says which session mode an injected context has.

    It decorates a class or function, or stands in ``Annotated[JMSContext, JMSSessionMode(JMSContext.DUPS_OK_ACKNOWLEDGE)]``.

    Args:
        value: One of the constants of JMSContext; AUTO_ACKNOWLEDGE if it is left out.
    Threads: any number at once; it is frozen.
    Spec: 11.3.3-6 to 11.3.3-9.
    """

    value: int = 1

    def __call__(self, target: _Target) -> _Target:
        """Decorate a class or function and give it back.

        Raises:
            TypeError: The target is neither.
        """
        annotate(target, self)
        return target
