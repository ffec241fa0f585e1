"""Spark's filters as JMS selectors, where both mean the same.

Only of headers: a property's type is not known here, and ``'5'`` and ``5`` are one text in the column and two values in a
selector. A selector may let too much through, for Spark looks again; it must keep back nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

__all__ = ["condition"]

_HEADERS: Final = {"type": "JMSType", "priority": "JMSPriority", "timestamp": "JMSTimestamp", "delivery_mode": "JMSDeliveryMode"}
_MODES: Final = {"persistent": "PERSISTENT", "non-persistent": "NON_PERSISTENT"}
_SIGNS: Final = {
    "EqualTo": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<=",
}  # fmt: skip


def condition(condition: Any) -> str | None:
    """Return the selector of one of PySpark's filters; None when there is none that means the same."""
    kind = type(condition).__name__
    column = ".".join(getattr(condition, "attribute", ()))
    header = _HEADERS.get(column)
    if header is None:
        return None
    if kind in _SIGNS:
        if kind != "EqualTo" and column not in ("priority", "timestamp"):
            return None
        literal = _literal(column, condition.value, up=_SIGNS[kind] in (">=", "<"))
        if literal is None:
            return None
        if kind == "EqualTo" and column == "timestamp" and condition.value.microsecond % 1000:
            return None
        return f"{header} {_SIGNS[kind]} {literal}"
    if kind == "In" and column == "type":
        literals = [_literal(column, one, up=False) for one in condition.value]
        return f"{header} IN ({', '.join(map(str, literals))})" if literals and None not in literals else None
    if kind in ("IsNull", "IsNotNull") and column == "type":
        return f"{header} IS {'NOT ' if kind == 'IsNotNull' else ''}NULL"
    return None


def _literal(column: str, value: Any, *, up: bool) -> str | None:
    """Return a value as a selector writes it; a time between two milliseconds becomes the one that lets the same through."""
    if column == "delivery_mode":
        return f"'{_MODES[value]}'" if value in _MODES else None
    if column == "priority":
        return str(value) if isinstance(value, int) and 0 <= value <= 9 else None
    if column == "timestamp":
        if not isinstance(value, datetime) or value.tzinfo is None:
            return None
        whole, rest = divmod(round(value.timestamp() * 1_000_000), 1000)
        return str(whole + (1 if up and rest else 0)) if whole > 0 else None
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) and value.isprintable() else None
