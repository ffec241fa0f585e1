"""What is wrong when a connection cannot be made or breaks: one table for every wire.

Three sorts, told apart by what the system, OpenSSL or the peer's TLS report, never by words of a text:

- an option is wrong (``OPTION``, or ``SECURITY`` for a certificate that is not trusted): final, and the text names the option;
- the peer refuses us (``SECURITY``): final, for it would refuse us again;
- the link is down at the moment (``CONNECTION``, ``TIMEOUT``): passing. A TLS handshake that is cut short, as a broker does that
  is starting or stopping, is one of these, although Python's class for it says no more than ``SSLError``.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["connection_fault"]

_REFUSALS: Final = {
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it found no protocol or certificate in common",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it did not accept the client certificate (tls_cert)",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it did not accept the client certificate (tls_cert)",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the client certificate (tls_cert) is revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client certificate (tls_cert) has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it did not accept the client certificate (tls_cert)",
    "SSLV3_ALERT_NO_CERTIFICATE": "it asks for a client certificate (tls_cert)",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a client certificate (tls_cert)",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know the authority of the client certificate (tls_cert)",
    "TLSV1_ALERT_ACCESS_DENIED": "access denied",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no version of TLS that is allowed here",
    "TLSV1_ALERT_INSUFFICIENT_SECURITY": "it asks for stronger ciphers",
    "TLSV1_ALERT_EXPORT_RESTRICTION": "it asks for other ciphers",
    "TLSV1_UNRECOGNIZED_NAME": "it does not serve this host name",
    "TLSV1_BAD_CERTIFICATE_STATUS_RESPONSE": "it did not accept the client certificate (tls_cert)",
}
"""OpenSSL's reasons that stand for an alert by which the peer refuses us. All other alerts speak of the moment."""
_NO_COMMON_GROUND: Final = frozenset(
    {"UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "NO_CIPHERS_AVAILABLE", "NO_SHARED_CIPHER", "DH_KEY_TOO_SMALL"}
)
"""OpenSSL's reasons for which we refuse the peer."""
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
"""OpenSSL's reasons for a first record that is no TLS."""
_HOST_MISMATCH: Final = frozenset({62, 63, 64})
"""OpenSSL's verify codes X509_V_ERR_HOSTNAME_MISMATCH, _EMAIL_MISMATCH and _IP_ADDRESS_MISMATCH."""
_DATES: Final = frozenset({9, 10, 13, 14})
"""OpenSSL's verify codes of a certificate that is not yet or no more valid, or whose dates cannot be read."""


def connection_fault(error: Exception, asked: str) -> ProviderError:
    """Return the error for a failure of a socket, of a name or of TLS.

    Args:
        error: An OSError (TLS errors are among them), or the ValueError of a host name that cannot be one. A ProviderError comes
            back as it is.
        asked: What was done, as the beginning of a sentence, such as "connect to broker:5671".
    Returns:
        Always ``fatal``: the link is of no more use. ``kind.is_final`` says whether another attempt makes sense.
    """
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return _fault(ErrorKind.SECURITY, f"{asked}: the broker's certificate is not trusted: {_untrusted(error)}")
    if isinstance(error, ssl.SSLError):
        return _tls_fault(error, asked)
    if isinstance(error, TimeoutError):
        return _fault(ErrorKind.TIMEOUT, f"{asked}: no answer in time")
    if isinstance(error, socket.gaierror):
        return _fault(ErrorKind.CONNECTION, f"{asked}: the host name is not known ({error.strerror})")
    if isinstance(error, OSError):
        reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error)) or type(error).__name__
        return _fault(ErrorKind.CONNECTION, f"{asked}: {reason}")
    return _fault(ErrorKind.OPTION, f"{asked}: the option host is no name of a host ({type(error).__name__})")


def _tls_fault(error: ssl.SSLError, asked: str) -> ProviderError:
    reason = error.reason or ""
    if reason in _REFUSALS:
        return _fault(ErrorKind.SECURITY, f"{asked}: the broker refused TLS: {_REFUSALS[reason]} ({reason})")
    if reason in _NO_COMMON_GROUND:
        return _fault(ErrorKind.SECURITY, f"{asked}: the broker's TLS is too old or too weak to be accepted here ({reason})")
    if reason in _NOT_TLS:
        text = f"{asked}: what answers there does not speak TLS; choose the scheme without TLS, or the port with it ({reason})"
        return _fault(ErrorKind.OPTION, text)
    return _fault(ErrorKind.CONNECTION, f"{asked}: TLS broke off ({reason or error.strerror or type(error).__name__})")


def _untrusted(error: ssl.SSLCertVerificationError) -> str:
    message = error.verify_message
    if error.verify_code in _HOST_MISMATCH:
        return f"{message}; connect by a name that it has, or set tls_verify_host=false"
    if error.verify_code in _DATES:
        return message
    return f"{message}; give its authority by tls_ca"


def _fault(kind: ErrorKind, text: str) -> ProviderError:
    return ProviderError(kind, text, fatal=True)
