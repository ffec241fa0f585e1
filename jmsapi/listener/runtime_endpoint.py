"""Message endpoints: instances of a callback's class, called for the container, their exceptions sorted.

A worker calls ``before_delivery``, ``on_message`` and ``after_delivery``, in this order, and ``after_delivery`` whatever was
raised before. Only the endpoint decides between commit and rollback.

Spec: MDB-39, MDB-43 to MDB-57.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._core.container import ContainerRules, enter_container, leave_container
from jmsapi.errors import IllegalStateException
from jmsapi.listener.causes import in_words
from jmsapi.listener.errors import EJBException
from jmsapi.listener.message_driven_context import CURRENT
from jmsapi.listener.runtime_transactions import ContainerTransactions, RunningTransaction
from jmsapi.listener.transaction_attribute import TransactionAttribute

if TYPE_CHECKING:
    from jmsapi.api import Message
    from jmsapi.listener.endpoint_definition import EndpointDefinition
    from jmsapi.listener.runtime_context import RuntimeContext

__all__ = ["CallbackEndpoint", "InstancePool", "MessageEndpoint", "NoInstance"]

_log = logging.getLogger("jmsapi.listener")
_REQUIRED: Final = TransactionAttribute.REQUIRED
_BEAN: Final = TransactionAttribute.BEAN
_RULES: Final = ContainerRules(ContainerTransactions())
"""Those of 10.2 and 10.3, for what callbacks make."""


class MessageEndpoint(Protocol):
    """What a worker calls for each delivery: one message, or a batch."""

    def before_delivery(self) -> None:
        """A delivery begins; with a container transaction that begins, too."""

    def on_message(self, message: Message | Sequence[Message]) -> None:
        """Call the callback.

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
    Threads: that of the worker.
    """

    def __init__(
        self,
        definition: EndpointDefinition,
        pool: InstancePool,
        context: RuntimeContext,
        commit: Callable[[], None],
        rollback: Callable[[], None],
    ) -> None:
        self._definition = definition
        self._call = definition.call
        self._attribute = definition.transaction
        self._pool = pool
        self._context = context
        self._commit = commit
        self._rollback = rollback
        self._raised: BaseException | None = None

    def before_delivery(self) -> None:
        """Begin the container's transaction, if it has one; see MessageEndpoint."""
        if self._attribute is _REQUIRED:
            self._context.transaction = RunningTransaction(self._commit, self._rollback)

    def on_message(self, message: Message | Sequence[Message]) -> None:
        """Call the callback of an instance; see MessageEndpoint."""
        self._raised = None
        try:
            self._call_instance(message)
        except BaseException as error:
            self._raised = error
            raise

    def has_raised(self, error: BaseException) -> bool:
        """Whether this is what the last ``on_message`` has raised, which is forgotten with this."""
        raised, self._raised = self._raised, None
        return raised is error

    def _call_instance(self, message: Message | Sequence[Message]) -> None:
        pool, context = self._pool, self._context
        token, outside = CURRENT.set(context), enter_container(_RULES)
        try:
            try:
                instance = pool.take()
            except NoInstance:
                self.mark()
                raise
            except BaseException as error:
                raise self._system(error, "could not be made") from error
            try:
                self._call(instance, message)
            except BaseException as error:
                rolls_back = self._definition.rollback_of(error)
                if rolls_back is None:
                    pool.discard()
                    raise self._system(error, "raised") from error
                pool.give_back(instance)
                if rolls_back:
                    self.mark()
                raise
            if self._attribute is _BEAN and context.transaction is not None:
                pool.discard()
                raise self._system(
                    IllegalStateException("the callback returned and had not ended the transaction it had begun", "transaction"),
                    "left a transaction open",
                )
            pool.give_back(instance)
        finally:
            leave_container(outside)
            CURRENT.reset(token)
            if self._attribute is _BEAN:
                context.end_left_open()

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
