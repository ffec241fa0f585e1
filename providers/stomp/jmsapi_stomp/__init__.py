"""STOMP 1.2 provider for ActiveMQ Classic, Artemis and RabbitMQ, on stomp.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from jmsapi.spi import Clock, Envelope, Provider, ProviderEntry
    from jmsapi.spi.options import ProviderOptions

__all__ = ["entry"]


class _StompEntry:
    """How to get at the provider without importing stomp.py or pydantic."""

    def __init__(self) -> None:
        self.spi_version: Final = VERSION
        self.name: Final = "stomp"
        self.schemes: Final = ("stomp", "stomp+ssl")
        self.extra: Final = "stomp"

    def options(self) -> type[ProviderOptions]:
        """Return the pydantic model of the options."""
        from jmsapi_stomp.options import StompOptions

        return StompOptions

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        """Make an unopened provider; ImportError when stomp.py is missing."""
        from jmsapi_stomp.options import StompOptions
        from jmsapi_stomp.provider import StompProvider

        if not isinstance(options, StompOptions):
            raise TypeError(f"StompOptions are needed, not {type(options).__name__}")
        return StompProvider(options, clock)

    def wire_reader(self, how: str) -> Callable[[bytes, int], Envelope]:
        """Return what reads messages again that were kept as they came; ImportError when stomp.py is missing."""
        from jmsapi_stomp.wire_forms import wire_reader

        return wire_reader(how)


entry: Final[ProviderEntry] = _StompEntry()
