"""The metrics: two histograms and the counters of the conventions, and what is counted besides.

A counter of the SDK takes longer than all else that is done for a message, so messages are counted here, and the counters are
observed when metrics are collected.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol
from weakref import WeakSet

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from jmsapi._core.telemetry import ConnectionLoad

__all__ = ["Instruments", "Tally"]

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Upper bounds in seconds, as the conventions advise."""
Key = tuple[tuple[str, str | int], ...]


class Tally:
    """Counts by place and kind of error. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[Key, str | None], int] = {}

    def add(self, key: Key, error: str | None = None, count: int = 1) -> None:
        """Count so many, by the attributes of a place and by the type of an error."""
        entry = (key, error)
        with self._lock:
            self._counts[entry] = self._counts.get(entry, 0) + count

    def observe(self, options: CallbackOptions) -> Iterable[Observation]:
        """Return what was counted, by attributes."""
        with self._lock:
            counts = list(self._counts.items())
        return [
            Observation(count, dict(key) if error is None else {**dict(key), "error.type": error})
            for (key, error), count in counts
        ]


class Loaded(Protocol):
    """A connection whose load is observed."""

    @property
    def load(self) -> Callable[[], ConnectionLoad]:
        """Tells what it holds."""
        ...


class Instruments:
    """The instruments of one meter.

    Args:
        meter: Makes them.
    """

    def __init__(self, meter: Meter) -> None:
        self.connections: WeakSet[Loaded] = WeakSet()
        self.sent, self.consumed = Tally(), Tally()
        self.redeliveries, self.dead_letters, self.reconnects = Tally(), Tally(), Tally()
        self.operation_duration = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Duration of messaging operation initiated by a producer or consumer client.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self.process_duration = meter.create_histogram(
            "messaging.process.duration",
            unit="s",
            description="Duration of processing operation.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        for name, tally, what in (
            ("messaging.client.sent.messages", self.sent, "Number of messages producer attempted to send to the broker."),
            ("messaging.client.consumed.messages", self.consumed, "Number of messages that were delivered to the application."),
            ("jmsapi.client.redeliveries", self.redeliveries, "Messages delivered to the application that had been before."),
            ("jmsapi.client.dead_letters", self.dead_letters, "Messages that were given up, and sent or rejected to be kept."),
        ):
            meter.create_observable_counter(name, [tally.observe], unit="{message}", description=what)
        meter.create_observable_counter(
            "jmsapi.client.reconnects", [self.reconnects.observe], unit="{reconnect}", description="Lost links made again."
        )
        meter.create_observable_up_down_counter(
            "jmsapi.client.in_flight",
            [self._in_flight],
            unit="{message}",
            description="Messages received and not settled, and those sent and not confirmed.",
        )
        meter.create_observable_up_down_counter(
            "jmsapi.client.credit", [self._credit], unit="{message}", description="Messages that brokers may still deliver."
        )
        meter.create_observable_up_down_counter(
            "jmsapi.client.awaiting_redelivery",
            [self._awaiting_redelivery],
            unit="{message}",
            description="Messages that wait for their redelivery delay.",
        )

    def _load(self) -> ConnectionLoad:
        loads = [one.load() for one in list(self.connections)]
        return ConnectionLoad(*(sum(numbers) for numbers in zip(*loads, strict=True))) if loads else ConnectionLoad(0, 0, 0, 0)

    def _in_flight(self, options: CallbackOptions) -> Iterable[Observation]:
        load = self._load()
        sent: Mapping[str, str] = {"messaging.operation.type": "send"}
        return [Observation(load.in_flight, {"messaging.operation.type": "receive"}), Observation(load.unconfirmed, sent)]

    def _credit(self, options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(self._load().credit)]

    def _awaiting_redelivery(self, options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(self._load().awaiting_redelivery)]
