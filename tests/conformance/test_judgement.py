"""How the suite judges: a few tests of its own kind, against providers that claim more or less."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jmsapi import IllegalStateException, UnsupportedFeatureException, UnsupportedFeatureRuntimeException
from jmsapi.spi import EMULATED, NATIVE, Capabilities, none
from jmsapi_conformance.inventory import by_id, load, pick, section_title
from jmsapi_conformance.levels import LEVELS, counts_in, parse
from jmsapi_conformance.marks import needs, new_in, requirement
from jmsapi_conformance.verdicts import Applicability, Verdict, applicability, combine, judge

SUITE = """
import time
import pytest
from jmsapi import Session
from jmsapi_conformance.kit import receive, send_texts
from jmsapi_conformance.marks import needs, new_in, requirement

@requirement("4.4.7-1")
@needs("transactions")
def test_uses_transactions(connection):
    assert connection.create_session(Session.SESSION_TRANSACTED).transacted

@requirement("4.4.7-1")
@needs("transactions")
def test_says_that_it_uses_transactions_but_does_not(session, queue):
    send_texts(session, queue, "text")

@requirement("4.4.7-2")
@needs("transactions")
def test_is_refused_in_a_fixture(transacted):
    raise AssertionError("never reached when refused")

@requirement("4.4.7-3")
@needs("transactions")
def test_fails_in_another_way(connection):
    connection.close()
    connection.create_session(Session.SESSION_TRANSACTED)

@requirement("3.5.11-1")
@needs("delivery_count_exact")
def test_needs_a_quality(session):
    pass

@requirement("4.10-3")
@needs("broker_restart")
def test_needs_surroundings():
    pass

@requirement("4.4.1-1", "4.4.1-2")
def test_needs_nothing(session, queue):
    send_texts(session, queue, "text")
    receive(session.create_consumer(queue))

@requirement("4.4.1-2")
def test_fails():
    assert 1 + 1 == 3

@requirement("4.4.1-3")
def test_hangs():
    time.sleep(60)

@requirement("4.4.1-4")
def test_fails_when_it_is_taken_down(falls_over):
    pass

@requirement("4.4.1-1")
@new_in("2026.1")
def test_is_new_and_fails():
    assert 2 + 2 == 5

@requirement("4.4.1-1")
def test_is_old():
    assert True

@requirement("4.4.1-5")
@new_in("2026.1")
def test_is_new_and_alone():
    assert True

@requirement("4.4.1-1")
@new_in("2025.2")
def test_was_new_once():
    assert True

@pytest.fixture
def transacted(connection):
    return connection.create_session(Session.SESSION_TRANSACTED)

@pytest.fixture
def falls_over():
    yield
    raise RuntimeError("on the way out")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("suite")
    (made / "ch99_judged.py").write_text(SUITE)
    return made


@cache
def certify(folder: Path, *claims: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("limited.py")), str(folder), *claims],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "JMSAPI_CONFORMANCE_TEST_DEADLINE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (certificate,) = json.loads(done.stdout)["certificates"]
    return {test["test"].partition("::")[2]: test for test in certificate["tests"]} | {"": certificate}


@pytest.mark.xdist_group("judgement")
@pytest.mark.program
def test_a_provider_that_claims_all_passes_what_it_can(folder: Path) -> None:
    said = certify(folder)
    verdicts = {name: test["verdict"] for name, test in said.items() if name}
    assert verdicts == {
        "test_uses_transactions": "pass",
        "test_says_that_it_uses_transactions_but_does_not": "pass",
        "test_is_refused_in_a_fixture": "fail",
        "test_fails_in_another_way": "fail",
        "test_needs_a_quality": "pass",
        "test_needs_surroundings": "not applicable",
        "test_needs_nothing": "pass",
        "test_fails": "fail",
        "test_hangs": "fail",
        "test_fails_when_it_is_taken_down": "fail",
        "test_is_new_and_fails": "fail",
        "test_is_old": "pass",
        "test_is_new_and_alone": "pass",
        "test_was_new_once": "pass",
    }
    assert "1 + 1" in said["test_fails"]["reason"]
    assert "not done after 1 s" in said["test_hangs"]["reason"]
    assert "on the way out" in said["test_fails_when_it_is_taken_down"]["reason"]
    assert "did not start this broker" in said["test_needs_surroundings"]["reason"]


@pytest.mark.xdist_group("judgement")
@pytest.mark.program
def test_a_requirement_has_the_worst_verdict_of_its_tests(folder: Path) -> None:
    requirements = certify(folder)[""]["requirements"]
    assert requirements["4.4.1-1"] == "pass"
    assert requirements["4.4.1-2"] == "fail"
    assert requirements["4.10-3"] == "not applicable"


@pytest.mark.xdist_group("judgement")
@pytest.mark.program
def test_a_test_that_is_new_in_the_level_reports_and_decides_nothing(folder: Path) -> None:
    said = certify(folder)
    assert {name for name, test in said.items() if name and not test["counts"]} == {
        "test_is_new_and_fails",
        "test_is_new_and_alone",
    }
    assert said["test_is_new_and_fails"]["reason"].endswith("assert (2 + 2) == 5")
    assert said[""]["requirements"]["4.4.1-1"] == "pass"
    assert said[""]["requirements"]["4.4.1-5"] == "not applicable"


