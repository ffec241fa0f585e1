"""A tree back to text: brackets only where the grammar needs them, keywords in capitals.

Parsing the text gives the tree again.
"""

from __future__ import annotations

import math
from typing import Final

from jmsapi_selector.java_numbers import integer_kind
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
    fold,
)

__all__ = ["number_text", "quoted", "to_text"]

# How tightly a part holds together; a part within a tighter one gets brackets.
_OR: Final = 1
_AND: Final = 2
_NOT: Final = 3
_PREDICATE: Final = 4
_SUM: Final = 5
_PRODUCT: Final = 6
_SIGNED: Final = 7
_PRIMARY: Final = 8

_Piece = tuple[str, int]


def to_text(tree: Node, *, bracket_not: bool = False) -> str:
    """Write a tree as a selector.

    Args:
        tree: Any tree that the parser can make.
        bracket_not: Put the operand of NOT in brackets even where the standard needs none.
    Returns:
        Text whose tree is equal to this one.
    """
    return fold(tree, _written_bracketing_not if bracket_not else _written)[0]


def quoted(value: str) -> str:
    """Write a string literal."""
    return "'" + value.replace("'", "''") + "'"


def number_text(number: Number) -> str:
    """Write a numeric literal, its sign included, so that it keeps value and type."""
    value = number.value
    if isinstance(value, float):
        # Only the planner makes an infinite literal, for brokers; the standard knows none.
        digits = repr(value) if math.isfinite(value) else "1e999" if value > 0 else "-1e999"
        return f"{digits}f" if number.type == "float" else digits
    # Without a suffix a whole number that an int can hold is an int, and any other one a long.
    suffix = "L" if number.type == "long" and integer_kind(value) == integer_kind(0) else ""
    return f"{value}{suffix}"


def _written_bracketing_not(node: Node, below: list[_Piece]) -> _Piece:
    return (f"NOT ({below[0][0]})", _NOT) if isinstance(node, Not) else _written(node, below)


def _written(node: Node, below: list[_Piece]) -> _Piece:
    if isinstance(node, Comparison):
        left, right = (_within(part, _SUM) for part in below)
        return f"{left} {node.operator} {right}", _PREDICATE
    if isinstance(node, And):
        return " AND ".join(_within(part, _NOT) for part in below), _AND
    if isinstance(node, Or):
        return " OR ".join(_within(part, _AND) for part in below), _OR
    if isinstance(node, Not):
        return f"NOT {_within(below[0], _NOT)}", _NOT
    if isinstance(node, Arithmetic):
        return _arithmetic(node, below)
    if isinstance(node, Sign):
        # A sign next to a literal would become part of it.
        return f"{node.operator}{_within(below[0], _PRIMARY + isinstance(node.operand, Number))}", _SIGNED
    if isinstance(node, Between):
        value, low, high = (_within(part, _SUM) for part in below)
        return f"{value}{_not(node.negated)} BETWEEN {low} AND {high}", _PREDICATE
    if isinstance(node, In):
        return f"{below[0][0]}{_not(node.negated)} IN ({', '.join(map(quoted, node.choices))})", _PREDICATE
    if isinstance(node, Like):
        escape = "" if node.escape is None else f" ESCAPE {quoted(node.escape)}"
        return f"{below[0][0]}{_not(node.negated)} LIKE {quoted(node.pattern)}{escape}", _PREDICATE
    if isinstance(node, IsNull):
        return f"{below[0][0]} IS{_not(node.negated)} NULL", _PREDICATE
    return _literal(node), _PRIMARY


def _literal(node: Node) -> str:
    if isinstance(node, Identifier):
        return node.name
    if isinstance(node, Number):
        return number_text(node)
    if isinstance(node, String):
        return quoted(node.value)
    if isinstance(node, Boolean):
        return "TRUE" if node.value else "FALSE"
    raise TypeError(f"{type(node).__name__} is no node of a selector")


def _arithmetic(node: Arithmetic, below: list[_Piece]) -> _Piece:
    level = _SUM if node.operators[0] in {"+", "-"} else _PRODUCT
    text = _within(below[0], level + 1)
    for operator, part in zip(node.operators, below[1:], strict=True):
        operand = _within(part, level + 1)
        # Two minus signs side by side begin a comment in the selectors of some brokers.
        text += f" {operator} " + (f"({operand})" if operand.startswith(("+", "-")) else operand)
    return text, level


def _within(piece: _Piece, level: int) -> str:
    text, own = piece
    return text if own >= level else f"({text})"


def _not(negated: bool) -> str:
    return " NOT" if negated else ""
