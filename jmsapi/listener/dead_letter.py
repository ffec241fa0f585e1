"""A message that nobody could handle, as it is forwarded: with all it had, and why.

Spec: MDB-70.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jmsapi.errors import JMSException
from jmsapi.listener.causes import sendable

if TYPE_CHECKING:
    from jmsapi.api import Destination, Message, Session

__all__ = ["CAUSE", "DELIVERIES", "ENDPOINT", "LEFT_OUT", "MESSAGE_ID", "ORIGIN", "send_dead_letter"]

CAUSE: Final = "jmsapi_dead_letter_cause"
"""Property: the exception, its class first."""
DELIVERIES: Final = "jmsapi_dead_letter_deliveries"
"""Property: how often it was delivered."""
ENDPOINT: Final = "jmsapi_dead_letter_endpoint"
"""Property: the name of the endpoint that gave it up."""
LEFT_OUT: Final = "jmsapi_dead_letter_left_out"
"""Property: the names of properties that it had and a JMS client cannot set, one a line; only if there are any."""
MESSAGE_ID: Final = "jmsapi_dead_letter_message_id"
"""Property: its id before."""
ORIGIN: Final = "jmsapi_dead_letter_origin"
"""Property: the destination that it was sent to."""
_KEPT: Final = ("JMSXGroupID", "JMSXGroupSeq")
"""Of the properties whose names are reserved, those that a sender sets."""
_LONGEST: Final = 4000
_REFUSED: Final = (JMSException, ValueError, TypeError)
"""How a property is refused: for its name or for its value."""


def send_dead_letter(
    session: Session, destination: Destination, message: Message, endpoint: str, deliveries: int, cause: str
) -> None:
    """Send a received message on, under the transaction of the session if it has one.

    Args:
        session: Which sends.
        destination: Where to.
        message: As it was received; a copy for this alone, since its properties are written.
        endpoint: The name of the endpoint that gives it up.
        deliveries: How often it was delivered.
        cause: What was raised last, in words.
    Raises:
        JMSException: It cannot be sent.
    """
    origin, identity = message.jms_destination, message.jms_message_id
    left_out = _own_properties(message)
    message.set_string_property(CAUSE, cause)
    message.set_int_property(DELIVERIES, deliveries)
    message.set_string_property(ENDPOINT, sendable(endpoint))
    if left_out:
        message.set_string_property(LEFT_OUT, sendable("\n".join(left_out))[:_LONGEST])
    if identity is not None:
        message.set_string_property(MESSAGE_ID, sendable(identity))
    if origin is not None:
        message.set_string_property(ORIGIN, sendable(_name(origin)))
    with session.create_producer(destination) as producer:
        # Persistent whatever it was, and without an end: it is kept for people.
        producer.priority = message.jms_priority
        producer.send(message)


def _own_properties(message: Message) -> list[str]:
    """Have a message bear what its sender has set, as far as a client of ours can; return the names of the rest.

    Other clients than those of JMS send any name and any value, and a message must not stay for ever because of them.
    """
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name in message.property_names:
        if name.startswith("JMS") and name not in _KEPT:
            continue
        try:
            kept[name] = message.get_object_property(name)
        except _REFUSED:
            left_out.append(name)
    message.clear_properties()
    for name, value in kept.items():
        try:
            message.set_object_property(name, value)
        except _REFUSED:
            left_out.append(name)
    return left_out


def _name(origin: Destination) -> str:
    for kind in ("queue_name", "topic_name"):
        try:
            name = getattr(origin, kind, None)
        except JMSException:
            name = None
        if isinstance(name, str):
            return name
    return str(origin)
