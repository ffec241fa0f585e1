"""One set of settings serves the launcher, docker-compose.yml and the scripts that build images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from jmsapi_conformance.brokers import INFO, KINDS, BrokerKind
from jmsapi_conformance.brokers._kinds import HERE

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    compose: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return compose["services"]


@pytest.mark.parametrize("kind", KINDS)
def test_compose_starts_what_the_launcher_starts(kind: BrokerKind, services: dict[str, dict[str, Any]]) -> None:
    service, info = services[kind], INFO[kind]
    assert service["image"] == f"${{{info.image_env}:-{info.default_image}}}"
    assert service.get("environment", {}) == info.environment
    inside = "./" + HERE.relative_to(ROOT).as_posix()
    assert service["volumes"] == [f"{inside}/{ours}:{theirs}:ro" for ours, theirs in info.mounts.items()]


@pytest.mark.parametrize("kind", KINDS)
def test_compose_publishes_both_wires_on_loopback_only(kind: BrokerKind, services: dict[str, dict[str, Any]]) -> None:
    ports: list[str] = services[kind]["ports"]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    wires = {INFO[kind].inner_ports[wire] for wire in ("stomp", "amqp")}
    assert {int(port.rpartition(":")[2]) for port in ports} == wires


def test_compose_gives_no_host_port_to_two_services(services: dict[str, dict[str, Any]]) -> None:
    ports = [re.findall(r":-(\d+)}", port)[0] for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports)) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_every_mounted_setting_is_in_the_package(kind: BrokerKind) -> None:
    assert all((HERE / ours).exists() for ours in INFO[kind].mounts)


def test_the_scripts_build_the_images_that_the_launcher_starts() -> None:
    script = (HERE / "build-images.sh").read_text(encoding="utf-8")
    versions = dict(re.findall(r"(\w+)=\$\{\w+_VERSION:-([\d.]+)\}", script))
    built = {re.sub(r"\$(\w+)", lambda name: versions[name[1]], image) for image in re.findall(r'"([\w/]+:\$\w+)"', script)}
    assert {INFO[kind].default_image for kind in KINDS} <= built


def test_an_image_can_be_set_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTEMIS_IMAGE", "mine/artemis:1")
    assert INFO["artemis"].image == "mine/artemis:1"
    monkeypatch.setenv("ARTEMIS_IMAGE", "")
    assert INFO["artemis"].image == INFO["artemis"].default_image
