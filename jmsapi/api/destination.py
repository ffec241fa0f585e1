"""The interface ``Destination``."""

from __future__ import annotations

from abc import ABC

__all__ = ["Destination"]


class Destination(ABC):  # noqa: B024 - in JMS it has no method either
    """An address of the provider: a queue or a topic.

    It holds a name and no connection, so it may be shared and kept. Two objects of one kind and name are equal.

    Threads: any number at once.
    Spec: 3.4.1-2, 4.2-1, 4.2.1-1, 2.3-1, 2.5-3, 2.8-1.
    """

    __slots__ = ()
