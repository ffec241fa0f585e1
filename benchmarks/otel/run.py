"""What OpenTelemetry costs a message, in processor time, beside what its SDK takes alone.

    python benchmarks/otel/run.py [--messages N] [--rounds N]

The in-process broker, persistent texts of 1 KiB, in one thread. Each row is what a send and a receive take more than without
instrumentation; the least of the rounds, in which the rows take turns. The last two lines are the SDK without jmsapi: a span with
the attributes of a send, begun and ended, and one value of a histogram.

The library's own part is that of an API which records nothing. It is held to 15 us; a miss is marked, and the exit code is 1
then.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

from opentelemetry.metrics import MeterProvider as AnyMeterProvider
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NoOpTracerProvider, SpanKind
from opentelemetry.trace import TracerProvider as AnyTracerProvider

import jmsapi
import jmsapi.otel

TEXT = "x" * 1024
WARM_UP = 200
MOST_US = 15.0
OWN = "an API that records nothing"


class Cost(NamedTuple):
    """Microseconds of processor time a message."""

    send: float
    receive: float


def no_traces() -> AnyTracerProvider:
    """Return spans that cost nothing."""
    return NoOpTracerProvider()


def no_metrics() -> AnyMeterProvider:
    """Return metrics that cost nothing."""
    return NoOpMeterProvider()


def metrics() -> AnyMeterProvider:
    """Return the SDK's metrics, which nobody exports."""
    return MeterProvider([InMemoryMetricReader()])


ROWS: dict[str, tuple[Callable[[], AnyTracerProvider], Callable[[], AnyMeterProvider]] | None] = {
    "not instrumented": None,
    OWN: (no_traces, no_metrics),
    "a trace, not sampled": (lambda: TracerProvider(sampler=ALWAYS_OFF), no_metrics),
    "a trace, sampled": (TracerProvider, no_metrics),
    "metrics": (no_traces, metrics),
    "a trace and metrics": (TracerProvider, metrics),
}


def taken(row: str, messages: int) -> Cost:
    """Return what a send and a receive take."""
    providers = ROWS[row]
    if providers is not None:
        jmsapi.otel.instrument(providers[0](), providers[1]())
    try:
        with jmsapi.connection_factory(f"inproc://otel-{uuid.uuid4().hex}").create_context() as context:
            queue, producer = context.create_queue("q"), context.create_producer()
            consumer = context.create_consumer(queue)
            for number in (WARM_UP, messages):
                began = time.process_time()
                for _ in range(number):
                    producer.send(queue, TEXT)
                sent = time.process_time()
                for _ in range(number):
                    consumer.receive(1000)
                received = time.process_time()
            return Cost((sent - began) / messages * 1e6, (received - sent) / messages * 1e6)
    finally:
        if providers is not None:
            jmsapi.otel.uninstrument()


def alone(messages: int) -> Cost:
    """Return what the SDK takes for a span, and for a value of a histogram."""
    tracer = TracerProvider().get_tracer("benchmark")
    histogram = (
        MeterProvider([InMemoryMetricReader()]).get_meter("benchmark").create_histogram("messaging.client.operation.duration")
    )
    attributes: dict[str, str | int] = {
        "messaging.system": "jms",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "q",
        "messaging.message.id": f"ID:{uuid.uuid4().hex}:1:1",
    }
    began = time.process_time()
    for _ in range(messages):
        tracer.start_span("send q", None, SpanKind.PRODUCER, attributes).end()
    ended = time.process_time()
    for _ in range(messages):
        histogram.record(0.001, attributes)
    return Cost((ended - began) / messages * 1e6, (time.process_time() - ended) / messages * 1e6)


def least(costs: list[Cost]) -> Cost:
    """Return the least of both."""
    return Cost(min(one.send for one in costs), min(one.receive for one in costs))


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    found: dict[str, list[Cost]] = {row: [] for row in ROWS}
    sdk: list[Cost] = []
    for _ in range(given.rounds):
        for row, costs in found.items():
            costs.append(taken(row, given.messages))
        sdk.append(alone(given.messages))
    off = least(found.pop("not instrumented"))
    print(f"{'us a message':<32}{'send':>8}{'receive':>9}")
    print(f"{'not instrumented':<32}{off.send:>8.1f}{off.receive:>9.1f}")
    missed = False
    for row, costs in found.items():
        more = Cost(least(costs).send - off.send, least(costs).receive - off.receive)
        late = row == OWN and max(more) > MOST_US
        missed = missed or late
        bound = f" <= {MOST_US:g}{'  MISSED' if late else ''}" if row == OWN else ""
        print(f"{'+ ' + row:<32}{more.send:>8.1f}{more.receive:>9.1f}{bound}")
    one = least(sdk)
    print(f"{'the SDK alone: a span':<32}{one.send:>8.1f}\n{'the SDK alone: a histogram':<32}{one.receive:>8.1f}")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
