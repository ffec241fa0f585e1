"""What is done for the messages of one connection: spans, and the numbers of the metrics.

A span is made when its operation ends, with the time of its beginning, where nothing needs it before: a receive that waits in
vain costs nothing and leaves nothing. It ends on the thread of the application, of the session or of the worker, since what the
application has set up for spans runs there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import Token
from typing import TYPE_CHECKING, Final

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, get_current_span, set_span_in_context

from jmsapi.errors import JMSError
from jmsapi.otel.place import Attributes, Place, Places
from jmsapi.otel.propagation import context_from, creation_span, property_names, put_context
from jmsapi.spi import Address, ConsumerSpec, Envelope, PlainEnvelope, ProviderError

if TYPE_CHECKING:
    from jmsapi._core.telemetry import ConnectionLoad, Handed, Operation, ServerAddress
    from jmsapi.otel.instruments import Instruments

__all__ = ["OtelConnection", "error_type", "span_of"]

_NANOSECONDS: Final = 1_000_000_000


class OtelConnection:
    """Watches one connection.

    Args:
        tracer: Makes spans.
        instruments: Take the numbers.
        server: The broker; None for one in this process.
        load: Tells what the connection holds.
        acknowledgements: Whether each acknowledgement of AUTO and DUPS_OK has a span.
    """

    def __init__(
        self,
        tracer: Tracer,
        instruments: Instruments,
        server: ServerAddress | None,
        load: Callable[[], ConnectionLoad],
        *,
        acknowledgements: bool,
    ) -> None:
        self.load = load
        self._tracer = tracer
        self._instruments = instruments
        self._places = Places(server)
        self._names = property_names()
        self._acknowledgements = acknowledgements

    # ---- sending --------------------------------------------------------------------------------------------------
    def sending(self, envelope: PlainEnvelope, *, forwarded: bool) -> Operation:
        """Begin the span of a send and put its context into the envelope; see ConnectionTelemetry."""
        place = self._places.of("send", "send", envelope.destination)
        properties = envelope.properties
        ambient = contexts.get_current()
        kind, links = SpanKind.PRODUCER, None
        creation = creation_span(envelope, self._names) if properties else None
        if creation is not None:
            if not forwarded:
                # The application has said what the message belongs to, and that stays.
                kind, links = SpanKind.CLIENT, [Link(creation)]
            elif not get_current_span(ambient).get_span_context().is_valid:
                # Sent on outside of all spans, such as to a dead letter queue: the trace of the message goes on.
                ambient = context_from(properties, self._names, Context()) or ambient
        span = self._tracer.start_span(
            place.span_name, ambient, kind, _of_message(place.of_spans, envelope), links, record_exception=False
        )
        if kind is SpanKind.PRODUCER:
            envelope.properties = put_context(properties, self._names, set_span_in_context(span, ambient))
        return _Operation(self, place, span)

    # ---- receiving ------------------------------------------------------------------------------------------------
    def received(self, spec: ConsumerSpec, handed: Handed, began_ns: int) -> None:
        """Make the span of a receive; see ConnectionTelemetry."""
        place = self._places.of("receive", "receive", spec.address, spec.subscription)
        instruments, ended_ns = self._instruments, time.time_ns()
        instruments.consumed.add(place.key)
        if handed.deliveries > 1:
            instruments.redeliveries.add(place.key)
        creation = creation_span(handed.envelope, self._names)
        span = self._tracer.start_span(
            place.span_name,
            None,
            SpanKind.CLIENT,
            _of_message(place.of_spans, handed.envelope),
            None if creation is None else [Link(creation)],
            began_ns,
        )
        span.end(ended_ns)
        instruments.operation_duration.record((ended_ns - began_ns) / _NANOSECONDS, place.of_metrics)

    def not_received(self, spec: ConsumerSpec, error: BaseException, began_ns: int) -> None:
        """Make the span of a receive that failed; see ConnectionTelemetry."""
        place = self._places.of("receive", "receive", spec.address, spec.subscription)
        span = self._tracer.start_span(place.span_name, None, SpanKind.CLIENT, place.of_spans, None, began_ns)
        self._ended(place, span, began_ns, error)

    # ---- processing -----------------------------------------------------------------------------------------------
    def processing(self, spec: ConsumerSpec, handed: Sequence[Handed]) -> Operation:
        """Begin the span of a callback and make it the current one; see ConnectionTelemetry."""
        place = self._places.of("process", "process", spec.address, spec.subscription)
        instruments = self._instruments
        instruments.consumed.add(place.key, count=len(handed))
        again = sum(one.deliveries > 1 for one in handed)
        if again:
            instruments.redeliveries.add(place.key, count=again)
        span, parent = span_of(self._tracer, place, SpanKind.CONSUMER, [one.envelope for one in handed], self._names)
        return _Processing(self, place, span, contexts.attach(set_span_in_context(span, parent)))

    # ---- settling -------------------------------------------------------------------------------------------------
    def settling(self, name: str, envelopes: Sequence[Envelope]) -> Operation:
        """Begin the span of a commit, a rollback or an acknowledgement; see ConnectionTelemetry."""
        place = self._places.of(name, "settle", _common(envelopes))
        return _Operation(self, place, self._settling_span(place, envelopes))

    def acknowledged(self, envelopes: Sequence[Envelope]) -> None:
        """Make the span of what was acknowledged without a wait, if these are wanted; see ConnectionTelemetry."""
        if self._acknowledgements:
            place = self._places.of("acknowledge", "settle", _common(envelopes))
            self._settling_span(place, envelopes).end()

    def _settling_span(self, place: Place, envelopes: Sequence[Envelope]) -> Span:
        return span_of(self._tracer, place, SpanKind.CLIENT, envelopes, self._names)[0]

    # ---- what is only counted -------------------------------------------------------------------------------------
    def rejected(self, count: int) -> None:
        """Count dead letters that the broker is to keep; see ConnectionTelemetry."""
        self._instruments.dead_letters.add(self._places.of("reject", "settle", None).key, count=count)

    def forwarded_dead(self, spec: ConsumerSpec) -> None:
        """Count a dead letter that was sent; see ConnectionTelemetry."""
        self._instruments.dead_letters.add(self._places.of("forward", "send", spec.address, spec.subscription).key)

    def resumed(self, server: ServerAddress | None) -> None:
        """Count a connection that was made again; see ConnectionTelemetry."""
        self._places.moved(server)
        self._instruments.reconnects.add(self._places.of("reconnect", "connect", None).key)

    # ---- ends -----------------------------------------------------------------------------------------------------
    def ended(self, place: Place, span: Span, began_ns: int, error: BaseException | None) -> None:
        """End the span of an operation, and record how long it took."""
        if place.of_metrics["messaging.operation.type"] == "send":
            self._instruments.sent.add(place.key, None if error is None else error_type(error))
        self._ended(place, span, began_ns, error)

    def _ended(self, place: Place, span: Span, began_ns: int, error: BaseException | None) -> None:
        process = place.of_metrics["messaging.operation.type"] == "process"
        histogram = self._instruments.process_duration if process else self._instruments.operation_duration
        attributes = place.of_metrics
        if error is not None:
            kind = error_type(error)
            attributes = {**attributes, "error.type": kind}
            span.set_attribute("error.type", kind)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        ended_ns = time.time_ns()
        span.end(ended_ns)
        histogram.record((ended_ns - began_ns) / _NANOSECONDS, attributes)


class _Operation:
    """An operation whose span is open."""

    __slots__ = ("_began_ns", "_connection", "_place", "_span")

    def __init__(self, connection: OtelConnection, place: Place, span: Span) -> None:
        self._connection = connection
        self._place = place
        self._span = span
        self._began_ns = time.time_ns()

    def ended(self, error: BaseException | None = None) -> None:
        """End the span; see Operation."""
        self._connection.ended(self._place, self._span, self._began_ns, error)


class _Processing(_Operation):
    """A callback that runs, in whose thread or task its span is the current one."""

    __slots__ = ("_token",)

    def __init__(self, connection: OtelConnection, place: Place, span: Span, token: Token[Context]) -> None:
        super().__init__(connection, place, span)
        self._token = token

    def ended(self, error: BaseException | None = None) -> None:
        """End the span, which is the current one no longer; see Operation."""
        contexts.detach(self._token)
        super().ended(error)


def span_of(
    tracer: Tracer, place: Place, kind: SpanKind, envelopes: Sequence[Envelope], names: frozenset[str]
) -> tuple[Span, Context | None]:
    """Begin the span of what is done with one message that was received, or with several.

    It belongs to the trace of a single message, unless it is done within another span. It is linked to all messages.

    Returns:
        The span, and the context in which it was made; None for the current one.
    """
    parent: Context | None = None
    creations = [creation for creation in (creation_span(one, names) for one in envelopes) if creation is not None]
    if len(envelopes) == 1 and creations and not get_current_span().get_span_context().is_valid:
        parent = context_from(envelopes[0].properties, names, Context())
    span = tracer.start_span(
        place.span_name,
        parent,
        kind,
        _of_batch(place.of_spans, envelopes),
        [Link(creation) for creation in creations],
        record_exception=False,
    )
    return span, parent


def error_type(error: BaseException) -> str:
    """Return the class of an error, or the cause where the error only says that a callback has failed."""
    told = error.__cause__ if isinstance(error, JMSError) and error.error_code == "callback-failed" else None
    kind = type(told or error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _of_message(shared: Attributes, envelope: Envelope) -> Attributes:
    found = dict(shared)
    try:
        if (identity := envelope.message_id) is not None:
            found["messaging.message.id"] = identity
        if isinstance(conversation := envelope.correlation_id, str):
            found["messaging.message.conversation_id"] = conversation
    except ProviderError:
        # It cannot be decoded, which the application is told when it reads it.
        pass
    return found


def _of_batch(shared: Attributes, envelopes: Sequence[Envelope]) -> Attributes:
    if len(envelopes) == 1:
        return _of_message(shared, envelopes[0])
    return {**shared, "messaging.batch.message_count": len(envelopes)}


def _common(envelopes: Sequence[Envelope]) -> Address | None:
    """Return the destination of all messages, if it is one."""
    try:
        found = {one.destination for one in envelopes}
    except ProviderError:
        return None
    return found.pop() if len(found) == 1 else None
