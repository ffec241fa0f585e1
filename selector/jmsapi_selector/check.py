"""What can be seen wrong in a selector without a message.

Conditions and values must stand where the grammar of the standard has them, string and boolean literals have no order
and no arithmetic, and of the names that begin with JMS only those exist that the standard lets in. What depends on the
type of a property is left to evaluation.

Spec: 3.8.1.1-19, 3.8.1.1-20, 3.8.1.1-22, 3.8.1.1-24 to 3.8.1.1-26, 3.8.1.1-32, 3.8.1.1-38, 3.8.1.1-54.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from jmsapi_selector.errors import InvalidSelector
from jmsapi_selector.nodes import (
    And,
    Arithmetic,
    Between,
    Boolean,
    Comparison,
    Identifier,
    Node,
    Not,
    Number,
    Or,
    Sign,
    Span,
    String,
    fold,
)
from jmsapi_selector.parser import MAX_DEPTH

__all__ = ["HEADER_FIELDS", "check"]

HEADER_FIELDS: Final = frozenset(
    {"JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType"}
)
"""The header fields that a selector may use."""


class _Sort(Enum):
    """What a part of a selector is, by its text alone; the value says it in words."""

    CONDITION = "a condition"
    NUMBER = "a number"
    STRING = "a string"
    BOOLEAN = "a boolean"
    UNKNOWN = "an identifier"


class _Seen(NamedTuple):
    sort: _Sort
    height: int
    span: Span


def check(text: str, tree: Node) -> None:
    """Refuse a tree that can never be evaluated as the standard says.

    Args:
        text: The selector, for the error.
        tree: Its tree.
    Raises:
        InvalidSelector: With the part at fault as its span.
    """
    checker = _Checker(text)
    checker.condition("a selector", fold(tree, checker.visit))


class _Checker:
    def __init__(self, text: str) -> None:
        self._text = text

    def visit(self, node: Node, below: list[_Seen]) -> _Seen:
        height = 0
        for part in below:
            if part.height >= height:
                height = part.height + 1
        if height > MAX_DEPTH:
            raise InvalidSelector(self._text, f"conditions are nested deeper than {MAX_DEPTH}", node.span)
        return _Seen(self._sort(node, below), height, node.span)

    def condition(self, whose: str, part: _Seen) -> None:
        """Insist on something true or false."""
        if part.sort in {_Sort.NUMBER, _Sort.STRING}:
            raise InvalidSelector(self._text, f"{whose} must be a condition, and this is {part.sort.value}", part.span)

    def _sort(self, node: Node, below: list[_Seen]) -> _Sort:
        if isinstance(node, Identifier):
            self._name(node)
            return _Sort.UNKNOWN
        if isinstance(node, Number):
            return _Sort.NUMBER
        if isinstance(node, String):
            return _Sort.STRING
        if isinstance(node, Boolean):
            return _Sort.BOOLEAN
        if isinstance(node, Sign | Arithmetic):
            for part in below:
                self._number("arithmetic takes numbers", part)
            return _Sort.NUMBER
        if isinstance(node, Comparison):
            self._comparison(node, *below)
        elif isinstance(node, Between):
            for part in below:
                self._number("BETWEEN takes numbers", part)
        elif isinstance(node, Not | And | Or):
            word = type(node).__name__.upper()
            for part in below:
                self.condition(f"an operand of {word}", part)
        return _Sort.CONDITION

    def _name(self, node: Identifier) -> None:
        name = node.name
        if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")) and name not in HEADER_FIELDS:
            allowed = ", ".join(sorted(HEADER_FIELDS))
            raise InvalidSelector(self._text, f"{name} cannot be used in a selector; the header fields are {allowed}", node.span)

    def _number(self, rule: str, part: _Seen) -> None:
        if part.sort not in {_Sort.NUMBER, _Sort.UNKNOWN}:
            raise InvalidSelector(self._text, f"{rule}, and this is {part.sort.value}", part.span)

    def _comparison(self, node: Comparison, left: _Seen, right: _Seen) -> None:
        ordering = node.operator not in {"=", "<>"}
        for part in (left, right):
            if part.sort == _Sort.CONDITION:
                raise InvalidSelector(self._text, f"{node.operator} compares values, and this is a condition", part.span)
            if ordering and part.sort in {_Sort.STRING, _Sort.BOOLEAN}:
                raise InvalidSelector(
                    self._text, f"{node.operator} orders numbers only, and this is {part.sort.value}", part.span
                )
        sorts = {left.sort, right.sort} - {_Sort.UNKNOWN}
        if len(sorts) == 2 and _Sort.BOOLEAN in sorts:
            raise InvalidSelector(self._text, f"{left.sort.value} never equals {right.sort.value}", (left.span[0], right.span[1]))
