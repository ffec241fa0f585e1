"""What goes wrong when listeners are deployed, and how a listener's own exceptions are sorted.

Spec: MDB-43, MDB-49, MDB-76.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from jmsapi.errors import JMSException

__all__ = ["ApplicationException", "DeploymentException", "EJBException", "rollback_of"]

_E = TypeVar("_E", bound=type[BaseException])
_MARK: Final = "__jms_application_exception__"


class DeploymentException(JMSException):
    """A listener cannot be deployed as it stands; nothing of its deployment is active. The text names the fix.

    Spec: MDB-3, MDB-76, MDB-79.
    """


class EJBException(JMSException):
    """What became of a system exception of a listener: ``__cause__`` is the exception itself.

    Spec: MDB-49, MDB-51, MDB-56.
    """


@dataclass(frozen=True, slots=True)
class ApplicationException:
    """Marks an exception class as one that an application raises on purpose: its listener's instance is kept.

    All classes without the mark are system exceptions, ``JMSException`` too.

    Args:
        rollback: Whether it rolls the transaction back; otherwise the transaction is committed.
        inherited: Whether subclasses have the mark, too, unless they have one of their own.
    Threads: any; it is frozen.
    Spec: MDB-43 to MDB-48.
    """

    rollback: bool = False
    inherited: bool = True

    def __call__(self, target: _E) -> _E:
        """Decorate an exception class and give it back.

        Raises:
            TypeError: The target is no class of exceptions.
        """
        if not (isinstance(target, type) and issubclass(target, BaseException)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"ApplicationException can decorate a class of exceptions, not {target!r}")
        setattr(target, _MARK, self)
        return target


def rollback_of(error: BaseException, further: Mapping[type[BaseException], bool] | None = None) -> bool | None:
    """Tell whether an exception is one of the application, and then whether it rolls back.

    Args:
        error: What a listener raised.
        further: Classes that are application exceptions without a mark, such as those of other libraries, to whether they
            roll back. The nearest class of the exception counts; for one class this comes before its mark.
    Returns:
        None for a system exception.
    Threads: any.
    Spec: MDB-43.
    """
    for kind in type(error).__mro__:
        if further is not None and kind in further:
            return further[kind]
        mark = kind.__dict__.get(_MARK)
        if isinstance(mark, ApplicationException) and (kind is type(error) or mark.inherited):
            return mark.rollback
    return None
