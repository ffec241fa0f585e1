"""Whether the write-ahead log of a store that was not closed still has all that was committed.

SQLite reads a log up to the first frame that is not as it was written, which looks like fewer messages. But its index, the
``-shm`` file, says how many frames there were. It is written behind the log, so it never says too many, and it stays behind when
a process is killed. After a restart of the machine it may be an old one, and is not asked.

Spec: https://sqlite.org/walformat.html
"""

from __future__ import annotations

import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from jmsapi_inproc.store.file_lock import sibling

__all__ = ["lost_of_log"]

_HEADER: Final = 32
_FRAME: Final = 24
_INDEX: Final = 48
_LITTLE: Final = 0x377F0682
_BIG: Final = 0x377F0683
_WORD: Final = 0xFFFFFFFF
_LATER: Final = 1 << 31
_ORDER: Final = "<" if sys.byteorder == "little" else ">"


class _Index(NamedTuple):
    frames: int
    moved: int
    """How many of them are in the file as well."""
    salts: bytes


def lost_of_log(path: Path) -> str | None:
    """Return what is missing from a store's log, or None. To be called before SQLite opens the store.

    Args:
        path: Of the store.
    """
    index = _index_of(sibling(path, "-shm"))
    if index is None or index.frames <= index.moved:
        return None
    log = sibling(path, "-wal")
    try:
        with log.open("rb") as file:
            whole = _whole_frames(file, index)
    except FileNotFoundError:
        whole = 0
    if whole is None or whole >= index.frames:
        return None
    return f"only {whole} of the {index.frames} pages that {log.name} had are as they were written, so transactions are lost"


def _index_of(path: Path) -> _Index | None:
    try:
        with path.open("rb") as file:
            data = file.read(2 * _INDEX + 4)
            written = path.stat().st_mtime
    except OSError:
        return None
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if len(data) < 2 * _INDEX + 4 or clock is None or written < time.time() - time.clock_gettime(clock):
        return None
    if data[:_INDEX] != data[_INDEX : 2 * _INDEX] or data[12] != 1:
        return None  # the process was killed while it wrote this
    (frames,) = struct.unpack_from(f"{_ORDER}I", data, 16)
    (moved,) = struct.unpack_from(f"{_ORDER}I", data, 2 * _INDEX)
    return _Index(frames, moved, data[32:40])


def _whole_frames(file: BinaryIO, index: _Index) -> int | None:
    """Return how many frames are as they were written; None when the log was begun anew, of which the index does not know yet."""
    header = file.read(_HEADER)
    if len(header) < _HEADER:
        return 0
    magic, _, page, *_ = struct.unpack(">8I", header)
    if magic not in (_LITTLE, _BIG):
        return 0
    layout = struct.Struct("<II" if magic == _LITTLE else ">II")
    sums = _sums(layout, header[:24], (0, 0))
    if struct.pack(">II", *sums) != header[24:]:
        return 0
    if header[16:24] != index.salts:
        # Each new beginning counts the first one up.
        later = (int.from_bytes(header[16:20]) - int.from_bytes(index.salts[:4])) & _WORD
        return None if later < _LATER else 0
    for number in range(index.frames):
        frame = file.read(_FRAME + page)
        if len(frame) < _FRAME + page or frame[8:16] != index.salts:
            return number
        sums = _sums(layout, frame[_FRAME:], _sums(layout, frame[:8], sums))
        if struct.pack(">II", *sums) != frame[16:24]:
            return number
    return index.frames


def _sums(layout: struct.Struct, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for one, other in layout.iter_unpack(data):
        first = (first + one + second) & _WORD
        second = (second + other + first) & _WORD
    return first, second
