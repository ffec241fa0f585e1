"""The interface ``Topic``."""

from __future__ import annotations

from abc import abstractmethod

from jmsapi.api.destination import Destination

__all__ = ["Topic"]


class Topic(Destination):
    """A destination whose messages each go to every subscription.

    Threads: any number at once.
    Spec: 4.2-1, 4.2-2, 2.5-3.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def topic_name(self) -> str:
        """Give the provider's name of the topic.

        Returns:
            The name, at most as portable as the provider's own names are.
        Raises:
            JMSException: The name could not be read.
        Spec: 4.2.1-1, 6.5-1, 9.1.2-1.
        """

    @abstractmethod
    def __str__(self) -> str:
        """Write the topic for people; use ``topic_name`` for its name.

        Spec: 4.2.1-1.
        """
