"""What a connection must know of a broker's behaviour, before and beside what JMS is about."""

from __future__ import annotations

from typing import ClassVar, Protocol

from jmsapi.spi import ErrorKind

__all__ = ["WireBehaviour"]


class WireBehaviour(Protocol):
    """The part of a ``StompBehaviour``, described there, that the connection itself follows."""

    every_error_ends: ClassVar[bool]
    """The broker closes the connection after each ERROR."""
    one_at_a_time: ClassVar[bool]
    """An ERROR may name no frame."""
    frames_end_in_line_feed: ClassVar[bool]
    """Each frame ends with a NUL and a line feed."""
    nul_in_headers: ClassVar[bool]
    """A NUL in a property stands in a header as it is."""
    distrusted_length: ClassVar[bytes]
    """A header line of messages whose ``content-length`` is a property of their sender."""
    last_counts: ClassVar[frozenset[bytes]]
    """Headers of which the last of the name is the broker's word."""

    def reason(self, text: str, detail: str) -> str:
        """Return what an ERROR says, given its message with the first line of its body, and all of the body."""
        ...

    def refused_declaration(self, text: str) -> tuple[str, str] | None:
        """Return the start of the SENDs that an ERROR refuses since their queue was declared otherwise, and an explanation."""
        ...

    def kind_of_error(self, text: str, detail: str, default: ErrorKind) -> ErrorKind:
        """Return the kind of an ERROR."""
        ...
