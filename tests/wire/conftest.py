"""Certificates and peers for the wire toolkit, all on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good.pem/.key (127.0.0.1), other.pem/.key, locked.key (good's, password "secret") and no.pem."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by the openssl command")
    folder = tmp_path_factory.mktemp("wire-tls")
    for name, subject in (("good", "IP:127.0.0.1,DNS:localhost"), ("other", "DNS:other.example")):
        _openssl(
            folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-addext", f"subjectAltName={subject}", "-keyout", f"{name}.key", "-out", f"{name}.pem",
        )  # fmt: skip
    _openssl(folder, "ec", "-aes256", "-passout", "pass:secret", "-in", "good.key", "-out", "locked.key")
    (folder / "no.pem").write_text("no certificate\n")
    return folder


@pytest.fixture
def server(certificates: Path) -> ssl.SSLContext:
    """A server's side of TLS with the good certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "good.pem", certificates / "good.key")
    return context
