"""The project's own docker-compose.yml."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from jmsapi_conformance.brokers import KINDS, BrokerKind
from jmsapi_conformance.brokers._container import why_not
from jmsapi_conformance.brokers._handshake import check_amqp, stomp_server
from jmsapi_conformance.brokers._ports import free_ports

ROOT = Path(__file__).parents[2]
UP_S = 240
SERVERS = {"artemis": "ActiveMQ-Artemis/", "classic": "ActiveMQ/", "rabbitmq": "RabbitMQ/"}


@pytest.fixture(scope="module")
def compose_ports() -> Iterator[dict[str, int]]:
    """Start all three under a project name and on ports of this test's own."""
    if (why := _why_not()) is not None:
        if os.environ.get("JMSAPI_REQUIRE_BROKERS", "") not in ("", "0"):
            pytest.fail(why, pytrace=False)
        pytest.skip(f"LEFT OUT: {why}")
    names = [f"{kind.upper()}_{wire}_PORT" for kind in KINDS for wire in ("STOMP", "AMQP")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    environment = {**os.environ, **{name: str(port) for name, port in ports.items()}}
    compose = ["docker", "compose", "--project-name", f"jmsapi-test-{uuid.uuid4().hex[:8]}"]
    try:
        done = subprocess.run(
            [*compose, "up", "--detach", "--wait"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=UP_S
        )
        assert done.returncode == 0, done.stderr
        yield ports
    finally:
        down = [*compose, "down", "--volumes", "--timeout", "1"]
        subprocess.run(down, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=True)


def _why_not() -> str | None:
    reasons = [reason for kind in KINDS if (reason := why_not(kind)) is not None]
    if not reasons and (
        shutil.which("docker") is None or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        reasons = ["there is no docker compose"]
    return reasons[0] if reasons else None


@pytest.mark.broker
@pytest.mark.xdist_group("compose")
@pytest.mark.parametrize("kind", KINDS)
def test_compose_starts_a_broker_that_takes_a_log_in_on_both_wires(kind: BrokerKind, compose_ports: dict[str, int]) -> None:
    server = stomp_server("127.0.0.1", compose_ports[f"{kind.upper()}_STOMP_PORT"], "admin", "admin")
    assert server.startswith(SERVERS[kind])
    check_amqp("127.0.0.1", compose_ports[f"{kind.upper()}_AMQP_PORT"])
