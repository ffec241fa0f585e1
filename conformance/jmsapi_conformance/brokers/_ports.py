"""Loopback ports that stay ours while a broker is down."""

from __future__ import annotations

import contextlib
import random
import socket

# Below the range that Linux hands out to outgoing connections (32768 and up): a port of a killed broker must not be taken
# as the local end of somebody's connection before the broker is back.
_RANGE = range(20_000, 32_000)
_TRIES = 200


def free_ports(count: int) -> list[int]:
    """Choose different ports of 127.0.0.1 on which nobody listens.

    Args:
        count: How many.
    Returns:
        The ports, free at the time of asking; the caller tries again with others if one was taken since.
    Raises:
        OSError: None was found.
    """
    chosen: list[int] = []
    for port in random.sample(_RANGE, _TRIES):
        if len(chosen) == count:
            break
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                chosen.append(port)
    if len(chosen) < count:
        raise OSError(f"no {count} free ports among {_TRIES} tried in {_RANGE.start}-{_RANGE.stop}")
    return chosen


def refuses(port: int) -> bool:
    """Tell whether nobody listens on a port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
