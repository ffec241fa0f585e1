"""How long a call waits: milliseconds or a timedelta, and a warning where a number looks like seconds."""

import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

import jmsapi
from jmsapi import Connection, IllegalArgumentException, JMSContext, MessageConsumer
from jmsapi._core import timeouts

Call = Callable[..., object]


@pytest.fixture(autouse=True)
def nobody_has_been_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "_warned", {})


@pytest.fixture
def connection() -> Iterator[Connection]:
    with jmsapi.connection_factory("inproc://timeouts", checked=True).create_connection() as made:
        made.start()
        yield made


@pytest.fixture
def context() -> Iterator[JMSContext]:
    with jmsapi.connection_factory("inproc://timeouts", checked=True).create_context() as made:
        yield made


@pytest.fixture
def consumer(connection: Connection) -> MessageConsumer:
    session = connection.create_session()
    return session.create_consumer(session.create_queue("waited for"))


@pytest.fixture(params=["receive", "JMSConsumer.receive", "receive_body"])
def call(request: pytest.FixtureRequest, consumer: MessageConsumer, context: JMSContext) -> tuple[str, Call]:
    simplified = context.create_consumer(context.create_queue("waited for, too"))

    def body(*timeout: Any, **named: Any) -> object:
        return simplified.receive_body(str, *timeout, **named)

    calls: dict[str, Call] = {
        "receive": consumer.receive,
        "JMSConsumer.receive": simplified.receive,
        "receive_body": body,
    }
    return request.param.rpartition(".")[2], calls[request.param]


def test_a_small_float_without_a_name_is_warned_of_once_and_by_name(call: tuple[str, Call]) -> None:
    method, receive = call
    with pytest.warns(
        UserWarning, match=rf"^{method}\(2.0\) waits for 2.0 milliseconds; .*timeout_ms=2000 or a timedelta"
    ) as seen:
        assert receive(2.0) is None
    assert [Path(one.filename) for one in seen] == [Path(__file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert receive(2.0) is None


@pytest.mark.parametrize("timeout", [2, 10.0, Fraction(1, 2), timedelta(milliseconds=2)])
def test_what_does_not_look_like_seconds_is_not_warned_of(call: tuple[str, Call], timeout: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call[1](timeout) is None


def test_a_small_float_with_its_name_is_taken_as_it_is(call: tuple[str, Call]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call[1](timeout_ms=2.0) is None


@pytest.mark.parametrize("timeout", [timedelta(minutes=5), 300_000, None, 0, timedelta(0)])
def test_a_timedelta_waits_as_long_as_it_says(consumer: MessageConsumer, timeout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(type(consumer), "pull", lambda self, longest, *, finish: asked.append(longest))
    assert consumer.receive(timeout_ms=timeout) is None
    assert asked == [300_000 if timeout else timeout if timeout is None else 0]


@pytest.mark.parametrize("timeout", [timedelta(microseconds=-1), -1, -0.5, float("nan"), "5", 1j])
def test_what_is_no_timeout_is_refused(call: tuple[str, Call], timeout: object) -> None:
    with pytest.raises(IllegalArgumentException, match=f"{call[0]}: a timeout is a number of"):
        call[1](cast("Any", timeout))
