"""Messages that are read again in another process: what must be known of the broker beside the bytes of a message."""

from __future__ import annotations

import json
from collections.abc import Callable

from jmsapi.spi import Address, DestinationKind, Envelope
from jmsapi_amqp.brokers import choose
from jmsapi_amqp.codec import envelope_of
from jmsapi_amqp.options import AmqpOptions

__all__ = ["wire_reader"]


def wire_reader(how: str) -> Callable[[bytes, int], Envelope]:
    """Return what makes envelopes; see ``ReadsWire``. ``Broker.how_to_read`` says how."""
    known = json.loads(how.partition(":")[2])
    options = AmqpOptions.model_validate({"scheme": "amqp", "host": "nowhere", **known["options"]})
    broker = choose(options, known["broker"], ())
    kind, name = known["near"]
    near = Address(DestinationKind(kind), name)

    def read(data: bytes, received_ms: int) -> Envelope:
        return envelope_of(data, broker, near, received_ms, kept=True)

    return read
