"""Connections that are closed while they are being opened, and further ones that are left."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from jmsapi.spi import ErrorKind, ProviderError, SystemClock
from jmsapi_stomp.auxiliary_connections import AuxiliaryConnections
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.provider import StompProvider


class Nobody:
    """Expects no event."""

    def on_lost(self, cause: ProviderError) -> None:
        raise AssertionError(f"it is closed, not lost: {cause}")


def test_a_connection_that_is_closed_while_it_opens_ends_at_once() -> None:
    events: Any = Nobody()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {"scheme": "stomp", "host": "127.0.0.1", "port": silent.getsockname()[1], "connect_timeout_ms": 60_000}
        provider = StompProvider(StompOptions.model_validate(options), SystemClock())
        opened = provider.open(events)
        peer, _ = silent.accept()
        with peer:
            assert peer.recv(7) == b"CONNECT"
            provider.close().result(5)
            with pytest.raises(ProviderError) as caught:
                opened.result(5)
    assert caught.value.kind is ErrorKind.CLOSED


class Further:
    """A further connection, open, still connecting, or dead."""

    def __init__(self, *, connecting: bool = False, dead: ProviderError | None = None) -> None:
        self.connecting, self.dead, self.closing = connecting, dead, False
        self.asked: list[Any] = []
        self.ended = False

    def disconnect(self, done: Any) -> None:
        """Keep who waits for the broker's answer."""
        self.asked.append(done)

    def end(self, cause: ProviderError) -> None:
        """Be ended at once."""
        self.ended, self.dead = True, cause


@pytest.mark.parametrize("in_order", [True, False])
def test_a_further_connection_that_is_being_left_is_waited_for_or_ended_with_the_rest(in_order: bool) -> None:
    nothing: Any = None
    auxiliary: Any = AuxiliaryConnections(nothing, nothing, nothing, nothing, nothing)
    one = Further()
    auxiliary._open[:] = [one]
    leaving = auxiliary.leave(one)
    leaving.send(None)
    answers: list[object] = []
    if in_order:
        auxiliary.leave_all(answers.append)
        assert (len(one.asked), answers) == (2, [])
        one.asked[1](None)
        assert answers == [None]
    else:
        auxiliary.drop_all()
        assert one.ended
    leaving.close()
    assert auxiliary._open == []


def test_further_connections_are_left_in_order_where_they_are_open() -> None:
    nothing: Any = None
    auxiliary: Any = AuxiliaryConnections(nothing, nothing, nothing, nothing, nothing)
    one, two = Further(), Further()
    connecting, dead = Further(connecting=True), Further(dead=ProviderError(ErrorKind.CONNECTION, "gone"))
    auxiliary._open[:] = [one, connecting, two, dead]
    answers: list[object] = []
    auxiliary.leave_all(answers.append)
    assert [len(each.asked) for each in (one, two, connecting, dead)] == [1, 1, 0, 0]
    assert (connecting.ended, dead.ended) == (True, False)
    one.asked[0](None)
    assert answers == []
    two.asked[0](ProviderError(ErrorKind.CONNECTION, "whatever it says"))
    assert answers == [None]
