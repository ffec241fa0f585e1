"""What the core holds of a connection that may be made again: handles that outlive links, and tags that do not.

A record knows a link by its identity only, so its type here is ``object``.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from jmsapi.spi import Address, ConsumerSpec, Envelope, ErrorKind, Handle, PlainEnvelope, ProviderError, Tag

__all__ = [
    "ConsumerRecord",
    "HandleRecord",
    "LinkTag",
    "NotYet",
    "ProducerRecord",
    "Refused",
    "SessionRecord",
    "TransactionRecord",
    "UnansweredSend",
    "altered",
    "is_loss",
]

_LOSS: Final = frozenset({ErrorKind.CONNECTION, ErrorKind.TIMEOUT, ErrorKind.CLOSED, ErrorKind.PROTOCOL, ErrorKind.IN_DOUBT})


def is_loss(error: BaseException | None, *, over: bool = False) -> bool:
    """Return whether an error only says that the link is gone, and nothing of what was asked.

    A fatal one does, of whatever kind: the kind is that of what ended the link.

    Args:
        error: What a provider reported.
        over: The link is known to be gone.
    """
    if not isinstance(error, ProviderError):
        return False
    return error.fatal or error.kind is ErrorKind.CONNECTION or (over and error.kind in _LOSS)


class NotYet(Exception):
    """A handle is still to be made again on this link; ask later."""


class Refused(Exception):
    """A handle could not be made again, or is released.

    Args:
        cause: The error for whoever uses it.
    """

    def __init__(self, cause: ProviderError) -> None:
        super().__init__(cause.message)
        self.cause = cause


class HandleRecord(Handle):
    """A handle of the core's: what it is on the link of the moment."""

    __slots__ = ("epoch", "inner", "refused", "released")

    def __init__(self) -> None:
        self.epoch: object = None
        """The link on which ``inner`` means something."""
        self.inner: Handle | None = None
        self.released = False
        self.refused: ProviderError | None = None
        """Why it could not be made again."""

    def on(self, epoch: object) -> Handle:
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

    def is_on(self, epoch: object) -> bool:
        """Return whether it is there on a link."""
        return self.epoch is epoch and self.inner is not None


class SessionRecord(HandleRecord):
    """A session, with what was opened in it."""

    __slots__ = ("children", "transacted", "transactions")

    def __init__(self, *, transacted: bool) -> None:
        super().__init__()
        self.transacted = transacted
        self.children: dict[ConsumerRecord | ProducerRecord, None] = {}
        self.transactions: dict[TransactionRecord, None] = {}


class ConsumerRecord(HandleRecord):
    """A consumer, and the credit that the core has given it and that is not used up."""

    __slots__ = ("credit", "session", "spec")

    def __init__(self, session: SessionRecord, spec: ConsumerSpec) -> None:
        super().__init__()
        self.session = session
        self.spec = spec
        self.credit = 0


class ProducerRecord(HandleRecord):
    """A producer."""

    __slots__ = ("destination", "session")

    def __init__(self, session: SessionRecord, destination: Address | None) -> None:
        super().__init__()
        self.session = session
        self.destination = destination


class TransactionRecord(HandleRecord):
    """A transaction: of one link once something was done in it."""

    __slots__ = ("session", "used")

    def __init__(self, session: SessionRecord) -> None:
        super().__init__()
        self.session = session
        self.used = False


class LinkTag(Tag):
    """A delivery, and the link by which it came: on another link it means nothing."""

    __slots__ = ("epoch", "inner")

    def __init__(self, epoch: object, inner: Tag) -> None:
        self.epoch = epoch
        self.inner = inner


class UnansweredSend:
    """A send that is not answered."""

    __slots__ = ("envelope", "producer", "sent_to", "since", "token", "tx")

    def __init__(
        self, producer: ProducerRecord, envelope: Envelope, tx: TransactionRecord | None, token: object, since: float
    ) -> None:
        self.producer = producer
        self.envelope = envelope
        self.tx = tx
        self.token = token
        self.since = since
        self.sent_to: int | None = None
        """The server that may have it already, by its place in the list."""


def altered(envelope: Envelope, **changes: Any) -> PlainEnvelope:
    """Return a copy of an envelope with some parts changed."""
    values: dict[str, Any] = {field.name: getattr(envelope, field.name, None) for field in fields(PlainEnvelope)}
    return PlainEnvelope(**{**values, **changes})
