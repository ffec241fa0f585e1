"""The context of a trace in the properties of a message: ``traceparent``, ``tracestate`` and ``baggage``.

The propagators are those that OpenTelemetry is set to. A hyphen of a key, which the name of a property cannot have, is written
as ``__dash__``, as Java's agents do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, Setter
from opentelemetry.trace import SpanContext, TraceFlags, TraceState, get_current_span

from jmsapi.spi import Envelope, ProviderError
from jmsapi.values import Value

__all__ = ["context_from", "creation_span", "property_names", "put_context"]

_DASH: Final = "__dash__"
_TRACEPARENT: Final = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
"""Version 00 of W3C Trace Context; others are left to the propagator."""


class _PropertySetter(Setter[dict[str, Value]]):
    def set(self, carrier: dict[str, Value], key: str, value: str) -> None:
        """Set a property; see Setter."""
        carrier[key.replace("-", _DASH)] = value


class _PropertyGetter(Getter[Mapping[str, Value]]):
    def get(self, carrier: Mapping[str, Value], key: str) -> list[str] | None:
        """Return a property that is text, in a list; see Getter."""
        found = carrier.get(key.replace("-", _DASH))
        return [found] if isinstance(found, str) else None

    def keys(self, carrier: Mapping[str, Value]) -> list[str]:
        """Return the names of the properties; see Getter."""
        return [name.replace(_DASH, "-") for name in carrier]


_SETTER: Final = _PropertySetter()
_GETTER: Final = _PropertyGetter()


def property_names() -> frozenset[str]:
    """Return the names of the properties that carry a context."""
    return frozenset(name.replace("-", _DASH) for name in propagate.get_global_textmap().fields)


def put_context(properties: Mapping[str, Value], names: frozenset[str], context: Context) -> dict[str, Value]:
    """Return properties that carry this context, and no other.

    Args:
        properties: Left as they are.
        names: Those of ``property_names``.
        context: The context.
    """
    if names.isdisjoint(properties):
        found = dict(properties)
    else:
        found = {name: value for name, value in properties.items() if name not in names}
    propagate.inject(found, context, _SETTER)
    return found


def context_from(properties: Mapping[str, Value], names: frozenset[str], base: Context | None = None) -> Context | None:
    """Return the context that properties carry, on top of another; None if they carry none."""
    if names.isdisjoint(properties):
        return None
    return propagate.extract(properties, base, _GETTER)


def creation_span(envelope: Envelope, names: frozenset[str]) -> SpanContext | None:
    """Return the span in which a message was created, for a link; None if it carries none, or cannot be read."""
    try:
        properties = envelope.properties
    except ProviderError:
        return None
    if names.isdisjoint(properties):
        return None
    written = properties.get("traceparent")
    if isinstance(written, str) and "traceparent" in names and (read := _TRACEPARENT.fullmatch(written)) is not None:
        # As the propagator reads it, without the rest of the context, which takes three times as long.
        state = properties.get("tracestate")
        found = SpanContext(
            int(read[1], 16),
            int(read[2], 16),
            is_remote=True,
            trace_flags=TraceFlags(int(read[3], 16)),
            trace_state=TraceState.from_header([state]) if isinstance(state, str) else None,
        )
    else:
        found = get_current_span(context_from(properties, names, Context())).get_span_context()
    return found if found.is_valid else None
