"""The link to the broker goes silent and breaks, at the worst moment and at random ones: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Place
from links import Relay, account, breaking, dead_letters, read_through, sent

from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.testing import LoopbackServer
from jmsapi_conformance.brokers import Broker


@pytest.fixture
def wire_place(request: pytest.FixtureRequest) -> Place:
    """Give a queue on a broker over a wire."""
    kind, wire = request.param
    broker: Broker = request.getfixturevalue(kind)
    return Place(broker.url(wire), broker)


each_wire = pytest.mark.parametrize(
    "wire_place",
    [
        pytest.param((kind, wire), marks=pytest.mark.broker, id=f"{kind} {wire}")
        for kind in ("artemis", "classic", "rabbitmq")
        for wire in ("amqp", "stomp")
    ],
    indirect=True,
)


def port_of(place: Place) -> int:
    return int(place.full_url.rpartition(":")[2])


def through(place: Place, relay: Relay, **more: Any) -> dict[str, str]:
    """Return the options of a source that goes through a relay."""
    failover = bool(more.pop("failover", False))
    return {**place.options, "url": relay.url(place.full_url, failover=failover), **more}


@each_wire
def test_a_slot_is_confirmed_only_when_the_broker_has_its_acknowledgement(wire_place: Place, tmp_path: Path) -> None:
    texts = sent(wire_place.full_url, wire_place.queue, 400)
    with Relay(port_of(wire_place)) as relay:

        def on_step(name: str, seq: int, claim: int, number: int) -> None:
            if (claim, number) == (0, 0) and name == "acknowledge":
                # From here on nothing arrives, and the link breaks when the claim has said what it had to say.
                relay.silent = True
                relay.on_down = lambda one: one.cut()
            if (claim, number) == (0, 0) and name == "confirm":
                relay.cut()

        options = {**through(wire_place, relay, heartbeat="2s"), "stagingLocation": str(tmp_path), "roundMessages": "200"}
        engine = Engine(read_options(SourceOptions, options), on_step=on_step)
        engine.log.open_batch(1)
        engine.claim.run(1, 0, 200, first_wait_ms=5000)
        relay.cut()
        relay.silent, relay.on_down = False, lambda one: None
        for claim in (1, 2):
            engine.claim.run(1, claim, 1000, first_wait_ms=5000)
        engine.receivers.close()
        found = rows_of(engine, 3)
    assert account(texts, found, wire_place.left(), dead_letters(wire_place.broker.url("amqp"), wire_place.queue)) == (0, 0)


def rows_of(engine: Engine, claims: int) -> list[str]:
    """Return the texts of the first claims of batch 1."""
    from jmsapi.spark.stream import ReadTask

    return [
        text
        for claim in range(claims)
        for batch in engine.read(ReadTask(1, claim, 0), ("text",))
        for text in batch.column("text").to_pylist()
    ]


@each_wire
def test_a_round_whose_link_breaks_is_not_continued_on_another_link(wire_place: Place, tmp_path: Path) -> None:
    broken_round(wire_place.full_url, wire_place.options, wire_place.queue, tmp_path)
    assert wire_place.left() == []


def test_a_round_is_not_continued_on_another_link_of_a_server_in_this_process(tmp_path: Path) -> None:
    with LoopbackServer() as server:
        broken_round(server.url, {"queue": "q"}, "q", tmp_path)


def broken_round(full_url: str, options: dict[str, str], queue: str, folder: Path) -> None:
    """Break the link once amid the first round, with a ``failover:`` URL and a round that outlasts the reconnecting."""
    texts = sent(full_url, queue, 600)
    with Relay(int(full_url.rpartition(":")[2])) as relay:

        def once(one: Relay) -> None:
            if one.down > 50_000:
                one.on_down = lambda _: None
                one.cut()

        relay.on_down = once
        options = {**options, "url": relay.url(full_url, failover=True), "idleGap": "1s", "stagingLocation": str(folder)}
        engine = Engine(read_options(SourceOptions, options))
        engine.log.open_batch(1)
        troubles = [engine.claim.run(1, claim, 1000, first_wait_ms=5000).trouble for claim in range(4)]
        engine.receivers.close()
        assert relay.links > 1
        assert troubles[0] is not None, "the claim whose link broke ended there"
        assert account(texts, rows_of(engine, 4), []) == (0, 0)


@each_wire
@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
@pytest.mark.parametrize("silent_s", [0.0, 0.15], ids=["cut", "silent, then cut"])
def test_links_that_break_at_random_lose_and_double_nothing(
    wire_place: Place, tmp_path: Path, failover: bool, silent_s: float
) -> None:
    texts = sent(wire_place.full_url, wire_place.queue, 1500)
    with Relay(port_of(wire_place)) as relay, breaking(relay, 5, silent_s, seed=3) as over:
        found = read_through(through(wire_place, relay, failover=failover), tmp_path, over)
        assert relay.links > 3
    assert account(texts, found, wire_place.left(), dead_letters(wire_place.broker.url("amqp"), wire_place.queue)) == (0, 0)
