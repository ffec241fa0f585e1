"""Batches that are moved to the queue of a shared subscription: nothing is acknowledged that is not in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar, cast

import pytest

from jmsapi._emulation.shared_subscriptions.auxiliary import AuxiliaryConnection, SendToken
from jmsapi._emulation.shared_subscriptions.forwarder import Forwarder
from jmsapi._emulation.shared_subscriptions.parts import Parts
from jmsapi.spi import (
    DONE,
    Address,
    Delivery,
    DestinationKind,
    Envelope,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
    Tag,
    completed,
)

T = TypeVar("T")
PARTS = Parts(None, "news", True)
TOPIC = Address(DestinationKind.TOPIC, "t")


class ScriptedBroker:
    """Answers at once and writes down what it is asked; it refuses messages with a certain text."""

    def __init__(self) -> None:
        self.provider = self
        self.asked: list[str] = []
        self.commit: Future[None] = DONE
        self._begun = 0

    def call(self, future: Future[T], asked: str) -> T:
        if future is self.commit:
            self.asked.append("wait")
        return future.result(0)

    def begin(self, session: Handle) -> Future[Handle]:
        self._begun += 1
        return completed(ScriptedHandle(self._begun))

    def send(self, producer: Handle, envelope: Envelope, tx: ScriptedHandle, token: SendToken) -> None:
        self.asked.append(f"send {envelope.body!s} in {tx.number}")
        refusal = ProviderError(ErrorKind.SECURITY, "may not write") if envelope.body == "refused" else None
        token.answers.answered(refusal)

    def settle(self, tags: Sequence[Tag], outcome: Outcome, tx: ScriptedHandle) -> Future[None]:
        self.asked.append(f"accept {len(tags)} in {tx.number}")
        return DONE

    def end(self, tx: ScriptedHandle, *, commit: bool) -> Future[None]:
        assert commit
        self.asked.append(f"commit {tx.number}")
        self.commit = Future()
        self.commit.set_result(None)
        return self.commit


class ScriptedHandle(Handle):
    """Has a number."""

    def __init__(self, number: int) -> None:
        self.number = number


def batch(*texts: str) -> list[Delivery]:
    """Return messages as they come from the durable subscription."""
    return [Delivery(Tag(), PlainEnvelope(MessageKind.TEXT, TOPIC, body=text), 1) for text in texts]


def _never(*_: object) -> NoReturn:
    raise AssertionError("it does not run")


def move(broker: ScriptedBroker, texts: Sequence[str]) -> None:
    """Have a forwarder move messages in one transaction."""
    forwarder = Forwarder(PARTS, TOPIC.name, None, _never, 10, _never)
    handle: Any = ScriptedHandle(0)
    tx = broker.begin(handle).result(0)
    forwarder.move(cast("AuxiliaryConnection", broker), handle, handle, tx, batch(*texts))


def test_what_was_forwarded_is_acknowledged_in_the_same_transaction() -> None:
    broker = ScriptedBroker()
    move(broker, ["a", "b"])
    assert broker.asked == ["send a in 1", "send b in 1", "accept 2 in 1", "commit 1", "wait"]


def test_what_the_broker_refuses_is_not_acknowledged_nor_is_what_was_sent_with_it() -> None:
    broker = ScriptedBroker()
    with pytest.raises(ProviderError, match="may not write"):
        move(broker, ["a", "refused"])
    assert broker.asked == ["send a in 1", "send refused in 1"]
