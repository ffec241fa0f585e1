"""AMQP 1.0 provider: Artemis, ActiveMQ Classic and RabbitMQ 4, on proton's protocol engine under an own select loop.

Importing this package imports neither proton nor pydantic; ``entry`` does so when asked for its options or a provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import VERSION, ProviderTraits

if TYPE_CHECKING:
    from collections.abc import Callable

    from jmsapi.spi import Clock, Envelope, Provider
    from jmsapi.spi.options import ProviderOptions

__all__ = ["entry"]

_INSTALLING: Final = (
    "There is no wheel for Linux, so pip builds it with a C compiler and the headers of Python and OpenSSL. "
    "Debian and Ubuntu: apt-get install gcc libc6-dev libssl-dev pkg-config python3-dev; "
    "Fedora: dnf install gcc openssl-devel pkgconf python3-devel; "
    "Alpine: apk add gcc musl-dev openssl-dev pkgconf python3-dev libffi-dev; "
    "macOS: xcode-select --install and brew install openssl pkg-config"
)


class _AmqpEntry:
    """How the core gets at this provider."""

    spi_version: tuple[int, int] = VERSION
    name: str = "amqp"
    schemes: tuple[str, ...] = ("amqp", "amqps")
    extra: str | None = "amqp"
    traits: ProviderTraits = ProviderTraits(installing=_INSTALLING)

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

    def wire_reader(self, how: str) -> Callable[[bytes, int], Envelope]:
        """Return what reads messages again that were kept as they came.

        Raises:
            ImportError: python-qpid-proton is not installed.
        """
        from jmsapi_amqp.wire_forms import wire_reader

        return wire_reader(how)


entry: Final = _AmqpEntry()
