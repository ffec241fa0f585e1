"""The simplified API raises runtime exceptions: each is the twin of an exception of the common API.

Spec: 11.2.9-2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from jmsapi.errors import JMSException, to_runtime

__all__ = ["runtime"]

P = ParamSpec("P")
R = TypeVar("R")


def runtime(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method raise the runtime twins of the common API's exceptions."""

    @functools.wraps(method)
    def translated(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except JMSException as error:
            raise to_runtime(error) from error

    return translated
