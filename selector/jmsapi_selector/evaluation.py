"""What each part of a selector comes to for one message, part by part.

This is the meaning of the language, kept apart from speed: explanations and constants are worked out by it, and the compiler
takes from it what it does not write out itself. ``fold(tree, evaluation(get))`` gives the result of a whole tree.

Spec: 3.8.1-2, 3.8.1.1-25 to 3.8.1.1-51, 3.8.1.2.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final

from jmsapi_selector.java_numbers import NumberKind, calculate, convert, negate
from jmsapi_selector.like import like
from jmsapi_selector.nodes import (
    And,
    Arithmetic,
    Between,
    Boolean,
    Comparison,
    ComparisonOperator,
    Identifier,
    In,
    IsNull,
    Like,
    Node,
    Not,
    Number,
    Operator,
    Or,
    Sign,
    String,
)
from jmsapi_selector.truth import Truth
from jmsapi_selector.values import NOTHING, Getter, Kind, Typed, typed

__all__ = ["OPERATIONS", "Result", "chained", "compare", "compared", "evaluation", "is_string", "literal", "signed", "truth_of"]

Result = Truth | Typed | None
"""What a part comes to: a condition a Truth, a value what it counts as, None being NULL."""
OPERATIONS: Final[dict[ComparisonOperator, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The six comparisons of two numbers of one type."""


def evaluation(get: Getter) -> Callable[[Node, list[Result]], Result]:
    """Return what works out one node for one message, given what came of the nodes below it."""

    def visit(node: Node, below: list[Result]) -> Result:
        if isinstance(node, Identifier):
            return typed(get(node.name))
        if isinstance(node, Number | String | Boolean):
            return literal(node)
        if isinstance(node, And | Or | Not):
            return _joined(node, [truth_of(one) for one in below])
        values = [one for one in below if not isinstance(one, Truth)]
        if isinstance(node, Comparison):
            return _truth(compared(node.operator, values[0], values[1]))
        if isinstance(node, Between):
            return _between(node.negated, *values)
        if isinstance(node, In | Like):
            return _on_string(node, values[0])
        if isinstance(node, IsNull):
            return _truth((values[0] is None) is not node.negated)
        if isinstance(node, Sign):
            return signed(node.operator, values[0])
        if isinstance(node, Arithmetic):
            return chained(node.operators, values)
        raise TypeError(f"{type(node).__name__} is no node of a selector")

    return visit


def literal(node: Number | String | Boolean) -> Typed:
    """Return what a literal counts as."""
    if isinstance(node, Number):
        return NumberKind[node.type.upper()], node.value
    return (Kind.STRING if isinstance(node, String) else Kind.BOOLEAN), node.value


def truth_of(result: Result) -> Truth:
    """Take a result as a condition: a boolean can be that besides a value, any other value is not TRUE, NULL is UNKNOWN."""
    if isinstance(result, Truth):
        return result
    if result is None:
        return Truth.UNKNOWN
    kind, value = result
    return Truth.TRUE if kind is Kind.BOOLEAN and value is True else Truth.FALSE


def _truth(outcome: bool | None) -> Truth:
    return Truth.UNKNOWN if outcome is None else Truth.TRUE if outcome else Truth.FALSE


def _joined(node: And | Or | Not, below: list[Truth]) -> Truth:
    if isinstance(node, Not):
        return ~below[0]
    # The tables of the standard are the least and the greatest of FALSE, UNKNOWN, TRUE.
    return (min if isinstance(node, And) else max)(below, key=lambda one: one.value)


def _between(negated: bool, value: Typed | None, low: Typed | None, high: Typed | None) -> Truth:
    if negated:
        return _truth(compared("<", value, low)) | _truth(compared(">", value, high))
    return _truth(compared(">=", value, low)) & _truth(compared("<=", value, high))


def _on_string(node: In | Like, value: Typed | None) -> Truth:
    if value is None:
        return Truth.UNKNOWN
    kind, text = value
    if kind is not Kind.STRING or not isinstance(text, str):
        return Truth.FALSE
    found = text in node.choices if isinstance(node, In) else like(node.pattern, node.escape)(text)
    return _truth(found is not node.negated)


def compared(sign: ComparisonOperator, left: Typed | None, right: Typed | None) -> bool | None:
    """Compare two values; None when one is NULL."""
    return None if left is None or right is None else compare(sign, left, right)


def compare(sign: ComparisonOperator, left: Typed, right: Typed) -> bool:
    """Compare two values that are not NULL."""
    left_kind, a = left
    right_kind, b = right
    if isinstance(left_kind, NumberKind):
        if not isinstance(right_kind, NumberKind) or isinstance(a, str) or isinstance(b, str):
            return False
        kind = max(left_kind, right_kind)
        return OPERATIONS[sign](convert(kind, a), convert(kind, b))
    # Strings and booleans have no order, and of unlike kinds no two are equal, nor unequal.
    if left_kind is not right_kind or left_kind is Kind.OTHER or sign not in {"=", "<>"}:
        return False
    return (a == b) is (sign == "=")


def signed(sign: str, value: Typed | None) -> Typed | None:
    """Put plus or minus before a value; what is no number has no value with a sign."""
    if value is None:
        return None
    kind, number = value
    if not isinstance(kind, NumberKind) or isinstance(number, str):
        return NOTHING
    return negate((kind, number)) if sign == "-" else value


def chained(operators: Iterable[Operator], values: Iterable[Typed | None]) -> Typed | None:
    """Work a chain of arithmetic from left to right."""
    rest = iter(values)
    total = next(rest)
    for sign, value in zip(operators, rest, strict=True):
        total = _calculated(sign, total, value)
    return total


def _calculated(sign: Operator, left: Typed | None, right: Typed | None) -> Typed | None:
    """Join two values; NULL goes before the rule that operands are numbers."""
    if left is None or right is None:
        return None
    left_kind, a = left
    right_kind, b = right
    if not isinstance(left_kind, NumberKind) or not isinstance(right_kind, NumberKind):
        return NOTHING
    if isinstance(a, str) or isinstance(b, str):
        return NOTHING
    return calculate(sign, (left_kind, a), (right_kind, b))


def is_string(value: object) -> bool:
    """Tell whether a value of a message counts as a string."""
    if type(value) is str:
        return True
    known = typed(value)
    return known is not None and known[0] is Kind.STRING
