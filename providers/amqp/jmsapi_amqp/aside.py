"""Work that needs a second connection for a moment. Runs on the first connection's I/O thread, which never waits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi.spi import Address, Capabilities, Delivery, DestinationKind, ErrorKind, Handle, ProviderError, SendResult
from jmsapi_amqp.attach import Source, attach_receiver, end_link, open_wire_session
from jmsapi_amqp.tasks import Promise

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["unsubscribe_aside"]


class _Silent:
    """Events of a connection that nobody uses but us."""

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Hear nothing."""

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Hear nothing."""

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Hear nothing."""

    def on_lost(self, cause: ProviderError) -> None:
        """Hear nothing: whoever waits has been told by a future."""

    def on_resumed(self) -> None:
        """Hear nothing."""


async def _after(connection: Connection, future: Future[object]) -> None:
    """Wait for another thread's future on this connection's I/O thread."""
    promise: Promise[None] = connection.add_promise(Promise())

    def tell(done: Future[object]) -> None:
        error = done.exception()
        if error is None:
            connection.submit(promise.keep, None)
        elif isinstance(error, ProviderError):
            connection.submit(promise.fail, error)
        else:
            connection.submit(promise.fail, ProviderError(ErrorKind.PROTOCOL, str(error)))

    future.add_done_callback(tell)
    await promise


async def unsubscribe_aside(connection: Connection, link_name: str, name: str) -> None:
    """Delete the subscription of a link name on a connection without a container id.

    Raises:
        ProviderError: SUBSCRIPTION when there is none; IN_USE.
    """
    from jmsapi_amqp.connection import Connection as Another

    other = Another(connection.options, connection.clock, _Silent(), container="", hostname=connection.hostname)
    asked = f"unsubscribe {name!r}"
    opened: Future[Capabilities] = Future()
    other.start(opened)
    await _after(connection, opened)  # type: ignore[arg-type]

    async def work() -> None:
        session = open_wire_session(other)
        near = Address(DestinationKind.TOPIC, "")
        link = await attach_receiver(other, session, Source(None, link_name), near, asked)
        await end_link(other, link, delete=True)

    done: Future[None] = Future()
    try:
        other.submit_steps(work(), done)
        await _after(connection, done)  # type: ignore[arg-type]
    except ProviderError as error:
        if error.kind is ErrorKind.DESTINATION:
            raise ProviderError(ErrorKind.SUBSCRIPTION, f"{asked}: there is no such subscription") from error
        raise
    finally:
        closed: Future[None] = Future()
        other.submit(other.close, closed)
