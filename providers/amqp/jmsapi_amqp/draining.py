"""Waiting a while: for a drain that is to be asked for again, and for a broker that is not done yet.

Artemis 2.56.0 leaves a drain without an answer when it comes right behind the answer to another one on the same link, as in
a loop of ``receive_no_wait``: it still believes itself to be draining. Asked again a moment later it answers. Shown by
``tests/providers/amqp/test_drains.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi_amqp import engine
from jmsapi_amqp.tasks import Promise

if TYPE_CHECKING:
    from jmsapi.spi import Timer
    from jmsapi_amqp.connection import Connection
    from jmsapi_amqp.links import ReceiverLink

__all__ = ["AGAIN_S", "drained", "pause"]

AGAIN_S: Final = 0.05
"""How long to wait before asking again, in seconds; a broker that is only slow answers the more often."""


async def drained(connection: Connection, link: ReceiverLink) -> None:
    """Take back all credit of a link, and ask for it again until there is an answer. Threads: the I/O thread."""
    promise = link.drain()
    timers: list[Timer] = []

    def ask_later() -> None:
        timers[:] = [connection.clock.call_later(AGAIN_S, lambda: connection.submit(ask_again))]

    def ask_again() -> None:
        if not promise.done and link.pointer is not None:
            engine.link_drain(link.pointer, 0)
            ask_later()

    if not promise.done:
        ask_later()
    try:
        await promise
    finally:
        for timer in timers:
            timer.cancel()


async def pause(connection: Connection, seconds: float) -> None:
    """Let others run for a while. Threads: the I/O thread."""
    promise: Promise[None] = connection.add_promise(Promise())
    timer = connection.clock.call_later(seconds, lambda: connection.submit(promise.keep, None))
    try:
        await promise
    finally:
        timer.cancel()
