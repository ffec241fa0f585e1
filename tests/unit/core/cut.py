"""The in-process broker over links that can be cut, muted and refused: a test bench for what the core does about it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

import jmsapi
import jmsapi_inproc
from jmsapi._core.plugins import providers
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    VERSION,
    Capabilities,
    Clock,
    ErrorKind,
    Events,
    Handle,
    Provider,
    ProviderError,
    SendResult,
    failed,
)
from jmsapi.spi.options import ProviderOptions


class CutLink(Forwarding):
    """A link to the in-process broker."""

    def __init__(self, below: Provider, line: Line) -> None:
        super().__init__(below)
        self._line = line

    def open(self, events: Events) -> Future[Capabilities]:
        line = self._line
        line.tried()
        refusal = line.refusal
        if refusal is not None:
            return failed(refusal)
        opened = super().open(events)
        line.links.append(self)
        return opened

    def close(self) -> Future[None]:
        if self in self._line.links:
            self._line.links.remove(self)
        return super().close()

    def cut(self) -> None:
        self._line.links.remove(self)
        self.below.close()
        self.above.on_lost(ProviderError(ErrorKind.CONNECTION, "the link was cut", fatal=True))

    def on_sent(self, results: Sequence[SendResult]) -> None:
        if not self._line.mute:
            super().on_sent(results)

    def release(self, handle: Handle) -> Future[None]:
        released = super().release(handle)
        return released if self._line.unreleased is None else self._line.unreleased

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        ended = super().end(tx, commit=commit)
        if self._line.mute and commit:
            self._line.unheard = Future()
            self._line.asked.set()
            return self._line.unheard
        return ended


class Line:
    """What lies between a program and the in-process broker."""

    def __init__(self) -> None:
        self.links: list[CutLink] = []
        self.mute = False
        """The broker obeys, and its answers to sends and commits do not arrive."""
        self.refusal: ProviderError | None = None
        """What attempts to open a link are refused with."""
        self.attempts = 0
        self.unheard: Future[None] | None = None
        self.unreleased: Future[None] | None = None
        """What the answer to each release is, which comes late."""
        self.asked = threading.Event()
        self._changed = threading.Condition()

    def tried(self) -> None:
        with self._changed:
            self.attempts += 1
            self._changed.notify_all()

    def wait_for_attempts(self, n: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.attempts >= n, 20)

    def break_off(self) -> None:
        """Cut the link, and let no other be made."""
        self.refusal = ProviderError(ErrorKind.CONNECTION, "nobody listens", fatal=True)
        self.cut()

    def cut(self) -> None:
        """Cut the link; another one can be made at once."""
        unheard, self.unheard = self.unheard, None
        if unheard is not None:
            unheard.set_exception(ProviderError(ErrorKind.IN_DOUBT, "the answer was lost", fatal=True))
        for link in list(self.links):
            link.cut()

    def heal(self) -> None:
        self.mute = False
        self.refusal = None


class Entry:
    """The entry of the provider."""

    spi_version = VERSION
    name = "cut"
    schemes = ("cut",)
    extra = None

    def __init__(self, line: Line) -> None:
        self._line = line

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return CutLink(jmsapi_inproc.entry.create(options, clock), self._line)


Factory = Callable[..., jmsapi.ConnectionFactory]


@contextmanager
def a_line() -> Iterator[tuple[Line, Factory, jmsapi.Connection]]:
    """Give a line, a function that makes factories over it, and a connection to the same broker that nothing cuts."""
    line = Line()
    providers.register(Entry(line))
    place = f"cut-{uuid.uuid4().hex}"

    def factory(**options: object) -> jmsapi.ConnectionFactory:
        return jmsapi.connection_factory(f"failover:(cut://{place})?maxReconnectDelay=20", **{"checked": True, **options})

    with jmsapi.connection_factory(f"inproc://{place}").create_connection() as safe:
        safe.start()
        yield line, factory, safe
