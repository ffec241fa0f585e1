"""A message as a value: what pickle takes of it, so that another process or a cache can have it.

A copy has everything that can be read, and nothing of the place where it was received: neither its delivery, which only the
session there can acknowledge, nor the right to delete a temporary destination.
"""

# What was sent is of no known type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, get_args

from jmsapi._core.destination import address_of, destination_for
from jmsapi._core.message.parts import UNREAD, Part
from jmsapi.errors import IllegalStateException
from jmsapi.spi import Address, Envelope, MessageKind, ProviderError

__all__ = ["CopiedEnvelope", "restored", "value_of"]

_PARTS: Final[tuple[str, ...]] = ("kind", *get_args(Part), "origin")
_DESTINATIONS: Final = ("_reply_to", "_destination")


class CopiedEnvelope:
    """An envelope with everything read out of another one. A part that cannot be decoded raises the same error as there."""

    kind: MessageKind
    destination: Address
    message_id: str | None
    timestamp: int
    correlation_id: str | bytes | None
    reply_to: Address | None
    delivery_mode: int
    jms_type: str | None
    expiration: int
    delivery_time: int
    priority: int
    properties: Mapping[str, Any]
    body: Any
    content_type: str | None
    origin: str | None

    def __init__(self, envelope: Envelope) -> None:
        self._faults: dict[str, ProviderError] = {}
        for part in _PARTS:
            try:
                setattr(self, part, _plain(getattr(envelope, part)))
            except ProviderError as error:
                self._faults[part] = error

    def __getattr__(self, name: str) -> Any:
        # Called for what was not set: a part that could not be decoded, or what pickle looks for before it has set anything.
        fault = vars(self).get("_faults", {}).get(name)
        if fault is None:
            raise AttributeError(name)
        raise fault


def _plain(value: Any) -> Any:
    """Return a value in a form that every pickle takes: a provider's own views of a body become plain containers."""
    if isinstance(value, Address):
        return value
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(entry) for entry in value]
    return value


def value_of(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a message, by attribute, without what belongs to its session and connection.

    Args:
        state: The message's own state.
    """
    value = {name: entry if isinstance(entry, bytearray) else _plain(entry) for name, entry in state.items()}
    value["_envelope"] = CopiedEnvelope(state["_envelope"])
    value["_owner"] = value["delivery"] = None
    value["_acknowledge"] = None if state["delivery"] is None and state["_acknowledge"] is None else _refuse
    for name in _DESTINATIONS:
        if state[name] is not None and state[name] is not UNREAD:
            value[name] = address_of(state[name])
    return value


def restored(kind: type[Any], value: dict[str, Any]) -> Any:
    """Make a message from what ``value_of`` has returned."""
    made: Any = object.__new__(kind)
    for name, entry in value.items():
        setattr(made, name, destination_for(entry) if name in _DESTINATIONS and isinstance(entry, Address) else entry)
    return made


def _refuse() -> NoReturn:
    raise IllegalStateException(
        "acknowledge: this message is a copy that was pickled; only the session that received the message can acknowledge it"
    )
