"""What an assertion looks for in a message, and why a message is not it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from jmsapi._callbacks import check_callback
from jmsapi._showing import Unreadable, body_of, head, part
from jmsapi.api import DeliveryMode, Message
from jmsapi.selector import compile_selector
from jmsapi.values import Value

__all__ = ["ANY", "Criteria"]


class _Any:
    """Whatever it is."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any()


@dataclass(frozen=True)
class Criteria:
    """Conditions that a message must meet, all of them."""

    body: object = ANY
    jms_type: object = ANY
    correlation_id: object = ANY
    properties: Mapping[str, Value] | None = None
    selector: str | None = None
    where: Callable[[Message], bool] | None = None

    def __post_init__(self) -> None:
        if self.selector is not None:
            # Now, so that a bad one is told by its own error and not message by message.
            compile_selector(self.selector)
        check_callback(self.where, "where")

    def why_not(self, message: Message) -> str | None:
        """Return in words the first condition that a message does not meet; None when it meets all."""
        if self.body is not ANY:
            body = part(lambda: body_of(message))
            if isinstance(body, Unreadable):
                return f"its body {body!r}"
            if type(body) is not type(self.body) and not isinstance(self.body, type(body)):
                return f"its body is {_a(body)}, not {_a(self.body)}"
            if body != self.body:
                return f"its body is {head(body)}"
        if self.jms_type is not ANY and message.jms_type != self.jms_type:
            return f"its type is {head(message.jms_type)}"
        if self.correlation_id is not ANY and message.jms_correlation_id != self.correlation_id:
            return f"its correlation id is {head(message.jms_correlation_id)}"
        for name, value in (self.properties or {}).items():
            if not message.property_exists(name):
                return f"it has no property {name}"
            found = message.get_object_property(name)
            if found != value or isinstance(found, bool) is not isinstance(value, bool):
                return f"its {name} is {head(found)}"
        if self.selector is not None and not compile_selector(self.selector).matches(_values(message)):
            return "the selector does not match it"
        if self.where is not None and not self.where(message):
            return "where() says no"
        return None

    def __str__(self) -> str:
        words = [
            f"body {head(self.body)}" if self.body is not ANY else "",
            f"type {head(self.jms_type)}" if self.jms_type is not ANY else "",
            f"correlation id {head(self.correlation_id)}" if self.correlation_id is not ANY else "",
            *(f"{name} {head(value)}" for name, value in (self.properties or {}).items()),
            f"selector {self.selector}" if self.selector is not None else "",
            "where() true" if self.where is not None else "",
        ]
        said = ", ".join(filter(None, words))
        return f"a message with {said}" if said else "any message"


def _a(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _values(message: Message) -> dict[str, Value]:
    """Return header fields and properties by the names that selectors use."""
    return {
        **{name: message.get_object_property(name) for name in message.property_names},
        "JMSDeliveryMode": "NON_PERSISTENT" if message.jms_delivery_mode == DeliveryMode.NON_PERSISTENT else "PERSISTENT",
        "JMSPriority": message.jms_priority,
        "JMSMessageID": message.jms_message_id,
        "JMSTimestamp": message.jms_timestamp,
        "JMSCorrelationID": message.jms_correlation_id,
        "JMSType": message.jms_type,
    }
