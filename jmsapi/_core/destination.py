"""Destinations: a kind and a name, as objects an application can hold, compare and, unless temporary, pickle.

A destination knows nothing of a connection. Only a temporary one may have an owner, the connection that made it; the
owner deletes it. The same address met elsewhere (JMSReplyTo of a received message) equals it and has no such right.

Spec: 4.2.1-1, 4.4.3-2, 4.4.3-6, 4.4.3-8, 5.3-1, 6.5-1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, NoReturn, Protocol

from jmsapi.api import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsapi.errors import InvalidDestinationException, JMSException
from jmsapi.spi import Address, DestinationKind

__all__ = [
    "DestinationImpl",
    "QueueImpl",
    "TemporaryOwner",
    "TemporaryQueueImpl",
    "TemporaryTopicImpl",
    "TopicImpl",
    "address_of",
    "destination_for",
]


class TemporaryOwner(Protocol):
    """Who may delete a temporary destination: the connection that made it."""

    def delete_temporary(self, address: Address) -> None:
        """Delete it at the broker.

        Raises:
            JMSException: A consumer uses it, or the broker refused.
        """
        ...


def _checked_name(name: object, word: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidDestinationException(f"the name of a {word} must be text of at least one character, not {name!r}")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise InvalidDestinationException(f"the name of a {word} holds half of a surrogate pair: {name!r}") from error
    return name


class DestinationImpl(Destination):
    """What the four kinds share: an address, and equality by it."""

    __slots__ = ("_address",)
    kind: ClassVar[DestinationKind]
    _address: Address

    @property
    def address(self) -> Address:
        """Give kind and name as the SPI knows them."""
        return self._address

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DestinationImpl):
            return self._address == other._address
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._address)

    def __str__(self) -> str:
        return self._address.name

    def __repr__(self) -> str:
        return f"<{self.kind.name.replace('_', ' ').lower()} {self._address.name!r}>"


class QueueImpl(DestinationImpl, Queue):
    """A queue.

    Args:
        name: As the broker knows it; at least one character.
    Raises:
        InvalidDestinationException: The name is empty or no text.
    """

    __slots__ = ()
    kind = DestinationKind.QUEUE

    def __init__(self, name: str) -> None:
        self._address = Address(self.kind, _checked_name(name, "queue"))

    @property
    def queue_name(self) -> str:
        return self._address.name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._address.name,)


class TopicImpl(DestinationImpl, Topic):
    """A topic.

    Args:
        name: As the broker knows it; at least one character.
    Raises:
        InvalidDestinationException: The name is empty or no text.
    """

    __slots__ = ()
    kind = DestinationKind.TOPIC

    def __init__(self, name: str) -> None:
        self._address = Address(self.kind, _checked_name(name, "topic"))

    @property
    def topic_name(self) -> str:
        return self._address.name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._address.name,)


class TemporaryQueueImpl(QueueImpl, TemporaryQueue):
    """A queue that lives as long as the connection that made it.

    Args:
        name: As the broker knows it.
        owner: Who may delete it; None when it was met in a message or made by another connection.
    """

    __slots__ = ("_owner",)
    kind = DestinationKind.TEMPORARY_QUEUE

    def __init__(self, name: str, owner: TemporaryOwner | None = None) -> None:
        super().__init__(name)
        self._owner = owner

    def delete(self) -> None:
        _owner_of(self._owner, self).delete_temporary(self._address)

    def __reduce__(self) -> NoReturn:
        raise _not_copied(self)


class TemporaryTopicImpl(TopicImpl, TemporaryTopic):
    """A topic that lives as long as the connection that made it.

    Args:
        name: As the broker knows it.
        owner: Who may delete it; None when it was met in a message or made by another connection.
    """

    __slots__ = ("_owner",)
    kind = DestinationKind.TEMPORARY_TOPIC

    def __init__(self, name: str, owner: TemporaryOwner | None = None) -> None:
        super().__init__(name)
        self._owner = owner

    def delete(self) -> None:
        _owner_of(self._owner, self).delete_temporary(self._address)

    def __reduce__(self) -> NoReturn:
        raise _not_copied(self)


def _owner_of(owner: TemporaryOwner | None, what: DestinationImpl) -> TemporaryOwner:
    if owner is None:
        raise JMSException(f"{what!r} can only be deleted by the connection that created it")
    return owner


def _not_copied(what: DestinationImpl) -> TypeError:
    return TypeError(f"{what!r} lives with its connection and can be neither copied nor pickled")


def destination_for(address: Address, owner: TemporaryOwner | None = None) -> Destination:
    """Make the object for an address.

    Args:
        address: Kind and name.
        owner: Who may delete it, should it be temporary.
    Returns:
        A Queue, Topic, TemporaryQueue or TemporaryTopic; equal to every other one of the same address.
    Threads: any.
    """
    kind, name = address
    if kind is DestinationKind.QUEUE:
        return _lasting(QueueImpl, name)
    if kind is DestinationKind.TOPIC:
        return _lasting(TopicImpl, name)
    if kind is DestinationKind.TEMPORARY_QUEUE:
        return TemporaryQueueImpl(name, owner)
    return TemporaryTopicImpl(name, owner)


@lru_cache(maxsize=1024)
def _lasting(made: type[QueueImpl | TopicImpl], name: str) -> Destination:
    """Make a queue or topic; it never changes, so messages of one place may share it."""
    return made(name)


def address_of(destination: object) -> Address:
    """Give the address behind a destination, ours or anybody's.

    Args:
        destination: One of ours, or another implementation of Queue or Topic, which is taken by its name.
    Raises:
        InvalidDestinationException: None, no destination, or one without a name.
    Threads: any.
    Spec: 3.12-1, 7.3-13.
    """
    if isinstance(destination, DestinationImpl):
        return destination.address
    if isinstance(destination, Queue):
        kind = DestinationKind.TEMPORARY_QUEUE if isinstance(destination, TemporaryQueue) else DestinationKind.QUEUE
        return Address(kind, _checked_name(destination.queue_name, "queue"))
    if isinstance(destination, Topic):
        kind = DestinationKind.TEMPORARY_TOPIC if isinstance(destination, TemporaryTopic) else DestinationKind.TOPIC
        return Address(kind, _checked_name(destination.topic_name, "topic"))
    raise InvalidDestinationException(f"a Queue or a Topic is needed, not {destination!r}")
