"""The decorators of a requirement test."""

from __future__ import annotations

from typing import Final

import pytest

from jmsapi.spi import Capabilities
from jmsapi_conformance.inventory import by_id
from jmsapi_conformance.levels import parse

__all__ = ["ENVIRONMENT", "needs", "new_in", "requirement"]

ENVIRONMENT: Final[dict[str, str]] = {
    "second_process": "the broker can only be reached from this process",
    "broker_restart": "the runner did not start this broker and may not restart it",
    "native_client": "the runner has no client of its own for this wire",
    "in_process": "a rule of containers, which are the same over every provider; shown over the in-process one",
    "link_control": "the runner has no hold on the network link of this backend",
}
"""What a test may need of the surroundings, and the reason given where it is not there."""

_SUPPORTS: Final = frozenset(Capabilities("", "").supports())


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Name the requirements a test proves; an id that is not in the inventory is refused at once.

    Args:
        ids: Such as ``"4.4.1-2"``. A test that proves half of a requirement does not name it.
    """
    if not ids:
        raise ValueError("requirement() needs at least one id")
    for one in ids:
        try:
            by_id(one)
        except KeyError:
            raise ValueError(f"{one!r} is not in the inventory of requirements") from None
    return pytest.mark.requirement(*ids)


def needs(*names: str) -> pytest.MarkDecorator:
    """Name what a test needs of the backend, in the words of ``jmsapi.spi.Capabilities`` or of ``ENVIRONMENT``.

    Where a *feature* is NONE the test must end in UnsupportedFeatureException; where a *quality* is NONE, or the surroundings
    lack something, it is not applicable.
    """
    for name in names:
        if name not in _SUPPORTS and name not in ENVIRONMENT:
            raise ValueError(f"{name!r} is neither a capability nor a part of the environment")
    return pytest.mark.needs(*names)


def new_in(level: str) -> pytest.MarkDecorator:
    """Say that a test came with a dated level, such as ``"2026.2"``: in it, it only reports; it counts from the next one on."""
    parse(level)
    return pytest.mark.new_in(level)
