"""What the core holds of a connection that may be made again: handles that outlive links, and tags that do not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from jmsapi.spi import Address, ConsumerSpec, Envelope, ErrorKind, Handle, PlainEnvelope, ProviderError, Tag

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting_epoch import Epoch

__all__ = [
    "ConsumerRecord",
    "LinkTag",
    "NotYet",
    "ProducerRecord",
    "Record",
    "Refused",
    "Request",
    "Sending",
    "SessionRecord",
    "TxRecord",
    "altered",
    "is_loss",
    "resolve",
]

_LOSS: Final = frozenset({ErrorKind.CONNECTION, ErrorKind.TIMEOUT, ErrorKind.CLOSED, ErrorKind.PROTOCOL, ErrorKind.IN_DOUBT})


def is_loss(error: BaseException | None, *, over: bool = False) -> bool:
    """Return whether an error only says that the link is gone, and nothing of what was asked.

    A fatal one does, of whatever kind: the kind is that of what ended the link.

    Args:
        error: What a provider said.
        over: The link is known to be gone.
    """
    if not isinstance(error, ProviderError):
        return False
    return error.fatal or error.kind is ErrorKind.CONNECTION or (over and error.kind in _LOSS)


def resolve(future: Future[Any], value: object = None, error: BaseException | None = None) -> None:
    """Set a future that may have been set by somebody else."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


class NotYet(Exception):
    """A handle is still to be made again on this link; ask later."""


class Refused(Exception):
    """A handle could not be made again, or is released.

    Args:
        cause: What whoever uses it is told.
    """

    def __init__(self, cause: ProviderError) -> None:
        super().__init__(cause.message)
        self.cause = cause


class Record(Handle):
    """A handle of the core's: what it is on the link of the moment."""

    __slots__ = ("epoch", "inner", "refused", "released")

    def __init__(self) -> None:
        self.epoch: Epoch | None = None
        """The link on which ``inner`` means something."""
        self.inner: Handle | None = None
        self.released = False
        self.refused: ProviderError | None = None
        """Why it could not be made again."""

    def on(self, epoch: Epoch) -> Handle:
        """Return what it is on a link.

        Raises:
            Refused: It is released, or could not be made again.
            NotYet: It is still to be made again there.
        """
        inner = self.inner
        if self.refused is not None:
            raise Refused(self.refused)
        if self.released:
            raise Refused(ProviderError(ErrorKind.CLOSED, "it is closed"))
        if inner is None or self.epoch is not epoch:
            raise NotYet
        return inner

    def is_on(self, epoch: Epoch) -> bool:
        """Return whether it is there on a link."""
        return self.epoch is epoch and self.inner is not None


class SessionRecord(Record):
    """A session, with what was opened in it."""

    __slots__ = ("children", "transacted", "transactions")

    def __init__(self, *, transacted: bool) -> None:
        super().__init__()
        self.transacted = transacted
        self.children: dict[ConsumerRecord | ProducerRecord, None] = {}
        self.transactions: dict[TxRecord, None] = {}


class ConsumerRecord(Record):
    """A consumer, and the credit that the core has given it and that is not used up."""

    __slots__ = ("credit", "session", "spec")

    def __init__(self, session: SessionRecord, spec: ConsumerSpec) -> None:
        super().__init__()
        self.session = session
        self.spec = spec
        self.credit = 0


class ProducerRecord(Record):
    """A producer."""

    __slots__ = ("destination", "session")

    def __init__(self, session: SessionRecord, destination: Address | None) -> None:
        super().__init__()
        self.session = session
        self.destination = destination


class TxRecord(Record):
    """A transaction: of one link once something was done in it."""

    __slots__ = ("doomed", "session", "used")

    def __init__(self, session: SessionRecord) -> None:
        super().__init__()
        self.session = session
        self.used = False
        self.doomed = False
        """It spans a break, so it can only be rolled back."""


class LinkTag(Tag):
    """A delivery, and the link by which it came: on another link it means nothing."""

    __slots__ = ("epoch", "inner")

    def __init__(self, epoch: Epoch, inner: Tag) -> None:
        self.epoch = epoch
        self.inner = inner


class Sending:
    """A send that is not answered."""

    __slots__ = ("envelope", "producer", "sent_to", "since", "token", "tx")

    def __init__(self, producer: ProducerRecord, envelope: Envelope, tx: TxRecord | None, token: object, since: float) -> None:
        self.producer = producer
        self.envelope = envelope
        self.tx = tx
        self.token = token
        self.since = since
        self.sent_to: int | None = None
        """The server that may have it already, by its place in the list."""


class Request:
    """A call that is made again on the next link when its answer was lost.

    Args:
        start: Makes the call on a link.
        keep: Takes note of the answer, and returns what the core gets. With the guard held.
        since: When it was asked for, in the clock's seconds.
        done_by_refusal: A refusal of this kind, of a call that was made before, means that the first one was obeyed.
    """

    __slots__ = ("again", "done_by_refusal", "future", "keep", "since", "start")

    def __init__(
        self,
        start: Callable[[Epoch], Future[Any]],
        keep: Callable[[Epoch, Any], Any],
        since: float,
        done_by_refusal: ErrorKind | None = None,
    ) -> None:
        self.start = start
        self.keep = keep
        self.since = since
        self.done_by_refusal = done_by_refusal
        self.again = False
        self.future: Future[Any] = Future()


def altered(envelope: Envelope, **changes: Any) -> PlainEnvelope:
    """Return a copy of an envelope with some parts changed."""
    values: dict[str, Any] = {field.name: getattr(envelope, field.name) for field in fields(PlainEnvelope)}
    return PlainEnvelope(**{**values, **changes})
