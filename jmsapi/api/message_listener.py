"""The interface ``MessageListener``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from jmsapi.api.message import Message

__all__ = ["MessageListener", "MessageListenerLike"]


@runtime_checkable
class MessageListener(Protocol):
    """What takes the messages of a consumer one by one; a callable with one argument will do, too.

    Threads: one at a time per session; listeners of different sessions run side by side.
    Spec: 4.4.14-1, 4.4.15-1, 4.5.2-1.
    """

    def on_message(self, message: Message) -> None:
        """Process one message.

        An exception leaves the message unacknowledged; with AUTO_ACKNOWLEDGE and DUPS_OK_ACKNOWLEDGE it comes again at
        once.

        Args:
            message: The message; its properties and body are read-only.
        Threads: the thread of the session, which nothing else may use while the connection is started.
        Spec: 4.3.4-7 to 4.3.4-9, 4.3.5-2, 4.3.5-4, 4.4.1-1, 4.4.1-4, 4.4.6-3, 4.4.9-3, 4.4.11-4, 4.4.14-1, 4.4.14-2,
            4.4.15-1, 4.5.2-1 to 4.5.2-6, 4.5.3-2.
        """


MessageListenerLike: TypeAlias = MessageListener | Callable[[Message], None]
"""A listener object, or a callable that takes the message."""
