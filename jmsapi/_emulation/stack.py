"""Which decorators stand between the core and a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi._emulation.buffering import TX, BufferedTransaction
from jmsapi._emulation.checked_xa import checked
from jmsapi._emulation.filtering import Filtering
from jmsapi._emulation.reconnecting import AttemptObserver, Reconnecting
from jmsapi._emulation.shared_subscriptions.decorator import SharedSubscriptions
from jmsapi.spi import Clock, Provider, ProviderTraits

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["AttemptObserver", "build"]


def build(
    make: Callable[[ProviderOptions], Provider],
    options: ProviderOptions,
    clock: Clock,
    watch: AttemptObserver,
    traits: ProviderTraits,
) -> Provider:
    """Return a provider with the decorators it needs around it, not yet open.

    Args:
        make: Makes the wire's provider for a server.
        options: What the application asked for.
        clock: Time.
        watch: Told of attempts, if links are made again.
        traits: What is known of the provider.
    """
    failover = options.failover
    if failover is None:
        return _of_a_server(make, options, clock, traits)
    made_again = Reconnecting(lambda server: _of_a_server(make, server, clock, traits), options, failover, clock, watch)
    return checked(made_again, options) if options.checked else made_again


def _of_a_server(
    make: Callable[[ProviderOptions], Provider], options: ProviderOptions, clock: Clock, traits: ProviderTraits
) -> Provider:
    """Put around a connection what may open further ones to the same broker."""

    def connection(of: ProviderOptions) -> Provider:
        return _of_a_link(make(of), of, clock, traits)

    if traits.in_process:
        return connection(options)
    shared = SharedSubscriptions(connection(options), connection, options)
    return checked(shared, options) if options.checked else shared


def _of_a_link(provider: Provider, options: ProviderOptions, clock: Clock, traits: ProviderTraits) -> Provider:
    """Put around a provider what belongs to its link and ends with it."""
    if TX in options.emulate:
        provider = BufferedTransaction(provider, options)
    if not traits.exact_selectors:
        provider = Filtering(provider, options, clock)
    return checked(provider, options) if options.checked else provider
