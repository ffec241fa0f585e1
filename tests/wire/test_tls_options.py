"""TLS settings from options: a file that cannot be used is named with its option, for both wires."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.spi.options import TlsOptions
from jmsapi.wire import tls_context

LOG = logging.getLogger("jmsapi.wire.test")


def options(**given: object) -> TlsOptions:
    return TlsOptions.model_validate({"scheme": "test", "host": "broker.example", **given})


ROWS: list[tuple[dict[str, str], str, str]] = [
    ({"tls_ca": "/no/such/ca.pem"}, "tls_ca", "No such file"),
    ({"tls_ca": "no.pem"}, "tls_ca", "no certificates in PEM"),
    ({"tls_ca": "."}, "tls_ca", "directory"),
    ({"tls_ca": "a\0b"}, "tls_ca", "null"),
    ({"tls_cert": "/no/such/cert.pem"}, "tls_cert", "No such file"),
    ({"tls_cert": "no.pem", "tls_key": "good.key"}, "tls_cert", "no certificate in PEM"),
    ({"tls_cert": "good.pem", "tls_key": "/no/such/key"}, "tls_key", "No such file"),
    ({"tls_cert": "good.pem", "tls_key": "no.pem"}, "tls_key", "no private key"),
    ({"tls_cert": "good.pem"}, "tls_cert", "no private key"),
    ({"tls_cert": "good.pem", "tls_key": "other.key"}, "tls_key", "not the key of the certificate"),
    ({"tls_cert": "good.pem", "tls_key": "locked.key", "tls_key_password": "bad"}, "tls_key_password", "does not open it"),
    ({"tls_cert": "good.pem", "tls_key": "locked.key"}, "tls_key_password", "is not given"),
    ({"tls_key": "good.key"}, "tls_key", "tls_cert"),
]


def placed(given: dict[str, str], certificates: Path) -> dict[str, str]:
    """The options with the names of files made whole."""
    return {
        name: value if value.startswith("/") or "\0" in value or name == "tls_key_password" else str(certificates / value)
        for name, value in given.items()
    }


@pytest.mark.parametrize(("given", "option", "why"), ROWS, ids=lambda part: str(part)[:50])
def test_a_file_that_cannot_be_used_is_named_with_its_option(
    given: dict[str, str], option: str, why: str, certificates: Path
) -> None:
    whole = placed(given, certificates)
    with pytest.raises(ProviderError) as caught:
        tls_context(options(**whole), LOG)
    assert (caught.value.kind, caught.value.fatal) == (ErrorKind.OPTION, True)
    assert caught.value.kind.is_final
    assert option in caught.value.message
    assert why.lower() in caught.value.message.lower()
    file = whole["tls_key" if option == "tls_key_password" else option]
    assert repr(file) in caught.value.message
    assert "'bad'" not in caught.value.message


def test_good_files_are_used(certificates: Path) -> None:
    own = {"tls_cert": str(certificates / "good.pem"), "tls_key": str(certificates / "locked.key"), "tls_key_password": "secret"}
    context = tls_context(options(tls_ca=str(certificates / "good.pem"), **own), LOG)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_each_check_that_is_off_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    context = tls_context(options(tls_verify_host=False), LOG)
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    context = tls_context(options(tls_verify=False), LOG)
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
    logged = [record.getMessage() for record in caplog.records]
    assert [("tls_verify_host" in line, "tls_verify is" in line) for line in logged] == [(True, False), (False, True)]
