"""The values that a send's options may have, for producers of both APIs.

Spec: 4.7-1, 3.4.10-1, 4.8-1, 4.12-1.
"""

from __future__ import annotations

from jmsapi.errors import JMSException
from jmsapi.spi import NON_PERSISTENT, PERSISTENT
from jmsapi.values import INT_RANGE

__all__ = ["delivery_delay", "delivery_mode", "priority", "time_to_live"]


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise JMSException(f"{what} is a whole number, not {value!r}", "invalid-option")
    return int(value)


def _milliseconds(value: object, what: str) -> int:
    number = _whole(value, what)
    if not 0 <= number <= INT_RANGE["long"][1]:
        raise JMSException(f"{what} is a number of milliseconds from 0 on, not {number}", "invalid-option")
    return number


def delivery_mode(value: object) -> int:
    """Return a valid delivery mode."""
    mode = _whole(value, "a delivery mode")
    if mode not in (NON_PERSISTENT, PERSISTENT):
        raise JMSException(f"a delivery mode is 1 (NON_PERSISTENT) or 2 (PERSISTENT), not {mode}", "invalid-option")
    return mode


def priority(value: object) -> int:
    """Return a valid priority."""
    rank = _whole(value, "a priority")
    if not 0 <= rank <= 9:
        raise JMSException(f"a priority is 0 to 9, not {rank}", "invalid-option")
    return rank


def time_to_live(value: object) -> int:
    """Return a valid time to live in milliseconds."""
    return _milliseconds(value, "a time to live")


def delivery_delay(value: object) -> int:
    """Return a valid delivery delay in milliseconds."""
    return _milliseconds(value, "a delivery delay")
