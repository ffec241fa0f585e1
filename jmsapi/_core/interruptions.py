"""What a session must remember of a link that was lost while another one took its place.

What the broker had handed out by the old link it hands out again by the new one, and so it does with what came by a consumer
that it ends. An acknowledgement of it has no meaning any more, and a transaction with it cannot be committed. Both are said to
who asks; nothing is said where nothing was lost.

Spec: 4.4.7-2, 4.4.11-1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jmsapi._core.ledger import CLIENT, TRANSACTED, Entry
from jmsapi.errors import JMSException
from jmsapi.spi import ErrorKind, ProviderError

if TYPE_CHECKING:
    from jmsapi._core.session import SessionImpl

__all__ = ["Interruptions"]


class Interruptions:
    """Of one session. Its state is guarded by the session's lock.

    Args:
        session: Whose.
    """

    def __init__(self, session: SessionImpl) -> None:
        self._session = session
        self._broken: ProviderError | None = None
        self._lost: ProviderError | None = None
        self._acknowledge = _Acknowledge(session)

    def note(self, lost: int, cause: ProviderError) -> None:
        """The link is lost, and with it so many deliveries that were kept for ``acknowledge`` or ``commit``. With the lock."""
        mode = self._session.mode
        if lost and mode == TRANSACTED:
            self._broken = cause
        if mode == CLIENT:
            if lost:
                self._lost = self._acknowledge.lost = cause
            self._acknowledge = _Acknowledge(self._session)

    def take_broken(self) -> ProviderError | None:
        """Return and forget why the running transaction cannot be committed; None when it can. With the session's lock held."""
        broken, self._broken = self._broken, None
        return broken

    def acknowledge_of(self, entry: Entry) -> Callable[[], None]:
        """Return what a message's ``acknowledge()`` does: it knows by which link the message came."""
        acknowledge = self._acknowledge
        if entry.lost and acknowledge.lost is None:
            # Lost between being taken and becoming a message.
            acknowledge = _Acknowledge(self._session)
            acknowledge.lost = self._lost
        return acknowledge

    def check_nothing_lost(self) -> None:
        """Say once that something which is to be acknowledged was lost. With the session's lock held.

        Raises:
            JMSException: ``redelivered``.
        """
        lost, self._lost = self._lost, None
        if lost is not None:
            raise comes_again(lost)

    @contextmanager
    def noting_refusals(self) -> Generator[None]:
        """Take note when an acknowledgement fails: it has not been done then, however often it is asked for again."""
        try:
            yield
        except JMSException as error:
            cause = error.__cause__
            why = cause.message if isinstance(cause, ProviderError) else str(error)
            refused = ProviderError(ErrorKind.PROTOCOL, f"an acknowledgement of it failed, {why}")
            with self._session.lock:
                self._lost = self._acknowledge.lost = refused
                self._acknowledge = _Acknowledge(self._session)
            raise

    def forget_lost(self) -> None:
        """It was said, or what came since is acknowledged."""
        with self._session.lock:
            self._lost = None


class _Acknowledge:
    """``Message.acknowledge`` for the messages of one link."""

    __slots__ = ("_session", "lost")

    def __init__(self, session: SessionImpl) -> None:
        self._session = session
        self.lost: ProviderError | None = None
        """Why messages of this link cannot be acknowledged any more."""

    def __call__(self) -> None:
        session = self._session
        if not session.closed:
            session.interruptions.forget_lost()
            if self.lost is not None and not session.closing:
                raise comes_again(self.lost)
        session.acknowledge_all()


def comes_again(cause: ProviderError) -> JMSException:
    """Return what is said of an acknowledgement that comes too late."""
    error = JMSException(
        f"acknowledge: what it came by cannot take it any more ({cause.message}); unless it was taken before, it comes again",
        "redelivered",
    )
    error.__cause__ = cause
    return error
