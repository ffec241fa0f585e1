"""Spans around what an application does with messages that it has received itself."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from jmsapi._core.destination import address_of
from jmsapi._core.message import MessageImpl
from jmsapi._core.telemetry import installed
from jmsapi.api import Message
from jmsapi.errors import IllegalArgumentException
from jmsapi.otel.connection_telemetry import error_type, span_of
from jmsapi.otel.instrumentation import OpenTelemetry
from jmsapi.otel.place import Place
from jmsapi.otel.propagation import context_from, property_names
from jmsapi.spi import Envelope

__all__ = ["context_of", "process"]


def context_of(message: Message) -> Context:
    """Return the context in which a message was created, for a span of one's own; empty if it carries none.

    Args:
        message: One that was received.
    Threads: that of the message.
    """
    names = property_names()
    found = {name: message.get_string_property(name) for name in names if message.property_exists(name)}
    return context_from(found, names, Context()) or Context()


@contextmanager
def process(*messages: Message) -> Generator[Span | None]:
    """Run a block in a ``process`` span: what is done with messages that were received by a call of ``receive``.

    Listeners and callbacks have theirs already. The span continues the trace of a single message, unless another span is the
    current one; it is linked to every message.

    Args:
        messages: At least one, received by this library.
    Returns:
        The span; None while nothing is instrumented.
    Raises:
        IllegalArgumentException: No message, or one that was not received.
    Threads: the block is that of the calling thread or task.
    """
    envelopes = _envelopes(messages)
    telemetry = installed()
    if not isinstance(telemetry, OpenTelemetry):
        yield None
        return
    destinations = {one.jms_destination for one in messages}
    destination = destinations.pop() if len(destinations) == 1 else None
    place = Place("process", "process", None, None if destination is None else address_of(destination))
    span, parent = span_of(telemetry.tracer, place, SpanKind.CONSUMER, envelopes, property_names())
    token, began = contexts.attach(set_span_in_context(span, parent)), time.monotonic()
    attributes = place.of_metrics
    try:
        yield span
    except BaseException as error:
        attributes = {**attributes, "error.type": error_type(error)}
        span.set_attribute("error.type", error_type(error))
        span.set_status(Status(StatusCode.ERROR, str(error)))
        raise
    finally:
        contexts.detach(token)
        span.end()
        telemetry.instruments.process_duration.record(time.monotonic() - began, attributes)


def _envelopes(messages: Sequence[Message]) -> list[Envelope]:
    found = [one.delivery.envelope for one in messages if isinstance(one, MessageImpl) and one.delivery is not None]
    if not found or len(found) != len(messages):
        raise IllegalArgumentException("process takes messages that were received")
    return found
