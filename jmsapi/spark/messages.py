"""From rows to JMS messages: the columns of the source, read the other way round; and what becomes of other columns and bad rows.

A row that cannot be a message fails its task with the name of the column, or goes to ``deadLetterQueue`` as JSON. No text of an
error has a value of a row.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from jmsapi import Destination, Message, MessageProducer, Session
from jmsapi.errors import JMSException, MessageFormatException
from jmsapi.spark.options import SinkOptions
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["Columns", "RowSender", "check_columns"]

Columns = Mapping[str, str]
"""The columns of a frame, each with Spark's word for its type."""
_WRITTEN: Final = {
    "destination", "correlation_id", "reply_to", "type", "delivery_mode", "priority", "time_to_live", "delivery_delay",
    "properties", "property_types", "body_type", "text", "bytes", "value", "value_types", "duplicate_id",
}  # fmt: skip
# What the broker or the source says of a message that was read; nothing that a sender can say.
_READ_ONLY: Final = {
    "message_id", "timestamp", "expiration", "delivery_time", "redelivered", "delivery_count", "error", "received_at", "raw",
    "ingest_batch", "ingest_claim", "ingest_row",
}  # fmt: skip
_BODIES: Final = ("text", "bytes", "value")
_OF_PROVIDER: Final = {
    "JMSXUserID", "JMSXAppID", "JMSXDeliveryCount", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState",
}  # fmt: skip
_TYPED: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": lambda text: Int(int(text)),
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": lambda text: Double(float(text)),
    "string": str,
}
_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "byte": Byte, "short": Short, "int": Int, "long": Long, "float": Float, "double": Double, "char": Char,
}  # fmt: skip
_MODES: Final = {"non-persistent": 1, "persistent": 2}


