"""Switching traces and metrics on and off, for connections that are made from then on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import TracerProvider, get_tracer

from jmsapi._core.telemetry import ConnectionLoad, ConnectionTelemetry, ServerAddress, install, installed
from jmsapi._version import __version__
from jmsapi.otel.connection_telemetry import OtelConnection
from jmsapi.otel.instruments import Instruments

__all__ = ["SCHEMA_URL", "JmsapiInstrumentor", "OpenTelemetry", "instrument", "uninstrument"]

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the semantic conventions that spans and metrics follow."""


class OpenTelemetry:
    """Watches all connections that are opened while it is installed.

    Args:
        tracer_provider: Where spans go; None: the global one.
        meter_provider: Where numbers go; None: the global one.
        acknowledgements: See ``instrument``.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None, *, acknowledgements: bool
    ) -> None:
        self.tracer = get_tracer("jmsapi", __version__, tracer_provider, SCHEMA_URL)
        self.instruments = Instruments(get_meter("jmsapi", __version__, meter_provider, SCHEMA_URL))
        self._acknowledgements = acknowledgements

    def connected(self, server: ServerAddress | None, load: Callable[[], ConnectionLoad]) -> ConnectionTelemetry:
        """Watch a connection that was just opened; see Telemetry."""
        made = OtelConnection(self.tracer, self.instruments, server, load, acknowledgements=self._acknowledgements)
        self.instruments.connections.add(made)
        return made


class _Last:
    """What was made last: a meter has each of its instruments once, so who switches on again goes on with the same."""

    asked: tuple[TracerProvider | None, MeterProvider | None, bool] = (None, None, False)
    made: OpenTelemetry | None = None


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    acknowledgements: bool = False,
) -> None:
    """Have connections that are made from now on traced and measured, those of ``jmsapi.aio`` too.

    A connection that is open already stays as it is, and so does one whose option ``telemetry`` is false. Called again, it
    changes nothing until ``uninstrument``.

    Args:
        tracer_provider: Where spans go; None: the global one, which may be set later.
        meter_provider: Where numbers go; None: the global one.
        acknowledgements: Whether each acknowledgement that the modes AUTO and DUPS_OK send has a span of its own. A commit, a
            rollback and a call of ``acknowledge`` have one in any case.
    Threads: any.
    """
    asked = (tracer_provider, meter_provider, acknowledgements)
    if installed() is None:
        if _Last.made is None or _Last.asked != asked:
            _Last.made = OpenTelemetry(tracer_provider, meter_provider, acknowledgements=acknowledgements)
            _Last.asked = asked
        install(_Last.made)


def uninstrument() -> None:
    """Leave connections that are made from now on alone. Those that are watched stay so until they are closed."""
    install(None)


class JmsapiInstrumentor:
    """What ``opentelemetry-instrument`` looks for, by the entry point ``opentelemetry_instrumentor``."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return what must be installed: nothing, since this comes with what it instruments."""
        return ()

    def instrument(self, **options: Any) -> None:
        """Call ``instrument`` with those of the options that it has: ``tracer_provider`` and ``meter_provider``."""
        instrument(options.get("tracer_provider"), options.get("meter_provider"))

    def uninstrument(self, **options: Any) -> None:
        """Call ``uninstrument``."""
        uninstrument()
