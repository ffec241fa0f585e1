"""Messages of all six kinds, for tests of what holds for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import pytest

from jmsapi import (
    BytesMessage,
    Destination,
    MapMessage,
    Message,
    MessageEOFException,
    ObjectMessage,
    Session,
    StreamMessage,
    TextMessage,
)
from jmsapi_conformance.kit import receive
from jmsapi_conformance.marks import needs

__all__ = ["INTERFACES", "body_of", "each_body", "each_kind", "each_kind_sent", "fill", "filled", "new", "passed"]

INTERFACES: Final[dict[str, type[Any]]] = {
    "plain": Message,
    "text": TextMessage,
    "bytes": BytesMessage,
    "map": MapMessage,
    "stream": StreamMessage,
    "object": ObjectMessage,
}
_NEW: Final[dict[str, Callable[[Session], Message]]] = {
    "plain": lambda session: session.create_message(),
    "text": lambda session: session.create_text_message(),
    "bytes": lambda session: session.create_bytes_message(),
    "map": lambda session: session.create_map_message(),
    "stream": lambda session: session.create_stream_message(),
    "object": lambda session: session.create_object_message(),
}
_NEEDS: Final = {"plain": "plain_message", "map": "map_message", "stream": "stream_message", "object": "object_message"}
_SENT: Final = [pytest.param(kind, marks=needs(_NEEDS[kind])) if kind in _NEEDS else kind for kind in INTERFACES]

each_kind = pytest.mark.parametrize("kind", INTERFACES)
"""For tests that send nothing."""
each_kind_sent = pytest.mark.parametrize("kind", _SENT)
"""For tests that send a message of the kind."""
each_body = pytest.mark.parametrize("kind", _SENT[1:])
"""For tests that send a message with a body."""


def new(session: Session, kind: str) -> Message:
    """Create an empty message."""
    return _NEW[kind](session)


def fill(message: Message, what: str = "body") -> None:
    """Write a body, in whatever form the kind of message has; the plain one has none."""
    if isinstance(message, TextMessage):
        message.text = what
    elif isinstance(message, BytesMessage):
        message.write_bytes(what.encode())
    elif isinstance(message, MapMessage):
        message.set_string("key", what)
    elif isinstance(message, StreamMessage):
        message.write_string(what)
    elif isinstance(message, ObjectMessage):
        message.object = [what]


def filled(session: Session, kind: str, what: str = "body") -> Message:
    """Create a message with a body."""
    message = new(session, kind)
    fill(message, what)
    return message


def body_of(message: Message) -> object:
    """Return the body in a form that compares; a stream and bytes are read from their beginning."""
    if isinstance(message, StreamMessage):
        return _values_of(message)
    if isinstance(message, MapMessage):
        return cast(object, message.get_body(dict))
    if isinstance(message, BytesMessage):
        return message.get_body(bytes)
    return message.get_body(object)


def _values_of(message: StreamMessage) -> list[object]:
    message.reset()
    values: list[object] = []
    try:
        while True:
            values.append(message.read_object())
    except MessageEOFException:
        return values


def passed(message: Message, session: Session, destination: Destination, receiver: Session) -> Message:
    """Send a message, and return what another session receives."""
    with receiver.create_consumer(destination) as consumer, session.create_producer(destination) as producer:
        producer.send(message)
        return receive(consumer)
