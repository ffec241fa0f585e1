"""``jmsapi bench``: what a broker and this client do together: sending, receiving, there and back."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

import jmsapi
from jmsapi import DeliveryMode, JMSException
from jmsapi.cli._directory import JsonOption
from jmsapi.cli._target import UrlOption, factory_for
from jmsapi.cli._terminal import Progress, say_json, show_table

__all__ = ["bench"]

_WAIT_MS: Final = 30_000


def bench(
    url: UrlOption,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Messages sent and received.")] = 5000,
    trips: Annotated[int, typer.Option(min=1, help="Messages there and back, one at a time.")] = 200,
    size: Annotated[int, typer.Option(min=0, help="Bytes of a body.")] = 1024,
    non_persistent: Annotated[bool, typer.Option("--non-persistent", help="The broker may keep them in memory only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Time sends, receives and round trips on a queue of its own, which is empty when it ends.

    Rates are of one connection and one thread. A latency says what share of the round trips took no longer.
    """
    name = f"jmsapi.bench.{secrets.token_hex(4)}"
    body = b"x" * size
    with factory_for(url).create_context() as context:
        has = jmsapi.capabilities(context)
        queue = context.create_temporary_queue() if has.temporary_queue else context.create_queue(name)
        producer = context.create_producer()
        producer.set_delivery_mode(DeliveryMode.NON_PERSISTENT if non_persistent else DeliveryMode.PERSISTENT)
        consumer = context.create_consumer(queue)
        progress = Progress("messages", 2 * count + trips)
        try:
            sent = _timed(count, lambda: producer.send(queue, body), progress)
            received = _timed(count, lambda: _take(consumer.receive(_WAIT_MS)), progress)
            latencies: list[float] = []
            for _ in range(trips):
                begun = time.perf_counter()
                producer.send(queue, body)
                _take(consumer.receive(_WAIT_MS))
                latencies.append((time.perf_counter() - begun) * 1000)
                progress.add()
        finally:
            progress.end()
            consumer.close()
    found: dict[str, Any] = {
        "broker": f"{has.broker} {has.version}".strip(),
        "provider": has.provider,
        "size": size,
        "send_per_s": round(count / sent),
        "receive_per_s": round(count / received),
        "receive_to_send": round(sent / received, 2),
        **{f"round_trip_p{share}_ms": round(_percentile(latencies, share), 3) for share in (50, 90, 99, 100)},
    }
    if as_json:
        say_json(found)
    else:
        show_table(["", ""], [[key, str(value)] for key, value in found.items()])


def _timed(count: int, work: Any, progress: Progress) -> float:
    begun = time.perf_counter()
    for _ in range(count):
        work()
        progress.add()
    return max(time.perf_counter() - begun, 1e-9)


def _take(message: jmsapi.Message | None) -> None:
    if message is None:
        raise JMSException(f"a message did not come within {_WAIT_MS} ms", "timeout")


def _percentile(values: Sequence[float], share: int) -> float:
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]
