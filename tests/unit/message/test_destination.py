"""Destinations: equality, names, copies, and who may delete."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from jmsapi._core.destination import (
    QueueImpl,
    TemporaryQueueImpl,
    TemporaryTopicImpl,
    TopicImpl,
    address_of,
    destination_for,
)
from jmsapi.api import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsapi.errors import InvalidDestinationException, JMSException
from jmsapi.spi import Address, DestinationKind

KINDS: list[tuple[DestinationKind, type[Any], type[Any]]] = [
    (DestinationKind.QUEUE, QueueImpl, Queue),
    (DestinationKind.TOPIC, TopicImpl, Topic),
    (DestinationKind.TEMPORARY_QUEUE, TemporaryQueueImpl, TemporaryQueue),
    (DestinationKind.TEMPORARY_TOPIC, TemporaryTopicImpl, TemporaryTopic),
]


class Owner:
    def __init__(self) -> None:
        self.deleted: list[Address] = []

    def delete_temporary(self, address: Address) -> None:
        self.deleted.append(address)


@pytest.mark.parametrize(("kind", "cls", "interface"), KINDS)
def test_an_address_becomes_an_object_of_its_kind_and_back(kind: DestinationKind, cls: type[Any], interface: type[Any]) -> None:
    destination = destination_for(Address(kind, "a/b c.ü"))
    assert type(destination) is cls
    assert isinstance(destination, interface)
    assert address_of(destination) == Address(kind, "a/b c.ü")
    assert str(destination) == "a/b c.ü"
    name = getattr(destination, "topic_name" if kind.is_topic else "queue_name")
    assert name == "a/b c.ü"
    assert not hasattr(destination, "__dict__")


def test_kind_and_name_make_equality() -> None:
    everything = [destination_for(Address(kind, name)) for kind in DestinationKind for name in ("a", "b")]
    assert len(set(everything)) == 8
    assert set(everything) == {destination_for(Address(kind, name)) for kind in DestinationKind for name in ("a", "b")}
    assert QueueImpl("a") != "a"


@pytest.mark.parametrize("name", ["", None, 5, b"q", "\ud800"])
@pytest.mark.parametrize("cls", [QueueImpl, TopicImpl, TemporaryQueueImpl, TemporaryTopicImpl])
def test_a_name_is_text_that_is_not_empty(cls: Any, name: Any) -> None:
    with pytest.raises(InvalidDestinationException):
        cls(name)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("destination", [QueueImpl("q"), TopicImpl("t")])
def test_a_destination_can_be_pickled_and_copied(destination: Destination, protocol: int) -> None:
    assert pickle.loads(pickle.dumps(destination, protocol)) == destination
    assert copy.copy(destination) == copy.deepcopy(destination) == destination


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("cls", [TemporaryQueueImpl, TemporaryTopicImpl])
def test_a_temporary_destination_can_not(cls: Any, copied: Any) -> None:
    with pytest.raises(TypeError, match="copied"):
        copied(cls("t", Owner()))


@pytest.mark.parametrize("kind", [DestinationKind.TEMPORARY_QUEUE, DestinationKind.TEMPORARY_TOPIC])
def test_only_the_owner_deletes_a_temporary_destination(kind: DestinationKind) -> None:
    owner, address = Owner(), Address(kind, "t")
    owned: Any = destination_for(address, owner)
    met: Any = destination_for(address)
    with pytest.raises(JMSException, match="connection that created it"):
        met.delete()
    owned.delete()
    assert owner.deleted == [address]


class TheirQueue(Queue):
    def __init__(self, name: Any) -> None:
        self._name = name

    @property
    def queue_name(self) -> Any:
        return self._name

    def __str__(self) -> str:
        return "theirs"


class TheirTopic(TemporaryTopic):
    @property
    def topic_name(self) -> str:
        return "t"

    def delete(self) -> None:
        raise AssertionError("nobody asked")

    def __str__(self) -> str:
        return "theirs"


def test_a_foreign_destination_is_taken_by_its_name() -> None:
    assert address_of(TheirQueue("q")) == Address(DestinationKind.QUEUE, "q")
    assert address_of(TheirTopic()) == Address(DestinationKind.TEMPORARY_TOPIC, "t")


@pytest.mark.parametrize(
    "what", [None, "queue", 5, Destination, TheirQueue(""), TheirQueue(None)], ids=lambda it: type(it).__name__
)
def test_anything_else_is_no_destination(what: Any) -> None:
    with pytest.raises(InvalidDestinationException):
        address_of(what)


def test_repr_tells_kind_and_name() -> None:
    assert repr(TemporaryQueueImpl("x")) == "<temporary queue 'x'>"
