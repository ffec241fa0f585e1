"""Who has a transaction around a listener's callback."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from jmsapi.api._annotation import annotate

__all__ = ["TransactionAttribute"]

_Target = TypeVar("_Target")


class TransactionAttribute(Enum):
    """Who has a transaction around a callback. Each member also decorates a callback, or a class for all of its callbacks.

    Spec: MDB-44 to MDB-56.
    """

    REQUIRED = "Required"
    """The container: message and work are one transaction."""
    NOT_SUPPORTED = "NotSupported"
    """Nobody: the message is acknowledged when the callback returns."""
    BEAN = "Bean"
    """The callback itself, by ``UserTransaction``; the message is not part of it, and is acknowledged when it returns."""

    def __call__(self, target: _Target) -> _Target:
        """Decorate a callback or a class and give it back.

        Raises:
            TypeError: The target is neither.
        """
        annotate(target, self)
        return target
