"""Telemetry: what the core reports of its messages to whoever watches a connection, and when.

A connection that nobody watches has none: each place that would report looks at one attribute and goes on. What is reported here
runs in the thread of the caller, of the session or of the worker, never on a provider's thread; ``resumed`` and ``rejected`` may
come on one, and only count.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from jmsapi._core.waiting import Steps
from jmsapi.api import CompletionListener, Message
from jmsapi.errors import JMSException
from jmsapi.spi import ConsumerSpec, Envelope, PlainEnvelope

__all__ = [
    "ConnectionLoad",
    "ConnectionTelemetry",
    "Handed",
    "Operation",
    "ServerAddress",
    "Telemetry",
    "install",
    "installed",
    "observed_call",
    "observed_listener",
    "observed_steps",
    "telemetry_for",
]

T = TypeVar("T")


class Operation(Protocol):
    """Something that is under way."""

    def ended(self, error: BaseException | None = None) -> None:
        """It has ended, or failed by this error. In the thread, or task, that began it, unless it is a send."""


class Handed(NamedTuple):
    """A message that is handed to the application, and how often that has happened, this time included."""

    envelope: Envelope
    deliveries: int


class ServerAddress(NamedTuple):
    """A broker's host, and its port where one is given."""

    host: str
    port: int | None


class ConnectionLoad(NamedTuple):
    """How many messages a connection holds at the moment."""

    in_flight: int
    """Received and not settled: they wait here, or the application has them."""
    unconfirmed: int
    """Sent, and not answered by the broker."""
    credit: int
    """How many messages the broker may still deliver."""
    awaiting_redelivery: int
    """Those that wait for their redelivery delay; not counted as in flight."""


class ConnectionTelemetry(Protocol):
    """The observer of one connection. Its methods never raise."""

    def sending(self, envelope: PlainEnvelope, *, forwarded: bool) -> Operation:
        """An envelope is about to be sent, whose properties may be replaced.

        Args:
            envelope: Of its message; the message object keeps the properties it has.
            forwarded: The message was received before.
        """
        ...

    def received(self, spec: ConsumerSpec, handed: Handed, began_ns: int) -> None:
        """A call of receive has a message.

        Args:
            spec: The consumer's.
            handed: The message.
            began_ns: When the call began, in nanoseconds since 1970.
        """

    def not_received(self, spec: ConsumerSpec, error: BaseException, began_ns: int) -> None:
        """A call of receive has failed; see ``received``."""

    def processing(self, spec: ConsumerSpec, handed: Sequence[Handed]) -> Operation:
        """A listener is about to be called with one message or a batch."""
        ...

    def settling(self, name: str, envelopes: Sequence[Envelope]) -> Operation:
        """What was received is about to be settled: ``commit``, ``rollback`` or ``acknowledge``."""
        ...

    def acknowledged(self, envelopes: Sequence[Envelope]) -> None:
        """Messages were acknowledged without a wait, as AUTO and DUPS_OK do."""

    def rejected(self, count: int) -> None:
        """The broker was told to put messages where it puts what nobody can handle."""

    def forwarded_dead(self, spec: ConsumerSpec) -> None:
        """A listener container has sent a message to its dead letter destination."""

    def resumed(self, server: ServerAddress | None) -> None:
        """A lost connection was made again."""


class Telemetry(Protocol):
    """The observer of all connections."""

    def connected(self, server: ServerAddress | None, load: Callable[[], ConnectionLoad]) -> ConnectionTelemetry:
        """Watch a connection that was just opened.

        Args:
            server: Its broker; None for one in this process.
            load: Tells what the connection holds, at any time and on any thread. Not to be kept alive.
        """
        ...


class _Installed:
    telemetry: Telemetry | None = None


def install(telemetry: Telemetry | None) -> None:
    """Have connections that are opened from now on watched; None: not watched."""
    _Installed.telemetry = telemetry


def installed() -> Telemetry | None:
    """Return what watches connections that are opened now."""
    return _Installed.telemetry


def telemetry_for(wanted: bool | None) -> Telemetry | None:
    """Return what is to watch a connection, by its option ``telemetry``.

    Raises:
        JMSException: ``missing-extra``: OpenTelemetry is wanted and is not installed.
    """
    if wanted is None:
        return _Installed.telemetry
    if wanted and _Installed.telemetry is None:
        try:
            # By name, since the core knows nobody who watches it.
            importlib.import_module("jmsapi.otel").instrument()
        except ModuleNotFoundError as error:
            raise JMSException(
                f"the option telemetry needs OpenTelemetry, which is not installed ({error.name}): pip install 'jmsapi[otel]'",
                "missing-extra",
            ) from error
    return _Installed.telemetry if wanted else None


class _ObservedListener(CompletionListener):
    """A completion listener that also ends the operation of its send. Called on the session's completion thread."""

    def __init__(self, operation: Operation, listener: CompletionListener) -> None:
        self._operation = operation
        self._listener = listener

    def on_completion(self, message: Message) -> None:
        """The broker has the message; see CompletionListener."""
        self._operation.ended()
        return self._listener.on_completion(message)

    def on_exception(self, message: Message, exception: Exception) -> None:
        """The message was not sent; see CompletionListener."""
        self._operation.ended(exception)
        return self._listener.on_exception(message, exception)


def observed_listener(operation: Operation, listener: CompletionListener | None) -> CompletionListener | None:
    """Return a completion listener that ends the operation before it calls the one that is given."""
    return None if listener is None else _ObservedListener(operation, listener)


def observed_steps(begin: Callable[[], Operation], steps: Steps[T]) -> Steps[T]:
    """Run an operation that waits, and report its end."""
    operation = begin()
    try:
        found = yield from steps
    except BaseException as error:
        operation.ended(error)
        raise
    operation.ended()
    return found


def observed_call(
    telemetry: ConnectionTelemetry, spec: ConsumerSpec, handed: Handed, call: Callable[[Message], object]
) -> Callable[[Message], object]:
    """Return a call of a message listener that reports its beginning and its end."""

    def observed(message: Message) -> object:
        operation = telemetry.processing(spec, (handed,))
        try:
            found = call(message)
        except BaseException as error:
            operation.ended(error)
            raise
        operation.ended()
        return found

    return observed
