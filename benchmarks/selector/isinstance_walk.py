"""The plain way to evaluate a selector: walk its tree for each message and ask each node what it is.

What the compiled form is measured against, and, since it shares none of its shortcuts, what the tests compare it with.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, Final

from jmsapi_selector import Truth
from jmsapi_selector.nodes import (
    And,
    Arithmetic,
    Between,
    Boolean,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Node,
    Not,
    Number,
    Or,
    Sign,
    String,
)

__all__ = ["walk"]

Java = tuple[str, Any]
"""Java type and value; the type "other" for what compares with nothing."""

_OTHER: Final[Java] = ("other", None)
_WIDTHS: Final = {"int": 32, "long": 64}
_ORDER: Final = ["int", "long", "float", "double"]


def walk(node: Node, values: Mapping[str, object]) -> Truth:
    """Evaluate a condition for one message."""
    if isinstance(node, And):
        result = Truth.TRUE
        for part in node.operands:
            result = result & walk(part, values)
            if result is Truth.FALSE:
                break
        return result
    if isinstance(node, Or):
        result = Truth.FALSE
        for part in node.operands:
            result = result | walk(part, values)
            if result is Truth.TRUE:
                break
        return result
    if isinstance(node, Not):
        return ~walk(node.operand, values)
    if isinstance(node, Comparison):
        return _compare(node.operator, _value(node.left, values), _value(node.right, values))
    if isinstance(node, Between):
        value, low, high = (_value(part, values) for part in (node.value, node.low, node.high))
        if node.negated:
            return _compare("<", value, low) | _compare(">", value, high)
        return _compare(">=", value, low) & _compare("<=", value, high)
    if isinstance(node, IsNull):
        return _truth((_value(node.identifier, values) is None) != node.negated)
    if isinstance(node, In | Like):
        value = _value(node.identifier, values)
        if value is None:
            return Truth.UNKNOWN
        if value[0] != "string":
            return Truth.FALSE
        hit = value[1] in node.choices if isinstance(node, In) else _like(value[1], node.pattern, node.escape)
        return _truth(hit != node.negated)
    if isinstance(node, Boolean | Identifier):
        value = _value(node, values)
        return Truth.UNKNOWN if value is None else _truth(value == ("boolean", True))
    raise TypeError(f"{type(node).__name__} is no condition")


def _truth(value: bool) -> Truth:
    return Truth.TRUE if value else Truth.FALSE


def _value(node: Node, values: Mapping[str, object]) -> Java | None:
    if isinstance(node, Identifier):
        return _typed(values.get(node.name))
    if isinstance(node, Number):
        return node.type, node.value
    if isinstance(node, String):
        return "string", node.value
    if isinstance(node, Boolean):
        return "boolean", node.value
    if isinstance(node, Sign):
        operand = _value(node.operand, values)
        if operand is None or operand[0] not in _ORDER:
            return operand and _OTHER
        return (operand[0], _fitted(operand[0], -operand[1])) if node.operator == "-" else operand
    if isinstance(node, Arithmetic):
        total = _value(node.operands[0], values)
        for operator, part in zip(node.operators, node.operands[1:], strict=True):
            total = _calculate(operator, total, _value(part, values))
        return total
    raise TypeError(f"{type(node).__name__} is no value")


def _typed(value: object) -> Java | None:
    if value is None:
        return None
    name = getattr(type(value), "jms_type", None)
    if name is not None:
        name = {"byte": "int", "short": "int"}.get(name, name)
        return (name, value) if name in {*_ORDER, "string", "boolean"} else _OTHER
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int):
        if abs(value) > 2**63:
            return _OTHER
        return ("int" if -(2**31) <= value < 2**31 else "long"), value
    if isinstance(value, float):
        return "double", value
    return ("string", value) if isinstance(value, str) else _OTHER


def _compare(operator: str, left: Java | None, right: Java | None) -> Truth:
    if left is None or right is None:
        return Truth.UNKNOWN
    if left[0] in _ORDER and right[0] in _ORDER:
        kind = max(left[0], right[0], key=_ORDER.index)
        a, b = _converted(kind, left[1]), _converted(kind, right[1])
        less, equal, greater = a < b, a == b, a > b
    elif left[0] != right[0] or left[0] == "other" or operator not in {"=", "<>"}:
        return Truth.FALSE
    else:
        less, equal, greater = False, left[1] == right[1], False
    return _truth({"=": equal, "<>": not equal, "<": less, "<=": less or equal, ">": greater, ">=": greater or equal}[operator])


def _converted(kind: str, value: Any) -> Any:
    return _fitted(kind, value) if kind in {"float", "double"} else value


def _fitted(kind: str, value: Any) -> Any:
    """Bring a number into a type: wrapped around, or rounded."""
    if kind in _WIDTHS:
        size = 1 << _WIDTHS[kind]
        return (value + size // 2) % size - size // 2
    if kind == "double":
        return float(value)
    if isinstance(value, int) and value.bit_length() > 24:
        # Round half to even by hand: by way of a double a long would be rounded twice.
        shift = abs(value).bit_length() - 24
        if shift > 0:
            kept, rest = divmod(abs(value), 1 << shift)
            half = 1 << (shift - 1)
            kept += rest > half or (rest == half and kept & 1)
            value = math.copysign(kept << shift, value)
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _calculate(operator: str, left: Java | None, right: Java | None) -> Java | None:
    if left is None or right is None:
        return None
    if left[0] not in _ORDER or right[0] not in _ORDER:
        return _OTHER
    kind = max(left[0], right[0], key=_ORDER.index)
    a, b = _converted(kind, left[1]), _converted(kind, right[1])
    if operator == "+":
        result = a + b
    elif operator == "-":
        result = a - b
    elif operator == "*":
        result = a * b
    elif b != 0:
        result = a / b if kind in {"float", "double"} else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    elif kind in _WIDTHS:
        return None
    else:
        result = math.nan if a == 0 or math.isnan(a) else math.copysign(1, a) * math.copysign(1, b) * math.inf
    return kind, _fitted(kind, result)


def _like(text: str, pattern: str, escape: str | None) -> bool:
    """Match by a table: row by row of the pattern, which places in the text can be reached."""
    reached = [True] + [False] * len(text)
    at = 0
    while at < len(pattern):
        char = pattern[at]
        escaped = char == escape and pattern[at + 1 : at + 2] in {"%", "_", escape}
        if escaped:
            at += 1
            char = pattern[at]
        if char == "%" and not escaped:
            for place in range(1, len(reached)):
                reached[place] = reached[place] or reached[place - 1]
        else:
            one = char == "_" and not escaped
            reached = [False, *(r and (one or c == char) for r, c in zip(reached[:-1], text, strict=True))]
        at += 1
    return reached[-1]
