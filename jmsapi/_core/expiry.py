"""Whether a received message's time to live is over, and by whose clock.

A broker that expires messages delivers none that has expired by its own clock. If this machine's clock calls such a message
expired already when it arrives, the clocks differ and the message is alive: to discard it would destroy it for everybody. What
the client must still notice there is a message that expires while it waits here. Where the broker does not expire messages by
itself, or if the option ``local_expiry`` asks for it, this machine's clock decides. What is discarded is logged.

Spec: 3.4.9-6, 3.4.9-7, 4.8-1.
"""

from __future__ import annotations

import logging
from typing import Final

from jmsapi.spi import Clock, Envelope, ProviderError

__all__ = ["Expiry"]

_LOG: Final = logging.getLogger("jmsapi.expiry")
_TOLERATED_MS: Final = 1000
"""A message that arrives so little after its expiration may have been on its way when it expired."""


class Expiry:
    """The expiry of one connection's messages. Threads: any.

    Args:
        clock: This machine's.
        local: It decides alone.
    """

    def __init__(self, clock: Clock, *, local: bool) -> None:
        self._clock = clock
        self._local = local
        self._reported = False

    def is_over(self, envelope: Envelope, arrived: float) -> bool:
        """Return whether a message is to be discarded, which is logged.

        Args:
            envelope: The message.
            arrived: When it came, in the clock's monotonic seconds.
        """
        try:
            expiration = envelope.expiration
            if expiration <= 0:
                return False
            now = self._clock.now_ms()
            if now < expiration or not (self._local or self._lived_out_here(envelope, now, arrived)):
                return False
            _LOG.info(
                "message %s from %r expired %d ms ago and is discarded",
                envelope.message_id,
                envelope.destination.name,
                now - expiration,
            )
        except ProviderError:
            return False
        return True

    def _lived_out_here(self, envelope: Envelope, now: int, arrived: float) -> bool:
        """Return whether a message expired while it waited here."""
        waited_ms = (self._clock.monotonic() - arrived) * 1000
        late_ms = now - waited_ms - envelope.expiration
        if late_ms < 0:
            return True
        if late_ms > _TOLERATED_MS and not self._reported:
            self._reported = True
            _LOG.warning(
                "the broker delivers messages that expired %d ms ago by this machine's clock, which seems to be ahead; they are "
                "not discarded (option local_expiry)",
                late_ms,
            )
        # By the sender's clock alone: its whole time to live has passed here.
        return 0 < envelope.timestamp < envelope.expiration <= envelope.timestamp + waited_ms
