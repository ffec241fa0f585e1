"""The conformance suite over the loopback server: what the wire carries; in full by ``jmsapi-conformance`` on its URL."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from jmsapi_conformance.backend import Backend
from jmsapi_conformance.plugin import Certify

PART = (
    "ch03_11_4_*",
    "ch03_4_9_*",
    "ch04_3_1_*",
    "ch04_3_2_*",
    "ch04_4_10_*",
    "ch04_4_3_*",
    "ch04_4_7_*",
    "ch04_12_*",
    "ch05_9_*",
    "ch06_11_3_*",
    "ch06_11_4_*",
    "shs_sharing",
)


@pytest.fixture(scope="session")
def loopback_server() -> Iterator[Backend]:
    """Give a server in a process of its own, with credentials for its clients' URL to have."""
    command = [sys.executable, "-m", "jmsapi.testing", "--user", "suite", "--password", "p:w"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip().replace("//", "//suite:p%3Aw@")
        yield Backend(url, title="STOMP on the loopback server")
        server.terminate()


pytestmark = pytest.mark.program
loopback = Certify(fixture="loopback_server", only=PART)