_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_STRINGS: Final = (
    "text", "destination", "correlation_id", "reply_to", "type", "delivery_mode", "body_type", "duplicate_id",
)  # fmt: skip
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_STRINGS, ("string",)),
    **dict.fromkeys(("properties", "property_types", "value_types"), ("map<string,string>",)),
    "bytes": ("binary",),
    "priority": _INTEGERS,
    "time_to_live": (*_INTEGERS, "float", "double"),
    "delivery_delay": (*_INTEGERS, "float", "double"),
}
"""The type that each column of a frame must have; Spark would not cast it."""
_PROPERTY: Final[dict[str, Callable[[Any], Any]]] = {
    "tinyint": Byte, "smallint": Short, "int": Int, "bigint": Long, "float": Float, "double": Double,
}  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SHOWN: Final = 1000
_LONGEST: Final = (1 << 63) - 1
_MONTHS: Final = re.compile(r"\binterval (year|month)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
"""What no broker has in a name of a destination; one would say so only when the transaction ends, of all its rows."""

# A JMSException of another kind is trouble with the broker, and none of the row.
_WRONG: Final = (KeyError, ValueError, TypeError, AttributeError, OverflowError)


class _Bad(Exception):
    """A row that cannot be a message: which column, and what is wrong there, without a value."""


def check_columns(options: SinkOptions, columns: Columns) -> None:
    """Check that rows with these columns can be sent.

    Raises:
        JMSException: ``bad-schema``: a column nobody knows or of another type, no body, or no destination.
    """
    other = [name for name in columns if name not in _WRITTEN | _READ_ONLY]
    if other and options.other_columns == "refuse":
        raise JMSException(
            f"the jms sink knows no column {', '.join(map(repr, other))}; there are {', '.join(sorted(_WRITTEN))}. "
            "otherColumns=properties sends others as properties, otherColumns=json as a body",
            "bad-schema",
        )
    months = [name for name, kind in columns.items() if _MONTHS.search(kind) and name not in _READ_ONLY]
    if months:
        raise JMSException(
            f"the column {months[0]!r} of the jms sink has an interval of months or years, which does not reach Python; cast it",
            "bad-schema",
        )
    for name in columns:
        # A column that is null everywhere has the type void.
        if name in _KINDS and columns[name] not in (*_KINDS[name], "void"):
            raise JMSException(
                f"the column {name!r} of the jms sink is {_KINDS[name][0]}, not {columns[name]}; cast it", "bad-schema"
            )
    bodies = set(_BODIES) & set(columns)
    if options.other_columns == "json":
        if bodies or not other:
            raise JMSException("otherColumns=json makes the body, so there is no column text, bytes or value", "bad-schema")
    elif not bodies:
        raise JMSException("the jms sink needs a column text, bytes or value", "bad-schema")
    if options.other_columns == "properties":
        wrong = [name for name in other if not _NAME.fullmatch(name) or name.startswith("JMS") or columns[name] == "binary"]
        if wrong:
            raise JMSException(
                f"the columns {', '.join(map(repr, wrong))} cannot be properties: their names must be those of Java, and no "
                "property is binary",
                "bad-schema",
            )
    if options.queue is None and options.topic is None and "destination" not in columns:
        raise JMSException("the jms sink needs the option queue or topic, or a column destination", "bad-schema")
    if "duplicate_id" in columns and options.duplicate_id_property is None:
        raise JMSException("a column duplicate_id needs the option duplicateIdProperty, which says where it goes", "bad-schema")


class RowSender:
    """Sends rows in one session.

    Args:
        session: Its session.
        options: Of the sink.
        columns: Of the rows.
        to_python: Reads a variant's two byte strings.
    Threads: that of the session.
    """

    def __init__(
        self, session: Session, options: SinkOptions, columns: Columns, to_python: Callable[[bytes, bytes], Any]
    ) -> None:
        self._session = session
        self._options = options
        self._columns = columns
        self._other = [name for name in columns if name not in _WRITTEN | _READ_ONLY]
        self._to_python = to_python
        self._producer: MessageProducer = session.create_producer()
        self._destinations: dict[str, Destination] = {}
        self._fixed: Destination | None = None
        self.dead = 0
        """Rows that went to the dead letter queue."""
        if options.queue is not None:
            self._fixed = session.create_queue(options.queue)
        elif options.topic is not None:
            self._fixed = session.create_topic(options.topic)

    def send(self, row: Mapping[str, Any], duplicate_id: str | None = None) -> None:
        """Send one row.

        Args:
            row: By column; maps as dicts.
            duplicate_id: For ``duplicateIdProperty``, where the row has none.
        Raises:
            JMSException: ``bad-row``: it cannot be a message; never with its values. Others: the broker's.
        """
        try:
            self._send(row, duplicate_id)
        except _Bad as error:
            if self._options.dead_letter_queue is None:
                raise JMSException(f"a row cannot be sent: {error}", "bad-row") from None
            self._bury(row, str(error), duplicate_id)

    def _send(self, row: Mapping[str, Any], duplicate_id: str | None) -> None:
        options = self._options
        message = self._message(row)
        if options.duplicate_id_property is not None:
            message.set_string_property(options.duplicate_id_property, row.get("duplicate_id") or duplicate_id)
        destination = self._fixed
        if destination is None:
            with _Column("destination"):
                destination = self._place(row["destination"])
        with _Column("delivery_mode"):
            mode = _MODES[row.get("delivery_mode") or options.delivery_mode]
        with _Column("priority"):
            priority = _within(_first(row.get("priority"), options.priority), 0, 9)
        with _Column("time_to_live"):
            life = _within(round(_first(row.get("time_to_live"), options.time_to_live)), 0, _LONGEST)
        with _Column("delivery_delay"):
            delay = _within(round(_first(row.get("delivery_delay"), options.delivery_delay)), 0, _LONGEST)
        if delay or self._producer.delivery_delay:
            self._producer.delivery_delay = delay
        try:
            self._producer.send(destination, message, delivery_mode=mode, priority=priority, time_to_live_ms=life)
        except MessageFormatException as error:
            # Its own text may quote a name or a size, and no value.
            raise _Bad(f"its message is refused ({error})") from None

    def _bury(self, row: Mapping[str, Any], why: str, duplicate_id: str | None) -> None:
        """Send a row that cannot be a message to the dead letter queue, as far as it can be shown."""
        queue = self._session.create_queue(self._options.dead_letter_queue or "")
        for shown in (None, _SHOWN):
            message = self._session.create_text_message(_shown(row, self._to_python, shown))
            message.set_string_property("jmsapi_error", why)
            if self._options.duplicate_id_property is not None and duplicate_id is not None:
                message.set_string_property(self._options.duplicate_id_property, f"{duplicate_id}-dead")
            self._producer.delivery_delay = 0
            try:
                self._producer.send(queue, message, delivery_mode=2, priority=4, time_to_live_ms=0)
            except MessageFormatException:
                # Too large for the broker: its beginnings are better than nothing.
                if shown is not None:
                    raise
            else:
                self.dead += 1
                return

    def _message(self, row: Mapping[str, Any]) -> Message:
        message = self._body(row)
        for name, put in (("correlation_id", "jms_correlation_id"), ("type", "jms_type")):
            if row.get(name) is not None:
                with _Column(name):
                    setattr(message, put, row[name])
        if row.get("reply_to") is not None:
            with _Column("reply_to"):
                message.jms_reply_to = self._place(row["reply_to"])
        types: Mapping[str, str] = row.get("property_types") or {}
        properties: Mapping[str, Any] = row.get("properties") or {}
        for name, text in properties.items():
            if name not in _OF_PROVIDER and text is not None:
                with _Column(f"properties.{name}"):
                    message.set_object_property(name, _TYPED[types.get(name) or "string"](str(text)))
        if self._options.other_columns == "properties":
            for name in self._other:
                if row.get(name) is not None:
                    with _Column(name):
                        message.set_object_property(name, self._property(name, row[name]))
        return message

    def _property(self, name: str, value: Any) -> Any:
        if isinstance(value, bool | str):
            return value
        typed = _PROPERTY.get(self._columns[name])
        if typed is not None:
            return typed(value)
        plain = _plain(value, self._to_python)
        # Java has no property for it, so exactly as text.
        return str(value) if isinstance(value, Decimal) else plain if isinstance(plain, str) else _json(plain)

    def _body(self, row: Mapping[str, Any]) -> Message:
        session = self._session
        if self._options.other_columns == "json":
            with _Column(", ".join(self._other)):
                return session.create_text_message(self._as_json({name: row[name] for name in self._other}))
        kind = row.get("body_type") or self._kind(row)
        if kind == "message":
            return session.create_message()
        if kind == "object":
            raise _Bad("column 'body_type': an object message cannot be sent from its bytes; set it to bytes or text")
        if kind not in ("text", "bytes", "value", "map", "stream"):
            raise _Bad("column 'body_type': no such kind of message")
        column = kind if kind in ("text", "bytes") else "value"
        with _Column(column):
            if kind == "text":
                if row.get("text") is None and row.get("bytes") is not None:
                    # A text that could not be decoded: without its bytes it would go on as none.
                    raise ValueError("no text but bytes")
                return session.create_text_message(row.get("text"))
            return self._bytes(row["bytes"]) if kind == "bytes" else self._value(row["value"], row.get("value_types") or {})
        raise AssertionError("a column that is wrong raises")

    def _kind(self, row: Mapping[str, Any]) -> str:
        """Return which column is the body of a row that does not say so."""
        bodies = [name for name in _BODIES if row.get(name) is not None]
        if len(bodies) > 1:
            raise _Bad(f"columns {' and '.join(map(repr, bodies))}: a message has one body, and body_type does not say which")
        if bodies:
            return bodies[0]
        return "bytes" if set(_BODIES) & set(self._columns) == {"bytes"} else "text"

    def _bytes(self, data: bytes | None) -> Message:
        message = self._session.create_bytes_message()
        message.write_bytes(data or b"")
        return message

    def _value(self, value: Any, types: Mapping[str, str]) -> Message:
        """Return the message of a column ``value``: as Kafka has it, text or bytes; a variant; anything else as JSON."""
        kind = self._columns.get("value", "variant")
        if kind == "string":
            return self._session.create_text_message(value)
        if kind == "binary":
            return self._bytes(value)
        if kind != "variant":
            return self._session.create_text_message(self._as_json(value))
        return self._structured(None if value is None else self._to_python(value["value"], value["metadata"]), types)

    def _structured(self, body: Any, types: Mapping[str, str]) -> Message:
        if isinstance(body, dict):
            entries = self._session.create_map_message()
            for name, value in cast("dict[str, Any]", body).items():
                with _Column(f"value.{name}"):
                    entries.set_object(name, _typed(value, types.get(name)))
            return entries
        if isinstance(body, list):
            items = self._session.create_stream_message()
            for number, value in enumerate(body):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                with _Column(f"value[{number}]"):
                    items.write_object(_typed(value, types.get(str(number))))
            return items
        raise _Bad("column 'value': a variant is an object or an array here")

    def _as_json(self, value: Any) -> str:
        return _json(_plain(value, self._to_python))

    def _place(self, text: str) -> Destination:
        if text not in self._destinations:
            kind, separator, name = text.partition("://")
            if not separator:
                kind, name = "queue", text
            if _CONTROL.search(name):
                raise ValueError("a control character in a name")
            make = {"queue": self._session.create_queue, "topic": self._session.create_topic}[kind]
            self._destinations[text] = make(name)
        return self._destinations[text]


class _Column:
    """Whatever goes wrong within it is said of a column."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _WRONG):
            raise _Bad(f"column {self._name!r}: {type(error).__name__}") from None


def _plain(value: Any, to_python: Callable[[bytes, bytes], Any]) -> Any:
    """Return a value of a row as JSON has it."""
    if isinstance(value, dict):
        entries: dict[Any, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        if entries.keys() == {"value", "metadata"} and isinstance(entries["metadata"], bytes):
            return _plain(to_python(entries["value"], entries["metadata"]), to_python)
        return {str(_plain(name, to_python)): _plain(one, to_python) for name, one in entries.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, to_python) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return value


def _number(value: Decimal) -> int | float | Decimal:
    """Return a decimal as JSON has it: exactly, whichever digits it has."""
    if value == value.to_integral_value():
        return int(value)
    return number if Decimal(repr(number := float(value))) == value else value


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except TypeError:
        return _json_of_decimals(value)


def _json_of_decimals(value: Any) -> str:
    """Return JSON with numbers of more digits than a float has."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return "{" + ",".join(f"{json.dumps(name)}:{_json_of_decimals(one)}" for name, one in entries) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_json_of_decimals(one) for one in value) + "]"  # pyright: ignore[reportUnknownVariableType]
    return json.dumps(value, allow_nan=False)


def _shown(row: Mapping[str, Any], to_python: Callable[[bytes, bytes], Any], most: int | None) -> str:
    """Return a row as JSON, whatever is in it; of long values the beginning."""
    shown: list[str] = []
    for name, value in row.items():
        try:
            text = _json(_plain(value, to_python))
            text = text if most is None or len(text) <= most else json.dumps(f"{text[:most]}...")
        except Exception:
            text = json.dumps(repr(value)[:_SHOWN])
        shown.append(f"{json.dumps(name)}:{text}")
    return "{" + ",".join(shown) + "}"


def _typed(value: Any, kind: str | None) -> Any:
    if value is None:
        return None
    if kind in _VALUES:
        return _VALUES[kind](float(value) if isinstance(value, Decimal) and kind in ("float", "double") else value)
    if isinstance(value, Decimal):
        # Numbers with a fraction are decimals in JSON's variant; Java's message has a double.
        return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else Double(float(value))
    return value


def _within(number: Any, least: int, most: int) -> int:
    if not least <= number <= most:
        raise ValueError
    return int(number)


def _first(value: Any, default: Any) -> Any:
    return default if value is None else value
