"""A durable subscription that one client makes and the other uses: jmsapi over AMQP and Apache Qpid JMS share the broker's."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi_conformance.brokers import Broker

WAIT_MS = 30_000


def text(body: str, tag: str) -> dict[str, Any]:
    return {"kind": "text", "body": body, "properties": {"tag": ["string", tag]}}


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in ("artemis", "classic")])
def broker(request: pytest.FixtureRequest) -> Broker:
    """Give each broker whose durable subscriptions both clients share."""
    found: Broker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def opened(broker: Broker, open_line: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Give a function that opens a line to the broker; what is still open at the end is closed."""
    lines: list[Any] = []

    def open_one(client: str, client_id: str | None = None) -> Any:
        lines.append(open_line(broker, client, client_id))
        return lines[-1]

    yield open_one
    for line in lines:
        with contextlib.suppress(Exception):  # closed by the test already
            line.close()


# Brokers compare selectors as texts. This one goes to them as it is; docs/interop.md says what becomes of others.
@pytest.mark.parametrize("selector", [None, "tag LIKE 'k%'"])
@pytest.mark.parametrize(("maker", "user"), [("amqp", "qpid-jms"), ("qpid-jms", "amqp")])
def test_a_durable_subscription_made_by_one_is_used_and_ended_by_the_other(
    opened: Callable[..., Any], maker: str, user: str, selector: str | None
) -> None:
    client_id = f"interop.{uuid.uuid4().hex}"
    topic = ["topic", f"interop.{uuid.uuid4().hex}"]
    sender = opened("amqp")
    making = opened(maker, client_id)
    making.stop_consuming(making.consume(topic, selector, "news"))
    if selector is not None:
        sender.send(topic, text("left out", "x"))
    sender.send(topic, text("kept", "k"))
    making.close()
    using = opened(user, client_id)
    consumer = using.consume(topic, selector, "news")
    message = using.receive(consumer, WAIT_MS)
    assert message is not None
    assert (message["body"], message["destination"]) == ("kept", topic)
    sender.send(topic, text("at once", "kk"))
    message = using.receive(consumer, WAIT_MS)
    assert message is not None
    assert message["body"] == "at once"
    using.stop_consuming(consumer)
    using.unsubscribe("news")


@pytest.mark.parametrize("client_id", [None, "interop.shared"])
def test_both_are_members_of_one_shared_durable_subscription_on_artemis(
    artemis: Broker, open_line: Callable[..., Any], client_id: str | None
) -> None:
    # A client id has one connection, so with one the members come one after the other.
    topic, name = ["topic", f"interop.{uuid.uuid4().hex}"], f"s{uuid.uuid4().hex}"
    ours = open_line(artemis, "amqp", client_id)
    first = ours.consume(topic, shared=name)
    if client_id is not None:
        ours.stop_consuming(first)
        ours.close()
    java = open_line(artemis, "qpid-jms", client_id)
    second = java.consume(topic, shared=name)
    for number in range(10):
        java.send(topic, text(str(number), "x"))
    lines = [(java, second)] if client_id is not None else [(ours, first), (java, second)]
    counts = [0] * len(lines)
    deadline = time.monotonic() + 30
    while sum(counts) < 10 and time.monotonic() < deadline:
        for number, (line, consumer) in enumerate(lines):
            counts[number] += line.receive(consumer, 100) is not None
    assert sum(counts) == 10
    assert min(counts) > 0
    for line, consumer in lines:
        assert line.receive(consumer, 100) is None
        line.stop_consuming(consumer)
    java.unsubscribe(name)
    for line, _ in lines:
        line.close()


def test_a_java_publisher_reaches_members_over_both_wires_of_one_shared_subscription_on_classic(
    classic: Broker, open_line: Callable[..., Any]
) -> None:
    topic, name = ["topic", f"interop.{uuid.uuid4().hex}"], f"s{uuid.uuid4().hex}"
    java, *members = lines = [open_line(classic, client) for client in ("openwire", "amqp", "stomp")]
    consumers = [member.consume(topic, "tag = 'k'", shared=name) for member in members]
    sent = [java.send(topic, text(str(number), "k" if number % 2 == 0 else "x"), priority=7) for number in range(20)]
    got: list[list[dict[str, Any]]] = [[], []]
    deadline = time.monotonic() + 30
    while sum(map(len, got)) < 10 and time.monotonic() < deadline:
        for mine, member, consumer in zip(got, members, consumers, strict=True):
            message = member.receive(consumer, 200)
            if message is not None:
                mine.append(message)
    messages = [message for mine in got for message in mine]
    assert sorted(int(message["body"]) for message in messages) == list(range(0, 20, 2))
    assert {message["id"] for message in messages} == {stamps["id"] for stamps in sent[::2]}
    assert {(message["priority"], *message["destination"]) for message in messages} == {(7, *topic)}
    for member, consumer in zip(members, consumers, strict=True):
        assert member.receive(consumer, 200) is None
        member.stop_consuming(consumer)
    members[0].unsubscribe(name)
    for line in lines:
        line.close()
