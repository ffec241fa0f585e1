"""A TCP proxy on loopback that cuts, stalls, slows and reorders, for tests of what happens when a link breaks.

It knows nothing of the protocol: what it does to STOMP or AMQP it does to any stream, TLS included. Each way can be hurt by
itself. It listens on 127.0.0.1 only.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from jmsapi.errors import IllegalArgumentException
from jmsapi.testing._flow import Faults, FlowState
from jmsapi.testing._relay import Relay

__all__ = ["BOTH", "TO_BROKER", "TO_CLIENT", "Direction", "End", "FaultProxy", "Side"]

Direction = Literal["to_broker", "to_client", "both"]
"""Which way bytes go."""
End = Literal["rst", "fin"]
"""How a connection is cut: by a reset, as when a process is killed or a firewall gives up, or by an end of the stream."""
Side = Literal["broker", "client"]

TO_BROKER: Final = "to_broker"
TO_CLIENT: Final = "to_client"
BOTH: Final = "both"

_WAYS: Final[dict[Direction, tuple[int, ...]]] = {"to_broker": (0,), "to_client": (1,), "both": (0, 1)}
_numbers = itertools.count(1)


class FaultProxy:
    """Stand between clients and a broker, and break their connections on demand.

    Made, it listens; connect to ``url`` instead of the broker. Without faults it passes everything. A context manager, which
    closes it. Faults concern the connections that are open and those to come until ``heal``.

        with FaultProxy("stomp://admin:admin@127.0.0.1:61613") as proxy:
            connection = jmsapi.connection_factory(proxy.url).create_connection()
            proxy.cut()

    Args:
        target: Where the broker is: its URL, or ``(host, port)``. A URL names its port.
    Raises:
        IllegalArgumentException: The target has no port.
        OSError: Its host name is not known.
    Threads: any, at the same time. One thread of its own, named ``jmsapi-fault-proxy-<n>``, ended by ``close``.
    """

    def __init__(self, target: str | tuple[str, int]) -> None:
        self._given = target if isinstance(target, str) else f"tcp://{target[0]}:{target[1]}"
        host, port = (urlsplit(target).hostname, urlsplit(target).port) if isinstance(target, str) else target
        if not host or not port:
            raise IllegalArgumentException("a fault proxy needs a host and a port to connect to, as in amqp://127.0.0.1:5672")
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._relay = Relay(family, place, f"jmsapi-fault-proxy-{next(_numbers)}")

    # ---- where it is, what it saw ---------------------------------------------------------------------------------
    @property
    def host(self) -> str:
        """Return the address it listens on."""
        return "127.0.0.1"

    @property
    def port(self) -> int:
        """Return the port it listens on; it stays the same."""
        return self._relay.port

    @property
    def url(self) -> str:
        """Return the broker's URL with this proxy's place in it: scheme, credentials and options are as they were given."""
        parts = urlsplit(self._given)
        credentials, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{credentials}{at}{self.host}:{self.port}"))

    @property
    def accepted(self) -> int:
        """Return how many connections were accepted so far."""
        return self._relay.accepted

    @property
    def open_connections(self) -> int:
        """Return how many connections are between a client and the broker now, or wait to be."""
        return sum(pair.state in (FlowState.HELD, FlowState.CONNECTING, FlowState.PASSING) for pair in list(self._relay.pairs))

    @property
    def ending_connections(self) -> int:
        """Return how many connections were cut with the end of the stream and have a side that has not closed its own yet."""
        return sum(pair.state is FlowState.DRAINING for pair in list(self._relay.pairs))

    @property
    def cut_pending(self) -> bool:
        """Return whether a ``cut_after`` still waits for its bytes."""
        return any(faults.cut_at is not None for faults in self._relay.faults)

    def passed(self, direction: Direction) -> int:
        """Return how many bytes went one way, or both, over all connections so far."""
        return sum(self._relay.passed[way] for way in _ways(direction))

    def wait_for(self, ready: Callable[[], bool], timeout_s: float = 10.0) -> bool:
        """Wait for a state of this proxy, such as ``lambda: proxy.accepted == 2``.

        Args:
            ready: Asked whenever a connection comes, goes or passes bytes.
            timeout_s: Longest wait, in seconds.
        Returns:
            Whether the state was reached.
        """
        with self._relay.changed:
            return self._relay.changed.wait_for(ready, timeout_s)

    # ---- faults ---------------------------------------------------------------------------------------------------
    def cut(self, how: End = "rst") -> None:
        """End every open connection now; new ones are let in.

        Args:
            how: ``rst`` resets both sides. ``fin`` tells both the end of the stream and throws away what they still say.
        """
        fin = _is_fin(how)

        def do() -> None:
            for pair in self._relay.pairs:
                pair.cut(fin=fin)

        self._relay.order(do)

    def cut_after(self, n_bytes: int, direction: Direction = "to_broker", how: End = "fin") -> None:
        """Let a connection pass some more bytes one way, and cut it then; the first that gets there, and only that one.

        Args:
            n_bytes: Bytes counted from now for each connection, at least 1. Exactly so many are written; a reset
                may overtake the last of them.
            direction: The way that is counted, not both.
            how: As for ``cut``.
        Raises:
            IllegalArgumentException: No bytes, or both ways.
        """
        if n_bytes < 1:
            raise IllegalArgumentException(f"cut_after counts at least 1 byte, not {n_bytes}; cut() cuts at once")
        if direction == "both":
            raise IllegalArgumentException("cut_after counts one way: to_broker or to_client")
        (way,) = _ways(direction)
        fin = _is_fin(how)

        def do() -> None:
            self._relay.count_anew(way)
            self._relay.faults[way].cut_at, self._relay.faults[way].cut_fin = n_bytes, fin

        self._relay.order(do)

    def stall(self, direction: Direction = "both") -> None:
        """Pass nothing any more, and read nothing: the sender's buffers fill, and nobody is told.

        Args:
            direction: Which way.
        """
        self._change(direction, lambda faults: setattr(faults, "stalled", True))

    def resume(self, direction: Direction = "both") -> None:
        """Go on after ``stall``; nothing was lost.

        Args:
            direction: Which way.
        """
        self._change(direction, lambda faults: setattr(faults, "stalled", False))

    def slow(self, bytes_per_second: float | None, direction: Direction = "both") -> None:
        """Pass only so much of each connection.

        Args:
            bytes_per_second: More than 0; None for no limit.
            direction: Which way.
        Raises:
            IllegalArgumentException: Not more than 0.
        """
        if bytes_per_second is not None and not bytes_per_second > 0:
            raise IllegalArgumentException(f"a rate is more than 0 bytes a second, this one is {bytes_per_second}; stall() stops")
        self._change(direction, lambda faults: setattr(faults, "rate", bytes_per_second))

    def delay(self, seconds: float, direction: Direction = "both") -> None:
        """Keep what comes from now on for a while before it passes.

        Args:
            seconds: How long; 0 for no more delay.
            direction: Which way.
        Raises:
            IllegalArgumentException: Less than 0.
        """
        if not seconds >= 0:
            raise IllegalArgumentException(f"a delay is not negative, this one is {seconds}")
        self._change(direction, lambda faults: setattr(faults, "delay_s", seconds))

    def half_open(self, closed: Side = "broker") -> None:
        """Reset one side of every open connection and leave the other open and silent, as when a host vanishes.

        Args:
            closed: The side that is closed. The other is never told, and what it sends is not read.
        """
        if closed not in ("broker", "client"):
            raise IllegalArgumentException(f"a side is broker or client, not {closed!r}")

        def do() -> None:
            for pair in self._relay.pairs:
                pair.close_side(broker=closed == "broker")

        self._relay.order(do)

    def silence_new(self) -> None:
        """Accept new connections and never answer them, nor tell the broker of them; they stay so after ``heal``."""
        self._relay.order(lambda: setattr(self._relay, "silent", True))

    def refuse_new(self) -> None:
        """Refuse new connections, as a host does where nobody listens. Open ones go on."""
        self._relay.order(self._relay.refuse)

    def reorder_new(self) -> None:
        """Hold the next connection until the one after it has had an answer of the broker, and let it go on then.

        Without a second connection the first waits until ``heal``.
        """
        self._relay.order(lambda: setattr(self._relay, "holding", 1))

    def heal(self) -> None:
        """Take every fault away. What was cut or made half-open stays so; what was stalled, slow or held goes on."""

        def do() -> None:
            for faults in self._relay.faults:
                faults.stalled, faults.rate, faults.delay_s, faults.cut_at = False, None, 0.0, None
            self._relay.silent = False
            self._relay.holding = 0
            self._relay.allow()
            self._relay.let_go()

        self._relay.order(do)

    # ---- end ------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """End every connection and the proxy's thread; harmless when it is closed already."""
        self._relay.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        parts = urlsplit(self._given)
        return f"<FaultProxy {self.host}:{self.port} before {parts.hostname}:{parts.port}>"

    def _change(self, direction: Direction, change: Callable[[Faults], None]) -> None:
        ways = _ways(direction)

        def do() -> None:
            for way in ways:
                change(self._relay.faults[way])

        self._relay.order(do)


def _ways(direction: Direction) -> tuple[int, ...]:
    try:
        return _WAYS[direction]
    except KeyError:
        raise IllegalArgumentException(f"a direction is one of {', '.join(_WAYS)}, not {direction!r}") from None


def _is_fin(how: End) -> bool:
    if how not in ("rst", "fin"):
        raise IllegalArgumentException(f"a connection is cut by rst or fin, not {how!r}")
    return how == "fin"
