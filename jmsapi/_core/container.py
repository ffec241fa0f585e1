"""Whether the calling code runs in a container, and by whose transactions.

What a factory makes there is managed (``managed.py``). A container says so around each call of application code; what it makes
for itself, outside of such a call, is not managed.

Spec: 10.2-9.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import Final

from jmsapi.transactions import Transactions

__all__ = [
    "ContainerRules",
    "container_mode",
    "enter_container",
    "injecting",
    "leave_container",
    "outside_container",
    "rules_here",
]


@dataclass(frozen=True, slots=True)
class ContainerRules:
    """How a container treats what its applications make.

    Args:
        transactions: Who knows of its transactions; None if it has none.
        joins: Whether sessions take part in them by themselves; False for those that an injector looks after, which also
            keep the mode that they are made with.
    """

    transactions: Transactions | None = None
    joins: bool = True


_here: Final[ContextVar[ContainerRules | None]] = ContextVar("jmsapi-container", default=None)


def rules_here() -> ContainerRules | None:
    """Return the rules of the container that the calling code runs in, or None outside of one."""
    return _here.get()


def enter_container(rules: ContainerRules) -> Token[ContainerRules | None]:
    """Have what follows run as application code of a container, until ``leave_container``. Costs less than a ``with`` block."""
    return _here.set(rules)


def leave_container(token: Token[ContainerRules | None]) -> None:
    """End what ``enter_container`` has begun."""
    _here.reset(token)


@contextmanager
def container_mode(transactions: Transactions | None = None) -> Generator[None]:
    """Run a ``with`` block as application code in a container: connections and contexts that are made in it are managed.

    Args:
        transactions: Who knows of the container's transactions; None if it has none.
    Threads: the block is that of the calling thread or task; a thread that it starts is outside of the container.
    Spec: 10.2-1 to 10.2-10, 10.3-1 to 10.3-12.
    """
    token = enter_container(ContainerRules(transactions))
    try:
        yield
    finally:
        leave_container(token)


@contextmanager
def injecting() -> Generator[None]:
    """Run a ``with`` block that makes a context which an injector has join, commit and close."""
    rules = _here.get()
    token = _here.set(None if rules is None else replace(rules, joins=False))
    try:
        yield
    finally:
        _here.reset(token)


@contextmanager
def outside_container() -> Generator[None]:
    """Run a ``with`` block that makes what outlives the call of the application code, such as the connections of a pool."""
    token = _here.set(None)
    try:
        yield
    finally:
        _here.reset(token)
