"""The compiled selector and how to get one.

Spec: 3.8.1.1 (syntax), 3.8.1.2 (NULL), 3.8.1.3 (special notes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from jmsapi_selector._cache import TextCache
from jmsapi_selector.check import check
from jmsapi_selector.compiler import Condition, Predicate, compile_tree
from jmsapi_selector.explanation import Explanation, explain
from jmsapi_selector.nodes import Boolean, Identifier, Node, fold
from jmsapi_selector.parser import parse
from jmsapi_selector.truth import Truth
from jmsapi_selector.values import SelectorValues, Value, getter

__all__ = ["Selector", "compile_selector"]

_BLANKS: Final = " \t\f\n\r"


class Selector:
    """A test over one message's properties and header fields. Made by :func:`compile_selector`.

    Two selectors are equal when their texts are. Selectors can be pickled.

    Threads: immutable; any number may use it at once.
    """

    __slots__ = ("_condition", "_identifiers", "_text", "_tree", "matches")

    def __init__(self, text: str, tree: Node, condition: Condition) -> None:
        self._text = text
        self._tree = tree
        self._condition = condition
        self._identifiers: frozenset[str] | None = None
        # The compiled function itself, since one more call would be a tenth of the time of most selectors.
        self.matches: Predicate = condition.holds
        """Tell whether a message is selected: a function of the message's properties and header fields, where a missing name
        is NULL. It returns True if the selector is TRUE for the message; UNKNOWN counts as no. Spec: 3.8.1-2, 3.8.1.1-24.
        """

    @property
    def text(self) -> str:
        """The selector as it was given."""
        return self._text

    @property
    def tree(self) -> Node:
        """The parsed selector; ``TRUE`` for an empty one."""
        return self._tree

    @property
    def is_empty(self) -> bool:
        """Whether it was given as no selector at all. Spec: 3.8.1.1-2."""
        return not self._text.strip(_BLANKS)

    @property
    def identifiers(self) -> frozenset[str]:
        """The names that it reads, properties and header fields alike."""
        found = self._identifiers
        if found is None:
            names: set[str] = set()

            def note(node: Node, _: list[None]) -> None:
                if isinstance(node, Identifier):
                    names.add(node.name)

            fold(self._tree, note)
            found = self._identifiers = frozenset(names)
        return found

    def evaluate(self, values: Mapping[str, Value] | SelectorValues) -> Truth:
        """Give the three-valued result for a message.

        Args:
            values: The message's properties and header fields. A missing name is NULL.
        Spec: 3.8.1.2.
        """
        return self._condition.truth(values)

    def explain(self, values: Mapping[str, Value] | SelectorValues) -> Explanation:
        """Show what each part of the selector comes to: why did my message not match?

        Args:
            values: As for :meth:`evaluate`.
        Returns:
            A tree of parts with their results; ``str`` of it is a table.
        """
        return explain(self._text, self._tree, getter(values))

    def __repr__(self) -> str:
        return f"compile_selector({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Callable[[str], Selector], tuple[str]]:
        return compile_selector, (self._text,)


_cache: Final[TextCache[Selector]] = TextCache(entries=512, characters=2**18)


def compile_selector(text: str | None) -> Selector:
    """Turn selector text into a test over one message's values.

    Args:
        text: One condition, at most 65,536 characters, nested no deeper than 256. None and blank text select everything.
    Returns:
        The selector. The same text gives the same object as long as it is in the cache, which holds 512 selectors or
        262,144 characters, the ones used last.
    Raises:
        InvalidSelector: Bad grammar, or what can be seen from the text alone to have no meaning; ``span`` is the
            half-open range of characters at fault. Found in time linear in the length of the text.
    Threads: any.
    Spec: 3.8.1.1 (syntax), 3.8.1.1-2 (empty), 3.8.1.1-52, 3.8.1.1-54 (errors).
    """
    text = text or ""
    found = _cache.get(text)
    if found is not None:
        return found
    if text.strip(_BLANKS):
        tree = parse(text)
        check(text, tree)
    else:
        tree = Boolean(True, span=(0, len(text)))
    return _cache.put(text, Selector(text, tree, compile_tree(tree)))
