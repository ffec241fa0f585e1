"""The conformance suite on a stored in-process broker: what depends on how messages are kept, restarts included (SHS-57).

The whole suite runs with ``jmsapi-conformance inproc:///path/file.db``; here are the chapters about what is kept, what is
done in transactions, and what is shared.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsapi_inproc
from jmsapi_conformance.plugin import Certify

_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def stored_url() -> Iterator[str]:
    """Give the URL of a file in memory, where there is such a thing: the pace of a disk is not what is certified."""
    with tempfile.TemporaryDirectory(prefix="jmsapi-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        file = Path(folder, "certify.db")
        yield f"inproc://{file}"
        jmsapi_inproc.discard(file)


stored = Certify(
    fixture="stored_url",
    only=("ch04_10_*", "ch04_4_7_*", "ch06_11_3_*", "ch06_11_4_*", "ch08_3_*", "shs_*"),
)
