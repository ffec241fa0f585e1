"""The columns of the data source, and staged rows as Arrow files.

Staged files hold all columns, whatever the query selects, so that a restart may select others. The ingest columns are not
staged: they are where a row lies.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from jmsapi.errors import JMSException
from jmsapi.spark.arrow import RecordBatch, pa, pc
from jmsapi.spark.rows import COLUMNS, Row

__all__ = ["DDL", "ArrowCodec", "browsed_rows", "ids_of", "newest_ms", "read_rows"]

DDL: Final = (
    "message_id string, correlation_id string, destination string, reply_to string, type string, delivery_mode string, "
    "priority int, timestamp timestamp, expiration timestamp, delivery_time timestamp, redelivered boolean, delivery_count int, "
    "properties map<string,string>, property_types map<string,string>, body_type string, text string, bytes binary, "
    "value variant, value_types map<string,string>, error string, received_at timestamp, "
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
}
_STAGED: Final = pa.schema([pa.field(name, _TYPES.get(name, _TEXT)) for name in COLUMNS])
_WHOLE: Final = pa.schema(
    [*_STAGED, pa.field("ingest_batch", pa.int64()), pa.field("ingest_claim", pa.int32()), pa.field("ingest_row", pa.int64())]
)


class ArrowCodec:
    """Rows as the bytes of an Arrow file.

    Args:
        compression: ``lz4``, ``zstd`` or ``none``.
    """

    def __init__(self, compression: str = "lz4") -> None:
        self._options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)

    def message_id(self, message: Row) -> str | None:
        """Return the id; see Codec."""
        return message.message_id

    def size(self, message: Row) -> int:
        """Return the size; see Codec."""
        return message.size

    def encode(self, messages: Sequence[Row]) -> memoryview:
        """Return a file; see Codec."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, _STAGED, options=self._options) as writer:
            writer.write_batch(batch_of(messages))
        return memoryview(sink.getvalue())


def batch_of(rows: Sequence[Row]) -> RecordBatch:
    """Return rows as a batch of the staged columns."""
    columns: list[Any] = list(zip(*(row.values for row in rows), strict=True)) or [()] * len(COLUMNS)
    arrays: list[Any] = []
    for field, column in zip(_STAGED, columns, strict=True):
        values: Any = column
        if field.type == _MAP:
            values = [None if one is None else list(one.items()) for one in column]
        arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_STAGED)


def _open(data: memoryview, *columns: str) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=[COLUMNS.index(name) for name in columns] if columns else None)
    return pa.ipc.open_file(pa.py_buffer(data), options=options)


def ids_of(data: memoryview) -> list[str | None]:
    """Return the message ids in a staged file, in order."""
    found: list[str | None] = _open(data, "message_id").read_all().column("message_id").to_pylist()
    return found


def newest_ms(data: memoryview) -> float:
    """Return the latest JMSTimestamp in a staged file, in milliseconds since 1970; 0 when no message has one."""
    column = _open(data, "timestamp").read_all().column("timestamp")
    latest = pc.max(pc.cast(column, pa.int64())).as_py()
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
    schema = _selected(tuple(columns))
    number = 0
    for data, left_out in files:
        reader = _open(data)
        for position in range(reader.num_record_batches):
            batch = reader.get_batch(position)
            if left_out:
                batch = batch.filter(pc.invert(pc.is_in(batch.column("message_id"), pa.array(sorted(left_out), _TEXT))))
            batch, first = with_place(batch, seq, claim, number), number
            number += batch.num_rows
            if mode != "PERMISSIVE":
                batch = _judge(batch, mode, f"batch {seq}, claim {claim}, from row {first} on")
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([batch.column(name) for name in columns], schema=schema)


def browsed_rows(rows: Sequence[Row], columns: Sequence[str], mode: str) -> RecordBatch:
    """Return rows that stay on the queue: they have no ingest columns."""
    batch = batch_of(rows)
    nulls = [pa.nulls(batch.num_rows, field.type) for field in list(_WHOLE)[len(_STAGED) :]]
    batch = pa.RecordBatch.from_arrays([*batch.columns, *nulls], schema=_WHOLE)
    if mode != "PERMISSIVE":
        batch = _judge(batch, mode, "browsing")
    return pa.RecordBatch.from_arrays([batch.column(name) for name in columns], schema=_selected(tuple(columns)))


def with_place(batch: RecordBatch, seq: int, claim: int, first: int) -> RecordBatch:
    """Add the ingest columns."""
    rows = batch.num_rows
    return pa.RecordBatch.from_arrays(
        [
            *batch.columns,
            pa.repeat(pa.scalar(seq, pa.int64()), rows),
            pa.repeat(pa.scalar(claim, pa.int32()), rows),
            pa.array(range(first, first + rows), pa.int64()),
        ],
        schema=_WHOLE,
    )


def _judge(batch: RecordBatch, mode: str, where: str) -> RecordBatch:
    sound = pc.is_null(batch.column("error"))
    if mode == "FAILFAST" and not pc.all(sound).as_py():
        raise JMSException(
            f"a message cannot be decoded ({where}) and mode is FAILFAST. It is not lost: mode=PERMISSIVE shows it, "
            "DROPMALFORMED leaves it out",
            "malformed",
        )
    return batch.filter(sound)
