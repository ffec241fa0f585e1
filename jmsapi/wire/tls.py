"""A client's TLS settings: chain and host name are checked unless the options say otherwise, which is logged."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from jmsapi.spi import ErrorKind, ProviderError

if TYPE_CHECKING:
    from jmsapi.spi.options import TlsOptions

__all__ = ["tls_context"]


def tls_context(options: TlsOptions, log: logging.Logger) -> ssl.SSLContext:
    """Return the context for the options.

    Args:
        options: Those of the connection.
        log: Where a check that is off is logged, as a warning.
    Raises:
        ProviderError: OPTION; a file is missing, cannot be read or holds no certificate or key, or a key's password is wrong. The
            text names the option and the file, never the password.
    """
    context = ssl.create_default_context() if options.tls_ca is None else _trusting(options.tls_ca)
    if options.tls_cert is not None:
        _load_own(context, options)
    elif options.tls_key is not None:
        raise _unusable("tls_key", options.tls_key, "tls_cert, the certificate that it belongs to, is not given")
    if not options.tls_verify:
        log.warning("TLS to %s: the certificate is not checked at all (tls_verify is off)", options.host)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif not options.tls_verify_host:
        log.warning("TLS to %s: the host name is not checked against the certificate (tls_verify_host is off)", options.host)
        context.check_hostname = False
    return context


def _trusting(file: str) -> ssl.SSLContext:
    _check_readable("tls_ca", file)
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as cause:
        raise _unusable("tls_ca", file, f"it holds no certificates in PEM form ({_reason(cause)})") from cause


def _load_own(context: ssl.SSLContext, options: TlsOptions) -> None:
    cert = options.tls_cert or ""
    key = options.tls_key or cert
    key_option = "tls_cert" if options.tls_key is None else "tls_key"
    _check_readable("tls_cert", cert)
    _check_readable(key_option, key)
    password = "" if options.tls_key_password is None else options.tls_key_password.get_secret_value()
    asked: list[str] = []

    def give() -> str:
        # Without this function OpenSSL asks for a missing password on the terminal.
        asked.append(password)
        return password

    try:
        _trial(cert, "tls_cert")
        context.load_cert_chain(cert, options.tls_key, give)
    except ssl.SSLError as cause:
        if asked:
            state = "is not given" if not password else "does not open it"
            raise _unusable(key_option, key, f"it is encrypted, and tls_key_password {state}") from cause
        if cause.reason == "KEY_VALUES_MISMATCH":
            raise _unusable(key_option, key, f"it is not the key of the certificate tls_cert ({cert})") from cause
        raise _unusable(key_option, key, f"it holds no private key in PEM form ({_reason(cause)})") from cause
    except (OSError, ValueError) as cause:
        raise _unusable(key_option, key, _reason(cause)) from cause


def _trial(file: str, option: str) -> None:
    """Raise ProviderError when a file holds no certificate: loading it with its key does not tell which of them is wrong."""
    try:
        ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as cause:
        raise _unusable(option, file, f"it holds no certificate in PEM form ({_reason(cause)})") from cause


def _check_readable(option: str, file: str) -> None:
    try:
        with Path(file).open("rb"):
            return
    except (OSError, ValueError) as cause:
        raise _unusable(option, file, _reason(cause)) from cause


def _unusable(option: str, file: str, why: str) -> ProviderError:
    return ProviderError(ErrorKind.OPTION, f"the option {option} names {file!r}, which cannot be used: {why}", fatal=True)


def _reason(cause: Exception) -> str:
    return getattr(cause, "strerror", None) or getattr(cause, "reason", None) or str(cause) or type(cause).__name__
