"""Calls of a provider, whose failures all come the same way: a provider may raise at once or fail the future it returns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from jmsapi.spi import ProviderError, failed

__all__ = ["asked"]

P = ParamSpec("P")
T = TypeVar("T")


def asked(call: Callable[P, Future[T]], *arguments: P.args, **options: P.kwargs) -> Future[T]:
    """Make a call of a provider; what it raises fails the future.

    Args:
        call: The provider's method; its arguments follow.
    """
    try:
        return call(*arguments, **options)
    except ProviderError as error:
        return failed(error)
