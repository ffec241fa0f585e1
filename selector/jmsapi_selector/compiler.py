"""A checked tree to closures.

Three-valued logic without a third value: each condition becomes two plain tests, one that tells whether it *holds* (is
TRUE) and one that tells whether it *fails* (is FALSE); it is UNKNOWN when neither says yes. AND holds when all its
operands hold and fails when one fails, OR the other way round, and NOT only swaps the two. A match needs no more than
``holds``, so nothing but plain ``and`` and ``or`` runs for a message.

Values are read through one function, name to value (``Getter``). Arithmetic works on ``Typed`` pairs, None being NULL.

Spec: 3.8.1-2, 3.8.1.1-25 to 3.8.1.1-51, 3.8.1.2.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jmsapi_selector.java_numbers import NumberKind, calculate, convert, negate
from jmsapi_selector.like import like
from jmsapi_selector.nodes import (
    MIRRORED,
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
    Or,
    Sign,
    String,
    fold,
)
from jmsapi_selector.truth import Truth
from jmsapi_selector.values import NOTHING, Getter, Kind, Typed, typed

__all__ = ["Compiled", "Condition", "Operand", "Predicate", "as_condition", "compile_node", "compile_tree"]

Predicate = Callable[[Getter], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """Two tests over a message; for no message do both say yes."""

    holds: Predicate
    fails: Predicate

    def truth(self, get: Getter) -> Truth:
        """Give the three-valued result for a message."""
        if self.holds(get):
            return Truth.TRUE
        return Truth.FALSE if self.fails(get) else Truth.UNKNOWN


@dataclass(frozen=True, slots=True)
class Operand:
    """A value to be read or worked out.

    Attributes:
        read: Gives the value for a message, None for NULL.
        constant: It is the same for every message.
    """

    read: Callable[[Getter], Typed | None]
    constant: bool


Compiled = Condition | Operand

_COMPARE: Final[dict[ComparisonOperator, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CLASSES: Final = 16
"""How many classes of values a comparison remembers; there are eight in jmsapi."""


def compile_tree(tree: Node) -> Condition:
    """Turn a checked tree into its two tests. They are pure and safe to share between threads."""
    return as_condition(tree, fold(tree, compile_node))


def compile_node(node: Node, below: list[Compiled]) -> Compiled:
    """Compile one node from its compiled parts."""
    if isinstance(node, Comparison):
        return _comparison(node.operator, node.left, node.right, *_operands(below))
    if isinstance(node, And):
        return _all_of([as_condition(part, made) for part, made in zip(node.operands, below, strict=True)])
    if isinstance(node, Or):
        return _any_of([as_condition(part, made) for part, made in zip(node.operands, below, strict=True)])
    if isinstance(node, Not):
        operand = as_condition(node.operand, below[0])
        return Condition(operand.fails, operand.holds)
    if isinstance(node, Between):
        return _between(node, *_operands(below))
    if isinstance(node, In):
        return _in(node)
    if isinstance(node, Like):
        return _like(node)
    if isinstance(node, IsNull):
        return _is_null(node)
    if isinstance(node, Arithmetic):
        return _arithmetic(node, _operands(below))
    if isinstance(node, Sign):
        return _sign(node, *_operands(below))
    return _leaf(node)


def _operands(below: list[Compiled]) -> list[Operand]:
    return [made for made in below if isinstance(made, Operand)]


# ---- values ----


def _leaf(node: Node) -> Operand:
    if isinstance(node, Identifier):
        name = node.name
        return Operand(lambda get: typed(get(name)), constant=False)
    if isinstance(node, Number):
        return _constant((NumberKind[node.type.upper()], node.value))
    if isinstance(node, String):
        return _constant((Kind.STRING, node.value))
    if isinstance(node, Boolean):
        return _constant((Kind.BOOLEAN, node.value))
    raise TypeError(f"{type(node).__name__} is no node of a selector")


def _constant(value: Typed | None) -> Operand:
    return Operand(lambda _: value, constant=True)


def _nobody(_: str) -> None:
    """The message without values, for what needs none."""


def _folded(read: Callable[[Getter], Typed | None], parts: Sequence[Operand]) -> Operand:
    if all(part.constant for part in parts):
        return _constant(read(_nobody))
    return Operand(read, constant=False)


def _sign(node: Sign, operand: Operand) -> Operand:
    minus = node.operator == "-"
    inner = operand.read

    def read(get: Getter) -> Typed | None:
        value = inner(get)
        if value is None:
            return None
        kind, number = value
        if not isinstance(kind, NumberKind) or isinstance(number, str):
            return NOTHING
        return negate((kind, number)) if minus else value

    return _folded(read, [operand])


def _arithmetic(node: Arithmetic, operands: list[Operand]) -> Operand:
    first = operands[0].read
    rest = [(sign, operand.read) for sign, operand in zip(node.operators, operands[1:], strict=True)]

    def read(get: Getter) -> Typed | None:
        total = first(get)
        for sign, operand in rest:
            total = _calculated(sign, total, operand(get))
            if total is None:
                return None
        return total

    return _folded(read, operands)


def _calculated(sign: str, left: Typed | None, right: Typed | None) -> Typed | None:
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


# ---- conditions ----


def as_condition(node: Node, made: Compiled) -> Condition:
    """Take what was compiled as a condition: boolean literals and identifiers can be that besides values."""
    if isinstance(made, Condition):
        return made
    if isinstance(node, Boolean):
        value = node.value
        return Condition(lambda _: value, lambda _: not value)
    if isinstance(node, Identifier):
        return _tested(node.name, lambda value: value is True)
    raise TypeError(f"{type(node).__name__} is no condition")


def _tested(name: str, test: Callable[[object], bool]) -> Condition:
    """Make a condition on one value from a test that says no to None: NULL is UNKNOWN, anything else FALSE."""

    def fails(get: Getter) -> bool:
        value = get(name)
        return value is not None and not test(value)

    return Condition(lambda get: test(get(name)), fails)


def _all_of(parts: Sequence[Condition]) -> Condition:
    return Condition(_every([part.holds for part in parts]), _some([part.fails for part in parts]))


def _any_of(parts: Sequence[Condition]) -> Condition:
    return Condition(_some([part.holds for part in parts]), _every([part.fails for part in parts]))


def _every(tests: list[Predicate]) -> Predicate:
    if len(tests) == 2:
        first, second = tests
        return lambda get: first(get) and second(get)
    if len(tests) == 3:
        first, second, third = tests
        return lambda get: first(get) and second(get) and third(get)

    def every(get: Getter) -> bool:
        for test in tests:  # noqa: SIM110 - all() would add a generator to every message
            if not test(get):
                return False
        return True

    return every


def _some(tests: list[Predicate]) -> Predicate:
    if len(tests) == 2:
        first, second = tests
        return lambda get: first(get) or second(get)

    def some(get: Getter) -> bool:
        for test in tests:  # noqa: SIM110 - any() would add a generator to every message
            if test(get):
                return True
        return False

    return some


def _comparison(sign: ComparisonOperator, left: Node, right: Node, a: Operand, b: Operand) -> Condition:
    if isinstance(left, Identifier) and b.constant:
        return _against_constant(left.name, sign, b.read(_nobody))
    if isinstance(right, Identifier) and a.constant:
        return _against_constant(right.name, MIRRORED[sign], a.read(_nobody))
    read_left, read_right = a.read, b.read

    def outcome(get: Getter) -> bool | None:
        one, other = read_left(get), read_right(get)
        if one is None or other is None:
            return None
        return _compare(sign, one, other)

    return Condition(lambda get: outcome(get) is True, lambda get: outcome(get) is False)


def _compare(sign: ComparisonOperator, left: Typed, right: Typed) -> bool:
    left_kind, a = left
    right_kind, b = right
    if isinstance(left_kind, NumberKind):
        if not isinstance(right_kind, NumberKind) or isinstance(a, str) or isinstance(b, str):
            return False
        kind = max(left_kind, right_kind)
        return _COMPARE[sign](convert(kind, a), convert(kind, b))
    # Strings and booleans have no order, and of unlike kinds no two are equal, nor unequal.
    if left_kind is not right_kind or left_kind is Kind.OTHER or sign not in {"=", "<>"}:
        return False
    return (a == b) is (sign == "=")


def _against_constant(name: str, sign: ComparisonOperator, constant: Typed | None) -> Condition:
    """Compare an identifier with what never changes; the common plain types are told apart first."""
    if constant is None:
        return Condition(lambda _: False, lambda _: False)
    known = constant
    kind, bound = known
    compare = _COMPARE[sign]

    def test(value: object) -> bool:
        found = typed(value)
        return found is not None and _compare(sign, found, known)

    fails = _tested(name, test).fails
    if kind is Kind.STRING and sign == "=":

        def same_string(get: Getter) -> bool:
            # Most messages differ, so the type is asked last: it matters only for what claims to be equal.
            value = get(name)
            return value == bound and (type(value) is str or test(value))

        return Condition(same_string, fails)
    if not isinstance(kind, NumberKind) or isinstance(bound, str):
        return _tested(name, test)
    # What the bound is for a class of values, after promotion. Whole numbers are left to `test` where the bound is a
    # fraction: there the value is what has to be converted.
    bounds: dict[type, int | float] = {float: convert(NumberKind.DOUBLE, bound)}
    if kind < NumberKind.FLOAT:
        bounds[int] = bound

    def learn(value: object) -> bool:
        found = typed(value)
        if found is not None and isinstance(found[0], NumberKind) and len(bounds) < _CLASSES:
            promoted = max(found[0], kind)
            if promoted < NumberKind.FLOAT or found[0] >= NumberKind.FLOAT:
                bounds[type(value)] = convert(promoted, bound)
        return test(value)

    def number(get: Getter) -> bool:
        value = get(name)
        limit = bounds.get(type(value))
        return learn(value) if limit is None else compare(value, limit)

    return Condition(number, fails)


def _between(node: Between, value: Operand, low: Operand, high: Operand) -> Condition:
    if node.negated:
        below = _comparison("<", node.value, node.low, value, low)
        return _any_of([below, _comparison(">", node.value, node.high, value, high)])
    above = _comparison(">=", node.value, node.low, value, low)
    return _all_of([above, _comparison("<=", node.value, node.high, value, high)])


def _in(node: In) -> Condition:
    choices = frozenset(node.choices)
    negated = node.negated
    return _tested(node.identifier.name, lambda value: _is_string(value) and (value in choices) is not negated)


def _like(node: Like) -> Condition:
    covers = like(node.pattern, node.escape)
    negated = node.negated

    def test(value: object) -> bool:
        return isinstance(value, str) and _is_string(value) and covers(value) is not negated

    return _tested(node.identifier.name, test)


def _is_null(node: IsNull) -> Condition:
    name = node.identifier.name
    null = Condition(lambda get: get(name) is None, lambda get: get(name) is not None)
    return Condition(null.fails, null.holds) if node.negated else null


def _is_string(value: object) -> bool:
    if type(value) is str:
        return True
    known = typed(value)
    return known is not None and known[0] is Kind.STRING
