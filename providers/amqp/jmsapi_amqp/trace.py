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
_SECRET: Final = re.compile(r"(initial-response|response|challenge|additional-data)=.*?(?=, [a-z-]+=|\]?$)", re.DOTALL)
_TRANSFER: Final = re.compile(r"^(.*@transfer\(\d+\) \[.*?\])(?: |\().*$", re.DOTALL)


def redact(line: str) -> str:
    """Return a line of trace with what answers a SASL challenge and what a message holds left out."""
    if "@sasl" in line:
        return _SECRET.sub(r"\1=***", line)
    if "@transfer" in line:
        end = line.find("] ")
        brief = line if end < 0 else line[: end + 1]
        return brief if '"' not in brief.split("delivery-tag", 1)[0] else _TRANSFER.sub(r"\1", brief)
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
