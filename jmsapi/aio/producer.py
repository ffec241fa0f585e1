"""The producer of an asyncio context."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.context_producer import message_of
from jmsapi._core.producer import ProducerImpl
from jmsapi._core.producer_settings import ProducerSettings
from jmsapi._core.session import SessionImpl
from jmsapi._not_copied import NotCopied
from jmsapi.aio.cancellation import NotingCancellation
from jmsapi.aio.loop_driver import LoopDriver
from jmsapi.api import Destination, Message
from jmsapi.spi import PlainEnvelope

__all__ = ["AsyncJMSProducer"]

_NOTING: Final = NotingCancellation("send")


class AsyncProducerContext(Protocol):
    """What a producer uses of its context."""

    @property
    def connection(self) -> ConnectionImpl:
        """The connection; raises when the context is closed."""
        ...

    @property
    def driver(self) -> LoopDriver:
        """Runs operations; raises when the context is closed."""
        ...

    def at_hand(self) -> tuple[LoopDriver, SessionImpl | None]:
        """Return what runs operations, and the session if it is open.

        Raises:
            IllegalStateRuntimeException: The context is closed.
            IllegalStateException: It belongs to another loop.
        """
        ...

    async def open_session(self) -> SessionImpl:
        """Return the session, opened when first needed."""
        ...


class AsyncJMSProducer(NotCopied, ProducerSettings):
    """Holds options, headers and properties and sends with them; all but ``send`` is as in ``JMSProducer``. It needs no closing.

    A completion listener that is set here is called in a thread of its own, as in the simplified API. An awaited send needs
    none: ``asyncio.gather`` of several sends has them on their way together, in no promised order. Sends that are awaited one
    after the other arrive in order.

    Args:
        context: Its context.
    """

    def __init__(self, context: AsyncProducerContext) -> None:
        super().__init__(context)
        self._owner = context
        self._producer: ProducerImpl | None = None
        self._opening = asyncio.Lock()

    async def send(
        self,
        destination: Destination,
        body: Message | str | Mapping[str, Any] | bytes | bytearray | memoryview | Any,
        *,
        body_type: type | None = None,
    ) -> Self:
        """Send a message, or a new message made of a body; see ``JMSProducer.send``.

        Args:
            destination: Where to send it.
            body: A message, or the body for one. For None, body_type says which kind of message.
            body_type: ``str``, ``dict``, ``bytes`` or ``object``, for a body that is None.
        Returns:
            This producer, when the message is as safe as its delivery mode asks.
        Raises:
            JMSRuntimeException: As ``JMSProducer.send`` does.
            CancelledError: Its cause is ``CancelledBeforehand`` when no message was sent, ``CancelledInDoubt`` when one may have
                been sent, ``CancelledTooLate`` when it was.
        """
        try:
            owner = self._owner
            driver, session = owner.at_hand()
            if session is None:
                session = await owner.open_session()
            producer = self._producer
            if producer is None or producer.closed:
                producer = await self._open(session)
            if driver.others_turn():
                await asyncio.sleep(0)
            parts, listener = session.parts, self._async
            envelope, message = self._stamped(session, producer, destination, body, body_type)
            send = parts.send_at_once(producer, envelope, message, listener)
            if send is None:
                await driver.go_on(parts.send_steps(producer, envelope, message, listener))
            elif send.awaited and not send.succeeded:
                # Most sends are answered: that needs neither steps nor a coroutine, which each of thousands would have.
                ended_by: BaseException | None = None
                waiter = driver.begin(send)
                if waiter is not None:
                    try:
                        await waiter
                    except GeneratorExit:
                        raise
                    except BaseException as given_up:
                        ended_by = given_up
                    finally:
                        driver.end(send, waiter)
                if ended_by is not None or not send.succeeded:
                    await driver.go_on(parts.unanswered_steps(send, ended_by))
        except BaseException as error:
            # Not by ``with``, which is two calls more for each message.
            _NOTING.note(error)
            raise
        return self

    def _stamped(
        self, session: SessionImpl, producer: ProducerImpl, destination: Destination, body: object, body_type: type | None
    ) -> tuple[PlainEnvelope, Message]:
        parts = session.parts
        parts.check_open()
        address = parts.usable(destination)
        message = body if isinstance(body, Message) else message_of(session, body, body_type)
        self._defaults.apply_to(message)
        return producer.stamped(destination, address, message, self._defaults.options), message

    async def _open(self, session: SessionImpl) -> ProducerImpl:
        async with self._opening:
            if self._producer is None or self._producer.closed:
                steps = session.add_producer_steps(ProducerImpl, None)
                self._producer = await self._owner.driver.open(steps, session.parts.close_producer_steps)
            return self._producer
