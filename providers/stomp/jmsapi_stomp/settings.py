"""How to make a connection to the broker."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["LinkSettings"]


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How to make a connection."""

    address: tuple[str, int]
    tls: Callable[[], ssl.SSLContext] | None
    login: str | None
    passcode: str | None = field(repr=False)
    vhost: str
    client_id: str | None
    heartbeat_ms: int
    connect_timeout: float
    request_timeout: float
