"""AMQP 1.0 provider: Artemis, ActiveMQ Classic and RabbitMQ 4, on proton's protocol engine under an own select loop.

Importing this package imports neither proton nor pydantic; ``entry`` does so when asked for its options or a provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import VERSION

if TYPE_CHECKING:
    from jmsapi.spi import Clock, Provider
    from jmsapi.spi.options import ProviderOptions

__all__ = ["entry"]


class _Entry:
    """How the core gets at this provider."""

    spi_version: tuple[int, int] = VERSION
    name: str = "amqp"
    schemes: tuple[str, ...] = ("amqp", "amqps")
    extra: str | None = "amqp"

    def options(self) -> type[ProviderOptions]:
        """Return the pydantic model of the options."""
        from jmsapi_amqp.options import AmqpOptions

        return AmqpOptions

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        """Make an unopened provider.

        Raises:
            ImportError: python-qpid-proton is not installed.
        """
        from jmsapi_amqp._provider import AmqpProvider
        from jmsapi_amqp.options import AmqpOptions

        if not isinstance(options, AmqpOptions):
            options = AmqpOptions.model_validate(options.model_dump())
        return AmqpProvider(options, clock)


entry: Final = _Entry()
