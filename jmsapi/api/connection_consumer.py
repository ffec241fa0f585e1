"""The interface ``ConnectionConsumer``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api._closing import Closing

if TYPE_CHECKING:
    from jmsapi.api.server_session_pool import ServerSessionPool

__all__ = ["ConnectionConsumer"]


class ConnectionConsumer(Closing):
    """Takes messages of a destination and hands them to the sessions of a pool; ``with`` closes it. Optional.

    Threads: any number at once.
    Spec: ASF-4.
    """

    @property
    @abstractmethod
    def server_session_pool(self) -> ServerSessionPool:
        """Give the pool this consumer takes sessions from.

        Raises:
            JMSException: The consumer is closed.
        Spec: 8.2.4-6.
        """

    @abstractmethod
    def close(self) -> None:
        """End the processing; messages not handed out yet stay in the broker. Closed already, do nothing.

        Raises:
            JMSException: The provider failed; the consumer is closed all the same.
        Spec: ASF-17.
        """
