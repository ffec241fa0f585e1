"""Brokers that a program embeds: which clock they use, and what decorates each of their connections.

A test kit embeds a broker under a name before anything connects to it. The connections then use its clock, so that broker and
application agree on what has expired.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from jmsapi.spi import Clock, Provider

__all__ = ["Embedding", "embed", "embedding_of"]


class Embedding(NamedTuple):
    """How a broker is embedded."""

    clock: Clock
    """Of the broker."""
    connection_clock: Clock
    """Of its connections: it shows the same time, though its timers may follow another clock."""
    wrap: Callable[[Provider], Provider]
    """Given a new connection, returns a decorator of it, or the connection itself."""


_embedded: Final[dict[str, Embedding]] = {}
if hasattr(os, "register_at_fork"):
    # A forked child has none of its parent's brokers; the locks of what decorates their connections may be held for ever there.
    os.register_at_fork(after_in_child=_embedded.clear)


def embed(name: str, embedding: Embedding | None) -> None:
    """Embed the broker of that name from now on; None ends it. Connections that exist already are unchanged.

    Args:
        name: As it stands in the URL, ``inproc://name``.
        embedding: Its clock, and what decorates its connections.
    Threads: any.
    """
    if embedding is None:
        _embedded.pop(name, None)
    else:
        _embedded[name] = embedding


def embedding_of(name: str) -> Embedding | None:
    """Return how the broker of that name is embedded, or None."""
    return _embedded.get(name)
