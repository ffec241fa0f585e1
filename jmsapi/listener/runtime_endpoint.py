"""Message endpoints: instances of a callback's class, called for the container, their exceptions sorted.

A worker calls ``before_delivery``, ``on_message`` and ``after_delivery``, in this order, and ``after_delivery`` whatever was
raised before. Only the endpoint decides between commit and rollback. Of an asynchronous callback ``on_message`` returns what is
to be awaited.

Spec: MDB-39, MDB-43 to MDB-57.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._core.container import ContainerRules, enter_container, leave_container
from jmsapi.errors import IllegalStateException, JMSException
from jmsapi.listener.causes import in_words
from jmsapi.listener.errors import EJBException
from jmsapi.listener.message_driven_context import CURRENT
from jmsapi.listener.runtime_context import ContainerTransactions
from jmsapi.listener.runtime_transactions import RunningTransaction
from jmsapi.listener.transaction_attribute import TransactionAttribute

if TYPE_CHECKING:
    from jmsapi.api import Message
    from jmsapi.listener.endpoint_definition import EndpointDefinition
    from jmsapi.listener.runtime_context import RuntimeContext

__all__ = ["AsyncCallbackEndpoint", "CallbackEndpoint", "InstancePool", "MessageEndpoint", "NoInstance"]

_log = logging.getLogger("jmsapi.listener")
_REQUIRED: Final = TransactionAttribute.REQUIRED
_BEAN: Final = TransactionAttribute.BEAN
_RULES: Final = ContainerRules(ContainerTransactions())
"""The rules of 10.2 and 10.3 for the objects that callbacks create."""


class MessageEndpoint(Protocol):
    """What a worker calls for each delivery: one message, or a batch."""

    def before_delivery(self) -> None:
        """A delivery begins; with a container transaction that begins, too."""

    def on_message(self, message: Message | Sequence[Message]) -> Awaitable[None] | None:
        """Call the callback; return what is to be awaited if that is asynchronous, else None.

        Raises:
            EJBException: It raised a system exception, which is the cause.
            Exception: An application exception, as it is.
        """

    def after_delivery(self) -> None:
        """The delivery ends; a container transaction is committed or rolled back.

        Raises:
            JMSException: It could not be committed.
        """


class NoInstance(Exception):
    """There was no instance to be had before the pool was closed. No callback was called."""


class InstancePool:
    """The instances of one class, shared by its callbacks.

    Args:
        make: Makes one; user code.
        most: The most there may be at a time; None for as many as are asked for.
    Threads: any.
    Spec: MDB-39, MDB-48.
    """

    def __init__(self, make: Callable[[], object], most: int | None) -> None:
        self._make = make
        self._most = most
        self._free: list[object] = []
        self._changed = threading.Condition()
        self._out = 0
        self._closed = False

    @property
    def may_wait(self) -> bool:
        """Whether ``take`` may wait for an instance that is given back."""
        return self._most is not None

    def take(self) -> object:
        """Take an instance, made if need be, waiting while there are too many.

        Raises:
            NoInstance: The pool was closed meanwhile.
            BaseException: What the class raised; then nothing is taken.
        """
        if self._most is not None:
            with self._changed:
                while self._out >= self._most and not self._closed:
                    self._changed.wait(60.0)
                if self._closed:
                    raise NoInstance
                self._out += 1
        try:
            return self._free.pop()
        except IndexError:
            pass
        try:
            return self._make()
        except BaseException:
            self._left()
            raise

    def give_back(self, instance: object) -> None:
        """Keep an instance for the next call."""
        self._free.append(instance)
        self._left()

    def discard(self) -> None:
        """Take note that an instance is of no more use."""
        self._left()

    def _left(self) -> None:
        if self._most is not None:
            with self._changed:
                self._out -= 1
                self._changed.notify()

    def close(self) -> None:
        """Tell who waits, and let the instances go."""
        with self._changed:
            self._closed = True
            self._free.clear()
            self._changed.notify_all()


class CallbackEndpoint:
    """Calls one callback for one worker.

    Args:
        definition: The callback.
        pool: Its instances.
        context: The worker's.
        commit: Commits the delivery that is under way, with what the session sent.
        rollback: Undoes what the session sent.
        await_all: Waits for what a plain callback has returned to be awaited.
    Threads: that of the worker.
    """

    def __init__(
        self,
        definition: EndpointDefinition,
        pool: InstancePool,
        context: RuntimeContext,
        commit: Callable[[], None],
        rollback: Callable[[], None],
        await_all: Callable[[Awaitable[object]], object],
    ) -> None:
        self._definition = definition
        self._call = definition.call
        self._attribute = definition.transaction
        self._pool = pool
        self._context = context
        self._commit = commit
        self._rollback = rollback
        self._await_all = await_all
        self._raised: BaseException | None = None

    def before_delivery(self) -> None:
        """Begin the container's transaction, if it has one; see MessageEndpoint."""
        if self._attribute is _REQUIRED:
            self._context.transaction = RunningTransaction(self._commit, self._rollback)

    def on_message(self, message: Message | Sequence[Message]) -> Awaitable[None] | None:
        """Call the callback of an instance; see MessageEndpoint."""
        self._raised = None
        try:
            self._call_instance(message)
        except BaseException as error:
            self._raised = error
            raise
        return None

    def has_raised(self, error: BaseException) -> bool:
        """Whether this is what the last ``on_message`` has raised, which is forgotten with this."""
        raised, self._raised = self._raised, None
        return raised is error

    def _call_instance(self, message: Message | Sequence[Message]) -> None:
        context = self._context
        token, outside = CURRENT.set(context), enter_container(_RULES)
        try:
            instance = self._instance()
            try:
                returned = self._call(instance, message)
                if returned is not None:
                    self._await_all(returned)
            except BaseException as error:
                self._failed(instance, error)
                raise
            self._returned(instance)
        finally:
            leave_container(outside)
            CURRENT.reset(token)
            if self._attribute is _BEAN:
                context.end_left_open()

    def _instance(self) -> object:
        try:
            return self._pool.take()
        except NoInstance:
            self.mark()
            raise
        except BaseException as error:
            raise self._system(error, "could not be made") from error

    def _failed(self, instance: object, error: BaseException) -> None:
        """Raise a system exception; of an application exception only take note."""
        rolls_back = self._definition.rollback_of(error)
        if rolls_back is None:
            self._pool.discard()
            raise self._system(error, "raised") from error
        self._pool.give_back(instance)
        if rolls_back:
            self.mark()

    def _returned(self, instance: object) -> None:
        if self._attribute is _BEAN and self._context.transaction is not None:
            self._pool.discard()
            raise self._system(
                IllegalStateException("the callback returned and had not ended the transaction it had begun", "transaction"),
                "left a transaction open",
            )
        self._pool.give_back(instance)

    def _system(self, error: BaseException, what: str) -> EJBException:
        self.mark()
        wrapped = EJBException(f"{self._definition.name} {what}: {in_words(error)}", error_code="callback-failed")
        wrapped.__cause__ = error
        return wrapped

    def mark(self) -> None:
        """Have the container's transaction rolled back, if there is one."""
        if self._attribute is _REQUIRED and self._context.transaction is not None:
            self._context.transaction.set_rollback_only()

    def after_delivery(self) -> None:
        """Commit the container's transaction or roll it back; see MessageEndpoint."""
        if self._attribute is not _REQUIRED:
            return
        running, self._context.transaction = self._context.transaction, None
        if running is None:
            return
        if running.rollback_only:
            running.rollback()
        else:
            running.commit()


