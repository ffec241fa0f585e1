"""What the parts of one open connection share, and the handles the core holds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TypeVar

from jmsapi.spi import Address, Clock, Events, Handle, ProviderError, Tag
from jmsapi_stomp.dialect import Dialect
from jmsapi_stomp.link import Link
from jmsapi_stomp.loop import IoLoop
from jmsapi_stomp.options import StompOptions

__all__ = ["ConsumerHandle", "ProducerHandle", "SessionHandle", "StompTag", "TxHandle", "Wiring", "fail", "resolve"]

T = TypeVar("T")


class SessionHandle(Handle):
    """A session: a token, for STOMP has none."""

    __slots__ = ("serial", "transacted")

    def __init__(self, serial: int, transacted: bool) -> None:
        self.serial = serial
        self.transacted = transacted


class ProducerHandle(Handle):
    """A producer: how its last send began.

    Attributes:
        last: Where to, from whom, and the header lines that say so. Written and read as a whole, by any thread.
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: tuple[Address | None, str | None, str] = (None, None, "")


class ConsumerHandle(Handle):
    """A consumer: a number."""

    __slots__ = ("deferred", "serial", "session")

    def __init__(self, serial: int, session: int, deferred: bool) -> None:
        self.serial = serial
        self.session = session
        self.deferred = deferred


class TxHandle(Handle):
    """A local transaction. What changes in it changes on the I/O thread."""

    __slots__ = ("acks", "begun", "failed", "name", "open_receipts", "when_quiet")

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False
        self.acks: list[StompTag] = []
        self.failed: ProviderError | None = None
        self.open_receipts = 0
        self.when_quiet: Callable[[], object] | None = None


class StompTag(Tag):
    """One delivery: its consumer's number and the broker's word for it."""

    __slots__ = ("ack", "confirmed", "consumer", "size")

    def __init__(self, consumer: int, ack: bytes, size: int, confirmed: bool) -> None:
        self.consumer = consumer
        self.ack = ack
        self.size = size
        self.confirmed = confirmed
        """Somebody waits for the broker's answer to its acknowledgement."""


@dataclass(slots=True)
class Wiring:
    """The shared parts of an open connection."""

    loop: IoLoop
    clock: Clock
    options: StompOptions
    events: Events
    link: Link
    dialect: Dialect
    client_id: str | None
    word: str
    """The connection's own word, by which its messages are known."""
    place: tuple[str, ...]
    """Which broker, as the process registry tells brokers apart."""
    temporary: set[Address] = field(default_factory=set[Address])
    """Temporary destinations of this connection."""


def resolve(future: Future[T], value: T) -> None:
    """Set a future's result unless somebody cancelled it."""
    try:
        future.set_result(value)
    except InvalidStateError:
        return


def fail(future: Future[T], cause: ProviderError) -> None:
    """Fail a future unless somebody cancelled it."""
    try:
        future.set_exception(cause)
    except InvalidStateError:
        return
