"""Objects that ``with`` closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NoReturn, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Closing"]


class Closing(ABC):
    """An object that ``with`` closes at the end of its block, as Java's ``try`` does.

    Spec: 4.3.5-6, 4.4.1-6, 4.5.3-4, B.5.11-1.
    """

    @abstractmethod
    def close(self) -> None:
        """Give back what the object holds; closed already, do nothing."""

    def __enter__(self) -> Self:
        """Give the object itself."""
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        """Close the object, whether the block ended or raised."""
        self.close()

    async def __aenter__(self) -> NoReturn:
        """Refuse: what this object does blocks.

        Raises:
            TypeError: Always; it names the way.
        """
        raise TypeError(
            f"{type(self).__name__} is of the blocking API, for `with`; for `async with` there are the contexts, consumers and"
            " browsers of jmsapi.aio: `async with jmsapi.aio.connection_factory(url).create_context() as context`"
        )

    async def __aexit__(self, exc_type: object, exc: object, tb: object) -> None:  # noqa: B027  Python looks for both first
        """Do nothing: no block is ever entered."""
