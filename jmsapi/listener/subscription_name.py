"""The names that a subscription may have, and how one is generated.

A generated name is made from the names of the endpoint, the server and the cluster: readable parts, and a digest of the whole
that tells names apart which look alike once they are shortened. Neither the time nor a random number enters it, so a durable
subscription is found again after a restart. It keeps to the characters and the length that every provider takes.

Spec: 12.1.1.5-1 to 12.1.1.5-3.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["LONGEST_NAME", "VALID_NAME", "generated_name"]

LONGEST_NAME: Final = 128
VALID_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
_ODD: Final = re.compile(r"[^A-Za-z0-9_.\-]+")
_DIGEST: Final = 16


def generated_name(*parts: str) -> str:
    """Make a valid subscription name that is the same for the same parts, and another for any others.

    Args:
        parts: What is to be told apart, the most telling first.
    Returns:
        At most 128 characters: the parts as far as they fit and can be written, and a digest.
    Spec: 12.1.1.5-1 to 12.1.1.5-3.
    """
    whole = "\0".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    room = (LONGEST_NAME - _DIGEST) // len(parts) - 1
    return "-".join([*(_ODD.sub("_", part)[:room] for part in parts), digest])
