"""Names of properties: Java identifiers, without the selector's words and the names that JMS keeps for itself.

Spec: 3.5.1-1 to 3.5.1-4, 3.5.9-1, 3.5.9-8, 3.5.9-9, 3.5.9-13 to 3.5.9-16, 3.5.10-1.
"""

from __future__ import annotations

import unicodedata
from enum import Enum
from functools import lru_cache
from typing import Final

from jmsapi.errors import IllegalArgumentException

__all__ = ["DELIVERY_COUNT", "PROVIDER_SET", "USER_ID", "NameRule", "rule_for"]

DELIVERY_COUNT: Final = "JMSXDeliveryCount"
USER_ID: Final = "JMSXUserID"
PROVIDER_SET: Final = frozenset(
    (USER_ID, "JMSXAppID", DELIVERY_COUNT, "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState")
)
"""Properties that only the provider sets, on send or on receive (table 3.3)."""
_RESERVED: Final = frozenset(("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"))
_START: Final = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"))
_PART: Final = _START | {"Nd", "Mc", "Mn", "Cf"}
_IGNORABLE: Final = frozenset(map(chr, (*range(0x09), *range(0x0E, 0x1C), *range(0x7F, 0xA0))))


class NameRule(Enum):
    """What setting a property of some name means."""

    PLAIN = "any value"
    GROUP_ID = "text only"
    GROUP_SEQ = "an int only"
    IGNORED = "the provider sets it: what a client stores is thrown away, as with the headers"


_GROUPS: Final = {"JMSXGroupID": NameRule.GROUP_ID, "JMSXGroupSeq": NameRule.GROUP_SEQ}


def _is_identifier(name: str) -> bool:
    """Tell whether Java takes it for an identifier, by ``Character.isJavaIdentifierStart`` and ``...Part``."""
    category = unicodedata.category
    return category(name[0]) in _START and all(category(c) in _PART or c in _IGNORABLE for c in name)


def rule_for(name: object) -> NameRule:
    """Check the name of a property to be set, and tell what setting it means.

    Args:
        name: The name; anything but a valid one is refused.
    Raises:
        IllegalArgumentException: None, no text, empty, no identifier, a word of the selector language, or a name that
            begins with ``JMS`` and belongs to JMS: all but ``JMS_<vendor>`` names and those of table 3.3.
    Threads: any.
    """
    if not isinstance(name, str) or not name:
        raise IllegalArgumentException(f"the name of a property must be text of at least one character, not {name!r}")
    return _rule_for(name)


@lru_cache(maxsize=1024)
def _rule_for(name: str) -> NameRule:
    if not _is_identifier(name):
        raise IllegalArgumentException(
            f"{name!r} cannot name a property: letters, digits, _ and $ only, and no digit first, as in a Java identifier"
        )
    if name.upper() in _RESERVED:
        raise IllegalArgumentException(f"{name!r} cannot name a property: it is a word of the selector language")
    if not name.startswith("JMS") or name.startswith("JMS_"):
        return NameRule.PLAIN
    if name in PROVIDER_SET:
        return NameRule.IGNORED
    try:
        return _GROUPS[name]
    except KeyError:
        raise IllegalArgumentException(f"{name!r} cannot name a property: JMS keeps names that begin with JMS") from None
