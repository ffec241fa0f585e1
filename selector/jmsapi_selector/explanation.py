"""Why a message matches a selector or not: each part of it with its value."""

from __future__ import annotations

from dataclasses import dataclass

from jmsapi_selector.evaluation import Result, evaluation, truth_of
from jmsapi_selector.nodes import And, Boolean, Identifier, Node, Not, Number, Or, Span, String, fold
from jmsapi_selector.text import quoted
from jmsapi_selector.truth import Truth
from jmsapi_selector.values import NOTHING, Getter, kind_name, type_name

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One part of a selector and what it came to for one message. ``str`` gives a table for people.

    Attributes:
        text: The part as it stands in the selector.
        span: Where it stands.
        result: A Truth for a condition; for the rest the value, None being NULL.
        type: "condition", or the Java type of the value: "null" for NULL, "other" for what is no value at all, such as
            the sum of a string and a number.
        parts: The parts of this part; literals are left out.
    """

    text: str
    span: Span
    result: object
    type: str
    parts: tuple[Explanation, ...] = ()

    def outcome(self) -> str:
        """Name the result: the truth of a condition, or a value and its Java type."""
        if isinstance(self.result, Truth):
            return self.result.name
        if self.type in {"null", "other"}:
            return "NULL" if self.type == "null" else "no value"
        shown = quoted(self.result) if isinstance(self.result, str) else str(self.result)
        return f"{shown.upper() if self.type == 'boolean' else shown} ({self.type})"

    def __str__(self) -> str:
        lines: list[str] = []
        pending: list[tuple[Explanation, int]] = [(self, 0)]
        while pending:
            part, depth = pending.pop()
            lines.append(f"{'  ' * depth}{part.outcome():<8} {' '.join(part.text.split())}".rstrip())
            pending.extend((below, depth + 1) for below in reversed(part.parts))
        return "\n".join(lines)


def explain(text: str, tree: Node, get: Getter) -> Explanation:
    """Evaluate every part of a selector for one message.

    Args:
        text: The selector.
        tree: Its checked tree.
        get: Gives the message's values.
    Returns:
        The explanation of the whole, with those of its parts below it.
    """
    explainer = _Explainer(text, get)
    return explainer.condition(fold(tree, explainer.visit))


@dataclass(frozen=True, slots=True)
class _Part:
    """A node whose role, condition or value, only the node above it knows."""

    node: Node
    result: Result
    parts: tuple[Explanation, ...]


class _Explainer:
    def __init__(self, text: str, get: Getter) -> None:
        self._text = text
        self._get = get
        self._evaluate = evaluation(get)

    def visit(self, node: Node, below: list[_Part]) -> _Part:
        result = self._evaluate(node, [part.result for part in below])
        if isinstance(node, And | Or | Not):
            return _Part(node, result, tuple(self.condition(part) for part in below))
        worth_telling = [part for part in below if not isinstance(part.node, Number | String | Boolean)]
        return _Part(node, result, tuple(self._value(part) for part in worth_telling))

    def condition(self, part: _Part) -> Explanation:
        truth = truth_of(part.result)
        parts = (self._value(part),) if isinstance(part.node, Identifier) else part.parts
        return Explanation(self._source(part.node), part.node.span, truth, "condition", parts)

    def _value(self, part: _Part) -> Explanation:
        node, found = part.node, part.result
        if isinstance(node, Identifier):
            value = self._get(node.name)
            kind = type_name(value)
        elif found is None or isinstance(found, Truth):
            value, kind = None, "null"
        else:
            kind = kind_name(found[0])
            value = None if found is NOTHING else found[1]
        return Explanation(self._source(node), node.span, value, kind, part.parts)

    def _source(self, node: Node) -> str:
        start, end = node.span
        return self._text[start:end]
