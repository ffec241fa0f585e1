"""Objects that ``with`` closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

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
