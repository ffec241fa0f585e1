"""Random selectors, good and bad, from a seed; and the values and trees that the laws are tried on."""

from __future__ import annotations

import random
from typing import Final

from hypothesis import strategies as st

from jmsapi.values import Byte, Char, Double, Float, Long, Short
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
    Operator,
    Or,
    Sign,
    String,
)

NAMES: Final = ["a", "b", "flag", "s", "n", "JMSPriority", "JMSType", "_x$1", "été"]
LIKE_TEXT: Final = "abAB%_!\\.*\n'"
_names = st.sampled_from(NAMES).map(Identifier)
_texts = st.text(alphabet=LIKE_TEXT, max_size=6)
_floats = st.floats(allow_nan=False, allow_infinity=False)
_numbers = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda value: Number(value, "int")),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: Number(value, "long")),
    st.sampled_from([0, 1, -1, 2, 5, 2**24 + 1]).map(lambda value: Number(value, "int")),
    _floats.map(lambda value: Number(value, "double")),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda value: Number(value, "float")),
)


def _chains(operands: st.SearchStrategy[Node], operators: list[Operator]) -> st.SearchStrategy[Node]:
    return st.lists(st.tuples(st.sampled_from(operators), operands), min_size=2, max_size=4).map(
        lambda pairs: Arithmetic(tuple(node for _, node in pairs), tuple(sign for sign, _ in pairs[1:]))
    )


_arithmetic: st.SearchStrategy[Node] = st.recursive(
    _names | _numbers,
    lambda inner: _chains(inner, ["+", "-"]) | _chains(inner, ["*", "/"]) | st.builds(Sign, st.sampled_from(["+", "-"]), inner),
    max_leaves=6,
)
_predicates: st.SearchStrategy[Node] = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _arithmetic, _arithmetic),
    st.builds(Comparison, st.sampled_from(["=", "<>"]), _names | _texts.map(String), _names | _texts.map(String)),
    st.builds(Comparison, st.sampled_from(["=", "<>"]), _names, st.booleans().map(Boolean)),
    st.builds(Between, _arithmetic, _arithmetic, _arithmetic, st.booleans()),
    st.builds(In, _names, st.lists(_texts, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(Like, _names, _texts, st.none() | st.sampled_from("!\\%_a"), st.booleans()),
    st.builds(IsNull, _names, st.booleans()),
    _names,
    st.booleans().map(Boolean),
)
trees: st.SearchStrategy[Node] = st.recursive(
    _predicates,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=2, max_size=4).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=4).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=8,
)
"""Trees of valid selectors."""

property_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, 2, 5, -1, 2**24 + 1, 2**31 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.floats(),
    st.floats().map(Double),
    st.floats(width=32).map(Float),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, float("nan"), float("inf")]),
    _texts,
    st.sampled_from(["x", "y"]).map(Char),
    st.binary(max_size=2),
)
messages = st.dictionaries(st.sampled_from(NAMES), property_values, max_size=len(NAMES))

# ---- seeded texts ----

_WORDS: Final = [
    *("a", "b", "flag", "s", "n", "JMSPriority", "JMSType", "JMSRedelivered", "é", "and", "or", "not"),
    *("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"),
    *("=", "<>", "<", "<=", ">", ">=", "(", ")", ",", "+", "-", "*", "/", "(", ")", "(", ")"),
    *("'x'", "'a%'", "'!'", "''", "'''", "0", "1", "2500", "1.5", ".5", "1e3", "7L", "2f", "0x1F", "017"),
    *("08", "1e", "99999999999999999999", "--", "/*", "==", "!=", ".", '"', "#", "\\", "\t", "\n", "\xa0", "\U0001f600"),
]


class Texts:
    """Random selector texts; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self) -> str:
        """Give a valid selector, one with a few characters changed, or a jumble of words."""
        kind = self._random.random()
        if kind < 0.3:
            return self._jumble()
        text = self._condition(self._random.randrange(4))
        return text if kind < 0.65 else self._damaged(text)

    def valid(self) -> str:
        """Give a valid selector."""
        return self._condition(self._random.randrange(4))

    def _jumble(self) -> str:
        pick = self._random
        return pick.choice(["", " "]).join(pick.choices(_WORDS, k=pick.randrange(12)))

    def _damaged(self, text: str) -> str:
        pick = self._random
        for _ in range(pick.randrange(1, 3)):
            at = pick.randrange(len(text) + 1)
            text = text[:at] + pick.choice(["", "", pick.choice(_WORDS)]) + text[at + pick.randrange(3) :]
        return text

    def _condition(self, depth: int) -> str:
        pick = self._random
        shape = pick.randrange(10) if depth else pick.randrange(4, 10)
        if shape < 2:
            joined = pick.choice([" AND ", " OR ", " and "]).join(self._condition(depth - 1) for _ in range(2))
            return f"({joined})" if pick.random() < 0.5 else joined
        if shape == 2:
            return f"NOT {self._condition(depth - 1)}"
        if shape == 3:
            return f"({self._condition(depth - 1)})"
        no = pick.choice(["", "NOT "])
        if shape == 4:
            return f"{self._name()} {no}IN ({', '.join(self._string() for _ in range(pick.randrange(1, 4)))})"
        if shape == 5:
            return f"{self._name()} {no}LIKE {self._string()}" + pick.choice(["", " ESCAPE '!'"])
        if shape == 6:
            return f"{self._name()} IS {no}NULL"
        if shape == 7:
            return f"{self._sum()} {no}BETWEEN {self._sum()} AND {self._sum()}"
        if shape == 8:
            return pick.choice([self._name(), "TRUE", f"{self._name()} = FALSE", f"{self._name()} <> TRUE"])
        if pick.random() < 0.4:
            return f"{self._name()} {pick.choice(['=', '<>'])} {self._string()}"
        return f"{self._sum()} {pick.choice(['=', '<>', '<', '<=', '>', '>='])} {self._sum()}"

    def _sum(self) -> str:
        pick = self._random
        one = pick.choice([self._name(), self._name(), self._number(), f"-{self._name()}"])
        if pick.random() < 0.7:
            return one
        return f"{one} {pick.choice('+-*/')} {pick.choice([self._number(), self._name(), f'({self._sum()})'])}"

    def _name(self) -> str:
        return self._random.choice(["a", "b", "flag", "s", "n", "JMSPriority", "JMSType", "_x$1"])

    def _string(self) -> str:
        text = "".join(self._random.choices("abAB%_!. 1'", k=self._random.randrange(5)))
        return "'" + text.replace("'", "''") + "'"

    def _number(self) -> str:
        return self._random.choice(["0", "1", "5", "7L", "2.5", ".5", "1e3", "2f", "0x1F", "017", "2147483648", "100d"])
