"""The interface ``TemporaryQueue``."""

from __future__ import annotations

from abc import abstractmethod

from jmsapi.api.queue import Queue

__all__ = ["TemporaryQueue"]


class TemporaryQueue(Queue):
    """A queue that lives as long as the connection which made it, and which only that connection consumes from.

    Threads: any number at once.
    Spec: 4.4.3-7, 4.4.3-8.
    """

    __slots__ = ()

    @abstractmethod
    def delete(self) -> None:
        """Delete the queue now; otherwise it goes when its connection closes.

        Raises:
            JMSException: A consumer still uses it, or the provider failed.
        Spec: 4.4.3-6, 7.3-14, B.3.2-1.
        """
