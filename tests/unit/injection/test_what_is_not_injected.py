"""What would be injected in vain, lost or left out without a word is refused by name."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Annotated, Any

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import ConnectionFactory, JMSContext, JMSRuntimeException, JMSSessionMode, Session
from jmsapi.injection import Inject, Injector
from jmsapi.listener import DeploymentException, JMSListenerProperty, JMSQueueListener, definitions

TRANSACTED = JMSSessionMode(JMSContext.SESSION_TRANSACTED)
CLIENT = JMSSessionMode(JMSContext.CLIENT_ACKNOWLEDGE)


@pytest.fixture
def factory() -> Iterator[ConnectionFactory]:
    """Give a factory of a broker that ends with the test."""
    name = f"injection-{uuid.uuid4().hex}"
    yield jmsapi.connection_factory(f"inproc://{name}", checked=True)
    jmsapi_inproc.discard(name)


MOVES: dict[str, Callable[[JMSContext], object]] = {
    "producer": lambda jms: jms.create_producer(),
    "consumer": lambda jms: jms.create_consumer(jms.create_queue("q")),
    "shared consumer": lambda jms: jms.create_shared_consumer(jms.create_topic("t"), "s"),
    "durable consumer": lambda jms: jms.create_durable_consumer(jms.create_topic("t"), "s"),
    "shared durable consumer": lambda jms: jms.create_shared_durable_consumer(jms.create_topic("t"), "s"),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_transacted_context_without_transactions_moves_no_message(
    factory: ConnectionFactory, move: Callable[[JMSContext], object]
) -> None:
    injector = Injector(factory)

    @injector.inject
    def place(jms: Annotated[JMSContext, TRANSACTED]) -> None:
        assert jms.session_mode == JMSContext.SESSION_TRANSACTED
        move(jms)

    with pytest.raises(
        JMSRuntimeException, match="AUTO_ACKNOWLEDGE or DUPS_OK_ACKNOWLEDGE, or give the Injector transactions"
    ) as caught:
        place()
    assert caught.value.error_code == "session-mode"


def test_a_message_of_an_injected_context_acknowledges_itself(factory: ConnectionFactory) -> None:
    injector = Injector(factory)

    @injector.inject
    def take(jms: Annotated[JMSContext, CLIENT]) -> str | None:
        with pytest.raises(JMSRuntimeException, match=r"message\.acknowledge\(\)"):
            jms.acknowledge()
        message = jms.create_consumer(jms.create_queue("q")).receive_no_wait()
        if message is None:
            return None
        message.acknowledge()
        return message.get_body(str)

    with factory.create_context() as context:
        context.create_producer().send(context.create_queue("q"), "once")
        assert [take(), take()] == ["once", None]


def test_a_context_or_none_is_a_context(factory: ConnectionFactory) -> None:
    injector = Injector(factory)

    @injector.inject
    def modes(
        inside: Annotated[JMSContext | None, Inject()],
        outside: Annotated[JMSContext, Inject()] | None = None,
        plain: JMSContext | None = None,
    ) -> list[int | None]:
        return [None if jms is None else jms.session_mode for jms in (inside, outside, plain)]

    assert modes() == [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.AUTO_ACKNOWLEDGE, None]


WRONG: list[tuple[Any, str]] = [
    (Annotated[Session, Inject()], "Session is marked as injected"),
    (Annotated[Session | None, TRANSACTED], "Session is marked as injected"),
    (Annotated[JMSContext, Inject()] | int, "marked as injected"),
    (Annotated[JMSContext, Inject], r"write Inject\("),
]


@pytest.mark.parametrize(("hint", "said"), WRONG)
def test_what_is_marked_and_is_no_context_is_refused_at_once(factory: ConnectionFactory, hint: Any, said: str) -> None:
    def function(jms: Any) -> None: ...

    def callback(message: str, jms: Any) -> None: ...

    class Shop:
        pass

    function.__annotations__["jms"] = callback.__annotations__["jms"] = hint
    Shop.__annotations__ = {"jms": hint}
    injector = Injector(factory)
    with pytest.raises(TypeError, match=f"function, 'jms': .*{said}"):
        injector.inject(function)
    with pytest.raises(TypeError, match=f"Shop, 'jms': .*{said}"):
        injector.make(Shop)
    with pytest.raises(DeploymentException, match=f"argument 'jms': .*{said}"):
        definitions(JMSQueueListener()(JMSListenerProperty("destination", "q")(callback)))


def test_a_result_that_is_a_context_is_no_argument(factory: ConnectionFactory) -> None:
    @Injector(factory).inject
    def find() -> Annotated[JMSContext | None, Inject()]:
        return None

    assert find() is None


def test_a_generator_function_is_refused_by_name(factory: ConnectionFactory) -> None:
    def orders(jms: Annotated[JMSContext, Inject()]) -> Generator[str]:
        yield jms.create_queue("q").queue_name

    async def later(jms: Annotated[JMSContext, Inject()]) -> AsyncGenerator[str]:
        yield jms.create_queue("q").queue_name

    for function in (orders, later):
        with pytest.raises(TypeError, match=rf"{function.__name__} is a generator function"):
            Injector(factory).inject(function)
