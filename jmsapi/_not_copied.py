"""Objects that live with a connection in one process: copying or pickling one is refused by name, not half done.

A shallow copy of a session would share its lock and its messages, and have a state of its own that says otherwise: closing one
would leave the other open with a handle that is gone.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["NotCopied"]


class NotCopied:
    """A base of what lives with a connection."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__.removesuffix("Impl").removeprefix("_")
        raise TypeError(
            f"a {name} lives with its connection in this process and can be neither copied nor pickled; "
            "hand over the connection factory, a destination or a message instead"
        )
