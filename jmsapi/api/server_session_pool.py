"""The interface ``ServerSessionPool``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsapi.api.server_session import ServerSession

__all__ = ["ServerSessionPool"]


class ServerSessionPool(ABC):
    """Where a ConnectionConsumer borrows sessions; they return by themselves when they have run. Optional.

    Threads: any number at once.
    Spec: ASF-4, ASF-26, ASF-27.
    """

    @abstractmethod
    def get_server_session(self) -> ServerSession:
        """Take a session that is not in use, waiting while there is none.

        Returns:
            The session; it goes back to the pool after its run.
        Raises:
            JMSException: The pool cannot give one, for instance because it shuts down.
        Spec: 8.2.3-1 to 8.2.3-4, 8.2.5-1, 8.2.6-2, ASF-19, ASF-24, ASF-25, ASF-50.
        """
