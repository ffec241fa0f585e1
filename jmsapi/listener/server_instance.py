"""Which server a deployment runs in: generated subscription names tell servers and clusters apart by it."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["ServerInstance"]


@dataclass(frozen=True, slots=True)
class ServerInstance:
    """Which server this is.

    Args:
        name: One that no other server has, and that this one keeps over restarts; None if there is none. Then what is
            durable cannot be found again, so such a subscription needs a name of its own.
        cluster: The name that all servers of one cluster share, and no other cluster has; None outside of a cluster.
    Threads: any; it is frozen.
    Spec: 12.1.1.4-1, 12.1.1.4-2, 12.1.1.5-2.
    """

    name: str | None = None
    cluster: str | None = None

    @classmethod
    def from_environment(cls) -> ServerInstance:
        """Return what the variables ``JMSAPI_SERVER_NAME`` and ``JMSAPI_CLUSTER_NAME`` say; empty means none."""
        return cls(os.environ.get("JMSAPI_SERVER_NAME") or None, os.environ.get("JMSAPI_CLUSTER_NAME") or None)
