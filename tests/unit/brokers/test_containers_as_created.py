"""What a broker's container is created with; no engine needed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jmsapi_conformance.brokers._container import ContainerHost
from jmsapi_conformance.brokers._folder import Folder


@pytest.mark.parametrize("options", ["-XX:TieredStopAtLevel=1", ""])
def test_a_broker_has_the_options_of_java_that_its_launcher_has_and_no_health_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: str
) -> None:
    asked: list[dict[str, Any]] = []

    def create(_: str, **terms: Any) -> SimpleNamespace:
        asked.append(terms)
        return SimpleNamespace(id="made")

    @contextmanager
    def engine() -> Generator[SimpleNamespace]:
        yield SimpleNamespace(create=create)

    monkeypatch.setattr("jmsapi_conformance.brokers._container._engine", engine)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    ContainerHost.new("classic", Folder(tmp_path, None))
    assert asked[0]["environment"] == ({"JAVA_TOOL_OPTIONS": options} if options else {})
    assert asked[0]["healthcheck"] == {"test": ["NONE"]}
