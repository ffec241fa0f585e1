"""The one exception of this package.

It carries what a program needs (text, span, reason) and prints what a person needs: the line at fault with a mark under
the culprit. ``jmsapi.selector`` turns it into ``InvalidSelectorException``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["InvalidSelector"]

_WIDTH: Final = 100
"""Longest piece of a selector that an error shows, in characters."""


class InvalidSelector(ValueError):
    """Say that a text is no selector, why, and where.

    Args:
        text: The whole selector, as given.
        reason: What is wrong, one line.
        span: Half-open range of characters at fault; empty at the place where something is missing.
    Spec: 3.8.1.1-52, 3.8.1.1-54.
    """

    def __init__(self, text: str, reason: str, span: tuple[int, int]) -> None:
        super().__init__(text, reason, span)
        self.text: Final = text
        self.reason: Final = reason
        self.span: Final = span

    def __str__(self) -> str:
        return f"{self.reason}\n{self.marked()}"

    def marked(self) -> str:
        """Show the line at fault and, below it, a mark under the span.

        Returns:
            Two lines, indented by two blanks. A long line is cut to the surroundings of the span; tabs and other
            characters without a width of their own appear as blanks, so that the mark stays under its place.
        """
        start, end = self.span
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        if line_end < 0:
            line_end = len(self.text)
        first = max(line_start, min(start - _WIDTH // 2, line_end - _WIDTH))
        last = min(line_end, first + _WIDTH)
        line = "".join(char if char.isprintable() else " " for char in self.text[first:last])
        before = "..." if first > line_start else ""
        after = "..." if last < line_end else ""
        mark = "^" * max(1, min(end, last) - start)
        return f"  {before}{line}{after}\n  {' ' * (len(before) + start - first)}{mark}"
