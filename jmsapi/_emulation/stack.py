"""Which decorators stand between the core and a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi._emulation.buffering import TX, BufferedTransaction
from jmsapi._emulation.checked import Checked
from jmsapi._emulation.filtering import Filtering
from jmsapi.spi import Clock, Provider

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["build"]


def build(provider: Provider, options: ProviderOptions, clock: Clock) -> Provider:
    """Return the provider with the decorators it needs around it, not yet open.

    Args:
        provider: The wire.
        options: What the application asked for.
        clock: Time.
    """
    if TX in options.emulate:
        provider = BufferedTransaction(provider, options)
    if options.scheme != "inproc":
        # The in-process broker evaluates selectors and no-local with the engine itself.
        provider = Filtering(provider, options, clock)
    return Checked(provider, options) if options.checked else provider
