"""A provider in a distribution of its own is found by its scheme and certified by the installed suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# What a board is about, and what it refuses. The whole suite: see its README.
PART = "ch03_8_ or ch04_4_ or ch04_5_ or ch04_8_ or ch04_12_ or ch05_ or ch06_11_ or ch08_3_"

pytestmark = [pytest.mark.program, pytest.mark.timeout(400), pytest.mark.xdist_group("third-party provider")]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Install the example as anybody would, certify it as anybody would, and give the certificate."""
    site, report = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("report") / "board.json"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, str(ROOT / "examples" / "provider-board")], check=True, timeout=180)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "jmsapi_conformance", "board://x", "-n", "2", "-k", PART, "--json", str(report)],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(report.read_text())["certificates"]
    assert isinstance(found, dict)
    return found


def test_it_is_found_by_its_scheme_and_holds_what_it_claims(certificate: dict[str, Any]) -> None:
    assert (certificate["provider"], certificate["broker"]) == ("board", "board")
    assert certificate["requirements"]["4.4.11-7"] == "pass"
    verdicts = Counter(certificate["requirements"].values())
    assert verdicts["pass"] > 80
    assert "fail" not in verdicts


def test_what_it_does_not_claim_is_refused_by_name(certificate: dict[str, Any]) -> None:
    assert certificate["requirements"]["4.4.7-3"] == "refused"
    assert certificate["requirements"]["6.11.4-1"] == "refused"
    assert certificate["requirements"]["8.3.1-1"] == "refused"
    reasons = {test["reason"] for test in certificate["tests"] if "4.4.7-3" in test["requirements"]}
    assert any("a board has no transactions" in reason for reason in reasons)


def test_it_brings_a_selector_dialect_of_its_own(certificate: dict[str, Any]) -> None:
    selectors = {one: found for one, found in certificate["requirements"].items() if one.startswith("3.8.1")}
    assert len(selectors) > 50
    every_method = {"3.8.1.1-52", "3.8.1.1-53"}
    assert {one for one, found in selectors.items() if found not in ("pass", "not applicable")} == every_method, selectors
    about = [test for test in certificate["tests"] if every_method.intersection(test["requirements"])]
    refused = {test["needs"][0] for test in about if test["verdict"] == "refused"}
    assert refused == {"browser", "durable_subscription", "shared_subscription", "shared_durable_subscription"}
    assert {test["verdict"] for test in about if not refused.intersection(test["needs"])} == {"pass", "emulated"}


def test_where_nothing_can_be_asked_for_it_is_not_applicable(certificate: dict[str, Any]) -> None:
    assert certificate["requirements"]["6.11.4-7"] == "not applicable"
    assert certificate["requirements"]["4.12-3"] == "not applicable"


def test_it_is_written_against_the_SPI_alone() -> None:
    for module in (ROOT / "examples" / "provider-board" / "jmsapi_board").glob("*.py"):
        for line in module.read_text(encoding="utf-8").splitlines():
            if line.startswith(("import jmsapi", "from jmsapi")):
                assert line.split()[1].startswith(("jmsapi.spi", "jmsapi_board", "jmsapi_selector")), line
