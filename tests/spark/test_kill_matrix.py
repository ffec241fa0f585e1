"""Five kills of the matrix, in the session of the tests; ``make spark-proof`` does all of them, each broker killed as well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kill_matrix.cases import CASES, Case
from kill_matrix.stage import Account, InSession, Stage
from kill_matrix.trials import TRIALS, Trial, links

from jmsapi.testing import LoopbackServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
ORDINARY = [case for case in CASES if case.ordinary]
PLACES = ("classic", "artemis", "loopback", "classic", "artemis")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: the sockets of this process belong to Spark's gateway."""
    yield


def test_five_cases_run_here_and_every_row_is_in_the_matrix() -> None:
    assert len(ORDINARY) == len(PLACES)
    assert {one.row for one in (*CASES, *TRIALS)} == set(range(1, 22))
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.do == "kill" for case in ORDINARY), "the session of the tests lives on"


@pytest.mark.parametrize(
    ("case", "place"),
    [
        pytest.param(case, place, marks=() if place == "loopback" else pytest.mark.broker, id=f"{case.name} on {place}")
        for case, place in zip(ORDINARY, PLACES, strict=True)
    ],
)
def test_what_dies_loses_and_doubles_nothing(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path, case: Case, place: str
) -> None:
    if place == "loopback":
        with LoopbackServer() as server:
            account = run(spark, case, server.url, tmp_path)
    else:
        account = run(spark, case, request.getfixturevalue(f"{place}_place").full_url, tmp_path)
    assert account == Account(0, 0, met=True)


def run(spark: Any, case: Case, url: str, folder: Path) -> Account:
    return Stage(case, url, InSession(spark, Path(os.environ["CRASH_AT"])), folder / "case").run()


@pytest.mark.parametrize("trial", TRIALS, ids=[trial.name for trial in TRIALS])
def test_trials_in_short_on_a_server_in_this_process(trial: Trial, tmp_path: Path) -> None:
    run = partial(trial.run, times=4, messages=1200) if getattr(trial.run, "func", None) is links else trial.run
    with LoopbackServer() as server:
        assert run(server.url, server.url, tmp_path) == Account(0, 0, met=True)
