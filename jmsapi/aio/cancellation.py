"""What a cancelled call tells: the cause of its ``CancelledError`` says what has become of what was asked for.

``asyncio`` asks for that very class, not one derived from it, so the cause carries the type. ``asyncio.timeout`` puts one more
exception before it, hence ``cancelled_call``.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from jmsapi.errors import JMSException, JMSRuntimeException, to_runtime

__all__ = [
    "CancelledBeforehand",
    "CancelledCall",
    "CancelledInDoubt",
    "CancelledTooLate",
    "NotingCancellation",
    "cancelled_call",
]


class CancelledCall(JMSRuntimeException):
    """What has become of a call that was cancelled."""


class CancelledBeforehand(CancelledCall):
    """Nothing has been done: no message was sent, the transaction is as it was (code ``not-done``)."""


class CancelledInDoubt(CancelledCall):
    """It was asked for and not confirmed: it may or may not have been done (code ``in-doubt``)."""


class CancelledTooLate(CancelledCall):
    """The call was carried out before it could be cancelled (code ``done``)."""


def cancelled_call(error: BaseException | None) -> CancelledCall | None:
    """Return what has become of the call that an exception ended, if that was a cancelled send, commit or acknowledge.

    Args:
        error: A ``CancelledError``, or the ``TimeoutError`` of ``asyncio.timeout``; None, which a task without an error tells, is
            no cancelled call.
    """
    seen = error
    while seen is not None and not isinstance(seen, CancelledCall):
        seen = seen.__cause__
    return seen


class NotingCancellation:
    """Give a ``CancelledError`` its cause, and an error of the core its runtime twin (11.2.9-2).

    A class, since one made of a generator takes three times as long, for each message.

    Args:
        asked: What was asked, to begin the text with.
        otherwise: What has become of it when the core says nothing.
    """

    __slots__ = ("_asked", "_otherwise")

    def __init__(self, asked: str, otherwise: type[CancelledCall] = CancelledBeforehand) -> None:
        self._asked = asked
        self._otherwise = otherwise

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.note(error)

    def note(self, error: BaseException | None) -> None:
        """Give a ``CancelledError`` its cause; raise the runtime twin of an error of the core."""
        if isinstance(error, asyncio.CancelledError):
            error.__cause__ = _fate(error.__cause__, self._asked, self._otherwise)
        elif isinstance(error, JMSException):
            raise to_runtime(error) from error


def _fate(cause: BaseException | None, asked: str, otherwise: type[CancelledCall]) -> CancelledCall:
    if isinstance(cause, CancelledCall):
        return cause
    if isinstance(cause, JMSException):
        kinds = {"in-doubt": CancelledInDoubt, "done": CancelledTooLate}
        kind = kinds.get(cause.error_code or "", CancelledBeforehand)
        return kind(str(cause), cause.error_code)
    if otherwise is CancelledInDoubt:
        return otherwise(f"{asked}: cancelled before it was confirmed; it may or may not have been done", "in-doubt")
    return otherwise(f"{asked}: cancelled before anything was done", "not-done")
