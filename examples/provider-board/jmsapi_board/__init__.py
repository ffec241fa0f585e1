"""An example provider: ``board://name`` is a board in the process, on which all connections to that name meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import VERSION, Clock, Provider, ProviderTraits

if TYPE_CHECKING:
    from jmsapi.spi import ProviderEntry
    from jmsapi.spi.options import ProviderOptions

__all__ = ["entry"]


class _BoardEntry:
    """What the entry point names. It imports what it needs when it is needed."""

    spi_version = VERSION
    name = "board"
    schemes = ("board",)
    extra = None
    # A second process would meet another board.
    traits = ProviderTraits(in_process=True)

    def options(self) -> type[ProviderOptions]:
        """A board has no options beyond those of every provider."""
        from jmsapi.spi.options import ProviderOptions

        return ProviderOptions

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        """Make a connection that is not open yet."""
        from jmsapi_board.connection import BoardConnection

        return BoardConnection(options)


entry: Final[ProviderEntry] = _BoardEntry()
