"""Tokens to a tree: recursive descent, one method for each rule of the grammar.

The methods are generators, and :func:`parse` drives them: a bracket yields, and the driver starts the rule inside it on
a stack of its own. So the depth of brackets is limited by MAX_DEPTH and never by Python's recursion limit.

The grammar takes any expression wherever one may stand; ``check`` tells conditions from values afterwards::

    selector    = disjunction
    disjunction = conjunction {OR conjunction}
    conjunction = negation {AND negation}
    negation    = {NOT} predicate
    predicate   = sum [comparison | between | in | like | is-null]
    comparison  = ("=" | "<>" | "<" | "<=" | ">" | ">=") sum
    between     = [NOT] BETWEEN sum AND sum
    in          = [NOT] IN "(" string {"," string} ")"         after an identifier only
    like        = [NOT] LIKE string [ESCAPE string]            after an identifier only
    is-null     = IS [NOT] NULL                                after an identifier only
    sum         = product {("+" | "-") product}
    product     = signed {("*" | "/") signed}
    signed      = {"+" | "-"} primary
    primary     = number | string | TRUE | FALSE | identifier | "(" disjunction ")"

Spec: 3.8.1.1-1 to 3.8.1.1-4, 3.8.1.1-27, 3.8.1.1-34, 3.8.1.1-42, 3.8.1.1-49.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, Literal, TypeVar, cast

from jmsapi_selector.errors import InvalidSelector
from jmsapi_selector.java_numbers import read_literal
from jmsapi_selector.lexer import END, KEYWORDS, NAME, NUMBER, STRING, Token, tokenize
from jmsapi_selector.nodes import (
    COMPARISONS,
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

__all__ = ["MAX_DEPTH", "parse"]

MAX_DEPTH: Final = 256
"""Deepest nesting of brackets, and greatest height of the tree."""

Rule = Generator[None, Node, Node]
"""A rule at work: yields where a bracket opens, is sent what stands inside it, returns its node."""
_Chain = TypeVar("_Chain", And, Or)
_WORDS: Final = frozenset({NAME, NUMBER, STRING, "TRUE", "FALSE"})
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/"})


def parse(text: str) -> Node:
    """Turn selector text into its tree.

    Args:
        text: The selector; not empty.
    Returns:
        The tree, not yet checked for conditions and values in their places.
    Raises:
        InvalidSelector: No word of the grammar, or brackets nested deeper than MAX_DEPTH.
    """
    parser = _Parser(text)
    outer: list[Rule] = []
    rule = parser.disjunction()
    inside: Node | None = None
    while True:
        try:
            if inside is None:
                next(rule)
            else:
                rule.send(inside)
        except StopIteration as done:
            inside = cast("Node", done.value)
            if not outer:
                parser.expect(END, "expected an operator")
                return inside
            rule = outer.pop()
        else:
            outer.append(rule)
            parser.limit("brackets", len(outer))
            rule, inside = parser.disjunction(), None


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._index = 0
        self._token = self._tokens[0]

    @property
    def previous(self) -> Token:
        """The token that was taken last."""
        return self._tokens[self._index - 1]

    def error(self, reason: str, token: Token) -> InvalidSelector:
        return InvalidSelector(self._text, reason, (token.start, token.end))

    def expect(self, kind: str, otherwise: str) -> Token:
        """Take the next token if it is of that kind, else say what was expected instead."""
        if self._token.kind != kind:
            found = self._token
            shown = END if found.kind == END else self._text[found.start : min(found.end, found.start + 40)]
            hint = f" ({found.text} is a reserved word)" if found.kind in KEYWORDS else ""
            raise self.error(f"{otherwise}, found {shown}{hint}", found)
        return self._advance()

    def disjunction(self) -> Rule:
        """``disjunction = conjunction {OR conjunction}``"""
        return (yield from self._chain(self.conjunction, "OR", Or))

    def conjunction(self) -> Rule:
        """``conjunction = negation {AND negation}``"""
        return (yield from self._chain(self.negation, "AND", And))

    def negation(self) -> Rule:
        """``negation = {NOT} predicate``"""
        starts: list[int] = []
        while self._token.kind == "NOT":
            starts.append(self._advance().start)
            self.limit("NOT", len(starts))
        node = yield from self.predicate()
        end = self.previous.end
        for start in reversed(starts):
            node = Not(node, span=(start, end))
        return node

    def predicate(self) -> Rule:
        """``predicate = sum [comparison | between | in | like | is-null]``"""
        start = self._token.start
        left = self._lone() or (yield from self.sum())
        kind = self._token.kind
        if kind in COMPARISONS:
            self._advance()
            right = self._lone() or (yield from self.sum())
            return Comparison(cast("ComparisonOperator", kind), left, right, span=(start, self.previous.end))
        if kind == "IS":
            return self._is_null(self._identifier(left))
        negated = kind == "NOT"
        if negated:
            self._advance()
        kind = self._token.kind
        if kind == "BETWEEN":
            return (yield from self._between(left, start, negated))
        if kind == "IN":
            return self._in(self._identifier(left), negated)
        if kind == "LIKE":
            return self._like(self._identifier(left), negated)
        if negated:
            self.expect("BETWEEN", "expected BETWEEN, IN or LIKE after NOT")
        return left

    def _between(self, value: Node, start: int, negated: bool) -> Rule:
        """``between = [NOT] BETWEEN sum AND sum``"""
        self._advance()
        low = yield from self.sum()
        self.expect("AND", "expected AND and the upper bound of BETWEEN")
        high = yield from self.sum()
        return Between(value, low, high, negated, span=(start, self.previous.end))

    def _in(self, identifier: Identifier, negated: bool) -> Node:
        """``in = [NOT] IN "(" string {"," string} ")"``"""
        self._advance()
        self.expect("(", "expected the list of IN in brackets")
        choices = [self.expect(STRING, "expected a string for IN").text]
        while self._token.kind == ",":
            self._advance()
            choices.append(self.expect(STRING, "expected a string for IN").text)
        end = self.expect(")", "expected a comma or a closing bracket").end
        return In(identifier, tuple(choices), negated, span=(identifier.span[0], end))

    def _like(self, identifier: Identifier, negated: bool) -> Node:
        """``like = [NOT] LIKE string [ESCAPE string]``"""
        self._advance()
        pattern = self.expect(STRING, "expected a string as the pattern of LIKE").text
        escape = None
        if self._token.kind == "ESCAPE":
            self._advance()
            token = self.expect(STRING, "expected a string of one character for ESCAPE")
            escape = token.text
            if len(escape) != 1:
                raise self.error("ESCAPE takes a string of exactly one character", token)
        return Like(identifier, pattern, escape, negated, span=(identifier.span[0], self.previous.end))

    def _is_null(self, identifier: Identifier) -> Node:
        """``is-null = IS [NOT] NULL``"""
        self._advance()
        negated = self._token.kind == "NOT"
        if negated:
            self._advance()
        end = self.expect("NULL", "expected NULL" if negated else "expected NULL or NOT NULL").end
        return IsNull(identifier, negated, span=(identifier.span[0], end))

    def sum(self) -> Rule:
        """``sum = product {("+" | "-") product}``"""
        return (yield from self._arithmetic(self.product, {"+", "-"}))

    def product(self) -> Rule:
        """``product = signed {("*" | "/") signed}``"""
        return (yield from self._arithmetic(self.signed, {"*", "/"}))

    def signed(self) -> Rule:
        """``signed = {"+" | "-"} primary``

        The sign next to a numeric literal belongs to it, as the least int and long cannot be written otherwise.
        """
        signs: list[Token] = []
        while self._token.kind in {"+", "-"}:
            signs.append(self._advance())
            self.limit("signs", len(signs))
        if signs and self._token.kind == NUMBER:
            node: Node = self._number(signs.pop())
        else:
            node = yield from self.primary()
        end = self.previous.end
        for sign in reversed(signs):
            node = Sign(cast("Literal['+', '-']", sign.kind), node, span=(sign.start, end))
        return node

    def primary(self) -> Rule:
        """``primary = number | string | TRUE | FALSE | identifier | "(" disjunction ")"``"""
        word = self._word()
        if word is not None:
            return word
        self.expect("(", "expected a value or a condition")
        inside = yield
        self.expect(")", "expected an operator or a closing bracket")
        return inside

    def _lone(self) -> Node | None:
        """Take a sum of a single word, if one comes next: most operands are that, and need no way down the grammar."""
        if self._token.kind in _WORDS and self._tokens[self._index + 1].kind not in _ARITHMETIC:
            return self._word()
        return None

    def _word(self) -> Node | None:
        """Take a literal or identifier, if one comes next."""
        token = self._token
        kind = token.kind
        if kind == NAME:
            self._advance()
            return Identifier(token.text, span=(token.start, token.end))
        if kind == NUMBER:
            return self._number(None)
        if kind == STRING:
            self._advance()
            return String(token.text, span=(token.start, token.end))
        if kind in {"TRUE", "FALSE"}:
            self._advance()
            return Boolean(kind == "TRUE", span=(token.start, token.end))
        return None

    def limit(self, what: str, depth: int) -> None:
        """Refuse what would make too deep a tree, before the tree is made."""
        if depth > MAX_DEPTH:
            raise self.error(f"{what} nested deeper than {MAX_DEPTH}", self.previous)

    def _chain(self, rule: Callable[[], Rule], keyword: str, make: type[_Chain]) -> Rule:
        start = self._token.start
        first = yield from rule()
        if self._token.kind != keyword:
            return first
        operands = [first]
        while self._token.kind == keyword:
            self._advance()
            operands.append((yield from rule()))
        return make(tuple(operands), span=(start, self.previous.end))

    def _arithmetic(self, rule: Callable[[], Rule], signs: set[str]) -> Rule:
        start = self._token.start
        first = yield from rule()
        if self._token.kind not in signs:
            return first
        operands = [first]
        operators: list[Operator] = []
        while self._token.kind in signs:
            operators.append(cast("Operator", self._advance().kind))
            operands.append((yield from rule()))
        return Arithmetic(tuple(operands), tuple(operators), span=(start, self.previous.end))

    def _number(self, sign: Token | None) -> Number:
        token = self._advance()
        try:
            value, kind = read_literal(token.text, negative=sign is not None and sign.kind == "-")
        except ValueError as error:
            raise self.error(str(error), token) from None
        return Number(value, kind, span=(token.start if sign is None else sign.start, token.end))

    def _identifier(self, node: Node) -> Identifier:
        """Insist on a bare identifier as the operand before the current word."""
        word = "IS NULL" if self._token.kind == "IS" else self._token.kind
        if isinstance(node, Identifier) and node.span[1] == self._before_word():
            return node
        raise InvalidSelector(self._text, f"{word} takes an identifier on its left, nothing else", node.span)

    def _before_word(self) -> int:
        """Give where the token before IS, IN, LIKE, or before their NOT, ends; a bracket there ends behind its node."""
        before = self._tokens[self._index - 1]
        return self._tokens[self._index - 2].end if before.kind == "NOT" else before.end

    def _advance(self) -> Token:
        taken = self._token
        if taken.kind != END:
            self._index += 1
            self._token = self._tokens[self._index]
        return taken
