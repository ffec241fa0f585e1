"""Selector text to tokens.

Rules of this module:

- Every token knows its half-open range of characters; errors do too.
- White space is blank, tab, form feed, line feed and carriage return. There are no comments.
- One pass, no backtracking: the time is linear in the length of the text, for wrong texts as well.

Spec: 3.8.1.1-5 to 3.8.1.1-14, 3.8.1.1-23, 3.8.1.3-4.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from jmsapi_selector.errors import InvalidSelector

__all__ = ["END", "KEYWORDS", "MAX_LENGTH", "NAME", "NUMBER", "STRING", "Token", "tokenize"]

MAX_LENGTH: Final = 65_536
"""Longest selector, in characters."""

NAME: Final = "name"
NUMBER: Final = "number"
STRING: Final = "string"
END: Final = "end of the selector"
KEYWORDS: Final = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})


class Token(NamedTuple):
    """One word, literal or operator and where it stands.

    Attributes:
        kind: NAME, NUMBER, STRING, END, a keyword in capitals, or the operator itself.
        text: As written; of a string literal its value, without quotes.
        start: Index of its first character.
        end: Index behind its last character.
    """

    kind: str
    text: str
    start: int
    end: int


# A number takes in all that is run into it, so that `019`, `1AND` and `1.e.5` are one malformed number each. The sign
# of an exponent belongs to it, yet not behind a hexadecimal digit e. The string needs possessive repeats: without them
# an unclosed one full of quotes takes quadratic time.
_TOKEN: Final = re.compile(
    r"""
    (?P<blank>    [ \t\f\n\r]+ )
  | (?P<name>     [A-Za-z_$][A-Za-z0-9_$]* )
  | (?P<number>   0[xX][A-Za-z0-9_$.]* | \.?[0-9](?:[eE][+-]?|[A-Za-z0-9_$.])* )
  | (?P<string>   '[^']*+(?:''[^']*+)*+' )
  | (?P<operator> <> | <= | >= | [=<>()+\-*/,] )
    """,
    re.VERBOSE,
)
_FOREIGN: Final = {
    "!=": "inequality is written <>",
    "||": "strings cannot be joined in a selector",
    "&&": "conditions are joined by AND",
}


def tokenize(text: str) -> list[Token]:
    """Cut a selector into its tokens.

    Args:
        text: The selector, at most MAX_LENGTH characters.
    Returns:
        The tokens in order, an END token last.
    Raises:
        InvalidSelector: Too long, an unclosed string, or a character that no token starts with.
    """
    size = len(text)
    if size > MAX_LENGTH:
        raise InvalidSelector(text, f"a selector has at most {MAX_LENGTH:,} characters, this one {size:,}", (MAX_LENGTH, size))
    tokens: list[Token] = []
    match = _TOKEN.match
    at = 0
    while at < size:
        found = match(text, at)
        kind = found.lastgroup if found else None
        end = found.end() if found else at
        if kind == "name" or kind is None:
            end = _end_of_name(text, at, end)
            if end == at:
                raise _no_token(text, at)
            word = text[at:end]
            # Only ASCII words can be keywords: the capital of a Turkish dotless i is I.
            upper = word.upper() if word.isascii() else word
            tokens.append(Token(upper if upper in KEYWORDS else NAME, word, at, end))
        elif kind == "operator":
            word = text[at:end]
            tokens.append(Token(word, word, at, end))
        elif kind == "number":
            tokens.append(Token(NUMBER, text[at:end], at, end))
        elif kind == "string":
            tokens.append(Token(STRING, text[at + 1 : end - 1].replace("''", "'"), at, end))
        at = end
    tokens.append(Token(END, "", size, size))
    return tokens


def _end_of_name(text: str, start: int, at: int) -> int:
    """Find where a name ends that starts at ``start`` and whose ASCII beginning ends at ``at``."""
    size = len(text)
    if at == start:
        if not _starts_name(text[at]):
            return at
        at += 1
    while at < size and _continues_name(text[at]):
        at += 1
    return at


def _starts_name(char: str) -> bool:
    """Tell what Java's ``Character.isJavaIdentifierStart`` tells."""
    return unicodedata.category(char) in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"}


def _continues_name(char: str) -> bool:
    """Tell what Java's ``Character.isJavaIdentifierPart`` tells."""
    category = unicodedata.category(char)
    if category == "Cc":
        return char <= "\x08" or "\x0e" <= char <= "\x1b" or "\x7f" <= char <= "\x9f"
    return category in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc", "Nd", "Mc", "Mn", "Cf"}


def _no_token(text: str, at: int) -> InvalidSelector:
    """Build the error for a place where no token starts."""
    char = text[at]
    if char == "'":
        return InvalidSelector(text, "this string is never closed; a quote inside a string is written twice", (at, len(text)))
    if char == '"':
        return InvalidSelector(text, "strings stand in single quotes, names in none", (at, at + 1))
    pair = text[at : at + 2]
    if pair in _FOREIGN:
        return InvalidSelector(text, _FOREIGN[pair], (at, at + 2))
    if char == ".":
        return InvalidSelector(text, "a dot is no part of a name", (at, at + 1))
    shown = char if char.isprintable() and char != " " else f"U+{ord(char):04X}"
    return InvalidSelector(text, f"{shown} means nothing in a selector", (at, at + 1))
