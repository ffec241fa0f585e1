"""Messages without a connection: new ones, and ones received from an envelope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from jmsapi._core.message import MessageImpl, create, received, snapshot
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.spi import Address, Delivery, DestinationKind, MessageKind, PlainEnvelope, Tag

HERE = Address(DestinationKind.QUEUE, "here")


@dataclass
class Bench:
    """What the tests do with messages, in short words."""

    codec: ObjectCodec = field(default_factory=ObjectCodec)

    def new(self, kind: MessageKind) -> Any:
        return create(kind, self.codec)

    def freeze(self, message: Any, **changes: Any) -> PlainEnvelope:
        sent: dict[str, Any] = {
            "destination": HERE,
            "message_id": "ID:1",
            "timestamp": 1000,
            "delivery_mode": 2,
            "priority": 4,
            "expiration": 0,
            "delivery_time": 1000,
            "origin": None,
        }
        return snapshot(message, **(sent | changes), codec=self.codec)

    def deliver(
        self,
        envelope: Any,
        count: int = 1,
        extra_count: int = 0,
        acknowledge: Callable[[], None] | None = None,
        owner: Any = None,
    ) -> Any:
        return received(Delivery(Tag(), envelope, count), extra_count, acknowledge, self.codec, owner)

    def pass_on(self, message: MessageImpl) -> Any:
        """Send and receive."""
        return self.deliver(self.freeze(message))


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture(params=list(MessageKind), ids=lambda kind: kind.name)
def any_kind(request: pytest.FixtureRequest) -> MessageKind:
    return MessageKind(request.param)
