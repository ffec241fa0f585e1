"""The broker is killed between two steps of a claim, and comes back: persistent messages are in one batch, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.spark.staging import LocalStore
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire


@pytest.mark.parametrize(
    ("kind", "wire"),
    [
        pytest.param(kind, wire, marks=pytest.mark.xdist_group(f"restarts of {kind}"))
        for kind, wire in (("classic", "stomp"), ("artemis", "amqp"))
    ],
)
def test_what_was_staged_when_the_broker_died_is_not_staged_again(
    restarted_broker: Callable[[BrokerKind], Broker], kind: BrokerKind, wire: Wire, tmp_path: Path
) -> None:
    broker = restarted_broker(kind)
    texts = [f"m{number}" for number in range(10)]
    with jmsapi.connection_factory(broker.url(wire)).create_context() as context:
        for text in texts:
            context.create_producer().send(context.create_queue("dying"), text)
    killed: list[str] = []

    def kill_at(step: str) -> Callable[..., None]:
        def on_step(name: str, *_: int) -> None:
            if name == step and step not in killed:
                killed.append(step)
                broker.kill()

        return on_step

    found: list[str] = []
    offset: Any = None
    # Published and not acknowledged, then acknowledged and not yet noted.
    for step in ("acknowledge", "confirm", "never"):
        engine = Engine(options_for(broker, wire), LocalStore(tmp_path), kill_at(step))
        stream = engine.stream()
        offset = offset or stream.initial()
        deadline = time.monotonic() + 60
        while True:
            end = stream.latest(offset)
            if end == offset:
                # A broker that has just come back may take longer than a stream waits for more.
                if step == "never" and len(found) < len(texts) and time.monotonic() < deadline:
                    continue
                break
            for work in stream.partitions(offset, end):
                for batch in engine.read(work, ["text"]):
                    found += batch.column("text").to_pylist()
            stream.commit(end)
            offset = end
            if step in killed:
                break
        engine.receivers.close()
        if step != "never":
            assert step in killed
            broker.restart()
    assert sorted(found) == sorted(texts)


def options_for(broker: Broker, wire: Wire) -> SourceOptions:
    scheme, _, rest = broker.url(wire).partition("://")
    account, _, place = rest.rpartition("@")
    user, _, password = account.partition(":")
    given = {
        "url": f"{scheme}://{place}",
        "username": user,
        "password": password,
        "queue": "dying",
        "leadMessages": "3",
        "roundMessages": "3",
        "maxMessagesPerBatch": "3",
        "pollTimeout": "2s",
        "claimTimeout": "5s",
    }
    return read_options(SourceOptions, given)
