"""A standalone cluster of two workers: with a shared folder, with S3, and with a worker that does not share the store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cluster import Cluster, can_hide_folders
from links import account, sent

import jmsapi
from jmsapi.testing import LoopbackServer

pytestmark = [
    pytest.mark.program,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
MANY = {
    "leadMessages": "100",
    "roundMessages": "100",
    "maxMessagesPerBatch": "1000",
    "parallelism": "4",
    "firstWait": "3s",
    "pollTimeout": "500ms",
}


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: fsspec keeps a thread and its connections."""
    yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(s3: str, place: Path, leave_out: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        leave_out("Spark needs Java, which is not here")
    if not can_hide_folders():
        leave_out("a worker that lacks a folder needs a mount namespace of its own, which is not allowed here")
    with Cluster(place / "cluster", place / "private") as cluster:
        yield cluster


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def left(server: LoopbackServer) -> list[str]:
    with jmsapi.connection_factory(server.url).create_context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        return list(iter(lambda: consumer.receive_body(str, 1000), None))


def source(server: LoopbackServer, folder: Path, staging: str) -> dict[str, Any]:
    folder.mkdir()
    options = {"url": server.url, "queue": "q", "stagingLocation": staging, **MANY}
    return {"kind": "source", "folder": str(folder), "options": options}


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_a_store_that_all_share_loses_and_doubles_nothing(
    cluster: Cluster, place: Path, server: LoopbackServer, s3: str, where: str
) -> None:
    texts = sent(server.url, "q", 3000)
    staging = str(place / "shared-staging") if where == "folder" else f"{s3}/staging"
    told = cluster.run(source(server, place / f"shared-{where}", staging))
    assert told["error"] is None
    assert account(texts, told["rows"], left(server)) == (0, 0)


def test_a_worker_that_does_not_share_the_store_is_refused_in_words_and_nothing_is_lost(
    cluster: Cluster, place: Path, server: LoopbackServer
) -> None:
    texts = sent(server.url, "q", 2000)
    job = source(server, place / "unshared", str(place / "private" / "staging"))
    told = cluster.run(job, **{"spark.task.maxFailures": "1"})
    assert "is not there on the machine" in str(told["error"])
    assert "network folder at the same path or an object store" in str(told["error"])
    # The job goes where all see the folder.
    again = cluster.run(job, local=True)
    assert again["error"] is None
    assert account(texts, again["rows"], left(server)) == (0, 0)


def test_a_sink_whose_workers_do_not_share_the_store_is_refused_and_goes_on_when_they_do(
    cluster: Cluster, place: Path, server: LoopbackServer
) -> None:
    folder = place / "sink"
    (folder / "in").mkdir(parents=True)
    texts = [f"m{number:05d}" for number in range(1000)]
    for number in range(4):
        (folder / "in" / f"{number}.txt").write_text("\n".join(texts[number * 250 : (number + 1) * 250]), encoding="utf-8")
    options = {
        "url": server.url,
        "queue": "q",
        "delivery": "exactly-once",
        "stagingLocation": str(place / "private" / "sink"),
    }
    job = {"kind": "sink", "folder": str(folder), "options": options}
    told = cluster.run(job, **{"spark.task.maxFailures": "1"})
    assert "is not there on the machine" in str(told["error"])
    again = cluster.run(job, local=True)
    assert again["error"] is None
    assert account(texts, [], left(server)) == (0, 0)
