"""Messages that are read again in another process: what must be known of the broker beside a message's frame."""

from __future__ import annotations

import json
from collections.abc import Callable

from jmsapi.spi import Address, DestinationKind, Envelope
from jmsapi_stomp.behaviours import behaviour_named
from jmsapi_stomp.codec import StompEnvelope
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.options import StompOptions

__all__ = ["wire_reader"]


def wire_reader(how: str) -> Callable[[bytes, int], Envelope]:
    """Return what makes envelopes; see ``ReadsWire``. ``StompBehaviour.how_to_read`` says how."""
    known = json.loads(how.partition(":")[2])
    options = StompOptions.model_validate({"scheme": "stomp", "host": "nowhere", **known["options"]})
    behaviour = behaviour_named(known["broker"])(options, known["version"])
    kind, name = known["near"]
    subscribed = Address(DestinationKind(kind), name)
    last_counts = behaviour.last_counts

    def read(data: bytes, received_ms: int) -> Envelope:
        # No header line is empty, so the first empty line is the end of them.
        end = data.find(b"\n\n")
        line = data.find(b"\n")
        # Who reads kept messages reads all they want of one before the next, and that is little or nearly everything.
        frame = Frame(data[:line], data[line:end], data[end + 2 :], last_counts, searches=1)
        return StompEnvelope(frame, behaviour, subscribed)

    return read
