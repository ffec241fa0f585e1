"""The table of what is wrong with a connection: each row by its evidence."""

from __future__ import annotations

import errno
import importlib
import socket
import ssl

import pytest

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.wire import connection_fault, faults


def tls(reason: str | None, made: type[ssl.SSLError] = ssl.SSLError) -> ssl.SSLError:
    error = made(1, f"[SSL: {reason}]")
    error.reason = reason  # type: ignore[assignment]
    return error


def untrusted(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code = code
    error.verify_message = message
    return error


ROWS = [
    # options that are wrong: final, and named
    (tls("WRONG_VERSION_NUMBER"), ErrorKind.OPTION, "scheme"),
    (tls("HTTP_REQUEST"), ErrorKind.OPTION, "scheme"),
    (UnicodeError("label too long"), ErrorKind.OPTION, "host"),
    (untrusted(18, "self-signed certificate"), ErrorKind.SECURITY, "tls_ca"),
    (untrusted(20, "unable to get local issuer certificate"), ErrorKind.SECURITY, "tls_ca"),
    (untrusted(62, "Hostname mismatch"), ErrorKind.SECURITY, "tls_verify_host"),
    (untrusted(64, "IP address mismatch"), ErrorKind.SECURITY, "tls_verify_host"),
    (untrusted(10, "certificate has expired"), ErrorKind.SECURITY, "expired"),
    # refused by the peer: final
    (tls("TLSV13_ALERT_CERTIFICATE_REQUIRED"), ErrorKind.SECURITY, "tls_cert"),
    (tls("TLSV1_ALERT_UNKNOWN_CA"), ErrorKind.SECURITY, "tls_cert"),
    (tls("SSLV3_ALERT_HANDSHAKE_FAILURE"), ErrorKind.SECURITY, "refused"),
    (tls("TLSV1_ALERT_PROTOCOL_VERSION"), ErrorKind.SECURITY, "version"),
    (tls("UNSUPPORTED_PROTOCOL"), ErrorKind.SECURITY, "too old"),
    # the link is down at the moment: passing
    (tls("UNEXPECTED_EOF_WHILE_READING", ssl.SSLEOFError), ErrorKind.CONNECTION, "broke off"),
    (tls(None, ssl.SSLZeroReturnError), ErrorKind.CONNECTION, "broke off"),
    (tls(None, ssl.SSLSyscallError), ErrorKind.CONNECTION, "broke off"),
    (tls("TLSV1_ALERT_INTERNAL_ERROR"), ErrorKind.CONNECTION, "broke off"),
    (tls("TLSV1_ALERT_USER_CANCELLED"), ErrorKind.CONNECTION, "broke off"),
    (tls("DECRYPTION_FAILED_OR_BAD_RECORD_MAC"), ErrorKind.CONNECTION, "broke off"),
    (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), ErrorKind.CONNECTION, "refused"),
    (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), ErrorKind.CONNECTION, "reset"),
    (OSError(errno.EHOSTUNREACH, "No route to host"), ErrorKind.CONNECTION, "route"),
    (OSError(errno.EMFILE, "Too many open files"), ErrorKind.CONNECTION, "open files"),
    (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), ErrorKind.CONNECTION, "name"),
    (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), ErrorKind.CONNECTION, "not known"),
    (TimeoutError(), ErrorKind.TIMEOUT, "in time"),
    (OSError(errno.ETIMEDOUT, "Connection timed out"), ErrorKind.TIMEOUT, "in time"),
]


@pytest.mark.parametrize(("error", "kind", "word"), ROWS, ids=lambda part: str(part)[:40])
def test_each_row(error: Exception, kind: ErrorKind, word: str) -> None:
    fault = connection_fault(error, "connect to broker.example:5671")
    assert (fault.kind, fault.fatal) == (kind, True)
    assert fault.message.startswith("connect to broker.example:5671: ")
    assert word in fault.message


def test_what_another_attempt_would_not_change_is_final_and_nothing_else() -> None:
    final = {ErrorKind.OPTION, ErrorKind.SECURITY, ErrorKind.UNSUPPORTED}
    assert {kind for kind in ErrorKind if kind.is_final} == final


def test_an_error_of_a_provider_stays_as_it_is() -> None:
    error = ProviderError(ErrorKind.OPTION, "the option tls_ca ...")
    assert connection_fault(error, "connect") is error


def test_every_reason_of_the_table_is_one_that_openssl_has() -> None:
    names = getattr(importlib.import_module("_ssl"), "err_codes_to_names", None)
    if names is None:
        pytest.skip("this Python does not tell the names of OpenSSL's reasons")
    table = {*faults._REFUSALS, *faults._NO_COMMON_GROUND, *faults._NOT_TLS}
    assert table <= set(names.values())
