"""What a forked child has of its parent's connections: nothing.

A fork copies sockets and what waits in buffers, but no thread. A child that went on with a connection would hand out what its
parent hands out too, and write its frames into the parent's stream. So in a child every link over a wire is lost, with the
reason, before anything else runs there. Nothing is written, and no lock is waited for: the thread that held it is not here.

A child that wants to speak to the broker makes a connection of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol
from weakref import WeakSet

from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    ConsumerSpec,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    Tag,
    failed,
)

__all__ = ["free", "watch"]


class Severable(Protocol):
    """What a forked child cuts: a connection to a provider."""

    provider: Provider

    def sever(self, provider: Provider, cause: ProviderError) -> None:
        """Be lost, with another provider in place of the parent's."""
        ...


_links: Final[WeakSet[Severable]] = WeakSet()
_left_to_parent: Final[list[Provider]] = []
"""Providers that came by a fork. They are kept, so that nothing of them is closed: their sockets are the parent's."""


def watch(link: Severable) -> None:
    """Have a link cut in processes that are forked off from now on."""
    _links.add(link)


def free(lock: object) -> None:
    """Make a lock new in a forked child, where the thread that held it is gone. CPython has that for its own locks."""
    renew = getattr(lock, "_at_fork_reinit", None)
    if renew is not None:
        renew()


class _ForkedProvider:
    """What stands where a provider was: it refuses everything but its end."""

    def __init__(self, cause: ProviderError) -> None:
        self._cause = cause

    def open(self, events: Events) -> Future[Capabilities]:
        return failed(self._cause)

    def close(self) -> Future[None]:
        return DONE

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        return failed(self._cause)

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        return failed(self._cause)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        return failed(self._cause)

    def release(self, handle: Handle) -> Future[None]:
        return DONE

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        raise self._cause

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        return failed(self._cause)

    def drain(self, consumer: Handle) -> Future[None]:
        return failed(self._cause)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        return failed(self._cause)

    def begin(self, session: Handle) -> Future[Handle]:
        return failed(self._cause)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        return failed(self._cause)

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        return failed(self._cause)

    def remove(self, session: Handle, what: Address | str) -> Future[Any]:
        return failed(self._cause)


def _after_fork() -> None:
    text = f"the connection belongs to process {os.getppid()}; this is its child, which has to make one of its own"
    cause = ProviderError(ErrorKind.CONNECTION, text, fatal=True)
    for link in list(_links):
        _left_to_parent.append(link.provider)
        link.sever(_ForkedProvider(cause), cause)
    _links.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
