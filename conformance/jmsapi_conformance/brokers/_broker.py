"""A broker to talk to, and to kill if it is ours."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import quote

from ._folder import Folder
from ._handshake import wait_until_gone, wait_until_ready
from ._kinds import PASSWORD, USER, BrokerKind, How, LauncherError, Wire

_GONE_S = 15.0
_LOG_LINES = 30
_SCHEMES: dict[Wire, str] = {"stomp": "stomp", "amqp": "amqp", "openwire": "tcp"}


class Host(Protocol):
    """What runs a broker: a process or a container."""

    how: How
    ports: dict[Wire, int]

    @property
    def mark(self) -> str: ...
    def start(self) -> None: ...
    def alive(self) -> bool: ...
    def can_start_again(self) -> bool: ...
    def kill(self) -> None: ...
    def shut_down(self) -> None: ...
    def remove(self) -> None: ...
    def log(self) -> str: ...


class Broker:
    """A running broker.

    One that was launched here can be killed, restarted and stopped; one that was given by URL can only be talked to.
    Usable as a context manager, which stops it at the end.

    Threads: one at a time.
    """

    def __init__(
        self,
        kind: BrokerKind,
        addresses: Mapping[Wire, str],
        *,
        user: str | None,
        password: str | None,
        version: str | None,
    ) -> None:
        self.kind: BrokerKind = kind
        self.user = user
        self.password = password
        self.version = version
        self._addresses = dict(addresses)
        self._host: Host | None = None
        self._folder: Folder | None = None

    @classmethod
    def run_by(cls, kind: BrokerKind, host: Host, folder: Folder) -> Broker:
        """Wrap a process or a container; ``start`` comes next, unless it runs already."""
        addresses: dict[Wire, str] = {wire: f"{_SCHEMES[wire]}://127.0.0.1:{port}" for wire, port in host.ports.items()}
        broker = cls(kind, addresses, user=USER, password=PASSWORD, version=None)
        broker._host = host
        broker._folder = folder
        return broker

    @property
    def how(self) -> How:
        """Tell whether it is a container, a local process or a given URL."""
        return "url" if self._host is None else self._host.how

    @property
    def is_ours(self) -> bool:
        """Tell whether it can be killed, restarted and stopped."""
        return self._host is not None

    @property
    def is_alive(self) -> bool:
        """Tell whether its process or container runs; a given one is taken to."""
        return self._host is None or self._host.alive()

    @property
    def can_start_again(self) -> bool:
        """Tell whether ``restart`` finds its data: not when somebody has removed its container."""
        return self._host is not None and self._host.can_start_again()

    @property
    def wires(self) -> tuple[Wire, ...]:
        """Name the wires that have an address."""
        return tuple(self._addresses)

    @property
    def stomp_url(self) -> str:
        """Form ``stomp://host:port``, without credentials."""
        return self._address("stomp")

    @property
    def amqp_url(self) -> str:
        """Form ``amqp://host:port``, without credentials."""
        return self._address("amqp")

    @property
    def openwire_url(self) -> str:
        """Form ``tcp://host:port``, without credentials; there is none on RabbitMQ."""
        return self._address("openwire")

    def url(self, wire: Wire) -> str:
        """Form a wire's URL with the credentials in it, percent-encoded.

        Args:
            wire: ``stomp``, ``amqp``, or ``openwire`` (scheme ``tcp``; on Artemis the port also speaks Core).
        Raises:
            LauncherError: This broker was given without that wire.
        """
        scheme, _, place = self._address(wire).partition("://")
        if self.user is None:
            return f"{scheme}://{place}"
        return f"{scheme}://{quote(self.user, safe='')}:{quote(self.password or '', safe='')}@{place}"

    def start(self, *, ready_s: float) -> None:
        """Start it and wait until it takes a log-in on every wire.

        Args:
            ready_s: Longest wait, in seconds.
        Raises:
            LauncherError: It did not become ready; the text ends with its log's last lines.
        """
        host = self._ours("start")
        host.start()
        if self._folder is not None:
            self._folder.write({"kind": self.kind, "how": host.how, "ports": host.ports, "mark": host.mark})
        self.wait_until_ready(ready_s=ready_s)

    def wait_until_ready(self, *, ready_s: float) -> None:
        """Wait until it takes a log-in on every wire, and learn its version.

        Args:
            ready_s: Longest wait, in seconds.
        Raises:
            LauncherError: It did not become ready; the text ends with its log's last lines.
        """
        host = self._ours("wait for")
        try:
            server = wait_until_ready(
                host.ports, USER, PASSWORD, timeout_s=ready_s, ended=lambda: None if host.alive() else "it has ended"
            )
        except LauncherError as error:
            tail = "\n".join(host.log().splitlines()[-_LOG_LINES:])
            raise LauncherError(f"{self.kind} as {host.how}: {error}\nIts log ends with:\n{tail}") from error
        self.version = version_of(server)

    def kill(self) -> None:
        """End it at once with SIGKILL, keeping its data; return when nobody listens any more.

        Raises:
            LauncherError: It is not ours, or does not end.
        """
        host = self._ours("kill")
        host.kill()
        wait_until_gone(host.ports, timeout_s=_GONE_S)

    def restart(self, *, ready_s: float = 90.0) -> None:
        """Start it again on the same ports and the same data; one that still runs is asked to end first.

        Args:
            ready_s: Longest wait for it to be ready, in seconds.
        Raises:
            LauncherError: It is not ours, or did not become ready.
        """
        host = self._ours("restart")
        if host.alive():
            host.shut_down()
            wait_until_gone(host.ports, timeout_s=_GONE_S)
        self.start(ready_s=ready_s)

    def stop(self) -> None:
        """End it and remove all that belongs to it; a given broker is left as it is."""
        atexit.unregister(self.stop)
        if self._host is None or self._folder is None:
            return
        self._host.remove()
        self._folder.remove()

    def log(self) -> str:
        """Read what the broker itself wrote since its first start; empty for a given one."""
        return "" if self._host is None else self._host.log()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Broker {self.kind} {self.version or '?'} by {self.how}: {' '.join(self._addresses.values())}>"

    def _address(self, wire: Wire) -> str:
        try:
            return self._addresses[wire]
        except KeyError:
            raise LauncherError(f"{self.kind} has no {wire} address here; it has {', '.join(self.wires)}") from None

    def _ours(self, what: str) -> Host:
        if self._host is None:
            raise LauncherError(f"cannot {what} {self.kind}: it was given by URL and is not ours")
        return self._host


def version_of(server: str) -> str | None:
    """Cut the version out of a STOMP ``server`` header such as ``ActiveMQ-Artemis/2.56.0 ActiveMQ ...``."""
    _, slash, rest = server.partition("/")
    return rest.split()[0] if slash and rest.split() else None
