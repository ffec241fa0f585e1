"""From rows to JMS messages: the columns of the source, read the other way round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jmsapi import Destination, Message, MessageProducer, Session
from jmsapi.errors import JMSException
from jmsapi.spark.options import SinkOptions
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["Sender", "check_columns"]

_WRITTEN: Final = {
    "destination", "correlation_id", "reply_to", "type", "delivery_mode", "priority", "time_to_live", "delivery_delay",
    "properties", "property_types", "body_type", "text", "bytes", "value", "value_types", "duplicate_id",
}  # fmt: skip
# What the broker or the source says of a message that was read; nothing that a sender can say.
_READ_ONLY: Final = {
    "message_id", "timestamp", "expiration", "delivery_time", "redelivered", "delivery_count", "error", "received_at",
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


def check_columns(options: SinkOptions, columns: Sequence[str]) -> None:
    """Check that rows with these columns can be sent.

    Raises:
        JMSException: ``bad-schema``: a column nobody knows, no body, or no destination.
    """
    unknown = [name for name in columns if name not in _WRITTEN | _READ_ONLY]
    if unknown:
        raise JMSException(
            f"the jms sink knows no column {', '.join(map(repr, unknown))}; there are {', '.join(sorted(_WRITTEN))}", "bad-schema"
        )
    if not set(_BODIES) & set(columns):
        raise JMSException("the jms sink needs a column text, bytes or value", "bad-schema")
    if options.queue is None and options.topic is None and "destination" not in columns:
        raise JMSException("the jms sink needs the option queue or topic, or a column destination", "bad-schema")
    if "duplicate_id" in columns and options.duplicate_id_property is None:
        raise JMSException("a column duplicate_id needs the option duplicateIdProperty, which says where it goes", "bad-schema")


class Sender:
    """Sends rows in one session.

    Args:
        session: Its session.
        options: Of the sink.
        to_python: Reads a variant's two byte strings.
    Threads: that of the session.
    """

    def __init__(self, session: Session, options: SinkOptions, to_python: Callable[[bytes, bytes], Any]) -> None:
        self._session = session
        self._options = options
        self._to_python = to_python
        self._producer: MessageProducer = session.create_producer()
        self._destinations: dict[str, Destination] = {}
        self._fixed: Destination | None = None
        if options.queue is not None:
            self._fixed = session.create_queue(options.queue)
        elif options.topic is not None:
            self._fixed = session.create_topic(options.topic)

    def send(self, row: Mapping[str, Any], duplicate_id: str | None = None) -> None:
        """Send one row.

        Args:
            row: By column.
            duplicate_id: For ``duplicateIdProperty``, where the row has none.
        Raises:
            JMSException: ``bad-row``: it cannot be a message; never with its values. Others: the broker's.
        """
        options = self._options
        try:
            message = self._message(row)
            if options.duplicate_id_property is not None:
                message.set_string_property(options.duplicate_id_property, row.get("duplicate_id") or duplicate_id)
            destination = self._fixed or self._place(row["destination"])
            mode = _MODES[row.get("delivery_mode") or options.delivery_mode]
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise JMSException(f"a row cannot be sent: {type(error).__name__} in one of its columns", "bad-row") from None
        delay = _first(row.get("delivery_delay"), options.delivery_delay)
        if delay or self._producer.delivery_delay:
            self._producer.delivery_delay = round(delay)
        self._producer.send(
            destination,
            message,
            delivery_mode=mode,
            priority=_first(row.get("priority"), options.priority),
            time_to_live_ms=round(_first(row.get("time_to_live"), options.time_to_live)),
        )

    def _message(self, row: Mapping[str, Any]) -> Message:
        message = self._body(row)
        if row.get("correlation_id") is not None:
            message.jms_correlation_id = row["correlation_id"]
        if row.get("type") is not None:
            message.jms_type = row["type"]
        if row.get("reply_to") is not None:
            message.jms_reply_to = self._place(row["reply_to"])
        types = _map(row.get("property_types"))
        for name, text in _map(row.get("properties")).items():
            if name not in _OF_PROVIDER and text is not None:
                message.set_object_property(name, _TYPED[types.get(name) or "string"](text))
        return message

    def _body(self, row: Mapping[str, Any]) -> Message:
        session = self._session
        kind = row.get("body_type") or next((name for name in _BODIES if row.get(name) is not None), "text")
        if kind == "text":
            return session.create_text_message(row.get("text"))
        if kind == "bytes":
            data = session.create_bytes_message()
            data.write_bytes(row["bytes"] or b"")
            return data
        if kind == "message":
            return session.create_message()
        if kind in ("value", "map", "stream"):
            return self._structured(row["value"], _map(row.get("value_types")))
        if kind == "object":
            raise JMSException("an object message cannot be sent from its bytes; set body_type to bytes or text", "bad-row")
        raise ValueError(kind)

    def _structured(self, variant: Any, types: Mapping[str, str]) -> Message:
        body = None if variant is None else self._to_python(variant["value"], variant["metadata"])
        if isinstance(body, dict):
            entries = self._session.create_map_message()
            for name, value in body.items():  # pyright: ignore[reportUnknownVariableType]
                entries.set_object(str(name), _typed(value, types.get(str(name))))  # pyright: ignore[reportUnknownArgumentType]
            return entries
        if isinstance(body, list):
            items = self._session.create_stream_message()
            for number, value in enumerate(body):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                items.write_object(_typed(value, types.get(str(number))))
            return items
        raise ValueError("a variant is an object or an array here")

    def _place(self, text: str) -> Destination:
        if text not in self._destinations:
            kind, separator, name = text.partition("://")
            if not separator:
                kind, name = "queue", text
            make = {"queue": self._session.create_queue, "topic": self._session.create_topic}[kind]
            self._destinations[text] = make(name)
        return self._destinations[text]


def _map(entries: Any) -> dict[str, Any]:
    """Return a map column's value, which Arrow gives as pairs."""
    return dict(entries or ())


def _typed(value: Any, kind: str | None) -> Any:
    return value if value is None or kind not in _VALUES else _VALUES[kind](value)


def _first(value: Any, default: Any) -> Any:
    return default if value is None else value
