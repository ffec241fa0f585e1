"""STOMP 1.2 frames: cut from a stream of bytes, header lines escaped and read, frames joined.

The cutter keeps what has come as a list of chunks and joins them once, when a whole frame must be there, so that a large
body costs one copy and not one a read. A frame ends where ``content-length`` says, or at the first NUL without it. Classic
ends each of its frames with a NUL and a line feed, and sends a Java client's text as it is, NULs and all, without a length:
there (``ends_in_line_feed``) a NUL ends a message only if a line feed follows, and then nothing, a frame or a heart-beat.

Everything here is pure. Bytes that are no STOMP raise ``ProviderError(PROTOCOL)``, text that is no UTF-8
``ProviderError(FORMAT)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar, overload

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["Frame", "FrameCutter", "command_frame", "escape", "header_lines", "text_of", "unescape"]

T = TypeVar("T")
_ESCAPABLE: Final = re.compile(r"[\\\n\r:]")
_ESCAPED: Final = re.compile(r"\\([\\nrc])")
_MEANING: Final = {"\\": "\\", "n": "\n", "r": "\r", "c": ":"}
_SEARCHES: Final = 4
_MODIFIED_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LENGTH: Final = b"\ncontent-length:"
_STARTS: Final = (b"MESSAGE\n", b"RECEIPT\n", b"ERROR\n", b"\n")


def escape(text: str) -> str:
    """Return a header's name or value as it goes on the wire."""
    if _ESCAPABLE.search(text) is None:
        return text
    # Four passes in C are quicker than one translate, whose table is a dict.
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace(":", "\\c")


def unescape(text: str) -> str:
    """Undo ``escape``; an undefined escape stays as it is, for brokers send such."""
    return _ESCAPED.sub(lambda match: _MEANING[match[1]], text) if "\\" in text else text


def text_of(data: bytes) -> str:
    """Decode UTF-8, also in Java's modified form, which ActiveMQ Classic sent before 5.18.6, 5.19.0 and 6.1.4.

    Raises:
        ProviderError: FORMAT; the bytes are neither.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as cause:
        try:
            wide = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            text = _MODIFIED_PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), wide)
            text.encode()
        except UnicodeError:
            raise ProviderError(ErrorKind.FORMAT, f"the text received is not UTF-8: {cause.reason}") from cause
        return text


def header_lines(headers: Iterable[tuple[str, str]]) -> str:
    """Return header lines, escaped, each with its line feed."""
    return "".join([f"{escape(name)}:{escape(value)}\n" for name, value in headers])


def command_frame(command: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return a frame without a body."""
    return f"{command}\n{header_lines(headers)}\n\0".encode()


class Frame:
    """One frame as it was cut; its headers are read when first asked for."""

    __slots__ = ("_asked", "_headers", "body", "command", "head")

    def __init__(self, command: bytes, head: bytes, body: bytes) -> None:
        self.command = command
        self.head = head
        """The header lines, each with a line feed before it, none after."""
        self.body = body
        self._headers: dict[str, str] | None = None
        self._asked = 0

    def raw(self, name: bytes) -> bytes | None:
        """Return one header's value, escaped as it came; ``name`` is ``b"\\nname:"``."""
        head = self.head
        start = head.find(name)
        if start < 0:
            return None
        start += len(name)
        end = head.find(b"\n", start)
        return (head[start:] if end < 0 else head[start:end]).removesuffix(b"\r")

    def find(self, name: bytes) -> str | None:
        """Return one header's value without reading the others; ``name`` is ``b"\\nname:"``."""
        value = self.raw(name)
        return None if value is None else unescape(text_of(value))

    def get(self, name: str) -> str | None:
        """Return one header's value; who asks often has them all read at once, which costs as much as a few searches."""
        headers = self._headers
        if headers is None:
            self._asked += 1
            if self._asked <= _SEARCHES:
                return self.find(b"\n%s:" % name.encode())
            headers = self.headers
        return headers.get(name)

    @property
    def headers(self) -> dict[str, str]:
        """All headers; of a repeated one the first counts.

        Raises:
            ProviderError: FORMAT; a header is not UTF-8.
        """
        if self._headers is None:
            self._headers = self.read()
        return self._headers

    def read(self) -> dict[str, str]:
        """Read all headers, without keeping them; see ``headers``."""
        if self._headers is not None:
            return self._headers
        text = text_of(self.head)
        lines = text.split("\n")[1:]
        try:
            headers = dict([line.split(":", 1) for line in lines])
        except ValueError:  # a line that is no header
            return _read_lines(lines)
        if len(headers) != len(lines) or "\r" in text:
            return _read_lines(lines)
        if "\\" in text:
            for name, value in headers.items():
                if "\\" in name:
                    return _read_lines(lines)
                if "\\" in value:
                    headers[name] = unescape(value)
        return headers


