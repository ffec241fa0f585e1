"""An envelope as a selector sees it: for brokers in the process, and for decorators that evaluate here.

Spec: 3.8.1.1 (the six header fields; JMSDeliveryMode is text).
"""

from __future__ import annotations

from jmsapi.spi.model import NON_PERSISTENT, Envelope
from jmsapi.values import Value

__all__ = ["HeaderView"]


class HeaderView:
    """Header fields and properties by the names that selectors use.

    Args:
        envelope: What is looked at; decoded as far as it is asked for.
    """

    __slots__ = ("_envelope",)

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope

    def selector_value(self, name: str) -> Value:
        """Return the header field or property of that name; None when there is none."""
        envelope = self._envelope
        match name:
            case "JMSDeliveryMode":
                return "NON_PERSISTENT" if envelope.delivery_mode == NON_PERSISTENT else "PERSISTENT"
            case "JMSPriority":
                return envelope.priority
            case "JMSMessageID":
                return envelope.message_id
            case "JMSTimestamp":
                return envelope.timestamp
            case "JMSCorrelationID":
                text = envelope.correlation_id
                return text if isinstance(text, str) else None
            case "JMSType":
                return envelope.jms_type
            case _:
                return envelope.properties.get(name)
