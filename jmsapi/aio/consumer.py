"""The consumer of an asyncio context."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Never, NoReturn, Self, TypeVar

from jmsapi._core.acknowledgement.ledger import Entry
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.context_consumer import body_of
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.timeouts import longest_wait, warns_of_seconds
from jmsapi._not_copied import NotCopied
from jmsapi.aio.loop_driver import LoopDriver
from jmsapi.api import Message
from jmsapi.errors import IllegalStateException, JMSException, to_runtime
from jmsapi.values import Timeout

__all__ = ["AsyncJMSConsumer"]

T = TypeVar("T")
_NO_LISTENER: Final = (
    "a consumer of jmsapi.aio calls no message_listener: write `async for message in consumer` in a task, or deploy a listener of"
    " jmsapi.listener, which may be a coroutine function"
)


class AsyncJMSConsumer(NotCopied):
    """Receives messages, as ``JMSConsumer`` does; ``async with`` closes it, ``async for`` iterates over messages as they come.

    A cancelled receive loses nothing: the message goes to the next call, with its delivery count as it was.

    Args:
        consumer: The consumer that does the work.
        driver: Runs its operations.
    """

    def __init__(self, consumer: ConsumerImpl, driver: LoopDriver) -> None:
        self._consumer = consumer
        self._driver = driver

    @property
    @runtime
    def message_selector(self) -> str | None:
        """Return the selector's text, or None; see JMSConsumer."""
        return self._consumer.message_selector

    @property
    def message_listener(self) -> NoReturn:
        """Raise AttributeError, as setting it does: messages are awaited here, and nobody would call a listener."""
        raise AttributeError(_NO_LISTENER)

    @message_listener.setter
    def message_listener(self, message_listener: Never) -> None:
        raise AttributeError(_NO_LISTENER)

    @warns_of_seconds
    async def receive(self, timeout_ms: Timeout | None = None) -> Message | None:
        """Take the next message, waiting for one.

        Args:
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None or 0 for ever.
        Returns:
            The message; None when time is up or the consumer was closed meanwhile.
        Raises:
            JMSRuntimeException: As ``JMSConsumer.receive`` does.
        """
        return self._message(await self._pull(longest_wait(timeout_ms, "receive") or None, finish=True))

    async def receive_no_wait(self) -> Message | None:
        """Take a message that is here, or that the broker has at hand; None when there is none."""
        return self._message(await self._pull(0, finish=True))

    @warns_of_seconds
    async def receive_body(self, body_type: type[T], timeout_ms: Timeout | None = None) -> T | None:
        """Take the next message's body, waiting for one; see ``JMSConsumer.receive_body``.

        Args:
            body_type: ``str``, ``bytes``, ``dict``, or the class of an object.
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None or 0 for ever.
        Raises:
            MessageFormatRuntimeException: The body is of another type; in AUTO and DUPS_OK mode the message stays.
            JMSRuntimeException: As ``JMSConsumer.receive_body`` does.
        """
        return self._body(await self._pull(longest_wait(timeout_ms, "receive_body") or None, finish=False), body_type)

    async def receive_body_no_wait(self, body_type: type[T]) -> T | None:
        """Take the body of a message that is at hand; see ``receive_body``."""
        return self._body(await self._pull(0, finish=False), body_type)

    def __aiter__(self) -> Self:
        """Iterate over messages as they come; ends when the consumer or its context is closed."""
        return self

    async def __anext__(self) -> Message:
        """Take the next message; see ``receive``."""
        try:
            entry = await self._driver.run(self._consumer.pull_steps(None, finish=True))
        except IllegalStateException as error:
            # Closed since the last message: the end of the iteration, and no fault of who iterates.
            if self._consumer.ended:
                raise StopAsyncIteration from None
            raise to_runtime(error) from error
        except JMSException as error:
            raise to_runtime(error) from error
        if entry is None:
            raise StopAsyncIteration
        return self._consumer.session.message(entry)

    async def close(self) -> None:
        """Close the consumer; a receive that waits gets None. A task that is cancelled meanwhile goes on when it is closed."""
        try:
            await self._driver.finish(self._consumer.close_steps())
        except JMSException as error:
            raise to_runtime(error) from error

    async def __aenter__(self) -> Self:
        """Give the consumer itself."""
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        """Close the consumer, whether the block ended or raised."""
        await self.close()

    async def _pull(self, timeout_ms: float | None, *, finish: bool) -> Entry | None:
        try:
            return await self._driver.run(self._consumer.pull_steps(timeout_ms, finish=finish))
        except JMSException as error:
            raise to_runtime(error) from error

    def _message(self, entry: Entry | None) -> Message | None:
        return None if entry is None else self._consumer.session.message(entry)

    @runtime
    def _body(self, entry: Entry | None, body_type: type[T]) -> T | None:
        return body_of(self._consumer, entry, body_type)
