"""What a dead letter says of where it came from and why, as far as brokers and this library write it into properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jmsapi_brokers import rabbitmq

__all__ = [
    "ANNOTATIONS",
    "CAUSES",
    "NOTES",
    "ORIGINS",
    "came_by_delay",
    "cause_of",
    "has_expired",
    "is_mark",
    "notes_of",
    "origin_of",
]

_QUEUE: Final = "_AMQ_ORIG_QUEUE"
_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ANNOTATIONS: Final = {"x-opt-ORIG-QUEUE": _QUEUE, "x-opt-ORIG-ADDRESS": _ADDRESS}
"""What Artemis notes on an AMQP message of where it was, and the properties that its Java client and STOMP have for the same."""
_LAST_QUEUE: Final = "x-last-death-queue"
_LAST_REASON: Final = "x-last-death-reason"
NOTES: Final = frozenset({*ANNOTATIONS, _LAST_QUEUE})
"""Message annotations by which a broker says where a dead letter was."""
ORIGINS: Final = (
    "jmsapi_dead_letter_origin",  # this library's listeners
    _QUEUE,  # Artemis
    _ADDRESS,
    _LAST_QUEUE,  # RabbitMQ; the first death may be a delay's, or that of an attempt before
    "x_last_death_queue",
    "x-first-death-queue",
    "x_first_death_queue",
    "original-destination",  # Classic
    "original_destination",
)
"""Properties that name the queue, the most telling first."""
CAUSES: Final = (
    "jmsapi_dead_letter_cause",
    "dlqDeliveryFailureCause",  # Classic
    _LAST_REASON,  # RabbitMQ
    "x_last_death_reason",
    "x-first-death-reason",
    "x_first_death_reason",
)
"""Properties that say why."""
_MARKS: Final = frozenset({*ORIGINS, *CAUSES, "x-death", "originalExpiration"})
_STARTS: Final = ("jmsapi_dead_letter_", "x-first-death-", "x-last-death-", "x_first_death_", "x_last_death_")
_PREFIXES: Final = ("queue://", "/queue/", "/amq/queue/")


def origin_of(properties: Mapping[str, object]) -> str | None:
    """Return the name of the queue that a dead letter was in; None if it does not say, or was in a subscription's."""
    # The queue of a subscription has an address of another name, the topic's; what is sent to either goes elsewhere.
    of_subscription = properties.get(_QUEUE, properties.get(_ADDRESS)) != properties.get(_ADDRESS, properties.get(_QUEUE))
    for name in ORIGINS:
        found = None if of_subscription and name in ANNOTATIONS.values() else properties.get(name)
        if isinstance(found, str) and found and not rabbitmq.is_own_queue(found):
            for prefix in _PREFIXES:
                found = found.removeprefix(prefix)
            return found
    return None


def cause_of(properties: Mapping[str, object]) -> str:
    """Return why a message is a dead letter; empty if it does not say."""
    return next((str(properties[name]) for name in CAUSES if properties.get(name)), "")


def is_mark(name: str) -> bool:
    """Return whether a property of this name is there only because the message is a dead letter."""
    return name in _MARKS or name.startswith(_STARTS)


def came_by_delay(headers: Mapping[str, str]) -> bool:
    """Return whether the last queue that a delayed message left was the one in which it waited, so that it is no dead letter."""
    queue = headers.get(_LAST_QUEUE)
    return queue is None or rabbitmq.is_delay_queue(queue)


def has_expired(notes: Mapping[Any, object]) -> bool:
    """Return whether a message is in a dead letter queue of RabbitMQ because its time was over: there it stays until it is taken.

    Args:
        notes: The annotations, or the headers over STOMP.
    """
    queue = notes.get(_LAST_QUEUE)
    return notes.get(_LAST_REASON) == "expired" and isinstance(queue, str) and not rabbitmq.is_delay_queue(queue)


def notes_of(annotations: Mapping[Any, object]) -> dict[str, str]:
    """Return what a broker notes on an AMQP message of where it was and why it is there no more, as properties.

    What came through a queue that delays messages was no dead letter there.
    """
    found = {name: note for key, name in ANNOTATIONS.items() if isinstance(note := annotations.get(key), str)}
    queue, reason = annotations.get(_LAST_QUEUE), annotations.get(_LAST_REASON)
    if isinstance(queue, str) and not rabbitmq.is_delay_queue(queue):
        found[_LAST_QUEUE] = str(queue)
        if isinstance(reason, str):
            found[_LAST_REASON] = str(reason)
    return found
