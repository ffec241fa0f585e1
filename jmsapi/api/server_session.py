"""The interface ``ServerSession``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsapi.api.session import Session

__all__ = ["ServerSession"]


class ServerSession(ABC):
    """A session and the thread it runs on, as an application server lends them. Optional.

    Threads: one at a time.
    Spec: ASF-4.
    """

    @property
    @abstractmethod
    def session(self) -> Session:
        """Give the session to load with messages: always the same one.

        It was made by the connection of the consumer that asks.

        Raises:
            JMSException: The session is not at hand.
        Spec: 8.2.2-1, 8.2.5-1, 8.2.5-3, ASF-19, ASF-20.
        """

    @abstractmethod
    def start(self) -> None:
        """Have another thread call ``run()`` of the session once; return without waiting for it.

        Raises:
            JMSException: The session cannot be run.
        Spec: 8.2.2-2, 8.2.5-1, 8.2.6-1, 8.2.6-2, ASF-19, ASF-21 to ASF-23.
        """
