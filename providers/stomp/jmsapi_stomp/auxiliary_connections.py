"""Further connections beside the main one: locks, the connection of shared subscriptions, and throw-away ones.

Some requests end the connection that makes them when the answer is no (a refused lock on RabbitMQ, any ERROR on Artemis), so
they are made on a connection of their own. All of it runs on the provider's one I/O thread; only the blocking part of
connecting has a thread of its own, which ends with it.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from jmsapi.spi import Clock, ErrorKind, ProviderError
from jmsapi.wire import IoLoop, answer_of
from jmsapi_stomp.answers import Done, after_all
from jmsapi_stomp.connection import ConnectionOwner, StompConnection
from jmsapi_stomp.connection_settings import ConnectionSettings
from jmsapi_stomp.wire_behaviour import WireBehaviour

__all__ = ["AuxiliaryConnections"]


class AuxiliaryConnections:
    """The further connections of a provider. I/O thread only.

    Args:
        loop: Serves them.
        clock: The time.
        settings: How the main connection was made.
        owner: Takes what comes over them.
        behaviour: What they follow.
    """

    def __init__(
        self,
        loop: IoLoop,
        clock: Clock,
        settings: ConnectionSettings,
        owner: ConnectionOwner,
        behaviour: WireBehaviour,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._settings = settings
        self._owner = owner
        self._behaviour = behaviour
        self._open: list[StompConnection] = []

    async def connect(self, client_id: str | None) -> StompConnection:
        """Open a further connection."""
        settings = replace(self._settings, client_id=client_id)
        connection = StompConnection(self._loop, self._clock, settings, self._owner)
        connection.adapt(self._behaviour)

        def ask(done: Done) -> None:
            name = f"jmsapi-{self._loop.serial}-connect"
            threading.Thread(target=connection.connect, args=(done,), name=name, daemon=True).start()

        self._open.append(connection)
        try:
            await answer_of(ask)
        except ProviderError:
            if connection in self._open:
                self._open.remove(connection)
            raise
        return connection

    async def leave(self, connection: StompConnection) -> None:
        """Leave a further connection in order: what it held is free when the broker has answered.

        Until then it is one of those that ``leave_all`` waits for and ``drop_all`` ends: nobody else would close its socket.
        """
        try:
            await answer_of(connection.disconnect)
        finally:
            if connection in self._open:
                self._open.remove(connection)

    def drop(self, connection: StompConnection) -> None:
        """End a further connection at once."""
        if connection in self._open:
            self._open.remove(connection)
        if connection.dead is None:
            connection.closing = True
            connection.end(ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True))

    def drop_all(self) -> None:
        """End them all at once."""
        for connection in list(self._open):
            self.drop(connection)

    def leave_all(self, done: Done) -> None:
        """Leave them all in order."""
        for connection in [one for one in self._open if one.connecting]:
            self.drop(connection)
        after_all([one.disconnect for one in self._open if one.dead is None], done)
