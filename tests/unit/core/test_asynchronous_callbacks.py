"""Whatever is asynchronous is refused as a callback, or fails when it is called: nothing counts as processed that was not."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest.mock import AsyncMock

import pytest

import jmsapi
from jmsapi._callbacks import is_asynchronous
from jmsapi.api import MessageListener
from jmsapi.asf import SampleServerSessionPool
from jmsapi.errors import IllegalArgumentException
from jmsapi.listener import DeploymentException, JMSQueueListener, MessageDriven, MessageEndpoint, deploy
from jmsapi.transactions import Participants


async def plain(*_: object) -> None: ...


async def generating(*_: object) -> AsyncIterator[int]:
    yield 1


def yielding(*_: object) -> Iterator[int]:
    yield 1


class Callable_:
    async def __call__(self, *_: object) -> None: ...


class Bearer:
    async def method(self, *_: object) -> None: ...

    @staticmethod
    async def static(*_: object) -> None: ...

    @classmethod
    async def of_class(cls, *_: object) -> None: ...

    part = functools.partialmethod(method)


class AsyncMeta(type):
    async def __call__(cls, *_: object) -> None: ...


class OfAsyncMeta(metaclass=AsyncMeta):
    def __call__(self, *_: object) -> None: ...


class AsyncNew:
    async def __new__(cls, *_: object) -> Any: ...


class PlainMeta(type):
    def __call__(cls, *_: object) -> None: ...


class OfPlainMeta(metaclass=PlainMeta):
    async def __call__(self, *_: object) -> None: ...


class PlainNew:
    def __new__(cls, *_: object) -> Any: ...

    async def __call__(self, *_: object) -> None: ...


@functools.wraps(plain)
def decorated(*args: object) -> Any:
    return plain(*args)


ASYNCHRONOUS: dict[str, Any] = {
    "coroutine function": plain,
    "async generator": generating,
    "generator": yielding,
    "partial": functools.partial(plain, 1),
    "unbound static method": staticmethod(plain),
    "partial of a partial of a method": functools.partial(functools.partial(Bearer().method, 1), 2),
    "bound method": Bearer().method,
    "static method": Bearer.static,
    "class method": Bearer.of_class,
    "partial method": Bearer().part,
    "callable object": Callable_(),
    "partial of a callable object": functools.partial(Callable_()),
    "bound __call__": Callable_().__call__,
    "decorated": decorated,
    "cached": functools.lru_cache(plain),
    "mock": AsyncMock(),
    "class whose metaclass is called asynchronously": OfAsyncMeta,
    "partial of such a class": functools.partial(OfAsyncMeta),
    "class of a derived one": type("Derived", (OfAsyncMeta,), {}),
    "class that is made asynchronously": AsyncNew,
    "class derived from one that is made asynchronously": type("Derived", (AsyncNew,), {}),
}
PLAIN: list[Any] = [
    print,
    len,
    list,
    object(),
    None,
    Callable_,
    OfPlainMeta,
    PlainNew,
    object.__new__(OfAsyncMeta),
    lambda _: None,
    functools.partial(print),
    [].append,
    Bearer().__str__,
]


@pytest.mark.parametrize("callback", ASYNCHRONOUS.values(), ids=ASYNCHRONOUS.keys())
def test_an_asynchronous_callback_is_known_without_calling_it(callback: object) -> None:
    assert is_asynchronous(callback)


@pytest.mark.parametrize("callback", PLAIN, ids=range(len(PLAIN)))
def test_a_plain_callback_is_not_taken_for_one(callback: object) -> None:
    assert not is_asynchronous(callback)


@pytest.fixture
def factory() -> jmsapi.ConnectionFactory:
    return jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}")


class OfMethods:
    """Has every method that a listener may have; one of them is asynchronous."""

    def __init__(self, name: str, call: object) -> None:
        for each in ("on_completion", "on_exception", "on_message", "get_server_session", "commit", "rollback", "close"):
            setattr(self, each, print)
        setattr(self, name, call)


def places(factory: jmsapi.ConnectionFactory) -> Iterator[tuple[str, Callable[[Any], object]]]:
    """Give every place that takes a callback."""
    connection = factory.create_connection()
    session = connection.create_session()
    queue = session.create_queue("q")
    consumer, producer = session.create_consumer(queue), session.create_producer(queue)
    lone = factory.create_connection().create_session()
    context = factory.create_context()
    yield "consumer", lambda listener: setattr(consumer, "message_listener", listener)
    yield "on_message", lambda call: setattr(consumer, "message_listener", OfMethods("on_message", call))
    yield "session", lambda listener: setattr(lone, "message_listener", listener)
    yield "JMSConsumer", lambda listener: setattr(context.create_consumer(queue), "message_listener", listener)
    yield "exception listener", lambda listener: setattr(connection, "exception_listener", listener)
    yield "on_exception", lambda call: setattr(connection, "exception_listener", OfMethods("on_exception", call))
    yield "exception listener of a context", lambda listener: setattr(context, "exception_listener", listener)
    message = session.create_message()
    for name in ("on_completion", "on_exception"):
        yield f"send, {name}", lambda call, n=name: producer.send(message, completion_listener=OfMethods(n, call))  # type: ignore[misc]
        yield f"async, {name}", lambda call, n=name: context.create_producer().set_async(OfMethods(n, call))  # type: ignore[misc]
    for name in ("on_interrupted", "on_attempt_failed", "on_resumed"):
        listener = jmsapi.ConnectionListener()
        yield (
            f"connection listener, {name}",
            lambda call, n=name, o=listener: (setattr(o, n, call), jmsapi.set_connection_listener(connection, o)),  # type: ignore[misc]
        )
    yield "pool's maker", lambda call: SampleServerSessionPool(connection, 1, call)
    yield (
        "connection consumer",
        lambda call: connection.create_connection_consumer(queue, None, OfMethods("get_server_session", call), 1),  # type: ignore[arg-type]
    )
    for name in ("commit", "rollback", "close"):
        yield f"participant, {name}", lambda call, n=name: Participants().join(OfMethods(n, call))  # type: ignore[misc, arg-type]
    yield "deploy, on_error", lambda call: deploy(object(), factory=factory, on_error=call)
    yield "deploy, wrap", lambda call: deploy(object(), factory=factory, wrap=call)


@pytest.mark.parametrize("callback", ASYNCHRONOUS.values(), ids=ASYNCHRONOUS.keys())
def test_each_place_refuses_an_asynchronous_callback(callback: object, factory: jmsapi.ConnectionFactory) -> None:
    for place, hand_over in places(factory):
        refused = IllegalArgumentException
        with pytest.raises(refused, match=r"coroutine or generator function.*asyncio\.run"):
            hand_over(callback)
            pytest.fail(f"{place} takes it")


def test_a_class_with_an_asynchronous_on_message_is_not_deployed(factory: jmsapi.ConnectionFactory) -> None:
    @MessageDriven({"destinationLookup": "q", "destinationType": "javax.jms.Queue"})
    class Driven(MessageListener):
        def on_message(self, message: jmsapi.Message) -> Iterator[int]:  # type: ignore[override]
            yield 1

    with pytest.raises(DeploymentException, match="generator function"):
        deploy(Driven, factory=factory)


@pytest.mark.parametrize("make", [plain, generating, yielding], ids=["coroutine", "async generator", "generator"])
def test_what_a_listener_returns_to_be_awaited_is_its_failure(
    make: Callable[..., object], factory: jmsapi.ConnectionFactory, caplog: pytest.LogCaptureFixture
) -> None:
    connection = factory.create_connection()
    session = connection.create_session()
    queue = session.create_queue("q")
    session.create_producer(queue).send(session.create_text_message("once"))
    counts: list[int] = []
    again = threading.Event()

    def listen(message: jmsapi.Message) -> Any:
        counts.append(message.get_int_property("JMSXDeliveryCount"))
        if len(counts) == 1:
            return make(message)
        again.set()
        return None

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.create_consumer(queue).message_listener = listen
        connection.start()
        assert again.wait(10)
        connection.close()
        gc.collect()
    assert counts == [1, 2]
    assert "which nobody awaits or iterates" in caplog.text


def test_an_exception_listener_that_returns_a_coroutine_has_failed(
    factory: jmsapi.ConnectionFactory, caplog: pytest.LogCaptureFixture
) -> None:
    from jmsapi._core.connection import ConnectionImpl

    connection = factory.create_connection()
    assert isinstance(connection, ConnectionImpl)
    called = threading.Event()
    connection.exception_listener = lambda error: plain(error)  # type: ignore[assignment]
    connection.report(jmsapi.JMSException("first"))
    connection.report(jmsapi.JMSException("second"))
    connection.exception_listener = lambda _: called.set()  # type: ignore[assignment]
    connection.report(jmsapi.JMSException("third"))
    assert called.wait(10)
    connection.close()


def test_a_function_that_runs_a_coroutine_to_its_end_is_taken(factory: jmsapi.ConnectionFactory) -> None:
    connection = factory.create_connection()
    session = connection.create_session()
    queue = session.create_queue("q")
    done = threading.Event()

    async def listen(message: jmsapi.Message) -> None:
        await asyncio.sleep(0)
        done.set()

    session.create_consumer(queue).message_listener = lambda message: asyncio.run(listen(message))
    connection.start()
    session_2 = connection.create_session()
    session_2.create_producer(queue).send(session_2.create_message())
    assert done.wait(10)
    connection.close()


def test_an_endpoint_that_is_wrapped_by_an_asynchronous_one_does_not_acknowledge(factory: jmsapi.ConnectionFactory) -> None:
    received: list[str] = []
    done = threading.Event()

    class Late(MessageEndpoint):
        def __init__(self, below: MessageEndpoint) -> None:
            self.below = below
            self.times = 0

        def before_delivery(self) -> None:
            self.below.before_delivery()

        def on_message(self, message: Any) -> Any:
            self.times += 1
            return plain(message) if self.times == 1 else self.below.on_message(message)

        def after_delivery(self) -> None:
            self.below.after_delivery()

    @JMSQueueListener("asynchronous-q")
    def listen(message: jmsapi.Message) -> None:
        received.append(message.get_body(str))
        done.set()

    with factory.create_context() as context:
        queue = context.create_queue(uuid.uuid4().hex)
        jmsapi.register_object("asynchronous-q", queue)
        context.create_producer().send(queue, "one")
        with deploy(listen, factory=factory, wrap=Late):
            assert done.wait(20)
    jmsapi.register_object("asynchronous-q", None)
    assert received == ["one"]


@pytest.mark.parametrize(
    "listener",
    [plain, lambda *_: None, object(), OfMethods("on_resumed", print)],
    ids=["async", "lambda", "object", "one method"],
)
def test_what_could_never_be_called_is_no_connection_listener(listener: Any) -> None:
    with (
        jmsapi.connection_factory(f"inproc://callbacks-{uuid.uuid4()}").create_connection() as connection,
        pytest.raises(IllegalArgumentException, match="on_interrupted, on_attempt_failed and on_resumed"),
    ):
        jmsapi.set_connection_listener(connection, listener)
