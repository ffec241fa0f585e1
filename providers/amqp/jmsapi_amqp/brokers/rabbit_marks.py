"""What RabbitMQ does not carry from a sender over AMQP 1.0 to a reader over STOMP, in properties of this library's own.

Between the two stands AMQP 0-9-1, whose short texts end at 255 bytes. The broker (4.0.5) leaves out what is longer, and always
types, groups, times of expiry, binary correlation ids, and properties that are neither texts nor numbers of 32 or 64 bits.
Readers over AMQP 1.0 see all in its place.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Final

from jmsapi.spi import Address, Envelope
from jmsapi_brokers.rabbitmq import LONGEST_NAME
from jmsapi_brokers.typed_texts import code_of, java_text

__all__ = ["marks_of"]

_SURELY: Final = LONGEST_NAME // 4
"""Characters that fit into a short text, whatever they are."""


def marks_of(envelope: Envelope, written: Callable[[Address], str]) -> dict[str, str]:
    """Return these properties of a message.

    Args:
        envelope: The message.
        written: How an address is written on the wire.
    Raises:
        ProviderError: FORMAT; a property is of no type of JMS.
    """
    marks: dict[str, str] = {}
    correlation = envelope.correlation_id
    if isinstance(correlation, bytes):
        marks["JMS_PY_corr"] = base64.b64encode(correlation).decode()
    elif _is_long(correlation):
        marks["JMS_PY_ctext"] = correlation or ""
    if envelope.jms_type is not None:
        marks["JMS_PY_jtype"] = envelope.jms_type
    reply = envelope.reply_to
    if reply is not None and _is_long(written(reply)):
        marks["JMS_PY_reply"] = f"{reply.kind.value}:{reply.name}"
    if envelope.expiration:
        marks["JMS_PY_exp"] = str(envelope.expiration)
    if envelope.properties:
        _add_properties(marks, envelope)
    return marks


def _add_properties(marks: dict[str, str], envelope: Envelope) -> None:
    long_names: dict[str, str] = {}
    codes: list[str] = []
    for name, value in envelope.properties.items():
        mark = _FIELDS.get(name)
        if mark is not None:
            if value is not None:
                marks[mark] = str(value)
            continue
        code = code_of(value)
        if code != "s":
            codes.append(f"{name}={code}")
        # Readers over STOMP are shown texts and whole numbers alone.
        if code != "0" and (code not in "sil" or _is_long(name)):
            long_names[name] = java_text(value)
    if long_names:
        marks["JMS_PY_long"] = json.dumps(long_names)
    if codes:
        marks["JMS_PY_props"] = ",".join(codes)


_FIELDS: Final = {"JMSXGroupID": "JMS_PY_group", "JMSXGroupSeq": "JMS_PY_gseq", "JMSXUserID": "JMS_PY_user"}


def _is_long(text: str | None) -> bool:
    return text is not None and len(text) > _SURELY and len(text.encode("utf-8", "surrogatepass")) > LONGEST_NAME
