"""One link of a connection that may have several, one after the other: what its provider tells, as long as it is the one.

The gate is what keeps an old link's news from the core: whoever tells the core something of a link does so inside its gate,
and once the link is over nothing passes any more.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._emulation.reconnecting_handles import ConsumerRecord, LinkTag, Sending, is_loss
from jmsapi.spi import Clock, Delivery, ErrorKind, Handle, Provider, ProviderError, SendResult

if TYPE_CHECKING:
    from jmsapi.spi import Events

__all__ = ["SUSPECT_S", "Epoch", "Owner"]

SUSPECT_S: Final = 1.0
"""How long a link that seems to be lost may take to say so itself."""


class Owner(Protocol):
    """What an epoch knows of the connection."""

    guard: threading.Lock
    clock: Clock

    @property
    def above(self) -> Events:
        """Where events go."""
        ...

    def broke(self, epoch: Epoch, cause: ProviderError) -> None:
        """The link is gone."""

    def suspect(self, epoch: Epoch, cause: ProviderError) -> None:
        """Something says that the link is gone; the link itself should say so in a moment."""


class Epoch:
    """One link, from its opening to its loss.

    Args:
        owner: The connection.
        provider: The link's provider, with its decorators.
        place: Which server of the list.
    """

    def __init__(self, owner: Owner, provider: Provider, place: int) -> None:
        self.provider = provider
        self.place = place
        self.gate = threading.RLock()
        self.over = False
        self.cause: ProviderError | None = None
        """Why it is over, if it was lost."""
        self.suspected = False
        self.consumers: dict[Handle, ConsumerRecord] = {}
        self.unanswered: dict[int, Sending] = {}
        """Sends by the identity of their token, in the order of sending."""
        self._owner = owner

    def end(self, cause: ProviderError | None) -> bool:
        """Let nothing pass any more; False when that was so already. Waits for an event that is being told."""
        with self.gate:
            if self.over:
                return False
            self.over = True
            self.cause = cause
            return True

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass up, with tags that know their link."""
        owner = self._owner
        with self.gate:
            record = None if self.over else self.consumers.get(consumer)
            if record is None:
                return
            with owner.guard:
                record.credit -= len(deliveries)
            named = [Delivery(LinkTag(self, tag), envelope, count) for tag, envelope, count in deliveries]
            owner.above.on_deliveries(record, named)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Pass up what the broker said; what only says that the link is gone is answered when it is."""
        loss: ProviderError | None = None
        doubts: list[SendResult] = []
        with self.gate:
            if self.over:
                return
            answers: list[SendResult] = []
            for token, error in results:
                if isinstance(error, ProviderError) and is_loss(error):
                    loss = error
                elif isinstance(error, ProviderError) and error.kind is ErrorKind.IN_DOUBT:
                    doubts.append((token, error))
                elif self.unanswered.pop(id(token), None) is not None:
                    answers.append((token, error))
            if answers:
                self._owner.above.on_sent(answers)
        if doubts:
            # If it is the link that is lost, it says so in a moment: they are answered then, when the next send waits for
            # another link, or they are sent again.
            self._owner.clock.call_later(SUSPECT_S, lambda: self._in_doubt(doubts))
        if loss is not None:
            self._owner.suspect(self, loss)

    def _in_doubt(self, doubts: list[SendResult]) -> None:
        """The link lives, and yet the broker did not say what became of these sends."""
        with self.gate:
            answers = [] if self.over else [one for one in doubts if self.unanswered.pop(id(one[0]), None) is not None]
            if answers:
                self._owner.above.on_sent(answers)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Pass up that the broker ended a consumer, unless it was the link's end that ended it."""
        if cause.fatal:
            self._owner.suspect(self, cause)
            return
        with self.gate:
            record = None if self.over else self.consumers.pop(handle, None)
            if record is None:
                return
            record.refused = cause
            self._owner.above.on_closed(record, cause)

    def on_lost(self, cause: ProviderError) -> None:
        """The link is gone."""
        self._owner.broke(self, cause)

    def on_resumed(self) -> None:
        """Nothing below says this."""
