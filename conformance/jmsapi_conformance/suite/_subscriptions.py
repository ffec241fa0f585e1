"""The four kinds of subscription, and what several consumers of one receive between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, overload

import pytest

from jmsapi import JMSConsumer, JMSContext, MessageConsumer, Session, Topic
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import PATIENCE_MS, QUIET_MS, expect_nothing_for, send_texts, text_of
from jmsapi_conformance.marks import needs

__all__ = [
    "AnyConsumer",
    "each_durable_kind",
    "each_ended_kind",
    "each_kind",
    "each_named_kind",
    "each_shared_kind",
    "end_of",
    "in_total",
    "own_name",
    "received_between",
    "subscribe",
]

AnyConsumer = MessageConsumer | JMSConsumer
_PLAIN: Final = "plain"
_DURABLE: Final = pytest.param("durable", marks=needs("durable_subscription"))
_SHARED: Final = pytest.param("shared", marks=needs("shared_subscription"))
_SHARED_DURABLE: Final = pytest.param("shared durable", marks=needs("shared_durable_subscription"))
each_kind = pytest.mark.parametrize("kind", [_PLAIN, _SHARED, _DURABLE, _SHARED_DURABLE])
each_named_kind = pytest.mark.parametrize("kind", [_SHARED, _DURABLE, _SHARED_DURABLE])
each_shared_kind = pytest.mark.parametrize("kind", [_SHARED, _SHARED_DURABLE])
_ENDED: Final = pytest.param("shared durable", marks=needs("shared_durable_subscription", "shared_unsubscribe"))
each_ended_kind = pytest.mark.parametrize("kind", [_DURABLE, _ENDED])
"""For tests that unsubscribe."""
each_durable_kind = pytest.mark.parametrize("kind", [_DURABLE, _SHARED_DURABLE])


@overload
def subscribe(client: Session, kind: str, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer: ...


@overload
def subscribe(client: JMSContext, kind: str, topic: Topic, name: str, selector: str | None = None) -> JMSConsumer: ...


def subscribe(client: Session | JMSContext, kind: str, topic: Topic, name: str, selector: str | None = None) -> AnyConsumer:
    """Create a consumer on a subscription of one kind; a plain one has no name."""
    if kind == "plain":
        return client.create_consumer(topic, selector)
    if kind == "shared":
        return client.create_shared_consumer(topic, name, selector)
    if kind == "durable":
        return client.create_durable_consumer(topic, name, selector)
    return client.create_shared_durable_consumer(topic, name, selector)


def received_between(consumers: Sequence[AnyConsumer], count: int, *, turn_ms: float = 5) -> list[list[str]]:
    """Return the texts that each consumer receives, as soon as they are so many in total; then nothing more may come.

    They receive one message each by turns, and whoever has none within ``turn_ms`` misses its turn.
    """
    received: list[list[str]] = [[] for _ in consumers]
    end = time.monotonic() + PATIENCE_MS / 1000
    while (so_far := sum(map(len, received))) < count:
        assert time.monotonic() < end, f"{so_far} of {count} within {PATIENCE_MS:g} ms: {received!r}"
        for consumer, texts in zip(consumers, received, strict=True):
            message = consumer.receive(turn_ms)
            if message is not None:
                texts.append(str(text_of(message)))
    # What has come to the others while the first one waits they have at once.
    for number, consumer in enumerate(consumers):
        expect_nothing_for(consumer, 20 if number else QUIET_MS)
    return received


def in_total(received: Sequence[Sequence[str]]) -> list[str]:
    """Return what several consumers have received as one sorted list."""
    return sorted(text for texts in received for text in texts)


def end_of(consumer: AnyConsumer, session: Session, topic: Topic, **properties: object) -> list[str]:
    """Send an end behind what a consumer still gets, and return the texts before it."""
    send_texts(session, topic, "the end", **properties)
    texts: list[str] = []
    while not texts or texts[-1] != "the end":
        message = consumer.receive(PATIENCE_MS)
        assert message is not None, f"the end did not come behind {texts!r}"
        texts.append(str(text_of(message)))
    return texts[:-1]


def own_name(names: Names, ending: str) -> str:
    """Return a subscription name with an ending of the test's choice; it is unsubscribed after the test."""
    name = f"{names.subscription()}{ending}"
    names.subscriptions.append(name)
    return name
