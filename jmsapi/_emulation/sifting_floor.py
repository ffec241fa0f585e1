"""What a sifter stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jmsapi.spi import Delivery, Handle, Provider, ProviderError

if TYPE_CHECKING:
    from jmsapi._emulation.sifting import Sifter

__all__ = ["Floor"]


class Floor(Protocol):
    """What a sifter stands on: the provider below, and the way up."""

    @property
    def below(self) -> Provider:
        """The provider."""
        ...

    def adopt(self, inner: Handle, sifter: Sifter) -> None:
        """Let the events of a consumer below come to a sifter."""
        ...

    def disown(self, inner: Handle) -> None:
        """A consumer below has ended."""
        ...

    def hand_up(self, sifter: Sifter, deliveries: Sequence[Delivery]) -> None:
        """Give matches to the core."""
        ...

    def give_up(self, sifter: Sifter, cause: ProviderError) -> None:
        """Tell the core that there will be no more matches."""
        ...
