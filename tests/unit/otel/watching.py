"""Spans and metrics of what a test does, by OpenTelemetry's own SDK, and spans as a tree."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import jmsapi.otel

WAIT_S = 20.0


class Watched:
    """What was told so far."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._numbers = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self._numbers])

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in the order of their beginning."""
        return sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, *names: str) -> list[ReadableSpan]:
        """The spans of these names, waiting for as many."""
        end = time.monotonic() + WAIT_S
        while True:
            found = [span for span in self.spans if span.name in names]
            if {span.name for span in found} == set(names):
                return found
            assert time.monotonic() < end, f"not all of {names} in {[span.name for span in self.spans]}"
            time.sleep(0.005)

    def numbers(self, name: str) -> dict[str, float]:
        """The points of a metric: counts, or how many values a histogram has, by operation, destination and error."""
        data = self._numbers.get_metrics_data()
        found: dict[str, float] = {}
        assert data is not None
        for scope in data.resource_metrics[0].scope_metrics:
            for metric in scope.metrics:
                if metric.name == name:
                    for point in metric.data.data_points:
                        told = point.attributes or {}
                        kind = told.get("messaging.operation.name", told.get("messaging.operation.type"))
                        parts = (kind, told.get("messaging.destination.name"), told.get("error.type"))
                        found[" ".join(str(part) for part in parts if part is not None)] = getattr(
                            point, "count", getattr(point, "value", 0)
                        )
        return found

    def tree(self) -> str:
        """All spans as a tree: indented below their parents, with the kind, an error, and to what trace they are linked."""
        return "\n".join(tree(self.spans))


def tree(spans: list[ReadableSpan]) -> list[str]:
    """Return spans as lines of a tree."""
    names = {span.context.span_id: span.name for span in spans if span.context is not None}

    def below(parent: int | None, depth: int) -> Iterator[str]:
        for span in spans:
            own = span.context
            above = span.parent.span_id if span.parent is not None and span.parent.span_id in names else None
            if own is None or above != parent:
                continue
            kind = span.kind.name.lower()
            error = "" if span.status.is_unset else f", failed: {(span.attributes or {})['error.type']}"
            ids = [link.context.span_id for link in span.links]
            linked = sorted({names[one] for one in ids if one in names and one != parent})
            links = f", linked to: {', '.join(linked)}" if linked else ""
            yield f"{'    ' * depth}{span.name} ({kind}{error}{links})"
            yield from below(own.span_id, depth + 1)

    return list(below(None, 0))


@contextmanager
def watching(*, acknowledgements: bool = False) -> Generator[Watched]:
    """Have the connections that are made in a block watched."""
    watched = Watched()
    jmsapi.otel.instrument(watched.tracers, watched.meters, acknowledgements=acknowledgements)
    try:
        yield watched
    finally:
        jmsapi.otel.uninstrument()
        watched.tracers.shutdown()
        watched.meters.shutdown()
