"""The interface ``ExceptionListener``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from jmsapi.errors import JMSException

__all__ = ["ExceptionListener", "ExceptionListenerLike"]


@runtime_checkable
class ExceptionListener(Protocol):
    """What a connection calls when it finds a problem that no call reports; a callable with one argument will do, too.

    Threads: one at a time per connection.
    Spec: 4.3.8-1, 4.3.8-3, 4.3.8-6.
    """

    def on_exception(self, exception: JMSException) -> None:
        """Take note of a problem of the connection.

        Args:
            exception: The problem.
        Threads: a thread of the connection; the whole API may be used, ``close`` of this connection included.
        Spec: 4.3.8-1, 4.3.8-3 to 4.3.8-6, B.5.17-1, B.5.17-2, J11-25.
        """


ExceptionListenerLike: TypeAlias = ExceptionListener | Callable[[JMSException], None]
"""A listener object, or a callable that takes the exception."""
