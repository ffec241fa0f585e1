"""The TLS context of a connection: chain and host name are checked unless the options say otherwise, which is logged."""

from __future__ import annotations

import logging
import ssl
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.spi.options import TlsOptions

__all__ = ["tls_context"]

_LOG: Final = logging.getLogger("jmsapi.stomp")


def tls_context(options: TlsOptions) -> ssl.SSLContext:
    """Return the context for the options.

    Raises:
        ProviderError: SECURITY; a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=options.tls_ca)
        if options.tls_cert is not None:
            password = None if options.tls_key_password is None else options.tls_key_password.get_secret_value()
            context.load_cert_chain(options.tls_cert, options.tls_key, password)
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or getattr(cause, "reason", None) or type(cause).__name__
        raise ProviderError(ErrorKind.SECURITY, f"a TLS file cannot be used: {reason}", fatal=True) from cause
    if not options.tls_verify_host or not options.tls_verify:
        context.check_hostname = False
        _LOG.warning("the host name of %s is not checked against its certificate", options.host)
    if not options.tls_verify:
        context.verify_mode = ssl.CERT_NONE
        _LOG.warning("the certificate of %s is not checked at all", options.host)
    return context
