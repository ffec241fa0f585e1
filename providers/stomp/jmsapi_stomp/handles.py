"""The handles and tags that the core holds."""

from __future__ import annotations

from collections.abc import Callable

from jmsapi.spi import Address, Handle, ProviderError, Tag

__all__ = ["ConsumerHandle", "ProducerHandle", "StompSessionHandle", "StompTag", "StompTxHandle"]


class StompSessionHandle(Handle):
    """A session: a token, for STOMP has none."""

    __slots__ = ("serial", "transacted")

    def __init__(self, serial: int, transacted: bool) -> None:
        self.serial = serial
        self.transacted = transacted


class ProducerHandle(Handle):
    """A producer: how its last send began.

    Attributes:
        last: Where to, from whom, and the header lines that tell it. Written and read as a whole, by any thread.
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


class StompTxHandle(Handle):
    """A local transaction. Its state changes on the I/O thread only."""

    __slots__ = ("acks", "begun", "ended", "failed", "name", "open_receipts", "unconfirmed", "when_quiet")

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False
        self.ended = False
        """Its commit or rollback has been asked for."""
        self.acks: list[StompTag] = []
        self.failed: ProviderError | None = None
        self.open_receipts = 0
        self.unconfirmed = 0
        """Sends in it that asked for no receipt, where the end of the transaction tells what became of them."""
        self.when_quiet: Callable[[], object] | None = None


class StompTag(Tag):
    """One delivery: its consumer's number and the id by which the broker takes its acknowledgement."""

    __slots__ = ("ack", "confirmed", "consumer", "size")

    def __init__(self, consumer: int, ack: bytes, size: int, confirmed: bool) -> None:
        self.consumer = consumer
        self.ack = ack
        self.size = size
        self.confirmed = confirmed
        """Its acknowledgement is to be confirmed by the broker."""
