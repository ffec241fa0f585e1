"""The broker's words: its names of header fields, its literals, its patterns; and what cannot be said at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from jmsapi_selector.dialects import Dialect
from jmsapi_selector.evaluation import evaluation
from jmsapi_selector.java_numbers import NumberKind
from jmsapi_selector.like import ANY_ONE, ANY_RUN, Wildcard
from jmsapi_selector.nodes import Boolean, Identifier, Node, Number, NumberType, String, fold
from jmsapi_selector.truth import Truth

__all__ = ["FLOAT_EXACT", "NUMBER_FIELDS", "STRING_FIELDS", "Unanswerable", "Vocabulary", "names", "nobody", "unsigned"]

STRING_FIELDS: Final = frozenset({"JMSType", "JMSMessageID", "JMSCorrelationID", "JMSXGroupID"})
"""Header fields that are always a string, or NULL."""
NUMBER_FIELDS: Final = frozenset({"JMSPriority", "JMSTimestamp"})
"""Header fields that are always a whole number."""
FLOAT_EXACT: Final = 2**24
"""Below this size a float holds every whole number."""
_DOUBLE_EXACT: Final = 2**53
_EXTRA_WORDS: Final = frozenset({"XPATH", "XQUERY"})
"""Reserved words of the brokers' own."""
_ESCAPES: Final = "\\!#~^|@$&*+=?:;<>/{}[]()"
"""What may become an escape character: anything from U+0010 to U+00FF works."""
_NUMBER_TYPES: Final[dict[NumberKind, NumberType]] = {
    NumberKind.INT: "int",
    NumberKind.LONG: "long",
    NumberKind.FLOAT: "float",
    NumberKind.DOUBLE: "double",
}


class Unanswerable(Exception):
    """Say that the broker cannot evaluate a condition.

    Args:
        fault: The word of the fault.
    """

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault: Final = fault


class Vocabulary:
    """Puts names and literals into a broker's words, and remembers what was worked around.

    Args:
        dialect: How the broker differs.
        note: Told the word of each fault that was worked around.
    """

    def __init__(self, dialect: Dialect, note: Callable[[str], None]) -> None:
        self._dialect = dialect
        self._note = note

    def check(self, name: str) -> None:
        """Refuse a name that the broker would read otherwise.

        Raises:
            Unanswerable: ``name``.
        """
        closed = name in self._dialect.closed_names or name.startswith(self._dialect.closed_prefixes)
        if closed or not name.isascii() or name.upper() in _EXTRA_WORDS:
            raise Unanswerable("name")

    def identifier(self, node: Identifier) -> Identifier:
        """Give a field or property its name with the broker."""
        theirs = self._dialect.names.get(node.name)
        if theirs is None:
            return node
        self._note("header-names")
        return Identifier(theirs)

    def value(self, node: Node) -> Node | None:
        """Give an identifier or a literal, constant arithmetic worked out; None for a constant without a value.

        Raises:
            Unanswerable: ``arithmetic`` with a property in it.
        """
        if isinstance(node, Identifier | String | Boolean | Number):
            return node
        if names(node):
            raise Unanswerable("arithmetic")
        self._note("constants")
        found = fold(node, evaluation(nobody))
        if found is None or isinstance(found, Truth):
            return None
        kind, value = found
        if not isinstance(kind, NumberKind) or isinstance(value, str) or math.isnan(value):
            raise Unanswerable("arithmetic")
        return Number(value, _NUMBER_TYPES[kind])

    def number(self, bound: Number, compared_with: str) -> Number:
        """Give a literal that the broker reads as the number meant.

        Args:
            bound: The number.
            compared_with: The name on the other side.
        Raises:
            Unanswerable: ``float-literal`` or ``whole-literal-size``.
        """
        value = bound.value
        if bound.type == "float":
            if abs(value) >= FLOAT_EXACT:
                raise Unanswerable("float-literal")
            return Number(value, "double")
        if self._dialect.typed or compared_with in NUMBER_FIELDS or bound.type == "double":
            return bound
        if abs(value) >= _DOUBLE_EXACT:
            raise Unanswerable("whole-literal-size")
        self._note("whole-literal")
        return Number(float(value), "double")

    def pattern(self, pattern: str, escape: str | None, parts: list[str | Wildcard]) -> tuple[str, str | None]:
        """Give a pattern and its escape character, another one where the broker has trouble with it.

        Args:
            pattern: As in the selector.
            escape: As in the selector.
            parts: What the two mean.
        Raises:
            Unanswerable: ``escape-exhausted``.
        """
        if escape is None or "\x10" <= escape <= "\xff":
            return pattern, escape
        self._note("escape")
        fixed = {part for part in parts if isinstance(part, str)}
        free = [char for char in _ESCAPES if char not in fixed]
        if not free:
            raise Unanswerable("escape-exhausted")
        written = {ANY_ONE: "_", ANY_RUN: "%"}
        again = "".join(
            written[part] if isinstance(part, Wildcard) else free[0] + part if part in "%_" else part for part in parts
        )
        return again, free[0]


def nobody(_: str) -> None:
    """The message without values, for what needs none."""


def names(node: Node) -> set[str]:
    """Give the names in a condition."""
    found: set[str] = set()

    def visit(part: Node, _: list[None]) -> None:
        if isinstance(part, Identifier):
            found.add(part.name)

    fold(node, visit)
    return found


def unsigned(number: Number) -> Number:
    """Take the sign from a zero."""
    return Number(abs(number.value), number.type) if number.value == 0 else number
