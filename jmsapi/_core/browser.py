"""A queue browser: shows what is in a queue and takes nothing.

Spec: 5.9-1 to 5.9-5, A.3.1-2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from jmsapi._core.errors_map import jms_error
from jmsapi._core.message import received
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.waiting import Steps, run
from jmsapi._not_copied import NotCopied
from jmsapi.api import Message, Queue, QueueBrowser
from jmsapi.errors import IllegalStateException
from jmsapi.spi import Address, ConsumerSpec, Delivery, Handle, ProviderError

__all__ = ["Browsed", "BrowserImpl"]

_STEP = 256


class Browsed:
    """Collects what one look at a queue brings.

    Args:
        handle: The browsing consumer at the provider.
        asked: What is done, to begin an error's text with.
    """

    def __init__(self, handle: Handle, asked: str) -> None:
        self.handle = handle
        self.asked = asked
        self.more = True
        """The queue may hold more than has been asked for."""
        self.deliveries: deque[Delivery] = deque()
        self.cause: ProviderError | None = None

    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """Keep deliveries until they are shown; see Port."""
        self.deliveries.extend(deliveries)

    def broke(self, cause: ProviderError) -> None:
        """The broker has ended the look; see Port."""
        self.cause = cause


class BrowserImpl(NotCopied, QueueBrowser):
    """A browser of one session.

    Args:
        session: Its session's parts.
        queue: What it shows.
        address: The same for the provider.
        selector: Valid text, or None.
    """

    def __init__(self, session: SessionParts, queue: Queue, address: Address, selector: str | None) -> None:
        self.session = session
        self.closed = False
        self._queue = queue
        self._address = address
        self._selector = selector

    @property
    def queue(self) -> Queue:
        """Return the queue; see QueueBrowser."""
        self.check_open()
        return self._queue

    @property
    def message_selector(self) -> str | None:
        """Return the selector's text, or None; see QueueBrowser."""
        self.check_open()
        return self._selector

    @property
    def enumeration(self) -> Iterator[Message]:
        """Start a new look at the queue; see QueueBrowser."""
        self.check_open()
        return self._look()

    def _look(self) -> Iterator[Message]:
        browsed = run(self.begin_look_steps())
        try:
            while browsed.more:
                run(self.look_further_steps(browsed))
                while browsed.deliveries:
                    yield self.shown(browsed)
        finally:
            self.end_look(browsed)

    def begin_look_steps(self) -> Steps[Browsed]:
        """Begin a look at the queue. ``look_further_steps``, ``shown`` and at last ``end_look`` follow."""
        link = self.session.link
        spec = ConsumerSpec(self._address, self._selector, browse=True, prefetch=_STEP)
        asked = f"browse {self._address.name!r}"
        opened = link.ask(lambda: link.provider.open_consumer(self.session.handle, spec))
        handle: Handle = yield link.awaiting(opened, asked)
        browsed = Browsed(handle, asked)
        link.attach(handle, browsed)
        return browsed

    def look_further_steps(self, browsed: Browsed) -> Steps[None]:
        """Get the next messages of a look, and record whether there may be more."""
        link = self.session.link
        granted = link.ask(lambda: link.provider.credit(browsed.handle, _STEP))
        drained = link.ask(lambda: link.provider.drain(browsed.handle))
        yield link.awaiting(drained, browsed.asked)
        if granted.done():
            # Without credit nothing comes, which must not look like an empty queue.
            yield link.awaiting(granted, browsed.asked)
        # A drain of a consumer that went with its link may well be answered: nothing more is on its way.
        cause = browsed.cause or link.lost
        if cause is not None:
            raise jms_error(cause, browsed.asked) from cause
        browsed.more = len(browsed.deliveries) >= _STEP

    def shown(self, browsed: Browsed) -> Message:
        """Return the next message that a look has brought."""
        self.check_open()
        connection = self.session.connection
        return received(browsed.deliveries.popleft(), 0, None, connection.codec, connection)

    def end_look(self, browsed: Browsed) -> None:
        """End a look at the provider, without waiting."""
        link = self.session.link
        link.detach(browsed.handle)
        if link.lost is None and not self.session.state.closed:
            link.ask(lambda: link.provider.release(browsed.handle))

    def close(self) -> None:
        """Close the browser; see QueueBrowser."""
        self.closed = True
        self.session.browsers.pop(self, None)

    def check_open(self) -> None:
        """Raise IllegalStateException when the browser is closed."""
        self.session.check_open()
        if self.closed:
            raise IllegalStateException("the browser is closed", "closed")
