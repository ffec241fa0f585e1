"""What a session's domain and surroundings forbid its application.

The legacy interfaces give a session a domain, queues or topics. A container gives it rules. Both are values that a session has.

Spec: 4.11, 7.3-6, 10.2-1 to 10.2-10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jmsapi.errors import IllegalStateException

__all__ = ["BOTH", "QUEUES", "TOPICS", "Domain", "SessionRules"]


@dataclass(frozen=True, slots=True)
class Domain:
    """Which methods belong to a session.

    Args:
        interface: The session's interface, for the error.
        refused: Names of methods of the other domain.
    """

    interface: str
    refused: frozenset[str]

    def check(self, method: str) -> None:
        """Refuse a method of the other domain.

        Raises:
            IllegalStateException: ``wrong-domain``.
        """
        if method in self.refused:
            raise IllegalStateException(
                f"{method} does not belong to a {self.interface}; use the common interfaces for both domains", "wrong-domain"
            )


BOTH: Final = Domain("Session", frozenset())
QUEUES: Final = Domain(
    "QueueSession",
    frozenset(
        {
            "create_durable_consumer",
            "create_durable_subscriber",
            "create_shared_consumer",
            "create_shared_durable_consumer",
            "create_temporary_topic",
            "create_topic",
            "unsubscribe",
        }
    ),
)
TOPICS: Final = Domain("TopicSession", frozenset({"create_browser", "create_queue", "create_temporary_queue"}))


class SessionRules:
    """What the surroundings of a session forbid. These rules, of a session outside of containers, forbid nothing."""

    def check_use(self) -> None:
        """Raise when the session cannot be used here and now."""

    def check_commit(self, asked: str) -> None:
        """Raise when the application may not end transactions by ``commit`` or ``rollback``."""

    def check_recover(self) -> None:
        """Raise when the application may not recover."""

    def check_session_listener(self, asked: str) -> None:
        """Raise when the application may not use ``run``, or the session's own message listener."""

    def check_consumer_listener(self) -> None:
        """Raise when a consumer may not have a message listener."""

    def check_completion_listener(self) -> None:
        """Raise when a send may not have a completion listener."""

    def may_close(self) -> bool:
        """Return whether the application's ``close`` ends the session now; if not, these rules end it later."""
        return True
