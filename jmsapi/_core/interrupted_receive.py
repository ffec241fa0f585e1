"""Receiving that a signal's handler ends: what a call had taken, and did not return, the next call returns.

Otherwise a message would be gone that was acknowledged, or would be acknowledged with what comes later, and nobody has had it.

Spec: 4.4.11-1 to 4.4.11-3.
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeVar

from jmsapi._core.acknowledgement.ledger import AUTO, SETTLED, Entry
from jmsapi.api import Message
from jmsapi.spi.label import message_label

if TYPE_CHECKING:
    from jmsapi._core.session_parts import SessionParts

__all__ = ["InHand", "ReceivedMessages", "returns_or_keeps"]

_log: Final = logging.getLogger("jmsapi")
P = ParamSpec("P")
R = TypeVar("R")


class InHand:
    """What the call of one consumer that runs now has taken for its caller.

    Args:
        session: The consumer's session.
    """

    __slots__ = ("_session", "entries", "kept")

    def __init__(self, session: SessionParts) -> None:
        self._session = session
        self.entries: Sequence[Entry] = ()
        self.kept: deque[Entry] = deque()
        """Accepted for calls that did not return."""

    def next_kept(self) -> Entry:
        """Return what was accepted for an interrupted call, for this one. Something must be kept."""
        entry = self.kept.popleft()
        self.entries = (entry,)
        return entry

    def keep(self) -> None:
        """The call is interrupted: what it has taken waits again, or here if the provider knows that it is accepted."""
        entries, self.entries = self.entries, ()
        session = self._session
        told = session.mode != AUTO or session.settlement.last_ack is not None
        kept = [one for one in entries if told and one.state == SETTLED and not one.lost]
        self.kept.extend(kept)
        session.after_interruption([one for one in reversed(entries) if one not in kept])

    def refused(self, entry: Entry) -> None:
        """The caller did not get what was kept, since its body is of another type: the next call gets it."""
        if entry.state == SETTLED:
            self.entries = ()
            self.kept.appendleft(entry)

    def leave(self) -> None:
        """The consumer is closed: say what nobody will have."""
        while self.kept:
            label = message_label(self.kept.popleft().delivery.envelope)
            _log.warning("%s was acknowledged for a receive that was interrupted, and nobody has received it since", label)


class _Receiver(Protocol):
    @property
    def in_hand(self) -> InHand: ...


S = TypeVar("S", bound=_Receiver)


def returns_or_keeps(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a receiving method keep what it has taken when a signal's handler ends it. The outermost decorator."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        in_hand = self.in_hand
        in_hand.entries = ()
        try:
            received = method(self, *args, **kwargs)
        except BaseException as error:
            if not isinstance(error, Exception):
                in_hand.keep()
            raise
        # From here to the caller nothing is called, so nothing interrupts. A large message is not held until the next.
        in_hand.entries = ()
        return received

    return call


class ReceivedMessages(Iterator[Message]):
    """Messages as they come. No generator: one that is interrupted would be at its end.

    Args:
        receive: Takes the next; None when there will be none any more.
        in_hand: That of the consumer.
    """

    def __init__(self, receive: Callable[[], Message | None], in_hand: InHand) -> None:
        self._receive = receive
        self.in_hand = in_hand

    def __iter__(self) -> Iterator[Message]:
        """Return this iterator."""
        return self

    @returns_or_keeps
    def __next__(self) -> Message:
        """Take the next message."""
        message = self._receive()
        if message is None:
            raise StopIteration
        return message
