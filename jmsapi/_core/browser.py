"""A queue browser: shows what is in a queue and takes nothing.

Spec: 5.9-1 to 5.9-5, A.3.1-2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jmsapi._core.errors_map import jms_error
from jmsapi._core.message import received
from jmsapi.api import Message, Queue, QueueBrowser
from jmsapi.errors import IllegalStateException
from jmsapi.spi import Address, ConsumerSpec, Delivery, Handle, ProviderError

if TYPE_CHECKING:
    from jmsapi._core.session import SessionImpl

__all__ = ["BrowserImpl"]

_STEP = 256


class _Tray:
    """Collects what a browse brings."""

    def __init__(self) -> None:
        self.deliveries: deque[Delivery] = deque()
        self.cause: ProviderError | None = None

    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        self.deliveries.extend(deliveries)

    def broke(self, cause: ProviderError) -> None:
        self.cause = cause


class BrowserImpl(QueueBrowser):
    """A browser of one session.

    Args:
        session: Its session.
        queue: What it shows.
        address: The same for the seam.
        selector: Valid text, or None.
    """

    def __init__(self, session: SessionImpl, queue: Queue, address: Address, selector: str | None) -> None:
        self.session = session
        self.closed = False
        self._queue = queue
        self._address = address
        self._selector = selector

    @property
    def queue(self) -> Queue:
        """Return the queue; see QueueBrowser."""
        self._check_open()
        return self._queue

    @property
    def message_selector(self) -> str | None:
        """Return the selector's text, or None; see QueueBrowser."""
        self._check_open()
        return self._selector

    @property
    def enumeration(self) -> Iterator[Message]:
        """Start a new look at the queue; see QueueBrowser."""
        self._check_open()
        return self._look()

    def _look(self) -> Iterator[Message]:
        session = self.session
        link, provider = session.link, session.link.provider
        spec = ConsumerSpec(self._address, self._selector, browse=True, prefetch=_STEP)
        asked = f"browse {self._address.name!r}"
        handle: Handle = link.call(lambda: provider.open_consumer(session.handle, spec), asked)
        tray = _Tray()
        link.attach(handle, tray)
        try:
            more = True
            while more:
                granted = link.ask(lambda: provider.credit(handle, _STEP))
                link.call(lambda: provider.drain(handle), asked)
                if granted.done():
                    # Without credit nothing comes, which must not look like an empty queue.
                    link.wait(granted, asked)
                if tray.cause is not None:
                    raise jms_error(tray.cause, asked) from tray.cause
                more = len(tray.deliveries) >= _STEP
                while tray.deliveries:
                    self._check_open()
                    delivery = tray.deliveries.popleft()
                    yield received(delivery, 0, None, session.connection.codec, session.connection)
        finally:
            link.detach(handle)
            if link.lost is None and not session.closed:
                link.ask(lambda: provider.release(handle))

    def close(self) -> None:
        """Close the browser; see QueueBrowser."""
        self.closed = True
        self.session.browsers.pop(self, None)

    def _check_open(self) -> None:
        self.session.check_open()
        if self.closed:
            raise IllegalStateException("the browser is closed", "closed")
