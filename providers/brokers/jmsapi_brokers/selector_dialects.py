"""What the selector dialects of several brokers and wires have in common. The dialects stand with their brokers."""

from __future__ import annotations

from typing import Final

__all__ = ["GROUP_AND_USER", "PRIVATE_PREFIXES", "STOMP_HEADERS"]

STOMP_HEADERS: Final = frozenset(
    {
        *("destination", "receipt", "transaction", "ack", "subscription", "priority", "expires", "expiration", "persistent"),
        *("type", "timestamp", "redelivered", "selector", "login", "passcode", "browser", "durable", "exclusive"),
        *("transformation", "requeue"),
    }
)
"""Headers of a STOMP frame; a property of the same name travels under another one."""

PRIVATE_PREFIXES: Final = ("AMQ", "_AMQ", "__AMQ", "JMS_AMQP_", "JMS_PY_", "NATIVE_")
"""How names begin that brokers or this library use for their own."""

GROUP_AND_USER: Final = frozenset({"JMSXGroupSeq", "JMSXUserID"})
"""Names with another value at Artemis and Classic than in JMS: where a message has none, the group sequence is 0 to them; the
user is the one who logged in. Other JMSX names are plain properties to them, but for the delivery count, of which the
specification leaves the effect undefined (3.5.9-4)."""
