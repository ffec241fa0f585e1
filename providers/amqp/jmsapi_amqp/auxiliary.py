"""Work that needs a second connection for a moment. Runs on the first connection's I/O thread, which never waits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from jmsapi.spi import Address, Capabilities, Delivery, DestinationKind, ErrorKind, Handle, ProviderError, SendResult
from jmsapi.wire import Promise
from jmsapi_amqp.attach import Source, attach_receiver, end_link, open_wire_session
from jmsapi_amqp.context import ConnectionContext

__all__ = ["unsubscribe_on_auxiliary"]


class _Silent:
    """Events of a connection that nobody uses but us."""

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Ignore it."""

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Ignore it."""

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Ignore it."""

    def on_lost(self, cause: ProviderError) -> None:
        """Ignore it: a future tells whoever waits."""

    def on_resumed(self) -> None:
        """Ignore it."""


async def _after(context: ConnectionContext, future: Future[object]) -> None:
    """Wait for another thread's future on this connection's I/O thread."""
    promise: Promise[None] = context.add_promise(Promise())

    def tell(done: Future[object]) -> None:
        error = done.exception()
        if error is None:
            context.submit(promise.resolve, None)
        elif isinstance(error, ProviderError):
            context.submit(promise.fail, error)
        else:
            context.submit(promise.fail, ProviderError(ErrorKind.PROTOCOL, str(error)))

    future.add_done_callback(tell)
    await promise


async def unsubscribe_on_auxiliary(context: ConnectionContext, link_name: str, name: str) -> None:
    """Delete the subscription of a link name on a connection without a container id.

    Raises:
        ProviderError: SUBSCRIPTION when there is none; IN_USE.
    """
    other = context.open_auxiliary(_Silent(), "")
    asked = f"unsubscribe {name!r}"
    opened: Future[Capabilities] = Future()
    other.start(opened)
    await _after(context, opened)  # type: ignore[arg-type]

    async def work() -> None:
        session = open_wire_session(other.context)
        near = Address(DestinationKind.TOPIC, "")
        link = await attach_receiver(other.context, session, Source(None, link_name), near, asked)
        await end_link(other.context, link, delete=True)

    done: Future[None] = Future()
    try:
        other.submit_steps(work(), done)
        await _after(context, done)  # type: ignore[arg-type]
    except ProviderError as error:
        if error.kind is ErrorKind.DESTINATION:
            raise ProviderError(ErrorKind.SUBSCRIPTION, f"{asked}: there is no such subscription") from error
        raise
    finally:
        closed: Future[None] = Future()
        other.submit_close(closed)
