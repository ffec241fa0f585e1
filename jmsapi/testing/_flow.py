"""One connection through the fault proxy, and the two flows of bytes in it. No threads: the relay's loop owns all of this.

A pair is HELD (accepted, not yet connected to the broker), CONNECTING, PASSING, DRAINING (both ends were told the end of the
stream; what they still say is thrown away), or SILENT (nothing is read and nothing is written, for ever). It ends CLOSED.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Faults", "Flow", "FlowState", "Pair", "reset"]

_CHUNK = 65536
_ROOM = 4 * _CHUNK
_BURST_S = 0.05


class FlowState(Enum):
    """Where a pair is."""

    HELD = 1
    CONNECTING = 2
    PASSING = 3
    DRAINING = 4
    SILENT = 5
    CLOSED = 6


@dataclass(slots=True)
class Faults:
    """What is wrong with one direction of the link.

    Args:
        stalled: Nothing is read and nothing passes.
        rate: Bytes a second that pass, of each connection; None for as many as come.
        delay_s: Seconds that each byte waits here.
        cut_at: How many bytes of a connection pass before it is cut; None for no end.
        cut_fin: That cut is an end of stream, not a reset.
    """

    stalled: bool = False
    rate: float | None = None
    delay_s: float = 0.0
    cut_at: int | None = None
    cut_fin: bool = True


@dataclass(slots=True, eq=False)
class Flow:
    """The bytes of one direction of one connection."""

    source: socket.socket
    sink: socket.socket
    faults: Faults
    chunks: deque[tuple[float, memoryview]] = field(default_factory=deque[tuple[float, memoryview]])
    """What was read and not written, each with the time from which it may be."""
    waiting: int = 0
    ended: bool = False
    """The source said the end of its stream."""
    shut: bool = False
    """The sink was told so."""
    counted: int = 0
    """Bytes written since the count began."""
    budget: float = 0.0
    filled_at: float = 0.0

    @property
    def wants(self) -> bool:
        """Whether more is to be read."""
        return not self.ended and not self.faults.stalled and self.waiting < _ROOM

    def read(self, now: float) -> None:
        """Take what the source has. Raises OSError when it is broken."""
        try:
            data = self.source.recv(_CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.ended = True
            return
        self.chunks.append((now + self.faults.delay_s, memoryview(data)))
        self.waiting += len(data)

    def allowed(self, now: float) -> int:
        """Return how many bytes may be written now."""
        faults = self.faults
        if faults.stalled or not self.chunks or self.chunks[0][0] > now:
            return 0
        n = len(self.chunks[0][1])
        if faults.cut_at is not None:
            n = min(n, faults.cut_at - self.counted)
        if faults.rate is not None:
            most = max(1.0, faults.rate * _BURST_S)
            self.budget = min(most, self.budget + faults.rate * (now - self.filled_at))
            self.filled_at = now
            n = min(n, int(self.budget))
        return n

    def due_in(self, now: float) -> float | None:
        """Return the seconds until time alone lets something pass; None when time does not matter."""
        if self.faults.stalled or not self.chunks:
            return None
        left = self.chunks[0][0] - now
        if left <= 0 and self.faults.rate is not None:
            left = (1.0 - self.budget) / self.faults.rate
        return max(0.001, left)

    def write(self, n: int) -> int:
        """Write at most ``n`` bytes of the first chunk; return how many went. Raises OSError when the sink is broken."""
        due, chunk = self.chunks[0]
        try:
            sent = self.sink.send(chunk[:n])
        except BlockingIOError:
            return 0
        if sent == len(chunk):
            self.chunks.popleft()
        else:
            self.chunks[0] = (due, chunk[sent:])
        self.waiting -= sent
        self.counted += sent
        self.budget -= sent
        return sent

    @property
    def at_its_cut(self) -> bool:
        """Whether all that may pass before the cut has passed."""
        return self.faults.cut_at is not None and self.counted >= self.faults.cut_at

    def pass_end_on(self) -> None:
        """Tell the sink of the end of the stream, behind all that came before it."""
        if self.ended and not self.chunks and not self.shut and not self.faults.stalled:
            self.shut = True
            self.sink.shutdown(socket.SHUT_WR)


@dataclass(slots=True, eq=False)
class Pair:
    """One accepted connection, and the one to the broker that belongs to it."""

    client: socket.socket
    state: FlowState = FlowState.HELD
    broker: socket.socket | None = None
    flows: tuple[Flow, ...] = ()
    """To the broker, to the client; none before the broker is connected."""
    hastens: Pair | None = None
    """A pair that is held until this one has had an answer."""

    def join(self, broker: socket.socket, to_broker: Faults, to_client: Faults, now: float) -> None:
        """Begin to pass bytes between the client and the broker's socket, which is connected."""
        self.state = FlowState.PASSING
        self.flows = (
            Flow(self.client, broker, to_broker, filled_at=now),
            Flow(broker, self.client, to_client, filled_at=now),
        )

    def sockets(self) -> list[socket.socket]:
        """Return the sockets that are open."""
        return [end for end in (self.client, self.broker) if end is not None and end.fileno() >= 0]

    def cut(self, *, fin: bool) -> None:
        """End both sides: with a reset, or with the end of the stream, after which what they say is thrown away."""
        if fin and self.state in (FlowState.HELD, FlowState.CONNECTING, FlowState.PASSING):
            self.state = FlowState.DRAINING
            for end in self.sockets():
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_WR)
            return
        for end in self.sockets():
            reset(end)
        self.state = FlowState.CLOSED

    def close_side(self, *, broker: bool) -> None:
        """Reset one side and leave the other open, never to be heard of again."""
        end = self.broker if broker else self.client
        if end is not None:
            reset(end)
        self.state = FlowState.SILENT if self.sockets() else FlowState.CLOSED

    def drain(self, end: socket.socket) -> None:
        """Throw away what one end says; close it when it has said all."""
        try:
            if end.recv(_CHUNK):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        end.close()
        if not self.sockets():
            self.state = FlowState.CLOSED

    def finish(self) -> None:
        """Close it when both streams have ended and all was passed on."""
        if all(flow.shut for flow in self.flows):
            for end in self.sockets():
                end.close()
            self.state = FlowState.CLOSED


def reset(end: socket.socket) -> None:
    """Close a socket with a reset."""
    if end.fileno() >= 0:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()
