"""Speak the first words of a wire, to know that a broker is really there.

A listening port is not enough: the proxy of a container engine listens before the broker does.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping

from ._kinds import LauncherError, Wire
from ._ports import refuses

_AMQP_SASL = b"AMQP\x03\x01\x00\x00"
_PAUSE_S = 0.1
# Short, as a try that gets no answer is made again until the deadline.
_TRY_S = 5.0


class _NotYet(Exception):
    """The broker does not answer as it should; the text says how."""


def stomp_server(host: str, port: int, user: str | None, password: str | None, timeout_s: float = 20.0) -> str:
    """Log in over STOMP and out again.

    Returns:
        The ``server`` header, for example ``ActiveMQ/6.3.1``; empty if the broker sends none.
    Raises:
        OSError: Nobody listens, or no answer came in time.
        ConnectionError: The answer is not CONNECTED; the text is the broker's first line.
    """
    login = "" if user is None else f"login:{user}\npasscode:{password or ''}\n"
    with socket.create_connection((host, port), timeout=timeout_s) as link:
        link.sendall(f"CONNECT\naccept-version:1.2\nhost:/\n{login}\n\0".encode())
        frame = _read_until(link, lambda seen: b"\0" in seen)
        link.sendall(b"DISCONNECT\n\n\0")
    command, *headers = frame.split(b"\0")[0].decode("utf-8", "replace").strip().splitlines() or [""]
    if command != "CONNECTED":
        raise ConnectionError(f"STOMP log-in answered with {command or 'nothing'} {' '.join(headers)}".strip())
    return next((line.removeprefix("server:") for line in headers if line.startswith("server:")), "")


def check_amqp(host: str, port: int, timeout_s: float = 20.0) -> None:
    """See that an AMQP 1.0 broker answers the header of its SASL layer.

    Raises:
        OSError: Nobody listens, or no answer came in time.
        ConnectionError: The answer is of another protocol.
    """
    with socket.create_connection((host, port), timeout=timeout_s) as link:
        link.sendall(_AMQP_SASL)
        answer = _read_until(link, lambda seen: len(seen) >= len(_AMQP_SASL))
    if not answer.startswith(_AMQP_SASL):
        raise ConnectionError(f"no AMQP 1.0 with SASL on port {port}: {answer[:8]!r}")


def wait_until_ready(
    ports: Mapping[Wire, int], user: str, password: str, *, timeout_s: float, ended: Callable[[], str | None]
) -> str:
    """Wait until a broker on 127.0.0.1 takes a log-in on every wire.

    Args:
        ports: The port of each wire; OpenWire is not spoken, its port must only listen.
        timeout_s: Longest wait, in seconds.
        ended: Says why waiting is in vain, or None while it is not.
    Returns:
        The ``server`` header of STOMP.
    Raises:
        LauncherError: Time is up or the broker ended; the text says what was seen last.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return _all_wires(ports, user, password)
        except (OSError, _NotYet) as error:
            if why := ended():
                raise LauncherError(why) from error
            if time.monotonic() > deadline:
                raise LauncherError(f"not ready within {timeout_s:.0f} s: {error}") from error
        time.sleep(_PAUSE_S)


def wait_until_gone(ports: Mapping[Wire, int], *, timeout_s: float) -> None:
    """Wait until nobody listens on the ports of an ended broker.

    Raises:
        LauncherError: Somebody still does when time is up.
    """
    deadline = time.monotonic() + timeout_s
    for wire, port in ports.items():
        while not refuses(port):
            if time.monotonic() > deadline:
                raise LauncherError(f"the ended broker's {wire} port {port} still listens after {timeout_s:.0f} s")
            time.sleep(_PAUSE_S)


def _all_wires(ports: Mapping[Wire, int], user: str, password: str) -> str:
    server = stomp_server("127.0.0.1", ports["stomp"], user, password, _TRY_S)
    check_amqp("127.0.0.1", ports["amqp"], _TRY_S)
    if "openwire" in ports and refuses(ports["openwire"]):
        raise _NotYet(f"nobody listens on the OpenWire port {ports['openwire']}")
    return server


def _read_until(link: socket.socket, done: Callable[[bytes], bool]) -> bytes:
    seen = b""
    while not done(seen):
        more = link.recv(4096)
        if not more:
            break
        seen += more
    return seen
