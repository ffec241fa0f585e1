"""The interface ``CompletionListener``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from jmsapi.api.message import Message

__all__ = ["CompletionListener"]


@runtime_checkable
class CompletionListener(Protocol):
    """What an asynchronous send calls when it is done; both methods are needed.

    Threads: one at a time per session, in order of sending; never the thread that sends.
    Spec: 4.6.2-1, 4.6.2.2-1, 4.6.2.8-1, 4.6.2.8-2.
    """

    def on_completion(self, message: Message) -> None:
        """Take note that the message was sent.

        Args:
            message: The message of the send, with the header fields that sending sets.
        Spec: 3.4.11-13, 4.6.2-2, 4.6.2-3, 4.6.2.1-1, 4.6.2.4-3 to 4.6.2.4-5, 4.6.2.8-3, 11.2.4-15, B.5.10-1.
        """

    def on_exception(self, message: Message, exception: Exception) -> None:
        """Take note that the message was not sent, or may not have been.

        Args:
            message: The message of the send.
            exception: What went wrong; usually a JMSException.
        Spec: 4.6.2.2-2, 4.6.2.4-4, B.5.10-1.
        """
