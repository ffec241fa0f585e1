"""The web application in ``examples/web`` takes orders and hands out parcels, in process and on real brokers."""

from __future__ import annotations

import importlib.util
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import jmsapi

PROGRAM = Path(__file__).parents[2] / "examples" / "web" / "shop.py"


def shop(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Load the program with queues of the test's own."""
    text = PROGRAM.read_text(encoding="utf-8").replace('"shop.', f'"shop.{uuid.uuid4().hex}.')
    with jmsapi.connection_factory(url).create_connection() as connection:
        if not jmsapi.capabilities(connection).transactions:
            without = '@JMSListenerProperty("transactionAttribute", "NotSupported")'
            text = text.replace("@JMSQueueListener()", f"@JMSQueueListener()\n{without}")
    monkeypatch.setenv("JMSAPI_URL", url)
    path = tmp_path / "shop.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("shop", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "shop", module)
    spec.loader.exec_module(module)
    return module


def test_orders_become_parcels_and_each_is_handed_out_once(
    broker_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = shop(broker_url, monkeypatch, tmp_path)
    with TestClient(module.app) as client:
        assert client.get("/health").json() == {"healthy": True, "reasons": []}
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda n: client.post("/orders", json={"item": "kettle", "count": n}), range(1, 9)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["id"] for answer in answers}) == 8
        parcels = [client.get("/parcels", params={"wait_ms": 20_000}).json() for _ in range(8)]
        assert sorted(parcels) == [f"{n} x kettle" for n in range(1, 9)]
        assert client.get("/parcels", params={"wait_ms": 1}).status_code == 404
        assert client.post("/orders", json={"count": 1}).status_code == 422
        module.listeners.stop()
        stopped = client.get("/health")
        assert (stopped.status_code, stopped.json()["healthy"]) == (503, False)
    assert module.pool.open_connections == 0
