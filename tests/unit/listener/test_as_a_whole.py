"""What must happen as a whole: an activation of several callbacks, and the end of a message at its limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jmsapi import Message
from jmsapi.listener import DeploymentException, JMSQueueListener, MessageDriven, deploy
from jmsapi.testing import EmbeddedBroker

from .bench import wait_until


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as made:
        yield made


def test_when_the_second_of_two_callbacks_is_refused_the_first_has_no_connection_left(broker: EmbeddedBroker) -> None:
    def target(client_id: str) -> object:
        def on_message(message: Message) -> None:
            raise AssertionError(f"nothing is active, and yet {message!r} came")

        return MessageDriven({"destination": "q", "clientId": client_id}, name=client_id)(JMSQueueListener()(on_message))

    with broker.connection_factory().create_connection() as holder:
        holder.client_id = "taken"
        deployment = deploy(target("free"), target("taken"), factory=broker.connection_factory(), start=False)
        with pytest.raises(DeploymentException, match="taken cannot be activated"):
            deployment.start()
        assert broker.connections == 1, broker.summary()
    broker.queue("q").send("stays")
    broker.queue("q").assert_received("stays", count=1)


def test_a_message_that_is_deleted_at_its_limit_goes_nowhere(broker: EmbeddedBroker) -> None:
    def on_message(_: Message) -> None:
        raise ValueError("poison")

    terms = {"destination": "q", "redeliveryLimit": 1, "redeliveryAction": "Delete"}
    target = MessageDriven(terms, name="deletes")(JMSQueueListener()(on_message))
    broker.queue("q").send("poison")
    with deploy(target, factory=broker.connection_factory(), on_error=lambda _name, _error: None) as deployment:
        wait_until(lambda: deployment.health.endpoints[0].given_up == 1, "the message is given up")
    assert broker.summary().count("was sent") == 1, broker.summary()
