"""A message endpoint whose deliveries are reported to telemetry: from the call of the callback to the end of its transaction.

Spec: MDB-44 to MDB-57.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from jmsapi._core.endpoint import Operation, SharedReceiver, handed_messages

if TYPE_CHECKING:
    from jmsapi._core.endpoint import ConnectionTelemetry, ConsumerSpec
    from jmsapi.api import Message
    from jmsapi.listener.runtime_endpoint import MessageEndpoint

__all__ = ["ObservedEndpoint", "observed"]


def observed(receiver: SharedReceiver, endpoint: MessageEndpoint) -> MessageEndpoint:
    """Return an endpoint that reports what it is called with, or the one given where nobody watches."""
    telemetry = receiver.telemetry
    return endpoint if telemetry is None else ObservedEndpoint(endpoint, telemetry, receiver.spec)


class ObservedEndpoint:
    """Stands before an endpoint of one worker.

    Args:
        endpoint: The one that is called, with whatever the application has put around it.
        telemetry: Told of each delivery.
        spec: What the receiver asks of the provider.
    Threads: that of the worker.
    """

    def __init__(self, endpoint: MessageEndpoint, telemetry: ConnectionTelemetry, spec: ConsumerSpec) -> None:
        self._endpoint = endpoint
        self._telemetry = telemetry
        self._spec = spec
        self._operation: Operation | None = None
        self._failure: BaseException | None = None

    def before_delivery(self) -> None:
        """A delivery begins; see MessageEndpoint."""
        return self._endpoint.before_delivery()

    def on_message(self, message: Message | Sequence[Message]) -> Awaitable[None] | None:
        """Call the callback in an operation that lasts until ``after_delivery``; see MessageEndpoint."""
        messages = message if isinstance(message, Sequence) else (message,)
        self._failure = None
        self._operation = self._telemetry.processing(self._spec, handed_messages(messages))
        try:
            returned = self._endpoint.on_message(message)
        except BaseException as error:
            self._failure = error
            raise
        return returned if returned is None else self._noting_failure(returned)

    async def _noting_failure(self, returned: Awaitable[None]) -> None:
        try:
            await returned
        except BaseException as error:
            self._failure = error
            raise

    def after_delivery(self) -> None:
        """The delivery ends, and the operation with it; see MessageEndpoint."""
        try:
            self._endpoint.after_delivery()
        except BaseException as error:
            self._failure = self._failure or error
            raise
        finally:
            operation, failure = self._operation, self._failure
            self._operation = self._failure = None
            if operation is not None:
                operation.ended(failure)
