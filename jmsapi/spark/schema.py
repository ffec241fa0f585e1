"""The columns of the data source, and staged messages as Arrow files.

A file has its messages as the wire brought them, with what claims and planners ask for beside, and they are decoded where the
rows are read: only the columns that the query selects, and a restart may select others. Messages that came by no wire are
staged as rows, with all columns. The ingest columns are not staged: they are where a row lies.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from jmsapi import Message
from jmsapi.errors import JMSException
from jmsapi.spark.arrow import RecordBatch, pa, pc
from jmsapi.spark.frames import KeptFrames, columns_of_frames
from jmsapi.spark.rows import COLUMNS, Taken, UndecodedMessage, columns_of

__all__ = ["DDL", "STAGED", "ArrowCodec", "batch_of", "browsed_rows", "ids_of", "newest_ms", "read_rows"]

DDL: Final = (
    "message_id string, correlation_id string, destination string, reply_to string, type string, delivery_mode string, "
    "priority int, timestamp timestamp, expiration timestamp, delivery_time timestamp, redelivered boolean, delivery_count int, "
    "properties map<string,string>, property_types map<string,string>, body_type string, text string, bytes binary, "
    "value variant, value_types map<string,string>, error string, received_at timestamp, raw binary, "
    "ingest_batch bigint, ingest_claim int, ingest_row bigint"
)
"""The whole schema as Spark writes it."""

_TEXT: Final = pa.string()
_TIME: Final = pa.timestamp("us", tz="UTC")
_MAP: Final = pa.map_(pa.string(), pa.string())
_VARIANT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
_TYPES: Final[dict[str, Any]] = {
    "delivery_mode": _TEXT,
    "priority": pa.int32(),
    "timestamp": _TIME,
    "expiration": _TIME,
    "delivery_time": _TIME,
    "redelivered": pa.bool_(),
    "delivery_count": pa.int32(),
    "properties": _MAP,
    "property_types": _MAP,
    "bytes": pa.binary(),
    "value": _VARIANT,
    "value_types": _MAP,
    "received_at": _TIME,
    "raw": pa.binary(),
}
STAGED: Final = pa.schema([pa.field(name, _TYPES.get(name, _TEXT)) for name in COLUMNS])
_FRAMES: Final = pa.schema(
    [
        pa.field("message_id", _TEXT),
        pa.field("timestamp", _TIME),
        pa.field("received_at", _TIME),
        pa.field("delivery_count", pa.int32()),
        pa.field("how", pa.dictionary(pa.int32(), _TEXT)),
        pa.field("wire", pa.binary()),
    ]
)
"""Messages as they came; ``how`` and ``wire`` are what ``jmsapi.wire_form`` gives."""
_AT_HAND: Final = frozenset({"message_id", "timestamp", "received_at", "delivery_count"})
"""Columns for which no message is decoded."""
_SLICE: Final = 5000
"""Messages that are decoded at a time."""
_WHOLE: Final = pa.schema(
    [*STAGED, pa.field("ingest_batch", pa.int64()), pa.field("ingest_claim", pa.int32()), pa.field("ingest_row", pa.int64())]
)


class ArrowCodec:
    """Rows as the bytes of an Arrow file.

    Args:
        compression: ``lz4``, ``zstd`` or ``none``.
    """

    def __init__(self, compression: str = "lz4") -> None:
        self._options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)

    def message_id(self, message: Taken) -> str | None:
        """Return the id; see Codec."""
        return message.message_id

    def size(self, message: Taken) -> int:
        """Return the size; see Codec."""
        return message.size

    def encode(self, messages: Sequence[Taken]) -> memoryview:
        """Return a file; see Codec."""
        received_us = [one.received_us for one in messages]
        plain = any(one.message is not None for one in messages)
        batch = batch_of(columns_of(map(_message_of, messages), received_us, COLUMNS), STAGED) if plain else _frames(messages)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema, options=self._options) as writer:
            writer.write_batch(batch)
        return memoryview(sink.getvalue())


def _message_of(taken: Taken) -> Message | UndecodedMessage:
    if taken.message is not None:
        return taken.message

    def known(number: int) -> dict[str, Any]:
        return {"message_id": taken.message_id, "timestamp": taken.sent_us}

    return KeptFrames([taken.how or ""], [taken.data], [taken.delivery_count], [taken.received_us], known).message(0)


def _frames(messages: Sequence[Taken]) -> RecordBatch:
    columns: list[Any] = list(zip(*messages, strict=True))[: len(_FRAMES)] or [()] * len(_FRAMES)
    arrays = [
        pa.array(column, _TEXT).dictionary_encode() if field.name == "how" else pa.array(column, field.type)
        for field, column in zip(_FRAMES, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_FRAMES)


def batch_of(columns: Mapping[str, Sequence[Any]], schema: Any) -> RecordBatch:
    """Return columns as a batch."""
    return pa.RecordBatch.from_arrays([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _array(column: Sequence[Any], kind: Any) -> Any:
    if not any(map(_is_something, column)):
        # Most messages have no body of most kinds, and no error.
        return pa.nulls(len(column), kind)
    return _maps(column) if kind == _MAP else pa.array(column, kind)


def _is_something(value: object) -> bool:
    return value is not None


def _maps(column: Sequence[Mapping[str, str] | None]) -> Any:
    """Return a column of maps; by its parts, which takes a quarter of the time that pairs take."""
    offsets: list[int | None] = []
    names: list[str] = []
    texts: list[str] = []
    for one in column:
        offsets.append(None if one is None else len(names))
        if one:
            names.extend(one)
            texts.extend(one.values())
    offsets.append(len(names))
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(names, _TEXT), pa.array(texts, _TEXT))


def _open(data: memoryview, *columns: str) -> Any:
    """Open a staged file; with columns these alone, in the order of the file."""
    buffer = pa.py_buffer(data)
    reader = pa.ipc.open_file(buffer)
    if not columns:
        return reader
    included = [place for place, name in enumerate(reader.schema.names) if name in columns]
    return pa.ipc.open_file(buffer, options=pa.ipc.IpcReadOptions(included_fields=included))


def ids_of(data: memoryview) -> list[str | None]:
    """Return the message ids in a staged file, in order."""
    found: list[str | None] = _open(data, "message_id").read_all().column("message_id").to_pylist()
    return found


def newest_ms(data: memoryview) -> float:
    """Return the latest JMSTimestamp in a staged file, in milliseconds since 1970; 0 when no message has one.

    One that is later than when its message was received comes from a clock that is ahead, and says nothing.
    """
    table = _open(data, "timestamp", "received_at").read_all()
    sent, received = (pc.cast(table.column(name), pa.int64()) for name in ("timestamp", "received_at"))
    latest = pc.max(pc.filter(sent, pc.less_equal(sent, received))).as_py()
    return 0.0 if latest is None else latest / 1000


@functools.lru_cache(maxsize=64)
def _selected(names: tuple[str, ...]) -> Any:
    return pa.schema([_WHOLE.field(name) for name in names])


def read_rows(
    files: Sequence[tuple[memoryview, frozenset[str]]], seq: int, claim: int, columns: Sequence[str], mode: str
) -> Iterator[RecordBatch]:
    """Give the rows of a claim.

    Args:
        files: Its files, each with the ids that do not count.
        seq: The batch, for the ingest columns.
        claim: The claim, likewise.
        columns: Names of those wanted, in their order.
        mode: What to do with rows that have an ``error``: PERMISSIVE, DROPMALFORMED or FAILFAST.
    Raises:
        JMSException: ``malformed``: FAILFAST, and there is one.
    """
    number = 0
    for data, left_out in files:
        for staged in _slices(_open(data)):
            if left_out:
                staged = staged.filter(pc.invert(pc.is_in(staged.column("message_id"), pa.array(sorted(left_out), _TEXT))))
            first, rows = number, staged.num_rows
            number += rows
            place = {
                "ingest_batch": pa.repeat(pa.scalar(seq, pa.int64()), rows),
                "ingest_claim": pa.repeat(pa.scalar(claim, pa.int32()), rows),
                "ingest_row": pa.array(range(first, number), pa.int64()),
            }
            found = _chosen(_decoded(staged, _needed(columns, mode)) | place, columns, mode, seq, claim, first)
            if found.num_rows:
                yield found


def _slices(reader: Any) -> Iterator[RecordBatch]:
    for position in range(reader.num_record_batches):
        batch = reader.get_batch(position)
        for start in range(0, batch.num_rows, _SLICE):
            yield batch.slice(start, _SLICE)


def _needed(columns: Sequence[str], mode: str) -> list[str]:
    needed = [name for name in columns if name in COLUMNS]
    return needed if mode == "PERMISSIVE" or "error" in needed else [*needed, "error"]


def _decoded(staged: RecordBatch, needed: Collection[str]) -> dict[str, Any]:
    """Return columns of staged messages."""
    there = set(staged.schema.names)
    if "wire" not in there:
        # Rows; a file that an older version staged lacks columns.
        return {
            name: staged.column(name) if name in there else pa.nulls(staged.num_rows, STAGED.field(name).type) for name in needed
        }
    if _AT_HAND.issuperset(needed):
        return {name: staged.column(name) for name in needed}
    at_hand = () if "error" in needed or "raw" in needed else _AT_HAND
    columns = columns_of_frames(_kept(staged), [name for name in needed if name not in at_hand])
    return {
        name: staged.column(name) if name in at_hand or name == "received_at" else _array(columns[name], STAGED.field(name).type)
        for name in needed
    }


def _kept(staged: RecordBatch) -> KeptFrames:
    def known(number: int) -> dict[str, Any]:
        sent = pc.cast(staged.column("timestamp"), pa.int64())[number].as_py()
        return {"message_id": staged.column("message_id")[number].as_py(), "timestamp": sent}

    how = staged.column("how")
    words = how.dictionary.to_pylist()
    received_us = pc.cast(staged.column("received_at"), pa.int64()).to_pylist()
    counts = staged.column("delivery_count").to_pylist()
    return KeptFrames(
        [words[place] for place in how.indices.to_pylist()], staged.column("wire").to_pylist(), counts, received_us, known
    )


def browsed_rows(messages: Sequence[Message], received_us: Sequence[int], columns: Sequence[str], mode: str) -> RecordBatch:
    """Return messages that stay on the queue as rows: they have no ingest columns."""
    needed = _needed(columns, mode)
    read = columns_of(messages, received_us, needed)
    nothing = {field.name: pa.nulls(len(messages), field.type) for field in list(_WHOLE)[len(STAGED) :]}
    return _chosen({name: _array(read[name], STAGED.field(name).type) for name in needed} | nothing, columns, mode)


def _chosen(
    arrays: Mapping[str, Any], columns: Sequence[str], mode: str, seq: int | None = None, claim: int = 0, first: int = 0
) -> RecordBatch:
    """Return the selected columns, of the rows that the mode leaves.

    Raises:
        JMSException: See ``read_rows``; a row is named by batch, claim and number, if it was staged.
    """
    batch = pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=_selected(tuple(columns)))
    if mode == "PERMISSIVE":
        return batch
    sound = pc.is_null(arrays["error"])
    if mode == "FAILFAST" and not pc.all(sound).as_py():
        where = "browsing" if seq is None else f"batch {seq}, claim {claim}, from row {first} on"
        raise JMSException(
            f"a message cannot be decoded ({where}) and mode is FAILFAST. It is not lost: mode=PERMISSIVE shows it, "
            "DROPMALFORMED leaves it out",
            "malformed",
        )
    return batch.filter(sound)
