"""The interface ``Queue``."""

from __future__ import annotations

from abc import abstractmethod

from jmsapi.api.destination import Destination

__all__ = ["Queue"]


class Queue(Destination):
    """A destination whose messages each go to one consumer.

    Threads: any number at once.
    Spec: 4.2-1, 4.2-2, 2.5-3.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def queue_name(self) -> str:
        """Give the provider's name of the queue.

        Returns:
            The name, at most as portable as the provider's own names are.
        Raises:
            JMSException: The name could not be read.
        Spec: 4.2.1-1, 5.3-1, 9.1.2-1.
        """

    @abstractmethod
    def __str__(self) -> str:
        """Write the queue for people; use ``queue_name`` for its name.

        Spec: 4.2.1-1.
        """
