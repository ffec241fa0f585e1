"""The keys of messages in a store, which say where each one waits.

A key is, from its highest bit, the number of a queue or durable subscription, 9 minus the message's priority, and its order. So
the next message of a queue is the lowest key of that queue, and the key alone finds, adds and deletes a message. The number 0
belongs to no queue: under it are the messages that prepared transaction branches have sent.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DELAYED_LEVEL", "LAST_ORDER", "LEVEL_BITS", "MOST_QUEUES", "ORDER_BITS", "QUEUE_SHIFT"]

ORDER_BITS: Final = 42
LEVEL_BITS: Final = 4
QUEUE_SHIFT: Final = ORDER_BITS + LEVEL_BITS
LAST_ORDER: Final = (1 << ORDER_BITS) - 1
DELAYED_LEVEL: Final = 15
"""In place of 9 minus the priority while the delivery time has not come."""
MOST_QUEUES: Final = 1 << 17
"""The numbers of queues are below this."""
