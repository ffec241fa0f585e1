"""What a provider may raise: one exception, a kind, and whether the link survives it."""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["ErrorKind", "ProviderError"]


class ErrorKind(Enum):
    """What went wrong, in the words the core's error table understands."""

    CONNECTION = "connection"
    """The link could not be made, or is lost."""
    SECURITY = "security"
    """Credentials, certificate or a right refused."""
    OPTION = "option"
    """An option of the connection cannot be used, such as a file that is not there; the text names it. No broker was asked."""
    CLIENT_ID = "client-id"
    """The client id is taken or not allowed."""
    DESTINATION = "destination"
    """No such destination, deleted, or of the other kind."""
    SUBSCRIPTION = "subscription"
    """No such subscription."""
    IN_USE = "in-use"
    """A subscription, temporary destination or name is in use by somebody."""
    MISMATCH = "mismatch"
    """A shared subscription is active with another topic or selector."""
    SELECTOR = "selector"
    """The broker refused the selector's text."""
    FORMAT = "format"
    """A message that cannot be encoded, decoded, or is too large."""
    RESOURCE = "resource"
    """The broker is out of memory, disk, links or quota."""
    ROLLED_BACK = "rolled-back"
    """The broker rolled the transaction back."""
    IN_DOUBT = "in-doubt"
    """The outcome of a commit or send is unknown: its answer was lost."""
    UNSUPPORTED = "unsupported"
    """The broker has no such feature."""
    TIMEOUT = "timeout"
    """No answer in time."""
    CLOSED = "closed"
    """The provider or the handle is closed already."""
    PROTOCOL = "protocol"
    """The peer broke the wire protocol, or sent what we cannot understand."""

    @property
    def is_final(self) -> bool:
        """Whether asking again, as it is, would fail again: somebody must change an option, a right or the broker first."""
        return self in _FINAL


_FINAL: Final = frozenset({ErrorKind.OPTION, ErrorKind.SECURITY, ErrorKind.UNSUPPORTED})


class ProviderError(Exception):
    """The one exception of the provider interface.

    Args:
        kind: What went wrong; the core picks the JMS exception by it.
        message: What was asked, what is so, what to do. Never a password or a body.
        fatal: True when the whole connection is of no more use; to whoever asked for something it says no more than that, and
            its kind is that of what ended the connection. What is refused by itself is not fatal, even if the broker ends the
            connection with it.
    """

    def __init__(self, kind: ErrorKind, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.fatal = fatal

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.kind, self.message, self.fatal)


def _rebuild(kind: ErrorKind, message: str, fatal: bool) -> ProviderError:
    return ProviderError(kind, message, fatal=fatal)
