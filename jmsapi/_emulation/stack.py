"""Which decorators stand between the core and a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi._emulation.checked import Checked
from jmsapi.spi import Events, Provider

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["build"]


def build(provider: Provider, events: Events, options: ProviderOptions) -> Provider:
    """Return the provider with the decorators it needs around it, not yet open.

    Args:
        provider: The wire.
        events: Where events will go, for decorators that speak up by themselves.
        options: What the application asked for.
    """
    return Checked(provider, options) if options.checked else provider
