"""A table of messages for people who read a failed test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jmsapi._showing import body_of, escaped, head, part, properties_head
from jmsapi.api import Message

__all__ = ["table"]

_MOST_ROWS: Final = 20
_ID: Final = 20
"""Characters of an id that are shown, the last ones: they tell it from the others."""


def table(messages: Sequence[Message], remarks: Sequence[str] = ()) -> str:
    """Draw a table of messages: number, id, type, properties, body, and a remark each.

    Args:
        messages: In their order; of very many the last ones are shown.
        remarks: One for each message, or none.
    """
    first = max(0, len(messages) - _MOST_ROWS)
    rows = [["#", "id", "type", "properties", "body", *(["remark"] if remarks else [])]]
    for index in range(first, len(messages)):
        rows.append([str(index + 1), *_cells(messages[index]), *([escaped(remarks[index])] if remarks else [])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if first:
        lines.insert(1, f"   ... {first} before these")
    return "\n".join(f"  {line}" for line in lines)


def _cells(message: Message) -> Iterable[str]:
    yield (message.jms_message_id or "none")[-_ID:]
    yield "" if message.jms_type is None else head(message.jms_type)
    yield properties_head(message)
    yield head(part(lambda: body_of(message)))
