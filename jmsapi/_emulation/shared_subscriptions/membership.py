"""How members of a shared subscription come and go: what is checked, made and removed at the broker.

Whoever enters, leaves or ends a subscription holds its lock meanwhile: a connection with a client id that the broker gives to one
only. So each of these is one step for everybody else, and one who dies halfway leaves a state that the next puts in order:

- Each connection with a member holds one message of the members' queue. What is free there is of somebody who is dead.
- The definition is written last and removed last. With no member alive it counts for a durable subscription only.
- The definition is the one message of the leader's queue, held by the connection that forwards. When that one ends, the broker
  hands it to another that waits for it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from jmsapi._emulation.shared_subscriptions.auxiliary import AuxiliaryConnection
from jmsapi._emulation.shared_subscriptions.forwarder import SUBSCRIPTION, forwarder_spec
from jmsapi._emulation.shared_subscriptions.parts import Definition, Parts
from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["Registrar"]

_RETRY_S: Final = 0.05
_DYING_S: Final = 0.5
"""How long a member that has died may still count, before a change of the definition is refused for its sake."""


class Registrar:
    """Makes, checks and removes the parts of shared subscriptions. Its calls wait; use it on one thread.

    Args:
        connect: Opens a connection with a client id.
        timeout_s: Longest time for one call.
    """

    def __init__(self, connect: Callable[[str], AuxiliaryConnection], timeout_s: float) -> None:
        self._connect = connect
        self._timeout_s = timeout_s

    @contextmanager
    def locked(self, parts: Parts) -> Generator[AuxiliaryConnection]:
        """Hold the lock of a subscription; gives the connection that holds it.

        Raises:
            ProviderError: IN_USE when others hold it all the time.
        """
        lock = self._only(parts.lock_id, f"another process is changing the shared subscription {parts.name!r}")
        try:
            yield lock
        finally:
            with suppress(ProviderError):
                lock.close()

    def enter(self, lock: AuxiliaryConnection, parts: Parts, wanted: Definition) -> bool:
        """See to it that the subscription is there as it is wanted; return whether somebody else is a member of it.

        Args:
            lock: From ``locked``.
            parts: Of the subscription.
            wanted: What its members are to get.
        Raises:
            ProviderError: MISMATCH; it is active with another topic or selector.
        """
        active, found = self._look(lock, parts)
        deadline = time.monotonic() + _DYING_S
        while active and found not in (None, wanted):
            if time.monotonic() > deadline:
                text = f"the shared subscription {parts.name!r} is active with another topic or selector"
                raise ProviderError(ErrorKind.MISMATCH, text)
            time.sleep(_RETRY_S)
            active, found = self._look(lock, parts)
        if not active:
            if found is not None and (found != wanted or not parts.durable):
                self._clear(lock, parts)
                found = None
            self._subscribe(parts, wanted)
        if found is None:
            lock.send(wanted.written(parts))
        return bool(active)

    def left(self, lock: AuxiliaryConnection, parts: Parts) -> None:
        """Remove a non-durable subscription if nobody is a member of it any more."""
        active, found = self._look(lock, parts)
        if not active and found is not None:
            self._clear(lock, parts)

    def unsubscribe(self, lock: AuxiliaryConnection, parts: Parts) -> bool:
        """End a durable subscription; return False when there is none.

        Raises:
            ProviderError: IN_USE; it has a member.
        """
        active, found = self._look(lock, parts)
        deadline = time.monotonic() + _DYING_S
        while active:
            if time.monotonic() > deadline:
                raise ProviderError(ErrorKind.IN_USE, "the shared subscription has active consumers")
            time.sleep(_RETRY_S)
            active, found = self._look(lock, parts)
        if found is None:
            return False
        self._clear(lock, parts)
        return True

    def is_there(self, lock: AuxiliaryConnection, parts: Parts) -> bool:
        """Return whether there is such a subscription."""
        return self._look(lock, parts)[1] is not None

    def _look(self, lock: AuxiliaryConnection, parts: Parts) -> tuple[int, Definition | None]:
        """Return how many connections have a member, and the definition."""
        active = lock.purge(parts.members)
        read = [Definition.read(one.envelope) for one in lock.browse(parts.leader)]
        return active, next((one for one in read if one is not None), None)

    def _subscribe(self, parts: Parts, wanted: Definition) -> None:
        """Have the broker collect messages from now on."""
        with self._forwarder(parts) as connection:
            consumer, _ = connection.consume(forwarder_spec(wanted.topic, wanted.selector, 1))
            connection.release(consumer)

    def _clear(self, lock: AuxiliaryConnection, parts: Parts) -> None:
        """Remove all parts, the definition last: who finds it knows that something may be left."""
        with self._forwarder(parts) as connection:
            connection.remove(SUBSCRIPTION)
        lock.empty(parts.queue)
        lock.empty(parts.leader)

    @contextmanager
    def _forwarder(self, parts: Parts) -> Generator[AuxiliaryConnection]:
        connection = self._only(parts.forwarder_id, f"the forwarder of the shared subscription {parts.name!r} still runs")
        try:
            yield connection
        finally:
            connection.close()

    def _only(self, client_id: str, otherwise: str) -> AuxiliaryConnection:
        """Open a connection with a client id, waiting until nobody else has it."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._connect(client_id)
            except ProviderError as error:
                if error.kind is not ErrorKind.CLIENT_ID:
                    raise
                if time.monotonic() > deadline:
                    raise ProviderError(ErrorKind.IN_USE, otherwise) from error
            time.sleep(_RETRY_S * random.uniform(0.5, 1.5))
