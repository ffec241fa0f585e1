"""Tests that were run again take their place in a kept certificate, and say when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from java_clients import renewal
from java_clients.objects import _class_for  # pyright: ignore[reportPrivateUsage]
from java_clients.reasons import explained, load
from java_clients.renewal import every_test, renewed
from java_clients.throwing import NotInJava
from jmsapi_conformance.document import CapabilityClaim, Column, Document, JudgedTest, Suite, read, write
from jmsapi_conformance.plugin import SUITE
from jmsapi_conformance.verdicts import Verdict

SUITE_NOW = ("ch04_4_7_a.py::test_old", "ch04_4_7_a.py::test_mended", "ch04_4_7_b.py::test_new")


def outcome(name: str, verdict: Verdict = Verdict.PASS, *ids: str, reason: str = "", remark: str = "") -> JudgedTest:
    return JudgedTest(name, ids or ("4.4.7-1",), verdict, reason, remark=remark)


def column(*tests: JudgedTest, started: str = "2026-11-28T19:25:46+00:00", selection: str = "") -> Column:
    return Column("java+core://***@h:1", "core 2", "artemis", "1", tests, started, selection=selection, kind="foreign")


KEPT = column(
    outcome("ch04_4_7_a.py::test_gone"),
    outcome("ch04_4_7_a.py::test_mended", Verdict.FAIL, reason="no answer", remark="It answers late."),
    outcome("ch04_4_7_a.py::test_old"),
)
PART = column(
    outcome("ch04_4_7_b.py::test_new", Verdict.PASS, "4.4.7-2"),
    outcome("ch04_4_7_a.py::test_mended"),
    started="2026-11-29T20:00:00+00:00",
    selection="new or mended",
)


def test_what_was_run_again_replaces_the_older_outcome_and_says_on_which_day_it_was_run() -> None:
    found, unknown = renewed(KEPT, PART, SUITE_NOW)
    assert unknown == []
    assert [(one.test, one.verdict.value, one.remark) for one in found.tests] == [
        ("ch04_4_7_a.py::test_old", "pass", ""),
        ("ch04_4_7_a.py::test_mended", "pass", "Run on 2026-11-29."),
        ("ch04_4_7_b.py::test_new", "pass", "Run on 2026-11-29."),
    ]
    assert (found.started, found.selection) == (KEPT.started, "")
    assert found.requirements == {"4.4.7-1": Verdict.PASS, "4.4.7-2": Verdict.PASS}


def test_what_the_provider_claims_is_what_it_claimed_last() -> None:
    claims = {"user_id": CapabilityClaim("none")}
    assert renewed(KEPT, replace(PART, capabilities=claims), SUITE_NOW)[0].capabilities == claims


def test_a_test_that_nobody_has_run_is_told() -> None:
    with pytest.raises(ValueError, match=r"1 tests of the suite were not run, the first of them .*test_newer"):
        renewed(KEPT, PART, (*SUITE_NOW, "ch04_4_7_b.py::test_newer"))


def test_another_version_of_the_broker_renews_nothing() -> None:
    with pytest.raises(ValueError, match="core 2 artemis 2 cannot renew the certificate of core 2 artemis 1"):
        renewed(KEPT, replace(PART, broker_version="2"), SUITE_NOW)


def test_a_failure_has_its_reason_before_the_day_and_keeps_both_when_it_is_explained_again() -> None:
    known = load()[0]
    name = known.tests[0].replace("*", "")
    failed = column(outcome(name, Verdict.FAIL, reason="no"), started=PART.started)
    found, unknown = renewed(replace(KEPT, url=f"{known.clients[0]}://h"), failed, [name])
    assert (unknown, found.tests[0].remark) == ([], f"{known.says} The test is right by 4.4.7-1. Run on 2026-11-29.")
    assert explained(known.clients[0], found.tests, load()) == (found.tests, [])


def test_a_failure_without_a_reason_ends_the_command_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(renewal, "every_test", lambda: SUITE_NOW)
    kept, part = tmp_path / "kept" / "java-core.json", tmp_path / "part.json"
    write(Document(1, Suite("1"), (KEPT,)), kept, terse=True)
    write(Document(1, Suite("1"), (replace(PART, tests=(*PART.tests, outcome(SUITE_NOW[0], Verdict.FAIL))),)), part)
    assert renewal.main([str(part), "--kept", str(kept.parent)]) == 1
    assert "1 failures without a reason in reasons.toml:\n  core 2: ch04_4_7_a.py::test_old" in capsys.readouterr().out
    assert [one.test for one in read(kept).certificates[0].tests] == list(SUITE_NOW)


@pytest.mark.program
def test_the_every_test_are_those_of_all_its_modules() -> None:
    names = every_test()
    assert {name.partition("::")[0] for name in names} == {path.name for path in SUITE.glob("[a-z]*.py")}
    assert len(set(names)) == len(names) > 2500


def test_a_member_that_java_does_not_have_is_refused_as_javas_compiler_would() -> None:
    kind = _class_for(("JMSContext",))
    assert not kind.__abstractmethods__  # type: ignore[attr-defined]
    with pytest.raises(NotInJava, match=r"Java's JMSContext has no request\(\)"):
        kind(None).request(None, "text")  # type: ignore[attr-defined]
