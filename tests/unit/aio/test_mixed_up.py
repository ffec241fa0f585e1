"""The blocking API under ``async with``: an error that names the way."""

from __future__ import annotations

import asyncio
import uuid
import warnings
from typing import Any

import pytest

import jmsapi

WITH = ["context", "connection", "session", "consumer", "producer", "browser", "jms_consumer"]


@pytest.fixture
def objects() -> Any:
    factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}")
    with factory.create_context() as context, factory.create_connection() as connection:
        session = connection.create_session()
        queue = session.create_queue("q")
        yield {
            "context": context,
            "connection": connection,
            "session": session,
            "consumer": session.create_consumer(queue),
            "producer": session.create_producer(queue),
            "browser": session.create_browser(queue),
            "jms_consumer": context.create_consumer(queue),
        }


@pytest.mark.parametrize("name", WITH)
def test_async_with_on_the_blocking_api_names_the_way(objects: dict[str, Any], name: str) -> None:
    async def enter() -> None:
        async with objects[name]:
            raise AssertionError("entered")

    with pytest.raises(TypeError, match=r"is of the blocking API, for `with`; .*jmsapi\.aio"):
        asyncio.run(enter())


def test_the_line_of_a_beginner_names_the_way() -> None:
    async def program() -> None:
        factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}")
        with warnings.catch_warnings():
            # Of the call that blocks, once, which has a test of its own.
            warnings.simplefilter("ignore")
            async with factory.create_context():
                raise AssertionError("entered")

    with pytest.raises(TypeError, match=r"async with jmsapi\.aio\.connection_factory\(url\)\.create_context\(\) as context"):
        asyncio.run(program())
