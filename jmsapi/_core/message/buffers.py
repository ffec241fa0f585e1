"""Filling the buffers that ``read_bytes`` gets, of BytesMessage and StreamMessage."""

from __future__ import annotations

from jmsapi.errors import IllegalArgumentException, NullPointerException

__all__ = ["fill", "writable_view"]


def writable_view(buffer: bytearray | memoryview | None) -> memoryview:
    """Give a buffer as a flat view of its bytes.

    Raises:
        NullPointerException: There is none.
        IllegalArgumentException: It is no buffer, or cannot be written to.
    """
    if buffer is None:
        raise NullPointerException("a buffer is needed, not None")
    try:
        view = memoryview(buffer)
        if not view.readonly:
            return view.cast("B")
    except TypeError as error:
        raise IllegalArgumentException(f"a writable buffer of bytes is needed: {error}") from error
    raise IllegalArgumentException(f"a writable buffer is needed, not a {type(buffer).__name__}: use a bytearray")


def fill(buffer: bytearray | memoryview | None, length: int | None, data: bytes, start: int) -> int:
    """Copy bytes into a buffer, from its beginning.

    Args:
        buffer: Where to put them.
        length: How many at most; None: as many as the buffer holds.
        data: Where they come from.
        start: The first to copy; at or behind the end nothing is copied.
    Returns:
        How many were copied.
    Raises:
        NullPointerException: There is no buffer.
        IllegalArgumentException: It is not writable, or the length is negative or larger than the buffer.
    """
    with writable_view(buffer) as view:
        room = len(view) if length is None else length
        if not 0 <= room <= len(view):
            raise IllegalArgumentException(f"length {length} does not fit a buffer of {len(view)} bytes")
        part = data[start : start + room]
        view[: len(part)] = part
        return len(part)
