"""Frames to the logger ``jmsapi.wire.amqp``, without passwords and bodies.

On when that logger takes DEBUG at the time a connection opens.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from jmsapi_amqp import engine
from jmsapi_amqp.engine import Pointer

__all__ = ["redact", "trace_frames"]

_LOG: Final = logging.getLogger("jmsapi.wire.amqp")
_SECRET: Final = re.compile(r"(initial-response|response|challenge|additional-data)=.*", re.DOTALL)
# A delivery tag is bytes in quotes and may hold a bracket; the payload follows behind the bracket that closes the frame.
_TRANSFER: Final = re.compile(r'^(.*?@transfer\(\d+\) \[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\]).*$', re.DOTALL)


def redact(line: str) -> str:
    """Return a line of trace with what answers a SASL challenge and what a message holds left out."""
    if "@sasl" in line:
        return _SECRET.sub(r"\1=***]", line)
    if "@transfer" in line:
        found = _TRANSFER.match(line)
        return found[1] if found else line.split("@transfer")[0] + "@transfer"
    return line


def trace_frames(transport: Pointer, connection: str) -> None:
    """Log the frames of one transport from now on, if somebody wants them."""
    if not _LOG.isEnabledFor(logging.DEBUG):
        return

    def tracer(_transport: Pointer, line: str) -> None:
        _LOG.debug("%s %s", connection, redact(line.rstrip()))

    attachments = engine.transport_attachments(transport)
    engine.record_def(attachments)
    engine.record_set(attachments, {})
    engine.transport_set_tracer(transport, tracer)
    engine.transport_trace(transport, engine.TRACE_FRAMES)
