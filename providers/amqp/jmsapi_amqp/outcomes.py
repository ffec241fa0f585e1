"""What a broker's answer to a transfer says. Runs on the I/O thread.

Spec: AMQP 1.0 part 3, section 4, and part 4, section 4.2.
"""

from __future__ import annotations

from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.causes import cause_of
from jmsapi_amqp.codec import Described
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.errors import to_error

__all__ = ["DeliveryState"]

_OUTCOMES: Final = frozenset({engine.ACCEPTED, engine.REJECTED, engine.RELEASED, engine.MODIFIED, engine.DECLARED})
_BY_NAME: Final = {"amqp:accepted:list": engine.ACCEPTED, "amqp:received:list": engine.RECEIVED}


class DeliveryState:
    """The state of one delivery of ours at the broker.

    Args:
        delivery: Of the engine.
        state: Its remote state.
    """

    __slots__ = ("_delivery", "_inner", "state")

    def __init__(self, delivery: Pointer, state: int) -> None:
        self.state = state
        self._delivery = delivery
        self._inner: object = None
        if state == engine.TRANSACTIONAL:
            data = engine.read_data(engine.disposition_data(engine.delivery_remote(delivery)))
            self._inner = data[1] if isinstance(data, list) and len(data) > 1 else None

    @property
    def _inner_state(self) -> int | None:
        """The outcome within a transaction. None: one that only the transaction's end will tell."""
        inner = self._inner
        if not isinstance(inner, Described):
            return None
        named = inner.descriptor
        return _BY_NAME.get(named, 0) if isinstance(named, str) else named if isinstance(named, int) else 0

    @property
    def decides(self) -> bool:
        """Whether it says what has become of the message; ``received`` tells only how much of it has come."""
        if self.state == engine.TRANSACTIONAL:
            return self._inner_state != engine.RECEIVED
        return self.state in _OUTCOMES

    def refusal(self, asked: str, *, topic: bool | None) -> ProviderError | None:
        """Return why the broker did not take the message; None when it did.

        Args:
            asked: What was asked for, as the beginning of a sentence.
            topic: Whether it went to a topic.
        """
        state = self.state
        if state == engine.ACCEPTED:
            return None
        if state == engine.TRANSACTIONAL:
            if self._inner_state in (None, engine.ACCEPTED):
                return None
            return ProviderError(ErrorKind.ROLLED_BACK, f"{asked}: the broker refused a message of it ({self._inner})")
        if state == engine.REJECTED:
            condition = engine.disposition_condition(engine.delivery_remote(self._delivery))
            cause = cause_of(condition, "amqp:rejected")
            error = to_error(cause, asked)
            if error.kind is ErrorKind.PROTOCOL:
                return ProviderError(ErrorKind.RESOURCE, f"{asked}: the broker rejected the message, {cause}")
            return error
        if state == engine.RELEASED:
            if topic:
                return None
            return ProviderError(ErrorKind.DESTINATION, f"{asked}: no such destination, or nobody takes messages there")
        return ProviderError(ErrorKind.RESOURCE, f"{asked}: the broker did not take the message")
