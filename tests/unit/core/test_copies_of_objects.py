"""Copying and pickling: what lives with a connection is refused by name, what is a value goes."""

from __future__ import annotations

import asyncio
import copy
import pickle
import uuid
from collections.abc import Callable, Iterator

import pytest

import jmsapi
from jmsapi.aio import AsyncConnectionFactory
from jmsapi.asf import SampleServerSessionPool
from jmsapi.pool import SessionPool

COPIES: dict[str, Callable[[object], object]] = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickle.dumps}


@pytest.fixture
def objects() -> Iterator[dict[str, object]]:
    url = f"inproc://copies-{uuid.uuid4().hex}"
    factory = jmsapi.connection_factory(url)
    with factory.create_connection() as connection, factory.create_context() as context, factory.create_xa_context() as xa:
        session = connection.create_session()
        queue = session.create_queue("q")
        topic = session.create_topic("t")
        servers = SampleServerSessionPool(connection, 1, lambda: print)
        yield {
            "Connection": connection,
            "Session": session,
            "MessageProducer": session.create_producer(queue),
            "MessageConsumer": session.create_consumer(queue),
            "QueueBrowser": session.create_browser(queue),
            "ConnectionConsumer": connection.create_connection_consumer(topic, None, servers, 1),
            "JMSContext": context,
            "JMSProducer": context.create_producer(),
            "JMSConsumer": context.create_consumer(queue),
            "XAJMSContext": xa,
            "XAResource": xa.xa_resource,
            "pool": SessionPool(factory),
            "temporary queue": session.create_temporary_queue(),
        }
        servers.close()


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES.keys())
def test_what_lives_with_a_connection_is_neither_copied_nor_pickled_and_says_so(
    objects: dict[str, object], how: Callable[[object], object]
) -> None:
    for name, one in objects.items():
        with pytest.raises(TypeError, match=r"lives with its connection.*neither copied nor pickled"):
            how(one)
            pytest.fail(f"{name} was copied")


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES.keys())
def test_so_it_is_with_the_objects_of_asyncio(how: Callable[[object], object]) -> None:
    async def program() -> None:
        async with AsyncConnectionFactory(
            jmsapi.connection_factory(f"inproc://copies-{uuid.uuid4().hex}")
        ).create_context() as context:
            consumer = await context.create_consumer(context.create_queue("q"))
            for one in (context, context.create_producer(), consumer):
                with pytest.raises(TypeError, match="lives with its connection"):
                    how(one)

    asyncio.run(program())


def test_a_factory_and_a_message_with_a_temporary_destination_in_it_go() -> None:
    factory = jmsapi.connection_factory(f"inproc://copies-{uuid.uuid4().hex}")
    with pickle.loads(pickle.dumps(factory)).create_context() as context:
        queue, replies = context.create_queue("q"), context.create_temporary_queue()
        context.create_producer().set_jms_reply_to(replies).send(queue, "x")
        message = context.create_consumer(queue).receive(30_000)
        assert message is not None
        for one in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
            assert (one.get_body(str), one.jms_reply_to) == ("x", replies)
