"""The simplified API's producer: sends with the options, properties and headers that it keeps.

Spec: 11.2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from jmsapi._core.json_body import CONTENT_TYPE, JSON_TYPE, has_fields, json_text
from jmsapi._core.producer import ProducerImpl
from jmsapi._core.producer_settings import ProducerSettings
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.waiting import run
from jmsapi._not_copied import NotCopied
from jmsapi.api import Destination, JMSProducer, Message
from jmsapi.errors import MessageFormatException

if TYPE_CHECKING:
    from jmsapi._core.connection import ConnectionImpl
    from jmsapi._core.session import SessionImpl

__all__ = ["JMSProducerImpl", "message_of"]


class ProducerContext(Protocol):
    """What a producer uses of its context."""

    @property
    def connection(self) -> ConnectionImpl:
        """The connection; raises when the context is closed."""
        ...

    @property
    def session(self) -> SessionImpl:
        """The session, made when first needed; raises when the context is closed."""
        ...


class JMSProducerImpl(NotCopied, ProducerSettings, JMSProducer):
    """A producer of one context. It needs no closing.

    Args:
        context: Its context.
    """

    def __init__(self, context: ProducerContext) -> None:
        super().__init__(context)
        self._sessions = context
        self._producer: ProducerImpl | None = None

    # ---- sending --------------------------------------------------------------------------------------------------
    @runtime
    def send(
        self,
        destination: Destination,
        body: Message | str | Mapping[str, Any] | bytes | bytearray | memoryview | Any,
        *,
        body_type: type | None = None,
    ) -> JMSProducer:
        """Send a message or a body; see JMSProducer."""
        session = self._sessions.session
        session.parts.check_open()
        address = session.parts.usable(destination)
        message = body if isinstance(body, Message) else message_of(session, body, body_type)
        self._defaults.apply_to(message)
        producer = self._producer
        if producer is None or producer.closed:
            producer = self._producer = run(session.add_producer_steps(ProducerImpl, None))
        producer.send_to(destination, address, message, self._defaults.options, self._async)
        return self


def message_of(session: SessionImpl, body: object, body_type: type | None) -> Message:
    """Return a new message for a body; see JMSProducer."""
    if body is None:
        return _empty(session, body_type)
    if isinstance(body, str):
        return session.create_text_message(body)
    if isinstance(body, bytes | bytearray | memoryview):
        message = session.create_bytes_message()
        message.write_bytes(cast("bytes | bytearray | memoryview", body))
        return message
    if isinstance(body, Mapping):
        entries = session.create_map_message()
        named = cast("Mapping[str, Any]", body)
        for name, value in named.items():
            entries.set_object(name, value)
        return entries
    if has_fields(body) and not session.parts.connection.codec.is_chosen(type(body)):
        text = session.create_text_message(json_text(body))
        text.set_string_property(CONTENT_TYPE, JSON_TYPE)
        return text
    return session.create_object_message(body)


def _empty(session: SessionImpl, body_type: type | None) -> Message:
    if body_type is str:
        return session.create_text_message()
    if body_type in (bytes, bytearray, memoryview):
        return session.create_bytes_message()
    if isinstance(body_type, type) and issubclass(body_type, Mapping):
        return session.create_map_message()
    if body_type is object:
        return session.create_object_message()
    raise MessageFormatException("send: a body of None needs body_type: str, dict, bytes or object")
