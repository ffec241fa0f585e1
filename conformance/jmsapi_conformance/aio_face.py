"""The asyncio face under the names of the blocking APIs, so that the suite's tests run through ``jmsapi.aio``.

A method of a context, consumer, producer or browser is the one of ``jmsapi.aio``, run in an event loop that has a thread of its
own; the calling thread waits. A connection is a context, and each of its sessions a further context made from it; what they
raise is turned into the classic API's exception.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache, cached_property
from types import TracebackType
from typing import Any, Final, Self, TypeGuard, cast

from jmsapi import (
    Connection,
    ConnectionFactory,
    JMSConsumer,
    JMSContext,
    JMSProducer,
    JMSRuntimeException,
    Message,
    MessageConsumer,
    MessageProducer,
    QueueBrowser,
    QueueConnectionFactory,
    Session,
    TopicConnectionFactory,
)
from jmsapi.aio import AsyncConnectionFactory, AsyncJMSConsumer, AsyncJMSContext, AsyncJMSProducer, AsyncQueueBrowser
from jmsapi.errors import JMSException, to_checked
from jmsapi.spi import Capabilities
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.interceptor import Interceptor

__all__ = ["AioBackend", "AioInterceptor", "NotInAio", "calls_made", "end_calls"]

_END: Final = object()


class NotInAio(Exception):
    """A test asks for what ``jmsapi.aio`` does not have; it can say nothing about it."""


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.calls = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="conformance-aio", daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function in the loop, await what it returns if that can be awaited, and return the outcome."""
        self.calls += 1

        async def called() -> Any:
            outcome = function(*arguments, **named)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result()

    def close(self) -> None:
        """End the loop and its thread; calls that a test has given up are left where they stand."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@cache
def _loop() -> _Loop:
    return _Loop()


def calls_made() -> int:
    """Return how many calls went through the face in this process."""
    return _loop().calls


def end_calls() -> None:
    """End the thread that calls are made in; the next call begins another one."""
    if _loop.cache_info().currsize:
        _loop().close()
        _loop.cache_clear()


def _same(error: BaseException) -> BaseException:
    return error


def _checked(error: BaseException) -> BaseException:
    """Return the exception of the classic API: the one that was turned into this one, or its twin."""
    if not isinstance(error, JMSRuntimeException):
        return error
    return error.__cause__ if isinstance(error.__cause__, JMSException) else to_checked(error)


class _Blocking:
    """An object of ``jmsapi.aio``, whose methods wait in the calling thread.

    Args:
        inner: The object.
        raised: Makes of an exception the one to raise.
    """

    kind: type[Any]
    """The interface that it stands for."""
    own: frozenset[str] = frozenset()
    """Attributes that are kept here and not by the inner object."""
    elsewhere: frozenset[str] = frozenset()
    """Attributes that the inner object has only to say what to use instead."""

    def __init__(self, inner: Any, raised: Callable[[BaseException], BaseException] = _same) -> None:
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_raised", raised)

    def __getattr__(self, name: str) -> Any:
        inner = object.__getattribute__(self, "_inner")
        if name in self.elsewhere or not _has(inner, name):
            _refuse(self.kind, name)
            raise AttributeError(f"{self.kind.__name__} has no {name}")
        if not callable(getattr(_class_of(inner), name)):
            return self._call(getattr, inner, name)

        def method(*arguments: Any, **named: Any) -> Any:
            return self._call(getattr(inner, name), *arguments, **named)

        return method

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.own or name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        inner = object.__getattribute__(self, "_inner")
        if name in self.elsewhere or not _has(inner, name):
            _refuse(self.kind, name)
        self._call(setattr, inner, name, value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._call(self._inner.close)

    def _call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            outcome = _loop().call(function, *arguments, **named)
            if isinstance(outcome, AsyncJMSContext):
                outcome = _loop().call(outcome.__aenter__)
        except Exception as error:
            raised = self._raised(error)
            if raised is error:
                raise
            raise raised from error
        return self if outcome is self._inner else self._wrapped(outcome)

    def _wrapped(self, outcome: Any) -> Any:
        if _is_iterator(outcome):
            return self._each(outcome)
        classic = self._raised is _checked
        kinds: dict[type[Any], type[_Blocking]] = {
            AsyncJMSContext: _Context,
            AsyncJMSProducer: _Producer,
            AsyncJMSConsumer: _ClassicConsumer if classic else _BlockingConsumer,
            AsyncQueueBrowser: _Browser,
        }
        wrapper = kinds.get(_class_of(outcome))
        return outcome if wrapper is None else wrapper(outcome, self._raised)

    def _each(self, messages: AsyncIterator[Any]) -> Iterator[Any]:
        while (message := self._call(anext, messages, _END)) is not _END:
            yield message


def _is_iterator(outcome: object) -> TypeGuard[AsyncIterator[Any]]:
    return isinstance(outcome, AsyncIterator) and not isinstance(outcome, AsyncJMSConsumer)


def _has(inner: object, name: str) -> bool:
    # Asked of its class: a property of a closed object raises.
    return hasattr(type(inner), name)


def _class_of(inner: object) -> type[Any]:
    return type(inner)


def _refuse(kind: type[Any], name: str) -> None:
    """Tell that a method of an interface is not there; whatever no interface has is an ordinary mistake."""
    if hasattr(kind, name):
        raise NotInAio(f"{kind.__name__}.{name} is not part of jmsapi.aio")


class _Context(_Blocking):
    kind = JMSContext

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "client_id":
            self._call(self._inner.set_client_id, value)
        else:
            super().__setattr__(name, value)


class _Producer(_Blocking):
    kind = JMSProducer


class _BlockingConsumer(_Blocking):
    kind: type[Any] = JMSConsumer
    elsewhere = frozenset({"message_listener"})

    def __iter__(self) -> Iterator[Message]:
        return self._each(self._inner)


class _ClassicConsumer(_BlockingConsumer):
    kind = MessageConsumer


class _Browser(_Blocking):
    kind = QueueBrowser

    def __iter__(self) -> Iterator[Message]:
        return iter(self.enumeration)


class _BlockingSession(_Blocking):
    """A context as a session: its consumers do not start the connection."""

    kind = Session

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, _checked)
        self._call(setattr, inner, "auto_start", False)

    @property
    def acknowledge_mode(self) -> int:
        return cast("int", self._call(getattr, self._inner, "session_mode"))

    def create_producer(self, destination: Any = None) -> _MessageProducer:
        return _MessageProducer(self._call(self._inner.create_producer)._inner, destination)

    def create_durable_subscriber(self, *_arguments: Any, **_named: Any) -> Any:
        raise NotInAio("Session.create_durable_subscriber is not part of jmsapi.aio")


class _MessageProducer(_Blocking):
    """A producer with a destination; what a send names for itself holds for that send only."""

    kind = MessageProducer
    own = frozenset({"destination"})

    def __init__(self, inner: AsyncJMSProducer, destination: Any) -> None:
        super().__init__(inner, _checked)
        self.destination = destination

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        """End the block: there is nothing to close."""

    def send(self, destination_or_message: Any, message: Any = None, **options: Any) -> None:
        destination, sent = (self.destination, destination_or_message) if message is None else (destination_or_message, message)
        self._call(self._send, destination, sent, options)

    async def _send(self, destination: Any, message: Any, options: dict[str, Any]) -> None:
        names = {"time_to_live_ms": "time_to_live", "completion_listener": "async_"}
        asked = {names.get(name, name): value for name, value in options.items() if value is not None}
        before = {name: getattr(self._inner, name) for name in asked}
        for name, value in asked.items():
            setattr(self._inner, name, value)
        try:
            await self._inner.send(destination, message)
        finally:
            for name, value in before.items():
                setattr(self._inner, name, value)

    def close(self) -> None:
        raise NotInAio("a producer of jmsapi.aio needs no closing, and has no close")


class _Connection(_Blocking):
    """A context as a connection. Its own session is never asked for, so it is never opened."""

    kind = Connection
    own = frozenset({"client_id"})

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, _checked)
        self._sessions: list[_BlockingSession] = []

    @property
    def client_id(self) -> str | None:
        return cast("str | None", self._call(getattr, self._inner, "client_id"))

    @client_id.setter
    def client_id(self, client_id: str | None) -> None:
        self._call(self._inner.set_client_id, client_id)

    def create_session(
        self, session_mode: Any = None, acknowledge_mode: Any = None, *, transacted: Any = None
    ) -> _BlockingSession:
        if transacted is None:
            transacted = session_mode if isinstance(session_mode, bool) else None
        mode = acknowledge_mode if transacted is not None or session_mode is None else session_mode
        mode = Session.SESSION_TRANSACTED if transacted else Session.AUTO_ACKNOWLEDGE if mode is None else mode
        made = self._call(self._inner.create_context, mode)
        session = _BlockingSession(made._inner)
        self._sessions.append(session)
        return session

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self._call(self._inner.close)

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Factory(_Blocking):
    kind = ConnectionFactory

    def create_queue_connection(self, *_arguments: Any) -> Any:
        raise NotInAio("the interfaces of one domain are not part of jmsapi.aio")

    create_topic_connection = create_queue_connection

    def create_connection(self, user_name: Any = None, password: Any = None) -> _Connection:
        opener = _Blocking(self._inner, _checked)
        return _Connection(opener._call(self._inner.create_context, user_name, password)._inner)


for _one in (
    _Context,
    _Producer,
    _BlockingConsumer,
    _ClassicConsumer,
    _Browser,
    _BlockingSession,
    _MessageProducer,
    _Connection,
    _Factory,
):
    _one.kind.register(_one)
QueueConnectionFactory.register(_Factory)
TopicConnectionFactory.register(_Factory)


def _with_face(factory: ConnectionFactory) -> ConnectionFactory:
    return cast("ConnectionFactory", _Factory(AsyncConnectionFactory(factory)))


class AioInterceptor(Interceptor):
    """A hand on the providers of the asyncio face."""

    def factory(self, **options: object) -> ConnectionFactory:
        """Return a new factory with the names of the blocking API."""
        return _with_face(super().factory(**options))


class AioBackend(Backend):
    """A backend whose factories are those of ``jmsapi.aio``.

    Args:
        backend: The one with the blocking face.
    """

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend.url, restart=backend.restart)
        self._blocking = backend
        self.environment = backend.environment

    def factory(self, **options: object) -> ConnectionFactory:
        """Return a new factory with the names of the blocking API."""
        return _with_face(self._blocking.factory(**options))

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the provider says; the other one asks it once."""
        return self._blocking.capabilities
