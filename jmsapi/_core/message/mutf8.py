"""Java's modified UTF-8 (``DataOutput.writeUTF``): NUL as two bytes, characters beyond U+FFFF as two halves of three bytes.

Spec: 3.11.3-10.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["decode", "encode"]

_NUL: Final = b"\xc0\x80"
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")
_FOUR_BYTES: Final = re.compile(rb"[\xf0-\xff]")


def encode(text: str) -> bytes:
    """Encode text, of any characters; the bytes without the length that ``writeUTF`` puts in front."""
    if not text.isascii():
        text = _BEYOND.sub(_halves, text)
    return text.encode("utf-8", "surrogatepass").replace(b"\0", _NUL)


def _halves(match: re.Match[str]) -> str:
    rest = ord(match[0]) - 0x10000
    return chr(0xD800 | rest >> 10) + chr(0xDC00 | rest & 0x3FF)


def decode(data: bytes) -> str:
    """Decode bytes.

    Raises:
        ValueError: They are no modified UTF-8, which has no sequences of four bytes and none longer than needed.
    """
    if data.isascii():
        return data.decode("ascii")
    strange = _FOUR_BYTES.search(data)
    if strange is not None:
        raise ValueError(f"byte {strange[0].hex()} at {strange.start()} begins no character")
    text = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
