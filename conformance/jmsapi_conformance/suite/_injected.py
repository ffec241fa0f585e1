"""A factory that counts, for tests of injection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jmsapi import (
    ConnectionFactory,
    IllegalStateRuntimeException,
    JMSContext,
)

__all__ = ["closed", "counted"]


class Counting:
    """A factory that keeps what it is asked for and what it made."""

    def __init__(self, factory: ConnectionFactory) -> None:
        self._factory = factory
        self.asked: list[tuple[object, ...]] = []
        self.made: list[JMSContext] = []

    def create_context(self, user: object = None, password: object = None, session_mode: int = 1) -> JMSContext:
        self.asked.append((user, password, session_mode))
        self.made.append(self._factory.create_context(session_mode=session_mode))
        return self.made[-1]

    def create_connection(self) -> None:
        raise AssertionError("contexts only")


# The counting factory passes for a factory, which is an abstract class.
ConnectionFactory.register(Counting)


def counted(factory: ConnectionFactory) -> Iterator[Any]:
    """Give a factory that counts; what it made and nobody closed is closed."""
    made = Counting(factory)
    yield made
    for context in made.made:
        context.close()


def closed(context: JMSContext) -> bool:
    """Whether a context is closed."""
    try:
        context.create_message()
    except IllegalStateRuntimeException:
        return True
    return False
