"""Messages of every kind with values of every type, by seed, and what of a message is its sender's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from jmsapi import Byte, Char, Double, Float, JMSContext, Long, Message, ObjectMessage, Short
from jmsapi._core.message import encoded_object
from jmsapi._showing import body_of, properties_of

__all__ = ["messages_of", "settable"]

_PROPERTIES: Final[tuple[Callable[[random.Random], Any], ...]] = (
    lambda chance: chance.random() < 0.5,
    lambda chance: Byte(chance.randint(-128, 127)),
    lambda chance: Short(chance.randint(-(2**15), 2**15 - 1)),
    lambda chance: chance.randint(-(2**31), 2**31 - 1),
    lambda chance: Long(chance.randint(-(2**63), 2**63 - 1)),
    lambda chance: Float(chance.choice([0.1, -1.5, 3e38, 1e-40])),
    lambda chance: Double(chance.choice([0.1, -1.5, 1e308, 5e-324])),
    lambda chance: "".join(chance.choice("aé€𝄞\"\\ \t'<") for _ in range(chance.randint(0, 12))),
)
_ENTRIES: Final = (
    *_PROPERTIES,
    lambda chance: Char(chance.choice("aß€")),
    lambda chance: chance.randbytes(chance.randint(0, 9)),
)


def messages_of(context: JMSContext, seed: int) -> Iterator[Message]:
    """Make one message of each of the six kinds."""
    chance = random.Random(seed)
    yield _dressed(context.create_message(), chance)
    yield _dressed(context.create_text_message(str(chance.choice(_PROPERTIES[-1:])(chance))), chance)
    data = context.create_bytes_message()
    data.write_bytes(chance.randbytes(chance.randint(0, 40)))
    yield _dressed(data, chance)
    table = context.create_map_message()
    for number, make in enumerate(chance.sample(_ENTRIES, 6)):
        table.set_object(f"entry{number}", make(chance))
    yield _dressed(table, chance)
    stream = context.create_stream_message()
    for make in chance.sample(_ENTRIES, 6):
        stream.write_object(make(chance))
    yield _dressed(stream, chance)
    holder = context.create_object_message({"list": [1, 2.5, None, "x"], "number": chance.random()})
    yield _dressed(holder, chance)


def _dressed(message: Message, chance: random.Random) -> Message:
    for number, make in enumerate(chance.sample(_PROPERTIES, 4)):
        message.set_object_property(f"property{number}", make(chance))
    if chance.random() < 0.5:
        message.jms_type = "kind é"
    if chance.random() < 0.5:
        message.jms_correlation_id = f"correlation {chance.random()}"
    return message


def settable(message: Message) -> tuple[object, ...]:
    """Return what its sender gave to a message, with the types of the values."""
    if isinstance(message, ObjectMessage):
        body: object = encoded_object(message)
    else:
        if hasattr(message, "reset"):
            message.reset()
        body = _typed(body_of(message))
    properties = {name: _typed(value) for name, value in properties_of(message).items() if not name.startswith("JMSX")}
    reply_to = None if message.jms_reply_to is None else str(message.jms_reply_to)
    kind = next(cls.__name__ for cls in type(message).__mro__ if cls.__module__.startswith("jmsapi.api"))
    return kind, properties, body, message.jms_type, message.jms_correlation_id, reply_to


def _typed(value: object) -> object:
    if isinstance(value, dict):
        return {key: _typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_typed(one) for one in value]
    java = getattr(type(value), "jms_type", type(value).__name__)
    return {"Int": "int", "double": "float"}.get(java, java), value
