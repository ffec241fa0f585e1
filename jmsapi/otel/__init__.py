"""Traces and metrics by OpenTelemetry: ``jmsapi.otel.instrument()``. Needs the extra ``otel``; see docs/observability.md.

Spans and metrics are those of the semantic conventions for messaging, version 1.44.0. ``opentelemetry-instrument`` finds this by
its entry point, so that a program need not be changed.
"""

from jmsapi.otel.instrumentation import SCHEMA_URL, JmsapiInstrumentor, instrument, uninstrument
from jmsapi.otel.processing import context_of, process

__all__ = ["SCHEMA_URL", "JmsapiInstrumentor", "context_of", "instrument", "process", "uninstrument"]