def _read_lines(lines: list[str]) -> dict[str, str]:
    """Read header lines one by one: any of them may be repeated, escaped, ended by a carriage return, or none."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(unescape(name), unescape(value.removesuffix("\r")))
    return headers


class Peek(Mapping[str, str]):
    """A frame's headers, each found when it is asked for, so that a waiting message keeps its bytes and nothing else.

    Args:
        frame: Whose headers.
    """

    __slots__ = ("_frame",)

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __getitem__(self, name: str) -> str:
        value = self._frame.get(name)
        if value is None:
            raise KeyError(name)
        return value

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, /, default: str) -> str: ...
    @overload
    def get(self, name: str, /, default: T) -> str | T: ...
    def get(self, name: str, /, default: object = None) -> object:
        """Return a header, or ``default``; quicker than what Mapping makes of ``__getitem__``."""
        value = self._frame.get(name)
        return default if value is None else value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._frame.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame.headers)

    def __len__(self) -> int:
        return len(self._frame.headers)


class FrameCutter:
    """Cuts frames from what was read.

    Args:
        limit: Bytes; the largest frame taken.
    """

    __slots__ = ("_limit", "_need", "_parts", "_searched", "_size", "ends_in_line_feed", "fault")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.ends_in_line_feed = False
        """The peer ends each frame with NUL and line feed: a NUL without one is a part of the body."""
        self.fault: ProviderError | None = None
        """PROTOCOL: what follows the frames returned last is no STOMP. Those are to be taken first."""
        self._parts: list[bytes] = []
        self._size = 0
        self._need = 0
        self._searched: int = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Take what one read brought and return the frames that are whole now; then look at ``fault``.

        Raises:
            ProviderError: PROTOCOL; these bytes are no STOMP, and no frame was before them. The stream is of no more use.
        """
        if self.fault is not None:
            raise self.fault
        if self._parts:
            self._parts.append(data)
            self._size += len(data)
            if self._size < self._need or (not self._need and b"\0" not in data):
                if self._size > self._limit:
                    raise self._too_large()
                return []
            data = b"".join(self._parts)
            self._parts = []
        frames: list[Frame] = []
        try:
            rest = self._cut(data, frames)
        except ProviderError as fault:
            if not frames:
                raise
            self.fault = fault
            return frames
        self._size = len(data) - rest
        if self._size:
            self._parts.append(data[rest:] if rest else data)
        return frames

    def _cut(self, data: bytes, frames: list[Frame]) -> int:
        """Append the whole frames to ``frames`` and return where the rest begins."""
        position = 0
        size = len(data)
        self._need = 0
        while True:
            while position < size and data[position] in b"\n\r":
                position += 1
            if position == size:
                return size
            first = position
            if self.ends_in_line_feed:
                # A Java client's header may have a NUL as well.
                first = data.find(b"\n\n", position)
            nul = data.find(b"\0", first) if first >= 0 else -1
            if nul < 0:
                if size - position > self._limit:
                    raise self._too_large()
                return position
            end = data.find(b"\n\n", position, nul)
            body = end + 2
            dressed = data.find(b"\n\r\n", position, nul if end < 0 else end + 1)
            if dressed >= 0:
                end, body = dressed, dressed + 3
            if end < 0:
                raise ProviderError(ErrorKind.PROTOCOL, "the peer sent a frame without an empty line", fatal=True)
            line = data.find(b"\n", position, end)
            if line < 0:
                line = end
            command = data[position:line].removesuffix(b"\r")
            head = data[line:end]
            declared = head.find(_LENGTH)
            if declared >= 0:
                stop = body + self._length(head, declared)
                if stop >= size:
                    self._need = stop + 1 - position
                    if self._need > self._limit:
                        raise self._too_large()
                    return position
                if data[stop] != 0:
                    raise ProviderError(ErrorKind.PROTOCOL, "the peer sent a body longer than its content-length", fatal=True)
                nul = stop
            elif self.ends_in_line_feed and command == b"MESSAGE":
                nul = self._end(data, position, nul)
                if nul < 0:
                    if size - position > self._limit:
                        raise self._too_large()
                    return position
            frames.append(Frame(command, head, data[body:nul]))
            position = nul + 1

    def _end(self, data: bytes, position: int, nul: int) -> int:
        """Return where the NUL is that ends the frame, the first one or a later one; -1 when it has not come yet."""
        size = len(data)
        nul = data.find(b"\0", max(nul, position + self._searched))
        while nul >= 0:
            after = nul + 2
            if after > size:
                self._need = after - position
                self._searched = nul - position
                return -1
            if data[nul + 1] == 10 and (data.startswith(_STARTS, after) or _begun(data[after : after + 8])):
                self._searched = 0
                return nul
            nul = data.find(b"\0", nul + 1)
        self._searched = size - position
        return -1

    def _length(self, head: bytes, start: int) -> int:
        start += len(_LENGTH)
        end = head.find(b"\n", start)
        digits = (head[start:] if end < 0 else head[start:end]).strip()
        if not digits.isdigit() or len(digits) > 12:
            raise ProviderError(ErrorKind.PROTOCOL, "the peer sent a content-length that is no number", fatal=True)
        return int(digits)

    def _too_large(self) -> ProviderError:
        return ProviderError(ErrorKind.PROTOCOL, f"the peer sent a frame of more than {self._limit} bytes", fatal=True)


def _begun(data: bytes) -> bool:
    """Return whether all there is of the next frame may be the begin of a command."""
    return any(start.startswith(data) for start in _STARTS)