class AsyncCallbackEndpoint(CallbackEndpoint):
    """Calls one asynchronous callback for one worker, which is a task.

    Args:
        in_thread: Runs what blocks in a thread, to its end.
    The others are those of ``CallbackEndpoint``.
    """

    def __init__(
        self,
        definition: EndpointDefinition,
        pool: InstancePool,
        context: RuntimeContext,
        commit: Callable[[], None],
        rollback: Callable[[], None],
        in_thread: Callable[[Callable[[], object]], Awaitable[object]],
    ) -> None:
        super().__init__(definition, pool, context, commit, rollback, _nothing)
        self._in_thread = in_thread
        self._work: Coroutine[object, object, None] | None = None

    def on_message(self, message: Message | Sequence[Message]) -> Awaitable[None]:
        """Return what calls the callback of an instance when it is awaited; see MessageEndpoint."""
        self._raised = None
        self._work = self._noting_failure(message)
        return self._work

    def check_awaited(self) -> None:
        """Refuse what was put around the endpoint if that has called it and not awaited it.

        Raises:
            JMSException: It has not (``bad-callback``).
        """
        work, self._work = self._work, None
        if work is not None and inspect.getcoroutinestate(work) != inspect.CORO_CLOSED:
            work.close()
            raise JMSException(
                f"{self._definition.name}: what is put around the endpoint did not await what on_message returned: let its own"
                " on_message return that, or await it",
                "bad-callback",
            )

    async def _noting_failure(self, message: Message | Sequence[Message]) -> None:
        try:
            await self._await_instance(message)
        except BaseException as error:
            self._raised = error
            raise

    async def _await_instance(self, message: Message | Sequence[Message]) -> None:
        context = self._context
        token, outside = CURRENT.set(context), enter_container(_RULES)
        try:
            instance = await self._instance_in_time() if self._pool.may_wait else self._instance()
            try:
                returned = self._call(instance, message)
                if returned is not None:
                    await returned
            except BaseException as error:
                self._failed(instance, error)
                raise
            self._returned(instance)
        finally:
            leave_container(outside)
            CURRENT.reset(token)
            if self._attribute is _BEAN and context.transaction is not None:
                await self._in_thread(context.end_left_open)

    async def _instance_in_time(self) -> object:
        taken: list[object] = []
        try:
            await self._in_thread(lambda: taken.append(self._instance()))
        except asyncio.CancelledError:
            self.mark()
            for instance in taken:
                self._pool.give_back(instance)
            raise
        return taken[0]


def _nothing(_: Awaitable[object]) -> None:
    """Be called with nothing: an asynchronous endpoint awaits by itself."""
