"""Which trouble with a broker passes by itself, and how long to wait for that."""

from __future__ import annotations

import logging
import time
from typing import Final

from jmsapi.errors import (
    InvalidDestinationException,
    InvalidSelectorException,
    JMSError,
    JMSSecurityException,
    MessageFormatException,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)

__all__ = ["Patience", "is_final"]

_KINDS: Final = (
    InvalidDestinationException,
    InvalidSelectorException,
    JMSSecurityException,
    MessageFormatException,
    UnsupportedFeatureException,
)
_CODES: Final = frozenset(
    {
        "bad-option",
        "bad-row",
        "bad-staging",
        "bad-url",
        "invalid-option",
        "job-reused",
        "ledger-held",
        "ledger-reused",
        "missing-extra",
        "missing-variable",
        "no-provider",
        "staging-lost",
        "staging-reused",
        "staging-unshared",
        "subscription-mismatch",
        "unknown-option",
        "unsupported",
    }
)
_RETRY_S: Final = 1.0
_log: Final = logging.getLogger("jmsapi.spark")


def is_final(error: JMSError) -> bool:
    """Tell whether waiting cannot fix it: an option, a right, a name or the broker must be changed first."""
    if isinstance(error, TransactionRolledBackException) and isinstance(error.__cause__, JMSError):
        # What its messages met decides.
        return is_final(error.__cause__)
    return isinstance(error, _KINDS) or error.error_code in _CODES


class Patience:
    """How long somebody has waited for a broker without getting anything done.

    Args:
        timeout_ms: How long it may take.
        what: Who waits, for the log.
    Threads: one.
    """

    def __init__(self, timeout_ms: float, what: str) -> None:
        self._timeout_s = timeout_ms / 1000
        self._what = what
        self._since: float | None = None

    def done(self) -> None:
        """Something got done: what was waited is forgotten."""
        self._since = None

    def wait(self, trouble: JMSError) -> None:
        """Wait a moment for trouble to pass.

        Raises:
            JMSError: The trouble, when it is final or has lasted for too long.
        """
        now = time.monotonic()
        if self._since is None:
            self._since = now
            if not is_final(trouble):
                _log.warning("%s waits for the broker, at most %.0f s: %s", self._what, self._timeout_s, trouble)
        if is_final(trouble) or now - self._since > self._timeout_s:
            raise trouble
        time.sleep(min(_RETRY_S, self._timeout_s))
