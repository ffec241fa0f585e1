"""The asynchronous web application in ``examples/web``, in a real uvicorn: in process, on Artemis and on RabbitMQ."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi_conformance.brokers import Broker

pytestmark = pytest.mark.program

PROGRAM = Path(__file__).parents[2] / "examples" / "web" / "async_shop.py"
WAIT_S = 60.0


@contextmanager
def served(url: str, prefix: str, folder: Path) -> Iterator[str]:
    """Serve the application with queues of the test's own; give its address, and see that it ends in order."""
    (folder / "async_shop.py").write_text(
        PROGRAM.read_text(encoding="utf-8").replace('"async-shop.', f'"{prefix}.'), encoding="utf-8"
    )
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(folder), "--port", "0", "async_shop:app"]
    log = folder / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(command, env={**os.environ, "JMSAPI_URL": url}, stdout=written, stderr=written)
    try:
        while not (found := re.search(r"running on (http://\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield found.group(1)
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait()
    assert "shutdown complete" in log.read_text()
    assert "Traceback" not in log.read_text()


def asked(address: str, order: dict[str, Any] | None = None) -> tuple[int, Any]:
    """Ask the application; return status and body."""
    data = None if order is None else json.dumps(order).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize(
    "place", ["inproc", pytest.param("artemis", marks=pytest.mark.broker), pytest.param("rabbitmq", marks=pytest.mark.broker)]
)
def test_orders_become_parcels_and_each_is_handed_out_once(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    prefix = f"async-shop.{uuid.uuid4().hex}"
    broker: Broker | None = None if place == "inproc" else request.getfixturevalue(place)
    url = "inproc://async-shop" if broker is None else broker.url("amqp")
    with served(url, prefix, tmp_path) as address, ThreadPoolExecutor(8) as threads:
        assert asked(f"{address}/health") == (200, {"packing": True})
        # They wait before there is anything, side by side in one event loop.
        parcels = [threads.submit(asked, f"{address}/parcels?wait_ms=50000") for _ in range(4)]
        placed = [asked(f"{address}/orders", {"item": "kettle", "count": n}) for n in range(1, 9)]
        assert {status for status, _ in placed} == {202}
        assert len({body["id"] for _, body in placed}) == 8
        got = [one.result(WAIT_S)[1] for one in parcels]
        got += [asked(f"{address}/parcels?wait_ms=20000")[1] for _ in range(4)]
        assert sorted(got) == [f"{n} x kettle" for n in range(1, 9)]
        assert asked(f"{address}/parcels?wait_ms=1")[0] == 404
        assert asked(f"{address}/orders", {"count": 1})[0] == 422
        if broker is not None:
            _send_nonsense(url, f"{prefix}.orders")
            assert asked(f"{address}/orders", {"item": "pot"})[0] == 202
            assert asked(f"{address}/parcels?wait_ms=20000") == (200, "1 x pot")
        assert asked(f"{address}/health") == (200, {"packing": True})


def _send_nonsense(url: str, queue: str) -> None:
    """Have it take orders that are none: no JSON, and no text."""
    with jmsapi.connection_factory(url).create_context() as context:
        for body in ("nonsense", b"\x00"):
            context.create_producer().send(context.create_queue(queue), body)
