"""A few of the suite's tests through Artemis's own Java client, and what the certificate says of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from java_clients.jvm import absent_tools
from jmsapi_conformance.brokers import Broker
from jmsapi_conformance.document import Column, read
from jmsapi_conformance.verdicts import Verdict

TOOLS = Path(__file__).parents[2] / "tools"
MODULES = "ch03_9_access_after_send_and_receive or ch04_4_7_transactions or ch04_5_2_asynchronous_delivery"


@pytest.fixture(scope="module")
def column(artemis: Broker, tmp_path_factory: pytest.TempPathFactory, leave_out: Callable[[str], NoReturn]) -> Column:
    if absent := absent_tools():
        leave_out(f"the Java clients cannot be had without {', '.join(absent)}")
    folder = tmp_path_factory.mktemp("java-columns")
    url = "java+core://" + artemis.url("openwire").partition("://")[2]
    # The JVM wants signals that pytest has, so it gets a process of its own.
    done = subprocess.run(
        [sys.executable, "-m", "java_clients", "-k", MODULES, "--out", str(folder), url],
        cwd=TOOLS,
        env={**os.environ, "JMSAPI_CONFORMANCE_PATIENCE_MS": "30000", "JMSAPI_CONFORMANCE_TEST_DEADLINE": "120"},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = folder.iterdir()
    return read(written).certificates[0]


@pytest.mark.broker
def test_a_java_client_passes_tests_of_messages_transactions_and_listeners(column: Column) -> None:
    verdicts = {one.test: one.verdict for one in column.tests}
    for passed in (
        "ch03_9_access_after_send_and_receive.py::test_changes_after_the_send_are_not_sent[text]",
        "ch04_4_7_transactions.py::test_messages_of_a_transaction_are_invisible_until_commit",
    ):
        assert verdicts[passed] is Verdict.PASS
    assert sum(verdict is Verdict.PASS for verdict in verdicts.values()) > len(verdicts) / 2


@pytest.mark.broker
def test_the_certificate_is_a_foreign_one_with_a_reason_for_each_failure(column: Column) -> None:
    assert (column.kind, column.provider.split()[0], column.broker) == ("foreign", "artemis-jakarta-client", "artemis")
    assert [one.test for one in column.failures() if "The test is right by" not in one.remark] == []


@pytest.mark.broker
def test_what_is_about_this_library_says_nothing_about_a_java_client(column: Column) -> None:
    (logged,) = (one for one in column.tests if "the_log_has_its_traceback" in one.test)
    assert logged.verdict is Verdict.NOT_APPLICABLE
    assert "the log of this library" in logged.reason
