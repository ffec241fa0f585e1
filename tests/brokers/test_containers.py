"""``jmsapi-conformance --containers`` starts brokers of its own, and leaves none."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from jmsapi_conformance.brokers._container import why_not


@pytest.mark.broker
def test_a_broker_in_a_container_is_certified_on_both_wires_and_ends(
    tmp_path: Path, leave_out: Callable[[str], NoReturn]
) -> None:
    if (why := why_not("artemis")) is not None:
        leave_out(why)
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "jmsapi_conformance", "--containers", "artemis"),
            *("-k", "ch04_3_3", "--json", str(report)),
        ],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs in a container of" in done.stdout
    certificates = json.loads(report.read_text())["certificates"]
    assert [(one["provider"], one["broker"]) for one in certificates] == [("amqp", "artemis"), ("stomp", "artemis")]
    for one in certificates:
        with pytest.raises(OSError):
            _connect(one["url"])


def _connect(url: str) -> None:
    host, _, port = url.rpartition("@")[2].rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()
