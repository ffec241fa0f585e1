"""Single conditions in the words of a broker.

A condition is rewritten for one side (see ``planner``): with ``positive`` the broker must say TRUE exactly when the
standard does, without it FALSE. Most forms below are right about both.

Brokers have no tests of a property's type, but two conditions serve: ``p LIKE '%'`` is true for a string, false for
anything else and unknown for NULL; ``p <= 1e999`` (to a broker 1e999 is Infinity) is true for a number, false for NaN
and for anything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from jmsapi_selector._vocabulary import (
    FLOAT_EXACT,
    NUMBER_FIELDS,
    STRING_FIELDS,
    Unanswerable,
    Vocabulary,
    names,
    nobody,
    unsigned,
)
from jmsapi_selector.dialects import Dialect
from jmsapi_selector.evaluation import evaluation, truth_of
from jmsapi_selector.like import pattern_parts
from jmsapi_selector.nodes import (
    MIRRORED,
    And,
    Between,
    Boolean,
    Comparison,
    ComparisonOperator,
    Identifier,
    In,
    IsNull,
    Like,
    Node,
    Number,
    Or,
    String,
    fold,
)
from jmsapi_selector.truth import Truth

__all__ = ["BrokerCondition", "Leaves"]

_DELIVERY_MODE: Final = "JMSDeliveryMode"
_NUMERALS: Final = frozenset("0123456789+-.eE" + "InfinityNaN" + "truefalse")
"""The characters that a number or boolean is written with."""


@dataclass(frozen=True, slots=True)
class BrokerCondition:
    """A condition for the broker.

    Attributes:
        node: The condition.
        caveats: The faults for which its answer may be wrong all the same.
        too_much: If it is wrong, then only by letting too much through.
    """

    node: Node
    caveats: tuple[str, ...] = ()
    too_much: bool = True


class Leaves:
    """Rewrites single conditions and remembers why.

    Attributes:
        noted: The faults that were worked around, in order.
        compares: A property was compared with a literal, so a converting broker may answer otherwise.
        converts: Among these literals were numbers or booleans.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._words = Vocabulary(dialect, self.note)
        self.noted: dict[str, None] = {}
        self.compares = False
        self.converts = False

    def note(self, fault: str) -> None:
        """Remember that a fault was worked around."""
        self.noted[fault] = None

    def rewrite(self, node: Node, positive: bool) -> BrokerCondition:
        """Put a condition into the broker's words.

        Args:
            node: Any condition but NOT, AND and OR.
            positive: The side that matters.
        Raises:
            Unanswerable: There are no such words.
        """
        read = names(node)
        if _DELIVERY_MODE in read:
            return self._delivery_mode(node, len(read) == 1, positive)
        if not read:
            return BrokerCondition(node) if isinstance(node, Boolean) else self._constant(node, positive)
        for name in read:
            self._words.check(name)
        answer = self._rewritten(node, positive)
        if self._dialect.stamps and "JMSTimestamp" in read and not isinstance(node, IsNull):
            return BrokerCondition(answer.node, (*answer.caveats, "broker-timestamp"), too_much=False)
        return answer

    def _rewritten(self, node: Node, positive: bool) -> BrokerCondition:
        if isinstance(node, Comparison):
            return self._comparison(node.operator, node.left, node.right, positive)
        if isinstance(node, Between):
            return self._between(node, positive)
        if isinstance(node, In):
            return self._in(node, positive)
        if isinstance(node, Like):
            return self._like(node, positive)
        if isinstance(node, IsNull):
            return BrokerCondition(IsNull(self._words.identifier(node.identifier), node.negated))
        if isinstance(node, Identifier):
            return self._bare(node, positive)
        raise TypeError(f"{type(node).__name__} is no condition")

    def _constant(self, node: Node, positive: bool) -> BrokerCondition:
        self.note("constants")
        truth = truth_of(fold(node, evaluation(nobody)))
        return BrokerCondition(Boolean(truth is Truth.TRUE if positive else truth is not Truth.FALSE))

    def _never(self, identifier: Identifier, positive: bool) -> BrokerCondition:
        """Answer what is false for every value and unknown for NULL."""
        self.note("unlike-unequal")
        return BrokerCondition(Boolean(False) if positive else IsNull(self._words.identifier(identifier)))

    def _delivery_mode(self, node: Node, alone: bool, positive: bool) -> BrokerCondition:
        """Try both values that the field can have."""
        if not alone:
            raise Unanswerable("delivery-mode")
        theirs = self._dialect.names.get(_DELIVERY_MODE)
        if theirs is None and isinstance(node, Comparison) and isinstance(node.right, String):
            return BrokerCondition(node)
        wanted: list[bool] = []
        for value in ("PERSISTENT", "NON_PERSISTENT"):
            truth = truth_of(fold(node, evaluation({_DELIVERY_MODE: value}.get)))
            wanted.append(truth is Truth.TRUE if positive else truth is not Truth.FALSE)
        self.note("delivery-mode" if theirs is None else "header-names")
        if wanted[0] is wanted[1]:
            return BrokerCondition(Boolean(wanted[0]))
        value = self._dialect.persistent if wanted[0] else self._dialect.non_persistent
        return BrokerCondition(Comparison("=", Identifier(theirs or _DELIVERY_MODE), String(value)))

    # ---- comparisons ----

    def _comparison(self, sign: ComparisonOperator, left: Node, right: Node, positive: bool) -> BrokerCondition:
        one, other = self._words.value(left), self._words.value(right)
        if one is None or other is None:
            return BrokerCondition(Boolean(not positive))
        if isinstance(one, Identifier) and isinstance(other, Identifier):
            return self._two(sign, one, other, positive)
        if isinstance(other, Identifier):
            self.note("literal-left")
            one, other, sign = other, one, MIRRORED[sign]
        if not isinstance(one, Identifier):
            return self._constant(Comparison(sign, one, other), positive)
        self.compares = True
        if isinstance(other, Number):
            return self._with_number(sign, one, other, positive)
        if isinstance(other, String):
            return self._with_string(sign, one, other, positive)
        return self._with_boolean(sign, one, other, positive)

    def _with_number(self, sign: ComparisonOperator, identifier: Identifier, bound: Number, positive: bool) -> BrokerCondition:
        name = identifier.name
        if name in STRING_FIELDS:
            return self._never(identifier, positive)
        field = self._words.identifier(identifier)
        number = self._words.number(bound, name)
        if name in NUMBER_FIELDS:
            return BrokerCondition(Comparison(sign, field, number))
        self.converts = True
        zero = number.value == 0
        if zero:
            # -0.0 stands before 0.0 for the broker: the bound is put on the side where both are in or out.
            self.note("negative-zero")
        low = Number(-0.0, "double") if zero else number
        high = Number(0, "int") if zero and self._dialect.typed else unsigned(number)
        if sign == "=":
            same: Node = Comparison("=", field, high)
            node = Or((same, Comparison("=", field, low))) if zero else same
        elif sign == "<>":
            self.note("unlike-unequal")
            node = Or((Comparison("<", field, low), Comparison(">", field, high)))
        elif sign in {">", ">="}:
            self.note("nan")
            above = Comparison(sign, field, high if sign == ">" else low)
            node = And((above, Comparison("<=", field, Number(math.inf, "double"))))
        else:
            node = Comparison(sign, field, low if sign == "<" else high)
        return self._by_number(node, bound, positive)

    def _by_number(self, node: Node, bound: Number, positive: bool) -> BrokerCondition:
        """Say what remains wrong where numbers travel as strings."""
        if self._dialect.typed:
            return BrokerCondition(node)
        if bound.type in {"int", "long"} and abs(bound.value) > FLOAT_EXACT:
            return BrokerCondition(node, ("look-alike", "float-property"), too_much=False)
        return BrokerCondition(node, ("look-alike",), too_much=positive)

    def _with_string(self, sign: ComparisonOperator, identifier: Identifier, text: String, positive: bool) -> BrokerCondition:
        name = identifier.name
        if name in NUMBER_FIELDS:
            return self._never(identifier, positive)
        field = self._words.identifier(identifier)
        node = Comparison(sign, field, text)
        if name in STRING_FIELDS:
            return BrokerCondition(node)
        if not self._dialect.typed:
            return self._by_string(node, positive, exact=sign == "=" and not _looks_typed(text.value))
        return BrokerCondition(node) if sign == "=" else self._guarded(node, field, "unlike-unequal")

    def _with_boolean(self, sign: ComparisonOperator, identifier: Identifier, value: Node, positive: bool) -> BrokerCondition:
        if identifier.name in STRING_FIELDS | NUMBER_FIELDS or not isinstance(value, Boolean):
            return self._never(identifier, positive)
        self.converts = True
        if sign == "<>":
            self.note("unlike-unequal")
            value = Boolean(not value.value)
        return self._by_string(Comparison("=", self._words.identifier(identifier), value), positive, exact=self._dialect.typed)

    def _bare(self, identifier: Identifier, positive: bool) -> BrokerCondition:
        if identifier.name in STRING_FIELDS | NUMBER_FIELDS:
            return self._never(identifier, positive)
        if self._dialect.typed:
            return BrokerCondition(identifier)
        self.note("bare-boolean")
        return self._with_boolean("=", identifier, Boolean(True), positive)

    def _two(self, sign: ComparisonOperator, one: Identifier, other: Identifier, positive: bool) -> BrokerCondition:
        """Compare two fields, of which one at least is a header field that is a string."""
        if other.name not in STRING_FIELDS:
            one, other, sign = other, one, MIRRORED[sign]
        if other.name not in STRING_FIELDS or one.name in NUMBER_FIELDS or not self._dialect.typed:
            raise Unanswerable("two-properties")
        self.note("two-nulls")
        a, b = self._words.identifier(one), self._words.identifier(other)
        nulls = (IsNull(a), IsNull(b))
        if sign == "=":
            same = Comparison("=", a, b)
            return BrokerCondition(And((same, IsNull(a, True))) if positive else Or((same, *nulls)))
        if sign == "<>":
            unequal = And((Like(a, "%"), Comparison("<>", a, b)))
            return BrokerCondition(And((*unequal.operands, IsNull(b, True))) if positive else Or((unequal, *nulls)))
        return BrokerCondition(Boolean(False) if positive else Or(nulls))

    # ---- BETWEEN, IN, LIKE ----

    def _between(self, node: Between, positive: bool) -> BrokerCondition:
        value, low, high = self._words.value(node.value), self._words.value(node.low), self._words.value(node.high)
        if (
            isinstance(value, Identifier)
            and value.name not in STRING_FIELDS
            and isinstance(low, Number)
            and isinstance(high, Number)
            and (not node.negated or value.name in NUMBER_FIELDS)
        ):
            return self._within(node, value, low, high, positive)
        first: ComparisonOperator = "<" if node.negated else ">="
        second: ComparisonOperator = ">" if node.negated else "<="
        parts = [
            self._comparison(first, node.value, node.low, positive),
            self._comparison(second, node.value, node.high, positive),
        ]
        join = Or if node.negated else And
        return BrokerCondition(
            join(tuple(part.node for part in parts)),
            tuple(dict.fromkeys(word for part in parts for word in part.caveats)),
            all(part.too_much for part in parts),
        )

    def _within(self, node: Between, value: Identifier, low: Number, high: Number, positive: bool) -> BrokerCondition:
        """Keep BETWEEN: no number is NaN and within bounds."""
        self.compares = True
        field = self._words.identifier(value)
        lower, upper = self._words.number(low, value.name), self._words.number(high, value.name)
        if value.name in NUMBER_FIELDS:
            return BrokerCondition(Between(field, lower, upper, node.negated))
        self.converts = True
        if lower.value == 0:
            self.note("negative-zero")
            lower = Number(-0.0, "double")
        return self._by_number(
            Between(field, lower, unsigned(upper)), max(low, high, key=lambda bound: abs(bound.value)), positive
        )

    def _in(self, node: In, positive: bool) -> BrokerCondition:
        name = node.identifier.name
        if name in NUMBER_FIELDS:
            return self._never(node.identifier, positive)
        field = self._words.identifier(node.identifier)
        made = In(field, node.choices, node.negated)
        if name in STRING_FIELDS:
            return BrokerCondition(made)
        if not self._dialect.typed:
            exact = not node.negated and not any(map(_looks_typed, node.choices))
            return self._by_string(made, positive, exact=exact)
        return BrokerCondition(made) if positive else self._guarded(made, field, "negated-type")

    def _like(self, node: Like, positive: bool) -> BrokerCondition:
        name = node.identifier.name
        if name in NUMBER_FIELDS:
            return self._never(node.identifier, positive)
        field = self._words.identifier(node.identifier)
        parts = pattern_parts(node.pattern, node.escape)
        made = Like(field, *self._words.pattern(node.pattern, node.escape, parts), node.negated)
        if name in STRING_FIELDS:
            return BrokerCondition(made)
        if not self._dialect.typed:
            exact = not node.negated and any(isinstance(part, str) and part not in _NUMERALS for part in parts)
            return self._by_string(made, positive, exact=exact)
        return self._guarded(made, field, "unlike-not-like") if node.negated else BrokerCondition(made)

    def _guarded(self, node: Node, field: Identifier, fault: str) -> BrokerCondition:
        """Make a condition false for what is no string."""
        self.note(fault)
        return BrokerCondition(And((Like(field, "%"), node)))

    def _by_string(self, node: Node, positive: bool, *, exact: bool) -> BrokerCondition:
        """Say what remains wrong where everything is a string."""
        return BrokerCondition(node) if exact else BrokerCondition(node, ("look-alike",), too_much=positive)


def _looks_typed(text: str) -> bool:
    """Tell whether a number or boolean could be written like that."""
    if text in {"true", "false"}:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True
