"""The tree of a selector: frozen nodes, equal when they mean the same text.

A node knows where in the text it came from (``span``), which does not count when trees are compared. AND, OR and chains
of arithmetic are one node with many operands, so a long selector is a broad tree and only brackets, NOT and signs make
it deep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

__all__ = [
    "COMPARISONS",
    "MIRRORED",
    "And",
    "Arithmetic",
    "Between",
    "Boolean",
    "Comparison",
    "ComparisonOperator",
    "Identifier",
    "In",
    "IsNull",
    "Like",
    "Node",
    "Not",
    "Number",
    "NumberType",
    "Operator",
    "Or",
    "Sign",
    "Span",
    "String",
    "fold",
]

Span = tuple[int, int]
"""Half-open range of characters of the selector's text."""
NumberType = Literal["int", "long", "float", "double"]
ComparisonOperator = Literal["=", "<>", "<", "<=", ">", ">="]
Operator = Literal["+", "-", "*", "/"]
MIRRORED: Final[dict[ComparisonOperator, ComparisonOperator]] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""Each comparison, and the one that it becomes when its sides are exchanged."""
COMPARISONS: Final[frozenset[str]] = frozenset(MIRRORED)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a selector."""

    span: Span = field(default=(0, 0), compare=False, repr=False)

    @property
    def parts(self) -> tuple[Node, ...]:
        """Give the nodes directly below this one, in order of their text."""
        return ()


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A numeric literal, its sign included.

    Attributes:
        value: An int for the types int and long; a float for the others, rounded to the type.
        type: The Java type of the literal.
    """

    value: int | float
    type: NumberType


@dataclass(frozen=True, slots=True)
class String(Node):
    """A string literal."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Identifier(Node):
    """The name of a property or header field: a value, or a condition when the value is boolean."""

    name: str


@dataclass(frozen=True, slots=True)
class Sign(Node):
    """Plus or minus in front of anything but a numeric literal."""

    operator: Literal["+", "-"]
    operand: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """A chain of additions and subtractions, or one of multiplications and divisions, worked from left to right.

    Attributes:
        operands: Two or more.
        operators: One fewer; all of ``+ -`` or all of ``* /``.
    """

    operands: tuple[Node, ...]
    operators: tuple[Operator, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """Two values and one of the six operators between them."""

    operator: ComparisonOperator
    left: Node
    right: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Between(Node):
    """``value [NOT] BETWEEN low AND high``."""

    value: Node
    low: Node
    high: Node
    negated: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.value, self.low, self.high)


@dataclass(frozen=True, slots=True)
class In(Node):
    """``identifier [NOT] IN (strings)``."""

    identifier: Identifier
    choices: tuple[str, ...]
    negated: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.identifier,)


@dataclass(frozen=True, slots=True)
class Like(Node):
    """``identifier [NOT] LIKE pattern [ESCAPE character]``."""

    identifier: Identifier
    pattern: str
    escape: str | None = None
    negated: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.identifier,)


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """``identifier IS [NOT] NULL``."""

    identifier: Identifier
    negated: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.identifier,)


@dataclass(frozen=True, slots=True)
class Not(Node):
    """``NOT condition``."""

    operand: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class And(Node):
    """Two or more conditions joined by AND."""

    operands: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Two or more conditions joined by OR."""

    operands: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.operands


def fold(root: Node, visit: Callable[[Node, list[_T]], _T]) -> _T:
    """Work out something for a tree from the bottom up, without recursion.

    Args:
        root: The tree; as deep as it likes.
        visit: Called once a node, after the nodes below it, with their results in order of ``parts``.
    Returns:
        The result for the root.
    """
    order: list[tuple[Node, int]] = []
    pending = [root]
    while pending:
        node = pending.pop()
        below = node.parts
        order.append((node, len(below)))
        pending.extend(below)
    # Every node stands behind the one above it, last parts first; backwards this is the order wanted.
    results: list[_T] = []
    for node, count in reversed(order):
        if count:
            below_results = results[-count:]
            del results[-count:]
            results.append(visit(node, below_results))
        else:
            results.append(visit(node, []))
    return results[0]
