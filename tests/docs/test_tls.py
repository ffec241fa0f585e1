"""The certificates that docs/tls.md makes hold where chains are checked strictly, and fail with the texts that it lists."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jmsapi.wire.faults import connection_fault

from ..peers.tls_front import server_context

PAGE = (Path(__file__).parents[2] / "docs" / "tls.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the page's first commands in a folder."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by the openssl command")
    folder = tmp_path_factory.mktemp("certificates")
    script = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]
    subprocess.run(["bash", "-e"], input=script, text=True, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder


def strict(folder: Path) -> ssl.SSLContext:
    """Form a client's side that is as strict as Python 3.13, on any Python."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> dict[str, object]:
    """Let two sides shake hands in memory, and return the client's certificate as the server saw it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server, server_hostname=host)
    open_sides: list[ssl.SSLObject] = [asking, serving]
    while open_sides:
        for side in list(open_sides):
            try:
                side.do_handshake()
                open_sides.remove(side)
            except ssl.SSLWantReadError:
                continue
    return dict(serving.getpeercert() or {})


@pytest.mark.xdist_group("tls page")
@pytest.mark.program
def test_both_certificates_hold_where_chains_are_checked_strictly(made: Path) -> None:
    server = server_context(made / "broker.pem", made / "ca.pem")
    server.verify_flags |= ssl.VERIFY_X509_STRICT
    client = strict(made)
    client.load_cert_chain(made / "orders.pem", made / "orders.key")
    for host in ("broker.example", "localhost", "127.0.0.1"):
        assert handshake(server, client, host)["subjectAltName"] == (("DNS", "orders"),)


@pytest.mark.xdist_group("tls page")
@pytest.mark.program
@pytest.mark.parametrize(
    ("client", "host"),
    [(lambda folder: ssl.create_default_context(), "localhost"), (strict, "elsewhere.example")],
    ids=["unknown authority", "other host"],
)
def test_each_text_is_one_that_the_page_lists(made: Path, client: Callable[[Path], ssl.SSLContext], host: str) -> None:
    with pytest.raises(ssl.SSLError) as caught:
        handshake(server_context(made / "broker.pem"), client(made), host)
    text = str(connection_fault(caught.value, "connect"))
    listed = [re.split(r" ?\.\.\. ?", one) for one in re.findall(r"^\| `(.*?)` \|", PAGE, re.MULTILINE)]
    assert any(all(part in text for part in parts) for parts in listed), text
