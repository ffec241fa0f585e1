"""Which decorators stand between the core and a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi._emulation.buffering import TX, BufferedTransaction
from jmsapi._emulation.checked_xa import checked
from jmsapi._emulation.filtering import Filtering
from jmsapi._emulation.reconnecting import Reconnecting, Watch
from jmsapi.spi import Clock, Provider

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["Watch", "build"]


def build(make: Callable[[ProviderOptions], Provider], options: ProviderOptions, clock: Clock, watch: Watch) -> Provider:
    """Return a provider with the decorators it needs around it, not yet open.

    Args:
        make: Makes the wire's provider for a server.
        options: What the application asked for.
        clock: Time.
        watch: Told of attempts, if links are made again.
    """
    failover = options.failover
    if failover is None:
        return _of_a_link(make(options), options, clock)
    made_again = Reconnecting(lambda server: _of_a_link(make(server), server, clock), options, failover, clock, watch)
    return checked(made_again, options) if options.checked else made_again


def _of_a_link(provider: Provider, options: ProviderOptions, clock: Clock) -> Provider:
    """Put around a provider what belongs to its link and ends with it."""
    if TX in options.emulate:
        provider = BufferedTransaction(provider, options)
    if options.scheme != "inproc":
        # The in-process broker evaluates selectors and no-local with the engine itself.
        provider = Filtering(provider, options, clock)
    return checked(provider, options) if options.checked else provider
