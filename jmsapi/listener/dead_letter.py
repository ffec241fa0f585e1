"""A message that nobody could handle, as it is forwarded: with all it had, and why.

Spec: MDB-70.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from jmsapi.api import Destination, Message, Session

__all__ = ["CAUSE", "DELIVERIES", "ENDPOINT", "MESSAGE_ID", "ORIGIN", "send_dead_letter"]

CAUSE: Final = "jmsapi_dead_letter_cause"
"""Property: the exception, its class first."""
DELIVERIES: Final = "jmsapi_dead_letter_deliveries"
"""Property: how often it was delivered."""
ENDPOINT: Final = "jmsapi_dead_letter_endpoint"
"""Property: the name of the endpoint that gave it up."""
MESSAGE_ID: Final = "jmsapi_dead_letter_message_id"
"""Property: its id before."""
ORIGIN: Final = "jmsapi_dead_letter_origin"
"""Property: the destination that it was sent to."""
_KEPT: Final = ("JMSXGroupID", "JMSXGroupSeq")
"""Of the properties whose names are reserved, those that a sender sets."""
_LONGEST: Final = 1000


def send_dead_letter(
    session: Session, destination: Destination, message: Message, endpoint: str, deliveries: int, cause: BaseException | None
) -> None:
    """Send a received message on, under the transaction of the session if it has one.

    Args:
        session: Which sends.
        destination: Where to.
        message: As it was received; a copy for this alone, since its properties are written.
        endpoint: The name of the endpoint that gives it up.
        deliveries: How often it was delivered.
        cause: What was raised last.
    Raises:
        JMSException: It cannot be sent.
    """
    origin, identity = message.jms_destination, message.jms_message_id
    kept = {
        name: message.get_object_property(name) for name in message.property_names if not name.startswith("JMS") or name in _KEPT
    }
    message.clear_properties()
    for name, value in kept.items():
        message.set_object_property(name, value)
    message.set_string_property(CAUSE, _text(cause))
    message.set_int_property(DELIVERIES, deliveries)
    message.set_string_property(ENDPOINT, endpoint)
    if identity is not None:
        message.set_string_property(MESSAGE_ID, identity)
    if origin is not None:
        message.set_string_property(ORIGIN, _name(origin))
    with session.create_producer(destination) as producer:
        # Persistent whatever it was, and without an end: it is kept for people.
        producer.priority = message.jms_priority
        producer.send(message)


def _name(origin: Destination) -> str:
    for kind in ("queue_name", "topic_name"):
        try:
            name = getattr(origin, kind, None)
        except JMSException:
            name = None
        if isinstance(name, str):
            return name
    return str(origin)


def _text(cause: BaseException | None) -> str:
    if cause is None:
        return "unknown"
    shown = cause.__cause__ if cause.__cause__ is not None else cause
    return f"{type(shown).__name__}: {shown}"[:_LONGEST]