@pytest.mark.xdist_group("judgement")
@pytest.mark.program
def test_what_is_claimed_none_must_be_refused_and_nothing_else_will_do(folder: Path) -> None:
    said = certify(folder, "transactions=none", "delivery_count_exact=none")
    assert said["test_uses_transactions"]["verdict"] == "refused"
    assert said["test_is_refused_in_a_fixture"]["verdict"] == "refused"
    assert said["test_says_that_it_uses_transactions_but_does_not"]["verdict"] == "fail"
    assert "yet it works" in said["test_says_that_it_uses_transactions_but_does_not"]["reason"]
    assert said["test_fails_in_another_way"]["verdict"] == "fail"
    assert "must be refused with UnsupportedFeatureException, got IllegalState" in said["test_fails_in_another_way"]["reason"]
    assert said["test_needs_a_quality"]["verdict"] == "not applicable"
    assert "delivery_count_exact is none for a test" in said["test_needs_a_quality"]["reason"]
    assert said[""]["capabilities"]["transactions"] == {
        "level": "none",
        "note": "transactions is none for a test",
        "emulate": None,
    }


@pytest.mark.xdist_group("judgement")
@pytest.mark.program
def test_what_is_emulated_is_told_apart(folder: Path) -> None:
    said = certify(folder, "transactions=emulated")
    assert said["test_uses_transactions"]["verdict"] == "emulated"
    assert said["test_needs_nothing"]["verdict"] == "pass"


# ---------------------------------------------------------------- the pure part


def test_applicability_compares_needs_with_claims() -> None:
    has = Capabilities("p", "b", transactions=none("no"), browser=EMULATED, priority_order=none("", emulate=None))
    assert applicability([], has, frozenset()) == Applicability()
    assert applicability(["transactions", "browser"], has, frozenset()) == Applicability(("transactions",), ("browser",))
    assert applicability(["priority_order"], has, frozenset()).not_applicable == "priority_order: not promised by this broker"
    assert applicability(["broker_restart"], has, frozenset({"broker_restart"})) == Applicability()


def test_a_test_counts_from_the_level_after_the_one_it_came_with() -> None:
    assert counts_in("2026.1", None)
    assert not counts_in("2026.1", "2026.2")
    assert not counts_in("2026.2", "2026.2")
    assert counts_in("2026.10", "2026.9")
    assert counts_in("2027.1", "2026.2")
    assert parse(LEVELS[-1]) == max(map(parse, LEVELS))
    for wrong in ("2026", "2026.0", "v2026.1", "2026.1.1"):
        with pytest.raises(ValueError, match="a year and a number"):
            new_in(wrong)


@pytest.mark.parametrize(
    ("applies", "error", "verdict"),
    [
        (Applicability(), None, Verdict.PASS),
        (Applicability(emulated=("browser",)), None, Verdict.EMULATED),
        (Applicability(emulated=("browser",)), AssertionError("x"), Verdict.FAIL),
        (Applicability(missing=("browser",)), UnsupportedFeatureException("a browser", "p"), Verdict.REFUSED),
        (Applicability(missing=("browser",)), UnsupportedFeatureRuntimeException("a browser", "p"), Verdict.REFUSED),
        (Applicability(missing=("browser",)), IllegalStateException("x"), Verdict.FAIL),
        (Applicability(missing=("browser",)), None, Verdict.FAIL),
        (Applicability(), UnsupportedFeatureException("a browser", "p"), Verdict.FAIL),
    ],
)
def test_a_verdict_follows_from_claim_and_outcome(applies: Applicability, error: Exception | None, verdict: Verdict) -> None:
    assert judge(applies, error)[0] is verdict


def test_failures_outweigh_all_and_what_is_not_applicable_says_nothing() -> None:
    everything = list(Verdict)
    assert combine(everything) is Verdict.FAIL
    assert combine([Verdict.PASS, Verdict.REFUSED]) is Verdict.REFUSED
    assert combine([Verdict.PASS, Verdict.EMULATED, Verdict.NOT_APPLICABLE]) is Verdict.EMULATED
    assert combine([Verdict.PASS, Verdict.NOT_APPLICABLE]) is Verdict.PASS
    assert combine([Verdict.NOT_APPLICABLE]) is Verdict.NOT_APPLICABLE


def test_a_mark_that_names_nothing_known_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"'4\.4\.7-99' is not in the inventory"):
        requirement("4.4.7-99")
    with pytest.raises(ValueError, match="at least one"):
        requirement()
    with pytest.raises(ValueError, match="'transaction' is neither"):
        needs("transaction")
    assert needs("transactions", "broker_restart").args == ("transactions", "broker_restart")
    assert NATIVE


# ---------------------------------------------------------------- the inventory


def test_the_inventory_is_complete() -> None:
    everything = load()
    assert len(everything) == len({one.id for one in everything}) == 1142
    assert {one.level for one in everything} == {"must", "should", "may", "optional", "superseded"}
    assert {one.scope for one in everything} == {"api", "provider", "broker"}
    assert all(one.text and one.test and one.api for one in everything)


def test_requirements_are_picked_by_group_or_section() -> None:
    assert {one.group for one in pick(load(), "ch4")} == {"ch4-common"}
    assert [one.id for one in pick(load(), "4.4.10.1")] == ["4.4.10.1-1"]
    assert {one.id.rsplit("-", 1)[0] for one in pick(load(), "3.4.1")} == {"3.4.1"}
    assert len(pick(load(), None)) == 1142
    assert by_id("SHS-1").group == "shared-subscriptions"
    assert section_title("4.4.7-1") == "Transactions"
