"""``jmsapi.aio`` over STOMP: what a loop that gets no turn leaves undone, and what goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import jmsapi.aio

Peer = Callable[..., Any]
WAIT_S = 20.0


def test_beats_go_out_while_the_loop_has_no_turn(peer: Peer) -> None:
    connections: list[Any] = []

    def script(connection: Any) -> None:
        connections.append(connection)
        connection.welcome(beats="0,100")
        connection.serve()

    async def program(url: str) -> None:
        async with jmsapi.aio.connection_factory(url, heartbeat_ms=100).create_context() as context:
            producer, queue = context.create_producer(), context.create_queue("q")
            await producer.send(queue, "before")
            # As a task does that computes and never awaits.
            end, before = time.monotonic() + WAIT_S, connections[0].beats
            while connections[0].beats < before + 5:
                assert time.monotonic() < end, "no beats"
            await producer.send(queue, "after")

    asyncio.run(program(peer(script).url))
