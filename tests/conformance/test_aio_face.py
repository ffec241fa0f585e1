"""The conformance suite through ``jmsapi.aio``; in full by ``jmsapi-conformance --face aio``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jmsapi_conformance import sources
from jmsapi_conformance.__main__ import main
from jmsapi_conformance.aio_face import AioBackend, NotInAio, calls_made, end_calls
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.runner import run
from jmsapi_conformance.verdicts import Verdict

URL = "inproc://aio-face"


@pytest.mark.program
@pytest.mark.timeout(300)
def test_the_simplified_api_transactions_browsers_and_subscriptions_hold_through_it() -> None:
    only = ("ch04_4_7_*", "ch05_9_*", "ch06_11_4_*", "ch11_2_4_sending", "ch11_2_5_*", "ch11_2_6_*", "ch11_2_9_*")
    found = run(URL, only=only, face="aio")
    assert [f"{test.name}: {test.reason}" for test in found.tests if test.verdict is Verdict.FAIL] == []
    passed = {test.name for test in found.tests if test.verdict is Verdict.PASS}
    for name in (
        "ch04_4_7_transactions.py::test_messages_of_a_transaction_are_invisible_until_commit",
        "ch11_2_5_consumers.py::test_receive_waits_for_the_next_message",
        "ch11_2_6_closing.py::test_closing_a_context_rolls_its_transaction_back",
    ):
        assert name in passed
    left = [test for test in found.tests if test.verdict is Verdict.NOT_APPLICABLE]
    assert all(test.reason for test in left)
    assert len(passed) > 4 * len(left)


@pytest.mark.program
def test_a_fault_of_the_face_fails_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgets(_: object) -> None:
        """Commit nothing."""

    monkeypatch.setattr("jmsapi.aio.AsyncJMSContext.commit", forgets)
    name = "test_messages_of_a_transaction_are_invisible_until_commit"
    monkeypatch.setattr("jmsapi_conformance.kit.PATIENCE_MS", 200)
    found = run(URL, keyword=name, only=("ch04_4_7_*",), face="aio", deadline_s=2)
    assert [test.verdict for test in found.tests] == [Verdict.FAIL]
    assert [test.verdict for test in run(URL, keyword=name, only=("ch04_4_7_*",)).tests] == [Verdict.PASS]


@pytest.mark.program
def test_the_certificate_tells_the_face_and_its_code(tmp_path: Path) -> None:
    file = tmp_path / "face.json"
    assert main(["--face", "aio", URL, "-k", "ch11_2_9", "--json", str(file)]) == 0
    (column,) = json.loads(file.read_text())["certificates"]
    assert column["face"] == "aio"
    assert column["sources"] == sources.digests("inproc", "aio")
    assert set(column["sources"]) == {"core", "suite", "provider", "aio"}
    assert {test["test"].partition("[")[0] for test in column["tests"] if test["verdict"] == "pass"}


def test_what_the_face_does_not_have_is_told_by_name(request: pytest.FixtureRequest) -> None:
    request.addfinalizer(end_calls)
    before = calls_made()
    backend = AioBackend(Backend(URL))
    with backend.factory().create_context() as context:
        assert calls_made() > before
        consumer = context.create_consumer(context.create_queue(backend.unique("q")))
        with pytest.raises(NotInAio, match="message_listener"):
            consumer.message_listener = print
        with pytest.raises(AttributeError, match="JMSContext has no comit"):
            context.comit()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
