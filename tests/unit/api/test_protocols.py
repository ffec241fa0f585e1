"""What a class of the application's own needs in order to take part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsapi.api import CompletionListener, ExceptionListener, MessageListener, QueueBrowser, XAResource, Xid
from jmsapi.api._closing import Closing
from jmsapi.errors import IllegalArgumentException


class Counter:
    """A listener for everything, without any base class."""

    def on_message(self, message: object) -> None: ...
    def on_exception(self, *problem: object) -> None: ...


class Both(Counter):
    def on_completion(self, message: object) -> None: ...


def test_a_listener_needs_the_method_and_no_base_class() -> None:
    assert isinstance(Counter(), MessageListener)
    assert isinstance(Counter(), ExceptionListener)
    assert not isinstance(print, MessageListener)


def test_a_completion_listener_needs_both_methods() -> None:
    assert isinstance(Both(), CompletionListener)
    assert not isinstance(Counter(), CompletionListener)


class Door(Closing):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.mark.requirement("4.3.5-6", "4.4.1-6", "B.5.11-1")
def test_with_gives_the_object_itself_and_closes_it() -> None:
    door = Door()
    with door as inside:
        assert inside is door
        assert door.closed == 0
    assert door.closed == 1


@pytest.mark.requirement("B.5.11-1")
def test_with_closes_when_the_block_raises_and_lets_the_error_pass() -> None:
    door = Door()
    with pytest.raises(KeyError, match="lost"), door:
        raise KeyError("lost")
    assert door.closed == 1


class Ab(QueueBrowser):
    """A browser of two messages."""

    @property
    def queue(self) -> Any:
        return None

    @property
    def message_selector(self) -> None:
        return None

    @property
    def enumeration(self) -> Iterator[Any]:
        return iter("ab")

    def close(self) -> None: ...


def test_going_through_a_browser_is_going_through_its_enumeration() -> None:
    assert list(Ab()) == ["a", "b"]


def test_a_transaction_name_keeps_to_the_limits_of_xa() -> None:
    longest = Xid(0, b"g" * 64, b"b" * 64)
    assert longest == Xid(0, b"g" * 64, b"b" * 64)
    assert longest in {longest}
    for bad in (
        lambda: Xid(-1, b"g"),
        lambda: Xid(2**31, b"g"),
        lambda: Xid(0, b""),
        lambda: Xid(0, b"g" * 65),
        lambda: Xid(0, b"g", b"b" * 65),
    ):
        with pytest.raises(IllegalArgumentException):
            bad()


def test_an_xa_resource_has_the_seven_methods_of_the_contract() -> None:
    class Resource:
        start = end = prepare = commit = rollback = recover = forget = lambda self: None

    class Half:
        start = end = prepare = lambda self: None

    assert isinstance(Resource(), XAResource)
    assert not isinstance(Half(), XAResource)
