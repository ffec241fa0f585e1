"""A staging location on S3, as an emulator has it: the self-test, rivals, and a stream and a sink that crash."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import jmsapi
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.outbox import Outbox
from jmsapi.spark.staging import ObjectStore, StagingStore, open_store, self_test

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: fsspec keeps a thread and its connections."""
    yield


@pytest.fixture
def store(s3: str) -> StagingStore:
    return open_store(f"{s3}/{uuid.uuid4().hex}")


def test_the_emulator_creates_on_condition(store: StagingStore) -> None:
    assert isinstance(store, ObjectStore)
    self_test(store)


def test_of_many_rivals_one_gets_the_name(store: StagingStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.publish(f"b/{number // 8}", str(number).encode()), range(64)))
    assert sum(won) == 8
    assert all(won[int(bytes(store.read(f"b/{name}")))] for name in range(8))


class Crash(BaseException):
    """The process ends here."""


def test_a_stream_on_an_object_store_crashes_and_goes_on(store: StagingStore) -> None:
    url = f"inproc://s3-{uuid.uuid4().hex}"
    given = {"url": url, "queue": "q", "leadMessages": "4", "roundMessages": "2", "pollTimeout": "5ms", "idleGap": "5ms"}
    options = SourceOptions.model_validate(given)
    steps: list[str] = []

    def once(name: str, *_: int) -> None:
        steps.append(name)
        if name == "acknowledge" and steps.count(name) in (1, 3):
            raise Crash

    found: dict[int, list[str]] = {}
    offset: Any = None
    with jmsapi.connection_factory(url).create_context() as context:
        for number in range(6):
            context.create_producer().send(context.create_queue("q"), f"m{number}")
        for _ in range(3):
            engine = Engine(options, store, once)
            try:
                stream = engine.stream()
                offset = offset or stream.initial()
                while (end := stream.latest(offset)) != offset:
                    works = stream.partitions(offset, end)
                    rows = [batch for work in works for batch in engine.read(work, ["text"])]
                    found[end["seq"]] = [text for batch in rows for text in batch.column("text").to_pylist()]
                    stream.commit(end)
                    offset = end
            except Crash:
                continue
            finally:
                engine.receivers.close()
    assert steps.count("acknowledge") > 3
    assert sorted(text for rows in found.values() for text in rows) == [f"m{number}" for number in range(6)]
    assert store.list("b") == []


def test_the_outbox_of_a_sink_is_on_an_object_store_as_well(store: StagingStore) -> None:
    outbox = Outbox(store)
    outbox.open(0)
    name = outbox.stage(0, b"rows")
    outbox.fix(0, [(0, (name, 1))])
    outbox.fix(0, [(0, ("other", 2))])
    manifest = outbox.manifest(0)
    assert manifest is not None and manifest.files == ((0, (name, 1)),)
    assert bytes(outbox.read(0, (name, 1))) == b"rows"
    assert not outbox.done
    outbox.finish()
    outbox.clear(0)
    assert outbox.done and outbox.manifest(0) is None
