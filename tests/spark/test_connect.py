"""Spark Connect: the client has neither a JVM nor Spark's context, and all of the data source runs in the server's processes."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import jmsapi
from jmsapi.testing import LoopbackServer

pytestmark = [pytest.mark.program, pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
HERE = Path(__file__).parent
_NEEDED = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
_LONGEST_S = 400


def there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture
def port(tmp_path: Path, leave_out: Callable[[str], NoReturn]) -> Iterator[str]:
    """Give the port of a server."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        leave_out("Spark needs Java, which is not here")
    missing = [module for module in _NEEDED if not there(module)]
    if missing:
        leave_out(f"Spark Connect needs {', '.join(missing)}: pip install 'pyspark[connect]'")
    place = tmp_path / "server"
    place.mkdir()
    program = [sys.executable, "-W", "ignore", str(HERE / "connect_server.py"), str(place)]
    with (
        (tmp_path / "server.log").open("w") as log,
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        assert server.stdout is not None
        yield server.stdout.readline().strip()


def send(url: str, queue: str, *texts: str) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        producer = context.create_producer()
        for text in texts:
            producer.send(context.create_queue(queue), text)


def test_all_that_the_data_source_offers_works_from_a_client_of_spark_connect(port: str, tmp_path: Path) -> None:
    with LoopbackServer() as server:
        send(server.url, "in", "one", "two", "three")
        send(server.url, "load", "four", "five")
        program = [sys.executable, "-W", "ignore", str(HERE / "connect_client.py"), port, server.url, str(tmp_path)]
        told = subprocess.run(program, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
        assert told.returncode == 0, told.stderr[-3000:]
        with jmsapi.connection_factory(server.url).create_context() as context:
            left = {name: len(list(context.create_browser(context.create_queue(name)))) for name in ("in", "load", "sent-once")}
    texts = ["one", "three", "two"]
    assert json.loads(told.stdout.splitlines()[-1]) == {
        "kind": "connect",
        "browse": texts,
        "consume": ["five", "four"],
        "write": ["a", "b"],
        "stream source": texts,
        "stream sink, at-least-once": texts,
        "stream sink, exactly-once": texts,
    }
    assert left == {"in": 0, "load": 0, "sent-once": 3}
