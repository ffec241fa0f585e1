"""Which Java method a Python call means, which clients there are, and what is known of failures; no JVM is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from java_clients.calling import chosen
from java_clients.clients import CLIENTS
from java_clients.reasons import explained, fits, left_out, load, patterns
from java_clients.surface import members_of
from java_clients.throwing import NotInJava
from jmsapi import Byte, Long
from jmsapi_conformance.brokers import INFO
from jmsapi_conformance.document import JudgedTest, read
from jmsapi_conformance.levels import LEVEL
from jmsapi_conformance.plugin import SUITE
from jmsapi_conformance.verdicts import Verdict

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "conformance" / "certificates" / "foreign"


def params(interface: str, member: str, **given: Any) -> tuple[tuple[str, ...], list[Any]]:
    overload, arguments = chosen(member, members_of(interface)[member].calls, given, optional={"timeout_ms", "message"})
    return overload.params, arguments


@pytest.mark.parametrize(
    ("interface", "member", "given", "kinds", "arguments"),
    [
        ("Connection", "create_session", {}, (), []),
        ("Connection", "create_session", {"session_mode": 2}, ("int",), [2]),
        ("Connection", "create_session", {"session_mode": True, "acknowledge_mode": 1}, ("boolean", "int"), [True, 1]),
        ("ConnectionFactory", "create_context", {"session_mode": 0}, ("int",), [0]),
        ("MessageConsumer", "receive", {"timeout_ms": None}, (), []),
        ("MessageConsumer", "receive", {"timeout_ms": 0.2}, ("long",), [1]),
        ("BytesMessage", "write_bytes", {"value": b"abc", "offset": 1}, ("byte[]", "int", "int"), [b"abc", 1, 2]),
        ("JMSProducer", "set_property", {"name": "n", "value": Byte(1)}, ("String", "byte"), ["n", 1]),
        ("JMSProducer", "set_property", {"name": "n", "value": 1, "property_type": "short"}, ("String", "short"), ["n", 1]),
        ("Message", "set_object_property", {"name": "n", "value": Long(1)}, ("String", "Object"), ["n", 1]),
    ],
)
def test_a_call_means_the_java_method_that_takes_its_arguments(
    interface: str, member: str, given: dict[str, Any], kinds: tuple[str, ...], arguments: list[Any]
) -> None:
    assert params(interface, member, **given) == (kinds, arguments)


@pytest.mark.parametrize(
    ("member", "value"),
    [("set_byte_property", 128), ("set_int_property", "1"), ("set_boolean_property", 1), ("set_string_property", 1)],
)
def test_what_javas_compiler_refuses_is_told_apart_from_what_a_client_refuses(member: str, value: object) -> None:
    with pytest.raises(NotInJava, match="compiler"):
        params("Message", member, name="n", value=value)


def test_every_reason_is_about_a_test_that_the_suite_has() -> None:
    tests = [
        f"{path.name}::{name}"
        for path in SUITE.glob("[a-z]*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    for pattern in patterns():
        bare = re.escape(pattern.partition("[")[0]).replace(r"\*", ".*")
        assert any(re.fullmatch(bare, test) for test in tests), f"no test is called {pattern}"


def test_a_reason_for_a_whole_module_says_which_failures_it_is_about() -> None:
    assert [reason for reason in load() if not reason.failure and not all("::test_" in one for one in reason.tests)] == []


def test_no_reason_has_outlived_what_it_explains() -> None:
    columns = {column.url.partition("://")[0]: column for path in KEPT.glob("*.json") for column in read(path).certificates}
    failed = {client: [test for test in column.tests if test.verdict is Verdict.FAIL] for client, column in columns.items()}
    for reason in load():
        among = [test for client in reason.clients for test in failed[client] if reason.covers(client, test)]
        for pattern in reason.tests:
            assert reason.sometimes or any(fits(pattern, test.test) for test in among), (
                f"nothing fails by {pattern}: {reason.says}"
            )


def test_a_failure_gets_its_reason_and_an_unknown_one_is_told() -> None:
    known = load()[0]
    name = known.tests[0].replace("*", "")
    failed = JudgedTest(test=name, requirements=("3.5-1",), verdict=Verdict.FAIL, reason="no answer")
    other = JudgedTest(test="ch99.py::test_new", requirements=("3.5-1",), verdict=Verdict.FAIL, reason="no answer")
    told, unknown = explained(known.clients[0], [failed, other], load())
    assert told[0].remark.startswith(known.says)
    assert (told[1].remark, unknown) == ("", ["ch99.py::test_new: no answer"])
    assert left_out(known.clients[0], "ch99.py::test_new") is None


def test_a_reason_about_certain_failures_explains_no_other() -> None:
    known = next(reason for reason in load() if reason.failure)
    name = known.tests[0].replace("*", "")
    failed = JudgedTest(test=name, requirements=("3.5-1",), verdict=Verdict.FAIL, reason=f"NotThere: send(){known.failure}")
    _, unknown = explained(known.clients[0], [failed, replace(failed, reason="AssertionError")], [known])
    assert unknown == [f"{name}: AssertionError"]


@pytest.mark.parametrize("scheme", CLIENTS)
def test_a_client_is_called_by_the_version_that_is_fetched_and_its_page_says_the_same(scheme: str) -> None:
    client = CLIENTS[scheme]
    fetched = (ROOT / "tools" / "java_clients" / "pom.xml").read_text(encoding="utf-8")
    assert re.search(rf"<artifactId>{client.name}(-client)?</artifactId><version>{re.escape(client.version)}</version>", fetched)
    page = (ROOT / "docs" / "java-clients.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if f"`{scheme}://`" in line)
    assert f" {client.version}" in row
    assert INFO[client.broker].title in row


@pytest.mark.parametrize("scheme", CLIENTS)
def test_the_kept_certificate_of_a_client_is_whole_and_gives_a_reason_for_each_failure(scheme: str) -> None:
    client = CLIENTS[scheme]
    document = next(one for one in map(read, sorted(KEPT.glob("*.json"))) if one.certificates[0].url.startswith(f"{scheme}://"))
    (column,) = document.certificates
    assert (column.kind, column.selection, document.suite.level) == ("foreign", "", LEVEL)
    assert f"{client.name} {client.version}" in column.title
    assert {test.test.partition("::")[0] for test in column.tests} == {path.name for path in SUITE.glob("[a-z]*.py")}
    assert [test.test for test in column.failures() if not test.remark] == []
    told, unknown = explained(scheme, column.tests, load())
    assert unknown == []
    assert [test.test for test, now in zip(column.tests, told, strict=True) if test.remark != now.remark] == []
