"""Who evaluates a selector: the broker as it stands, the broker after rewriting, or we.

The tree is walked with the side that matters. At the top, and below an even number of NOTs, only whether a part is TRUE
counts, since UNKNOWN and FALSE are both no match; below an odd number only whether it is FALSE. So a part for the broker
needs to be right about one of the two, which leaves room to work around a broker's faults.

On a queue a broker's answer is final, so it must be the standard's; where that cannot be had the plan says LOCAL. On a
topic what is too much can be dropped here: there a part that the broker cannot answer becomes "perhaps", the rest is
still pushed, and ``recheck`` says to evaluate again.

Spec: 3.8.1-1, 3.8.1-2.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from jmsapi_selector._rewriting import Leaves
from jmsapi_selector._vocabulary import Unanswerable, names
from jmsapi_selector.dialects import FAULTS, Dialect, Fault
from jmsapi_selector.lexer import NAME, NUMBER, tokenize
from jmsapi_selector.nodes import And, Boolean, Comparison, Identifier, Node, Not, Number, Or, fold
from jmsapi_selector.selector import Selector
from jmsapi_selector.text import to_text

__all__ = ["Action", "DestinationKind", "Dialect", "Fault", "Plan", "covers", "plan"]

DestinationKind = Literal["queue", "topic"]
_PLAIN_NUMBER: Final = re.compile(
    r"""
    [1-9][0-9]*[lL]? | 0[0-7]* | 0[xX]0*[0-7]?[0-9a-fA-F]{1,7}
  | (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+
    """,
    re.VERBOSE,
)
"""The literals that Artemis and Classic read as Java does."""
_TRANSLATED: Final = re.compile(r"'(?:NON_)?PERSISTENT'")
_ADDING: Final = frozenset({"unlike-unequal", "unlike-not-like", "nan", "two-nulls", "selector-cache"})
"""The faults that only make TRUE what the standard does not, where TRUE matters."""


class Action(Enum):
    """What to do with a selector."""

    PUSH = "push"
    """Send it as it is."""
    REWRITE = "rewrite"
    """Send another text, which the broker answers as the standard answers this one."""
    LOCAL = "local"
    """Send none, and evaluate each message here."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a selector is to be evaluated.

    Attributes:
        action: The decision.
        text: What to send to the broker; None to send no selector.
        reasons: The faults of the broker that kept the text from being sent as it is.
        caveats: The faults that remain: for such messages the broker's answer is not the standard's. None but over STOMP.
        recheck: The broker may let too much through, so evaluate what it delivers here as well. On topics only.
    """

    action: Action
    text: str | None
    reasons: tuple[Fault, ...] = ()
    caveats: tuple[Fault, ...] = ()
    recheck: bool = False

    def __str__(self) -> str:
        lines = [self.action.name if self.text is None else f"{self.action.name} {self.text}"]
        lines += [f"  because {fault.word}: {fault.reason}" for fault in self.reasons]
        lines += [f"  except {fault.word}: {fault.reason}" for fault in self.caveats]
        if self.recheck:
            lines.append("  and check each message again")
        return "\n".join(lines)


def plan(selector: Selector, dialect: Dialect, destination: DestinationKind) -> Plan:
    """Decide who evaluates a selector.

    Args:
        selector: The compiled selector.
        dialect: How the broker evaluates selectors.
        destination: What is consumed from. Ask for a topic only if messages that were delivered and do not match can be
            dropped, as from a subscription; a shared one has a queue of its own and counts as a topic.
    Returns:
        The plan. With it the user gets the standard's result, but for the caveats.
    """
    if selector.is_empty:
        return Plan(Action.PUSH, None)
    if not dialect.evaluates:
        return Plan(Action.LOCAL, None, (FAULTS["no-selectors"],))
    if dialect.standard:
        return _in_standard(selector, dialect)
    planner = _Planner(dialect, approximate=destination == "topic")
    try:
        tree = planner.part(selector.tree, True)
    except Unanswerable as reason:
        return Plan(Action.LOCAL, None, (FAULTS[reason.fault],))
    return planner.decide(selector, tree)


def _in_standard(selector: Selector, dialect: Dialect) -> Plan:
    """Put the broker's names into a selector that it reads as the standard says."""
    used = names(selector.tree)
    if used & dialect.closed_names or any(name.startswith(dialect.closed_prefixes) for name in used):
        return Plan(Action.LOCAL, None, (FAULTS["name"],))
    text = selector.text
    renamed = not used.isdisjoint(dialect.names)
    if renamed:
        for token in reversed(tokenize(text)):
            if token.kind == NAME and token.text in dialect.names:
                text = text[: token.start] + dialect.names[token.text] + text[token.end :]
    if len(text.encode("utf-8", "surrogatepass")) > dialect.longest:
        return Plan(Action.LOCAL, None, (FAULTS["too-long"],))
    return Plan(Action.REWRITE, text, (FAULTS["header-names"],)) if renamed else Plan(Action.PUSH, text)


def covers(selector: Selector, dialect: Dialect) -> bool:
    """Whether a broker, given the text as it stands, lets through at least what the standard selects.

    Then a durable subscription can carry the text that every other client would give it, and what is too much is dropped
    here: brokers compare texts, and make a subscription anew whose text has changed.

    Args:
        selector: The compiled selector.
        dialect: How the broker evaluates selectors.
    Returns:
        False also when that is not certain.
    """
    if selector.is_empty or not (dialect.evaluates and dialect.typed):
        return dialect.evaluates and dialect.typed
    if dialect.standard:
        return _in_standard(selector, dialect).text == selector.text
    text = selector.text
    translated = dialect.translates_literals and _TRANSLATED.search(text) is not None
    if translated or _faults_of_text(selector) or len(text.encode("utf-8", "surrogatepass")) > dialect.longest:
        return False
    return _covered(selector.tree, True, dialect)


def _covered(node: Node, positive: bool, dialect: Dialect) -> bool:
    """Whether the broker says TRUE (positive) or FALSE (not positive) of a condition whenever the standard does."""
    if isinstance(node, Not):
        return _covered(node.operand, not positive, dialect)
    if isinstance(node, And | Or):
        return all(_covered(operand, positive, dialect) for operand in node.operands)
    leaves = Leaves(dialect)
    try:
        answer = leaves.rewrite(node, positive)
    except Unanswerable:
        return False
    noted = set(leaves.noted)
    if dialect.bracketed and leaves.compares:
        noted.add("selector-cache")
    if positive and isinstance(node, Comparison) and node.operator in {"<", "<=", ">", "<>"} and _plain_zero(node.right):
        # -0.0 stands before 0.0, so it is below, or unequal to, a zero without a sign: too much, never too little.
        noted.discard("negative-zero")
    return not answer.caveats and noted <= (_ADDING if positive else frozenset())


def _plain_zero(node: Node) -> bool:
    return isinstance(node, Number) and node.value == 0 and math.copysign(1.0, node.value) > 0


class _Planner:
    def __init__(self, dialect: Dialect, *, approximate: bool) -> None:
        self._dialect = dialect
        self._approximate = approximate
        self._leaves = Leaves(dialect)
        self._given_up: dict[str, None] = {}
        self._caveats: dict[str, None] = {}

    def part(self, node: Node, positive: bool) -> Node:
        """Rewrite a condition so that the broker is right about TRUE (positive) or FALSE (not positive)."""
        if isinstance(node, Not):
            operand = self.part(node.operand, not positive)
            return Boolean(not operand.value) if isinstance(operand, Boolean) else Not(operand)
        if isinstance(node, And | Or):
            neutral = isinstance(node, And)
            parts: list[Node] = []
            for operand in node.operands:
                part = self.part(operand, positive)
                if isinstance(part, type(node)):
                    parts.extend(part.parts)
                elif not isinstance(part, Boolean):
                    parts.append(part)
                elif part.value is not neutral:
                    return part
            if len(parts) < 2:
                return parts[0] if parts else Boolean(neutral)
            return And(tuple(parts)) if neutral else Or(tuple(parts))
        return self._leaf(node, positive)

    def _leaf(self, node: Node, positive: bool) -> Node:
        try:
            answer = self._leaves.rewrite(node, positive)
        except Unanswerable as reason:
            if not self._approximate:
                raise
            self._given_up[reason.fault] = None
            return Boolean(positive)
        kept = self._given_up if self._approximate and not answer.too_much else self._caveats
        for word in answer.caveats:
            kept[word] = None
        return Boolean(positive) if answer.caveats and kept is self._given_up else answer.node

    def decide(self, selector: Selector, tree: Node) -> Plan:
        """Choose between the original text and the new one, now that the tree is the broker's."""
        reasons = dict(self._leaves.noted)
        if self._given_up and isinstance(tree, Boolean):
            return self._local(self._given_up)
        if not self._given_up:
            reasons |= _faults_of_text(selector)
        text = to_text(tree, bracket_not=True)
        if self._dialect.bracketed and self._leaves.compares:
            reasons["selector-cache"] = None
            text = f"(({text}))"
        if self._dialect.prefix and self._leaves.converts:
            reasons["conversion"] = None
            text = self._dialect.prefix + text
        reasons |= self._given_up
        if not reasons:
            text = selector.text
        if self._dialect.translates_literals and _TRANSLATED.search(text):
            return self._local({"persistent-literal": None})
        if len(text.encode("utf-8", "surrogatepass")) > self._dialect.longest:
            return self._local({"too-long": None})
        recheck = self._approximate and bool(self._given_up or self._caveats)
        return Plan(
            Action.REWRITE if reasons else Action.PUSH,
            text,
            tuple(FAULTS[word] for word in reasons),
            () if recheck else tuple(FAULTS[word] for word in self._caveats),
            recheck,
        )

    def _local(self, words: dict[str, None]) -> Plan:
        return Plan(Action.LOCAL, None, tuple(FAULTS[word] for word in words))


def _faults_of_text(selector: Selector) -> dict[str, None]:
    """Find what is wrong with the text alone: the tree no longer shows brackets and notations."""
    found: dict[str, None] = {}
    text = selector.text

    def visit(node: Node, _: list[None]) -> None:
        if isinstance(node, Not) and not isinstance(node.operand, Identifier | Boolean | Not):
            start, end = node.operand.span
            if not (text[:start].rstrip().endswith("(") and text[end:].lstrip().startswith(")")):
                found["not-binds-tighter"] = None

    fold(selector.tree, visit)
    numbers = [token.text for token in tokenize(text) if token.kind == NUMBER]
    if not all(map(_PLAIN_NUMBER.fullmatch, numbers)):
        found["notation"] = None
    return found
