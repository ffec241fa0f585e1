"""A durable subscription that one client makes and the other uses: jmsapi over AMQP and Apache Qpid JMS share the broker's."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi_conformance.brokers import Broker

WAIT_MS = 10_000


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
