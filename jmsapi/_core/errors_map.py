"""The one table from what providers raise to what applications see."""

from __future__ import annotations

from typing import Final

from jmsapi.errors import (
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    MessageFormatException,
    ResourceAllocationException,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)
from jmsapi.spi import BranchError, ErrorKind, ProviderError
from jmsapi.xa import XAException

__all__ = ["jms_error"]

_TABLE: Final[dict[ErrorKind, tuple[type[JMSException], str | None]]] = {
    ErrorKind.CONNECTION: (JMSException, "connection"),
    ErrorKind.SECURITY: (JMSSecurityException, None),
    ErrorKind.OPTION: (JMSException, "bad-option"),
    ErrorKind.CLIENT_ID: (InvalidClientIDException, None),
    ErrorKind.DESTINATION: (InvalidDestinationException, None),
    ErrorKind.SUBSCRIPTION: (InvalidDestinationException, "no-such-subscription"),
    ErrorKind.IN_USE: (IllegalStateException, "in-use"),
    ErrorKind.MISMATCH: (JMSException, "subscription-mismatch"),
    ErrorKind.SELECTOR: (InvalidSelectorException, None),
    ErrorKind.FORMAT: (MessageFormatException, None),
    ErrorKind.RESOURCE: (ResourceAllocationException, None),
    ErrorKind.ROLLED_BACK: (TransactionRolledBackException, None),
    ErrorKind.IN_DOUBT: (JMSException, "in-doubt"),
    ErrorKind.TIMEOUT: (JMSException, "timeout"),
    ErrorKind.CLOSED: (IllegalStateException, "closed"),
    ErrorKind.PROTOCOL: (JMSException, "protocol"),
}


def jms_error(error: BaseException, asked: str) -> JMSException:
    """Return the JMS exception for a failure at the SPI.

    Args:
        error: What the provider raised or set; anything but a ProviderError is a fault of the provider.
        asked: What the application had asked for, to begin the text with.
    Returns:
        A new exception with the error as its cause; a JMSException comes back as it is.
    """
    if isinstance(error, JMSException):
        return error
    if isinstance(error, BranchError):
        failure = XAException(error.message, error.code)
        failure.__cause__ = error
        return failure
    if isinstance(error, ProviderError) and error.kind is ErrorKind.UNSUPPORTED:
        refusal = UnsupportedFeatureException(asked, "here", reason=f"{asked}: {error.message}")
        refusal.__cause__ = error
        return refusal
    if isinstance(error, ProviderError):
        kind, code = _TABLE[error.kind]
        text = error.message
    else:
        kind, code = JMSException, "provider-fault"
        text = f"the provider failed with {type(error).__name__}: {error}"
    result = kind(f"{asked}: {text}", code) if code else kind(f"{asked}: {text}")
    result.__cause__ = error
    return result
