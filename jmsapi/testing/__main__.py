"""Serve an in-process broker over STOMP until interrupted: ``python -m jmsapi.testing``. Its first line of output is the URL."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from jmsapi.testing.loopback import LoopbackServer

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Those of the command line; None takes them from the process.
    Returns:
        0 when it was interrupted or terminated; 2 when the port is taken.
    """
    parser = argparse.ArgumentParser(
        prog="python -m jmsapi.testing",
        description="Serve an in-process broker over STOMP on 127.0.0.1 until interrupted. What it holds ends with it.",
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (any that is free)")
    parser.add_argument("--user", metavar="NAME", help="user name that clients must give, with --password")
    parser.add_argument("--password", metavar="WORD", help="password that clients must give")
    given = parser.parse_args(arguments)
    if (given.user is None) != (given.password is None) or not 0 <= given.port <= 65535:
        parser.error("--user and --password go together, and a port is a number up to 65535")
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        server = LoopbackServer(port=given.port, user=given.user, password=given.password)
    except OSError as error:
        print(f"cannot listen on port {given.port}: {error.strerror}", file=sys.stderr)
        return 2
    with server:
        print(server.url, flush=True)
        stop.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
