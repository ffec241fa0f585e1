"""Brokers that a program owns: whose time they keep, and what stands before each of their connections.

A test kit embeds a broker under a name before anything connects to it. The connections then take their time from it, so that
broker and application agree on what has expired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from jmsapi.spi import Clock, Provider

__all__ = ["Embedding", "embed", "embedding_of"]


class Embedding(NamedTuple):
    """How a broker is embedded."""

    clock: Clock
    """Of the broker."""
    connection_clock: Clock
    """Of its connections: the same time, though its timers may go by another."""
    wrap: Callable[[Provider], Provider]
    """Given each new connection, returns what stands in its place: a decorator of the seam, or the connection itself."""


_embedded: Final[dict[str, Embedding]] = {}


def embed(name: str, embedding: Embedding | None) -> None:
    """Embed the broker of that name from now on; None ends it. Connections that are there already stay as they are.

    Args:
        name: As it stands in the URL, ``inproc://name``.
        embedding: Its clock, and what stands before its connections.
    Threads: any.
    """
    if embedding is None:
        _embedded.pop(name, None)
    else:
        _embedded[name] = embedding


def embedding_of(name: str) -> Embedding | None:
    """Return how the broker of that name is embedded, or None."""
    return _embedded.get(name)
