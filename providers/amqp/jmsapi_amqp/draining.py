"""Taking credit back, and what the broker's answer to that proves.

The answer to a drain says that the broker has stopped looking, not that the queue is empty; seen on Artemis 2.56.0 and ActiveMQ
Classic 6.3.1. That is enough for a consumer that ends, or has got something. A browser shows everything, and to a consumer that
has got nothing the answer must mean that there is nothing. So the credit that was not used is offered again until nothing comes
of it, and that is believed when it is proof:

- Artemis sends the answer to a drain some time after it has looked. When messages have used up the credit by then, it is taken
  for the answer to the next drain, and takes the credit of that one away. So a drain is asked for only when nothing comes by
  itself any more; and if messages have come all the same, an empty answer counts only after pauses in which late ones arrive.
- Artemis stops when what it has written waits for the socket, and after some time. What came before an answer has been read
  from the socket, so the broker had room, unless other links brought much in the meantime.

Artemis leaves a drain without an answer when it comes right behind the answer to another one on the same link, as in a loop of
``receive_no_wait``: it still believes itself to be draining. Asked again a moment later it answers.

ActiveMQ Classic 6.3.1 must be asked once: what comes on a link that it drains it takes for a grant of credit, and dispatches a
message to the link that nothing takes back, which no other consumer gets then. So credit that is granted meanwhile is kept here
until the answer has come. All of this is shown by ``tests/providers/amqp/test_drains.py``.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from jmsapi.wire import Promise
from jmsapi_amqp import engine
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.io_timers import IoTimer
from jmsapi_amqp.links import ReceiverLink

__all__ = ["drain_answered", "drained", "pause", "stopped"]

_FIRST_AGAIN_S: Final = 0.005
"""The pause before an unanswered drain is asked for again, in seconds; each further one is twice as long."""
_LAST_AGAIN_S: Final = 1.0
"""The longest such pause: a broker that is busy with the drains of a thousand links has no use for being asked more often."""
_QUIET_S: Final = 0.002
"""How long nothing must have come before a drain is asked for, in seconds."""
_LATE_S: Final = 0.02
"""A pause in which late answers to earlier drains arrive; there are two, the second twice as long."""
_MUCH: Final = 1 << 14
"""Bytes that leave in doubt whether the broker had room to write, when they came for other links."""
_LONG_S: Final = 0.25
"""An answer that took longer may come of the broker's own limit of time."""
_ANSWERED_S: Final = 5.0
"""The longest wait of a link that ends for the answer to its drain."""
_DOUBTS: Final = 20
"""Answers that prove nothing before a queue is taken for empty all the same."""
_DOUBTS_S: Final = 8.0
"""Seconds of nothing but such answers after which it is, too: a busy broker takes a second or more for each of them."""


async def drained(context: ConnectionContext, link: ReceiverLink) -> None:
    """Take back all credit of a link; what the broker has at hand comes first, as far as the credit goes. I/O thread."""
    if link.emptying is not None:
        await link.emptying
        return
    emptying: Promise[None] = Promise()
    link.emptying = emptying
    try:
        await _emptied(context, link)
        link.forgo_kept()
        context.traffic.hand_over(link)
    finally:
        link.emptying = None
        emptying.resolve(None)


async def stopped(context: ConnectionContext, link: ReceiverLink) -> None:
    """Take back all credit of a link, and look no further for messages; a drain under way ends with that. I/O thread."""
    link.stopping = True
    await drained(context, link)


async def _emptied(context: ConnectionContext, link: ReceiverLink) -> None:
    link.taken_back, before = link.outstanding, link.taken
    doubts, doubted_s = 0, 0.0
    while True:
        await _quiet(context, link)
        left = link.taken_back - (link.taken - before)
        if left <= 0 or _has_ended(link):
            return
        taken, received, began = link.taken, context.wire.received, context.clock.monotonic()
        await _one_pass(context, link, left - link.outstanding)
        left = link.taken_back - (link.taken - before)
        if _has_ended(link):
            return
        if left <= 0:
            link.answers_late = True
            return
        if link.stopping or (link.taken != before and not link.shows_all):
            return
        if link.taken != taken:
            doubts, doubted_s = 0, 0.0
            continue
        took_s = context.clock.monotonic() - began
        doubts += 1
        doubted_s += took_s
        if not link.answers_late and took_s <= _LONG_S and context.wire.received - received <= _MUCH:
            return
        if doubts > (2 if link.answers_late else _DOUBTS) or doubted_s > _DOUBTS_S:
            link.answers_late = False
            return
        await pause(context, _LATE_S * doubts)


async def _quiet(context: ConnectionContext, link: ReceiverLink) -> None:
    """Wait until the credit is used up, or nothing has come for a moment."""
    while link.outstanding > 0:
        taken = link.taken
        link.used_up = used_up = context.add_promise(Promise[None]())
        timer = context.timers.later(_QUIET_S, partial(used_up.resolve, None))
        try:
            await used_up
        finally:
            timer.cancel()
            link.used_up = None
        if link.taken == taken:
            return


async def _one_pass(context: ConnectionContext, link: ReceiverLink, credit: int) -> None:
    """Take the credit back, after giving some more, and ask for it again until there is an answer."""
    promise = link.drain(credit)
    timers: list[IoTimer] = []

    def ask_later(pause_s: float) -> None:
        timers[:] = [context.timers.later(pause_s, partial(ask_again, min(2 * pause_s, _LAST_AGAIN_S)))]

    def ask_again(pause_s: float) -> None:
        if not promise.done and link.pointer is not None:
            engine.link_drain(link.pointer, 0)
            ask_later(pause_s)

    if not promise.done and context.behaviour.forgets_drains:
        ask_later(_FIRST_AGAIN_S)
    try:
        await promise
    finally:
        for timer in timers:
            timer.cancel()


async def drain_answered(context: ConnectionContext, link: ReceiverLink) -> None:
    """Wait until the broker has answered the drain of a link that is about to end; what comes meanwhile is for nobody.

    Artemis 2.56.0 answers it in any case: on the channel 65535, which is none, once the link's session has ended. That is a
    fault of the protocol, and ends the connection. Threads: the I/O thread.
    """
    answered: Promise[None] = Promise()
    link.draining.append(answered)
    # What is not handed over goes back when the link ends.
    link.handle = None
    timer = context.timers.later(_ANSWERED_S, partial(answered.resolve, None))
    try:
        await answered
    finally:
        timer.cancel()


async def pause(context: ConnectionContext, seconds: float) -> None:
    """Let others run for a while. Threads: the I/O thread."""
    promise: Promise[None] = context.add_promise(Promise())
    timer = context.timers.later(seconds, partial(promise.resolve, None))
    try:
        await promise
    finally:
        timer.cancel()


def _has_ended(link: ReceiverLink) -> bool:
    """Return whether a link has ended, or is about to: nothing more comes by it."""
    return link.pointer is None or link.leaving
