"""STOMP 1.2 frames: cut from a stream of bytes, header lines escaped and read, frames joined.

The cutter keeps what has come as a list of chunks and joins them once, when a whole frame must be there, so that a large
body costs one copy and not one a read. A frame ends where ``content-length`` says, or at the first NUL without it. Classic
ends each of its frames with a NUL and a line feed, and sends a Java client's text as it is, NULs and all, without a length:
there (``ends_in_line_feed``) a NUL ends a message only if a line feed follows, and then nothing, a frame or a heart-beat. A
property named content-length of an AMQP client's text takes the place of the header there, and is found out.

Everything here is pure. Bytes that are no STOMP raise ``ProviderError(PROTOCOL)``, text that is no UTF-8
``ProviderError(FORMAT)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, overload

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["Frame", "FrameCutter", "UnreadableMessage", "command_frame", "escape", "header_lines", "text_of", "unescape"]

T = TypeVar("T")
_ESCAPABLE: Final = re.compile(r"[\\\n\r:]")
_ESCAPED: Final = re.compile(r"\\([\\nrc])")
_MEANING: Final = {"\\": "\\", "n": "\n", "r": "\r", "c": ":"}
_SEARCHES: Final = 4
_MODIFIED_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LENGTH: Final = b"\ncontent-length:"
_HEAD_LIMIT: Final = 1 << 24
"""Bytes of the largest block of header lines."""
_MOST_LINES: Final = 1 << 16
"""Header lines of the frame with the most of them that is read: each becomes objects of many times its size."""
_NONE: Final[frozenset[bytes]] = frozenset()
_STARTS: Final = (b"MESSAGE\n", b"RECEIPT\n", b"ERROR\n", b"\n")
_BEGINS: Final = {start[:size] for start in _STARTS for size in range(len(start))}
_HEAD: Final = re.compile(rb"\n\r?\n|\0")
_HEAD_WITH_NULS: Final = re.compile(rb"\n\r?\n")
_NUL: Final = re.compile(rb"\0")
_NUL_AND_LINE_FEED: Final = re.compile(rb"\0\n(?:%b|(?:%b)\Z)" % (b"|".join(_STARTS), b"|".join(sorted(_BEGINS))))
"""Without one of these in what was read, the head or the body cannot have ended."""
_LONGEST_CUT: Final = 2
"""Bytes of the beginning of these that one read may bring, and the next one the rest."""


def escape(text: str) -> str:
    """Return a header's name or value as it goes on the wire."""
    if _ESCAPABLE.search(text) is None:
        return text
    # Four passes in C are quicker than one translate, whose table is a dict.
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace(":", "\\c")


def unescape(text: str) -> str:
    """Undo ``escape``; an undefined escape stays as it is, for brokers send such."""
    if "\\" not in text:
        return text
    if "\\\\" in text:
        return _ESCAPED.sub(lambda match: _MEANING[match[1]], text)
    # No backslash stands for itself, so each begins an escape; three passes in C are quicker than one with a function.
    return text.replace("\\c", ":").replace("\\n", "\n").replace("\\r", "\r")


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
    """Return a frame without a body.

    Raises:
        ProviderError: FORMAT; a NUL would end it amid its headers, and the broker the connection.
    """
    head = header_lines(headers)
    if "\0" in head:
        raise ProviderError(ErrorKind.FORMAT, f"a header of {command} would hold a NUL, which STOMP cannot carry")
    return f"{command}\n{head}\n\0".encode()


