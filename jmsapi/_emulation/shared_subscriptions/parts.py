"""What a shared subscription consists of at the broker: the names of its parts, and its definition.

The names are made from the client id and the subscription's name, injectively, and are the same over every wire, so that
members of one subscription meet whatever they are connected by.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, Envelope, MessageKind, PlainEnvelope

__all__ = ["PREFIX", "Definition", "Parts", "presence"]

PREFIX: Final = "jmsapi.shared."
"""Every queue of a shared subscription begins with it; applications may not use such names."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The names of the parts of one shared subscription.

    Args:
        client_id: Whose name it is; None for a subscription that is not bound to a client id.
        name: The subscription's name.
        durable: Whether it outlives its members. Durable and non-durable subscriptions have names of their own.
    """

    client_id: str | None
    name: str
    durable: bool

    @property
    def key(self) -> str:
        """Return the text that all names are made from: no two subscriptions have the same."""
        kind = "durable" if self.durable else "volatile"
        return f"{kind}.{_escaped(self.client_id or '')}.{_escaped(self.name)}"

    @property
    def queue(self) -> Address:
        """Return the queue that all members read."""
        return Address(DestinationKind.QUEUE, PREFIX + self.key)

    @property
    def members(self) -> Address:
        """Return the queue of which each connection with a member holds one message: what is free there was a dead one's."""
        return Address(DestinationKind.QUEUE, f"{PREFIX}{self.key}.members")

    @property
    def leader(self) -> Address:
        """Return the queue whose one message is the definition; whoever holds it forwards."""
        return Address(DestinationKind.QUEUE, f"{PREFIX}{self.key}.leader")

    @property
    def forwarder_id(self) -> str:
        """Return the client id that the durable subscription at the broker belongs to."""
        return f"{PREFIX}{self.key}"

    @property
    def lock_id(self) -> str:
        """Return the client id under which the parts are made, changed and removed: the broker lets only one have it."""
        return f"{PREFIX}{self.key}.lock"


def _escaped(text: str) -> str:
    """Return text as a part of a name: letters and digits stay, all else becomes its code between underscores."""
    return "".join([char if char.isascii() and char.isalnum() else f"_{ord(char):x}_" for char in text])


@dataclass(frozen=True, slots=True)
class Definition:
    """What a subscription selects, as its members must agree on it.

    Args:
        topic: Name of the topic.
        selector: As the application gave it; None for everything.
    """

    topic: str
    selector: str | None

    @classmethod
    def of(cls, spec: ConsumerSpec) -> Definition:
        """Return what a consumer asks for."""
        return cls(spec.address.name, spec.selector if spec.terms is None else spec.terms)

    @classmethod
    def read(cls, envelope: Envelope) -> Definition | None:
        """Return what a message of the leader's queue says; None when it is no definition."""
        try:
            content = json.loads(envelope.body if isinstance(envelope.body, str) else "")
            topic, selector = content["topic"], content["selector"]
        except (ValueError, KeyError, TypeError):
            return None
        return cls(topic, selector) if isinstance(topic, str) and isinstance(selector, str | None) else None

    def written(self, parts: Parts) -> PlainEnvelope:
        """Return the message that keeps it at the broker."""
        body = json.dumps({"topic": self.topic, "selector": self.selector})
        return PlainEnvelope(MessageKind.TEXT, parts.leader, body=body)


def presence(parts: Parts) -> PlainEnvelope:
    """Return the message that a connection holds as long as it has a member."""
    return PlainEnvelope(MessageKind.TEXT, parts.members, body="a member is connected")
