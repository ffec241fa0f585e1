"""The character sets that the content type of a message may name."""

from __future__ import annotations

from encodings.aliases import aliases
from typing import Final

__all__ = ["charset_named"]

_NO_CHARSETS: Final = frozenset(
    {"base64_codec", "bz2_codec", "hex_codec", "idna", "mbcs", "punycode", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"}
)
"""Codecs of Python that are no character sets, or whose time is not linear."""
_WITHOUT_ALIAS: Final = ("cp720", "cp737", "cp856", "cp874", "cp875", "cp1006", "koi8_t", "koi8_u", "utf_8_sig")
_KNOWN: Final = {name: name for name in (*aliases.values(), *_WITHOUT_ALIAS)} | aliases


def charset_named(name: str) -> str | None:
    """Return Python's codec of a character set.

    A name that is not known is not looked up elsewhere: Python would keep it for ever, and look for a module of that name.

    Args:
        name: As a content type has it, quoted or not.
    Returns:
        None when the name is not known, or names no character set.
    """
    plain = name.strip().strip("\"'").lower().replace("-", "_").replace(" ", "_")
    found = _KNOWN.get(plain)
    return None if found in _NO_CHARSETS else found
