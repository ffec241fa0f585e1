"""What the engine tells of a peer's reasons."""

from __future__ import annotations

from jmsapi.spi import ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.errors import Cause

__all__ = ["cause_of"]


def cause_of(condition: Pointer, otherwise: str) -> Cause:
    """Return what a condition of the engine says.

    Args:
        condition: Of a connection, session, link or disposition.
        otherwise: The name of the condition when the peer gave none.
    """
    if not engine.condition_is_set(condition):
        return Cause(otherwise)
    name = engine.condition_name(condition) or otherwise
    description = engine.condition_description(condition) or ""
    try:
        info = engine.read_data(engine.condition_info(condition))
    except ProviderError:  # the reason is told all the same
        info = None
    return Cause(name, description, info)