class Frame:
    """One frame as it was cut; its headers are read when first asked for.

    Of a repeated header the first counts, as STOMP has it, but for those that a broker is known to write behind the sender's.

    Args:
        command: The command.
        head: The header lines, each with a line feed before it, none after.
        body: The body.
        last: Headers of which the last counts, each as ``b"\\nname:"``.
        searches: How many headers are searched for, one by one, before all are read.
    """

    __slots__ = ("_headers", "_last", "_others", "_searches", "body", "command", "head")

    def __init__(
        self, command: bytes, head: bytes, body: bytes, last: frozenset[bytes] = _NONE, searches: int = _SEARCHES
    ) -> None:
        self.command = command
        self._last = last
        self.head = head
        self.body = body
        self._headers: dict[str, str] | None = None
        self._others: Sequence[tuple[str, str]] = ()
        self._searches = searches

    def without_body(self) -> Frame:
        """Return the same frame with an empty body."""
        return Frame(self.command, self.head, b"", self._last)

    def with_values(self, values: Mapping[bytes, bytes]) -> Frame:
        """Return the same frame with other values, as they are to be escaped, of headers that it has."""
        head = self.head
        for name, value in values.items():
            start = b"\n%b:" % name
            before, found, rest = head.partition(start)
            if found:
                _, line_feed, after = rest.partition(b"\n")
                head = before + start + value + line_feed + after
        return Frame(self.command, head, self.body, self._last)

    def raw(self, name: bytes) -> bytes | None:
        """Return one header's value, escaped as it came; ``name`` is ``b"\\nname:"``."""
        head = self.head
        start = head.rfind(name) if name in self._last else head.find(name)
        if start < 0:
            return None
        start += len(name)
        end = head.find(b"\n", start)
        return (head[start:] if end < 0 else head[start:end]).removesuffix(b"\r")

    def find(self, name: bytes) -> str | None:
        """Return one header's value without reading the others; ``name`` is ``b"\\nname:"``."""
        value = self.raw(name)
        return None if value is None else unescape(self._text(value))

    def get(self, name: str) -> str | None:
        """Return one header's value; who asks often has them all read at once, which costs as much as a few searches."""
        headers = self._headers
        if headers is None:
            if self._searches:
                self._searches -= 1
                return self.find(b"\n%s:" % name.encode())
            headers = self.headers
        return headers.get(name)

    @property
    def headers(self) -> dict[str, str]:
        """All headers; of a repeated one that which counts.

        Raises:
            ProviderError: FORMAT; a header is not UTF-8.
        """
        if self._headers is None:
            self._headers, self._others = self.split()
        return self._headers

    def read(self) -> dict[str, str]:
        """Read all headers, without keeping them; see ``headers``."""
        return self.split()[0]

    @property
    def is_read(self) -> bool:
        """Whether all headers have been read, so that asking for one costs next to nothing."""
        return self._headers is not None

    @property
    def at_hand(self) -> Mapping[str, str]:
        """All headers if they have been read, else each when it is asked for."""
        return Peek(self) if self._headers is None else self._headers

    def split(self) -> tuple[dict[str, str], Sequence[tuple[str, str]]]:
        """Read all headers, without keeping them.

        Returns:
            The headers that count, and those that do not for there is another one of the name, with another value.
        Raises:
            ProviderError: FORMAT; a header is not UTF-8, or there are more than anybody reads.
        """
        if self._headers is not None:
            return self._headers, self._others
        if self.head.count(b"\n") > _MOST_LINES:
            raise ProviderError(ErrorKind.FORMAT, f"the frame received has more than {_MOST_LINES} header lines")
        text = self._text(self.head)
        lines = text.split("\n")[1:]
        try:
            headers = dict([line.split(":", 1) for line in lines])
        except ValueError:  # a line that is no header
            return self._read_lines(lines)
        # Artemis repeats a line as it is, which changes nothing.
        if (len(headers) != len(lines) and len(headers) != len(set(lines))) or "\r" in text:
            return self._read_lines(lines)
        if "\\" in text:
            if "\\" in "".join(headers):
                return self._read_lines(lines)
            for name, value in headers.items():
                if "\\" in value:
                    headers[name] = unescape(value)
        return headers, ()

    def _text(self, data: bytes) -> str:
        """Decode header lines; in a message one that is no text leaves the others readable."""
        try:
            return text_of(data)
        except ProviderError:
            if self.command != b"MESSAGE":
                raise
            return "\n".join([_readable(line) for line in data.split(b"\n")])

    def _read_lines(self, lines: list[str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Read header lines one by one: any of them may be repeated, escaped, ended by a carriage return, or none."""
        headers: dict[str, str] = {}
        others: list[tuple[str, str]] = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                continue
            name, value = unescape(name), unescape(value.removesuffix("\r"))
            known = headers.setdefault(name, value)
            if known != value:
                if b"\n%b:" % name.encode() in self._last:
                    headers[name], value = value, known
                others.append((name, value))
        return headers, others


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


class UnreadableMessage(ProviderError):
    """A MESSAGE that no peer may send.

    Args:
        frame: The frame.
        message: What is wrong with it.
    """

    def __init__(self, frame: Frame, message: str) -> None:
        super().__init__(ErrorKind.PROTOCOL, message, fatal=True)
        self.frame = frame


class FrameCutter:
    """Cuts frames from what was read.

    Args:
        limit: Bytes; the largest frame taken.
        option: Names the limit in errors.
    """

    __slots__ = (
        "_awaited",
        "_last",
        "_need",
        "_option",
        "_parts",
        "_searched",
        "_size",
        "count",
        "distrusted",
        "ends_in_line_feed",
        "fault",
        "last_counts",
        "limit",
        "nul_in_headers",
    )

    def __init__(self, limit: int, option: str = "") -> None:
        self.limit = limit
        self._option = option
        self.count = 0
        """Frames cut so far."""
        self.last_counts = _NONE
        """Headers of which the last one counts; see ``Frame``."""
        self.ends_in_line_feed = False
        """The peer ends each frame with NUL and line feed: a NUL without one is a part of the body."""
        self.nul_in_headers = False
        """The peer writes a NUL in a header of a message as it is."""
        self.distrusted = b""
        """A header line of messages whose ``content-length`` is their sender's, where frames end in a line feed."""
        self.fault: ProviderError | None = None
        """PROTOCOL: what follows the frames returned last is no STOMP. Those are to be taken first."""
        self._parts: list[bytes] = []
        self._last = b""
        self._awaited = _HEAD
        self._size = 0
        self._need = 0
        self._searched: int = 0

    @property
    def unfinished(self) -> int:
        """Bytes of a frame that has not come whole."""
        return self._size if self._parts else 0

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
            # What cannot be whole yet is not joined: a peer may send it a few bytes at a time.
            recent = self._last + data
            self._last = recent[-_LONGEST_CUT:]
            if self._size < self._need or (not self._need and self._awaited.search(recent) is None):
                in_head = self._awaited in (_HEAD, _HEAD_WITH_NULS)
                if self._size > (min(self.limit, _HEAD_LIMIT) if in_head else self.limit):
                    raise self._placed(self._too_large())
                return []
            data = b"".join(self._parts)
            self._parts = []
        frames: list[Frame] = []
        try:
            rest = self._cut(data, frames)
        except ProviderError as fault:
            self.count += len(frames)
            placed = self._placed(fault)
            if not frames:
                raise placed from None
            self.fault = placed
            return frames
        self.count += len(frames)
        self._size = len(data) - rest
        if self._size:
            self._parts.append(data[rest:] if rest else data)
            self._last = self._parts[0][-_LONGEST_CUT:]
        return frames

    def _placed(self, fault: ProviderError) -> ProviderError:
        return ProviderError(fault.kind, f"{fault.message} (frame {self.count + 1} of the connection)", fatal=True)

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
            message = data.startswith(b"MESSAGE", position)
            end = data.find(b"\n\n", position)
            body = end + 2
            dressed = data.find(b"\n\r\n", position, size if end < 0 else end + 1)
            if dressed >= 0:
                end, body = dressed, dressed + 3
            # A header of a MESSAGE may hold the NUL that its sender put into a property.
            nul_allowed = message and (self.nul_in_headers or self.ends_in_line_feed)
            if not nul_allowed and data.find(b"\0", position, size if end < 0 else end) >= 0:
                raise ProviderError(ErrorKind.PROTOCOL, "the peer sent a frame without an empty line", fatal=True)
            if end < 0:
                if size - position > min(self.limit, _HEAD_LIMIT):
                    raise self._too_large()
                self._awaited = _HEAD_WITH_NULS if nul_allowed else _HEAD
                return position
            line = data.find(b"\n", position, end)
            if line < 0:
                line = end
            command = data[position:line].removesuffix(b"\r")
            head = data[line:end]
            nul = self._stop(data, position, body, head, message=message)
            if nul < 0:
                self._awaited = _NUL_AND_LINE_FEED if message and self.ends_in_line_feed else _NUL
                if max(self._need, size - position) > self.limit:
                    raise self._too_large()
                return position
            frames.append(Frame(command, head, data[body:nul], self.last_counts))
            position = nul + 1

    def _stop(self, data: bytes, position: int, body: int, head: bytes, *, message: bool) -> int:
        """Return where the NUL is that ends the frame; -1 when it has not come yet, and ``_need`` may be known."""
        unlimited = message and self.ends_in_line_feed
        declared = head.find(_LENGTH)
        if declared >= 0 and not (unlimited and self.distrusted and self.distrusted in head):
            stop = body + self._length(head, declared)
            if stop >= len(data):
                self._need = stop + 1 - position
                return -1
            if data[stop] == 0:
                return stop
            if not unlimited:
                raise ProviderError(ErrorKind.PROTOCOL, "the peer sent a body longer than its content-length", fatal=True)
        return self._end(data, position, body) if unlimited else data.find(b"\0", body)

    def _end(self, data: bytes, position: int, body: int) -> int:
        """Return where the NUL is that ends the frame, the first one or a later one; -1 when it has not come yet."""
        size = len(data)
        nul = data.find(b"\0", max(body, position + self._searched))
        while nul >= 0:
            after = nul + 2
            if after > size:
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
        text = f"the peer sent a frame of more than {self.limit} bytes" + (f" (option {self._option})" if self._option else "")
        return ProviderError(ErrorKind.PROTOCOL, text, fatal=True)


def _readable(line: bytes) -> str:
    """Return a header line; bytes that are no UTF-8 as their escapes in Python: ``\\xff``."""
    try:
        return text_of(line)
    except ProviderError:
        return line.decode("utf-8", "backslashreplace")


def _begun(data: bytes) -> bool:
    """Return whether all there is of the next frame may be the begin of a command."""
    return any(start.startswith(data) for start in _STARTS)
