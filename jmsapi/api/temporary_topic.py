"""The interface ``TemporaryTopic``."""

from __future__ import annotations

from abc import abstractmethod

from jmsapi.api.topic import Topic

__all__ = ["TemporaryTopic"]


class TemporaryTopic(Topic):
    """A topic that lives as long as the connection which made it, and which only that connection consumes from.

    Threads: any number at once.
    Spec: 4.4.3-8.
    """

    __slots__ = ()

    @abstractmethod
    def delete(self) -> None:
        """Delete the topic now; otherwise it goes when its connection closes.

        Raises:
            JMSException: A consumer still uses it, or the provider failed.
        Spec: 4.4.3-6, B.3.2-1.
        """
