"""Further connections beside the main one: locks, the inner connection of shared subscriptions, and throw-away ones.

Some questions end the connection that asks them when the answer is no (a refused lock on RabbitMQ, any ERROR on Artemis),
so they are asked on a connection that nobody misses. All run on the provider's one I/O thread; only the blocking part of
connecting has a thread of its own, which ends with it.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from jmsapi.spi import Clock, ErrorKind, ProviderError
from jmsapi_stomp.control import Done
from jmsapi_stomp.dialect import Dialect
from jmsapi_stomp.link import Link, LinkOwner
from jmsapi_stomp.loop import IoLoop
from jmsapi_stomp.plans import GLOBAL_CLIENT
from jmsapi_stomp.settings import LinkSettings
from jmsapi_stomp.steps import Steps

__all__ = ["Links"]


class Links:
    """The further connections of a provider. I/O thread only."""

    def __init__(self, loop: IoLoop, clock: Clock, settings: LinkSettings, owner: LinkOwner, dialect: Dialect) -> None:
        self._loop = loop
        self._clock = clock
        self._settings = settings
        self._owner = owner
        self._dialect = dialect
        self._open: list[Link] = []
        self._inner: Link | None = None

    def connect(self, client_id: str | None) -> Steps[Link]:
        """Open a further connection."""
        settings = replace(self._settings, client_id=client_id)
        link = Link(self._loop, self._clock, settings, self._owner)
        link.adapt(self._dialect)

        def ask(done: Done) -> None:
            name = f"jmsapi-{self._loop.serial}-connect"
            threading.Thread(target=link.connect, args=(done,), name=name, daemon=True).start()

        self._open.append(link)
        try:
            yield ask
        except ProviderError:
            if link in self._open:
                self._open.remove(link)
            raise
        return link

    def inner(self) -> Steps[Link]:
        """Return the connection that owns shared durable subscriptions without a client id."""
        if self._inner is None or self._inner.dead is not None:
            self._inner = yield from self.connect(GLOBAL_CLIENT)
        return self._inner

    def part(self, link: Link) -> Steps[None]:
        """Leave a further connection in order: what it held is free when the broker has answered."""
        if link in self._open:
            self._open.remove(link)
        yield link.disconnect

    def drop(self, link: Link) -> None:
        """End a further connection at once."""
        if link in self._open:
            self._open.remove(link)
        if link.dead is None:
            link.closing = True
            link.end(ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True))

    def lock(self, queue: str) -> Steps[Link]:
        """Hold a queue that only one connection can hold.

        Raises:
            ProviderError: IN_USE; another one holds it.
        """
        link = yield from self.connect(None)
        headers = [("id", "lock"), ("destination", f"/queue/{queue.replace('/', '%2F')}"), *self._dialect.lock_headers()]
        try:
            yield lambda done: link.request("cannot take the lock", "SUBSCRIBE", headers, done)
        except ProviderError:
            self.drop(link)
            raise
        return link

    def end(self) -> None:
        """End them all at once."""
        for link in list(self._open):
            self.drop(link)

    def leave(self, done: Done) -> None:
        """Leave them all in order."""
        for link in [link for link in self._open if link.connecting]:
            self.drop(link)
        waiting = [link for link in self._open if link.dead is None]
        left = len(waiting)
        if not waiting:
            done(None)
            return

        def one(_: ProviderError | None) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done(None)

        for link in waiting:
            link.disconnect(one)
